"""Images in stacks: clean-up and features, as scikit-learn transformers.

All take images as (n, h, w), in colour as (n, h, w, 3), or flattened to rows, of any
numeric type.  Single precision and small integers give float32, other types float64.
Images are worked on in threads, each by itself: results do not depend on how many.

>>> import numpy as np
>>> from sklearn.pipeline import make_pipeline
>>> from mercer.images import HOG, Deskew, Trim
>>> images = np.random.default_rng(0).integers(0, 256, (10, 28, 28), dtype=np.uint8)
>>> make_pipeline(Deskew(), Trim(), HOG(cell_size=7)).fit_transform(images).shape
(10, 324)
"""

from mercer.images.deskew import Deskew
from mercer.images.filters import GaussianBlur, MedianFilter
from mercer.images.hog import HOG
from mercer.images.pixels import GaussianProjection, Rescale, ToGrey
from mercer.images.trim import Trim
from mercer.images.views import Views

__all__ = [
    "HOG",
    "Deskew",
    "GaussianBlur",
    "GaussianProjection",
    "MedianFilter",
    "Rescale",
    "ToGrey",
    "Trim",
    "Views",
]
