"""Features of images that several studies use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline, make_pipeline

from mercer.images import HOG, Deskew

__all__ = ["digit_features", "mean_distance", "photo_features", "pixels"]


def pixels(images: NDArray) -> NDArray[np.float32]:
    """Return images as rows of pixels in [0, 1]."""
    return (images.reshape(len(images), -1) / np.float32(255)).astype(np.float32)


def digit_features() -> Pipeline:
    """Return the transformer that makes the features of the best model of digits."""
    return make_pipeline(Deskew("moments"), HOG(4, 3, 12, "L1-sqrt", True, True))


def photo_features() -> HOG:
    """Return the transformer that makes the features of the best model of photos."""
    return HOG(8, 2, 18, "L1-sqrt", True, True)


def mean_distance(X: NDArray) -> float:
    """Return the mean of |x - z|² over all pairs of rows: a unit for 1 / γ."""
    return 2.0 * float(X.var(axis=0, dtype=np.float64).sum())
