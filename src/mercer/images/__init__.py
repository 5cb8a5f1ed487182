"""Transformers that clean images or compute features of them.

Every transformer takes images as an array (n, h, w), as (n, h, w, 3) in colour, or
flattened to rows (n, h * w).  All numeric types are accepted: float32, float16, bool
and integers of up to 16 bits give float32 results, other types give float64.  Threads
share the images, and each image is transformed on its own, so the results do not depend
on the number of threads.

>>> import numpy as np
>>> from sklearn.pipeline import make_pipeline
>>> from mercer.images import HOG, Deskew, Trim
>>> images = np.random.default_rng(0).integers(0, 256, (10, 28, 28), dtype=np.uint8)
>>> make_pipeline(Deskew(), Trim(), HOG(cell_size=7)).fit_transform(images).shape
(10, 324)
"""

from mercer.images.colours import ColourHistogram
from mercer.images.deskew import Deskew
from mercer.images.distort import Distort
from mercer.images.filters import GaussianBlur, MedianFilter
from mercer.images.hog import HOG
from mercer.images.patches import PatchFeatures
from mercer.images.pixels import GaussianProjection, Rescale, ToGrey
from mercer.images.trim import Trim
from mercer.images.views import Views
from mercer.images.virtual import VirtualSVC

__all__ = [
    "HOG",
    "ColourHistogram",
    "Deskew",
    "Distort",
    "GaussianBlur",
    "GaussianProjection",
    "MedianFilter",
    "PatchFeatures",
    "Rescale",
    "ToGrey",
    "Trim",
    "Views",
    "VirtualSVC",
]
