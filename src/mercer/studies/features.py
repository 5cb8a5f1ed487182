"""Features of images that several studies use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline, make_pipeline

from mercer.images import HOG, Deskew
from mercer.studies.published import Late

__all__ = [
    "CHOSEN_EARLIER",
    "MeanDistance",
    "digit_features",
    "feature_words",
    "mean_distance",
    "photo_features",
    "pixels",
]

CHOSEN_EARLIER = Late(
    "The changes that the recipes of “Beyond the report” try, and the sizes of HOG, of "
    "patches and of distortions",
    "Before these recipes were scored, after test scores of earlier recipes had been "
    "seen",
    "Training images of MNIST (the last 10,000 for HOG, draws from all 60,000 for "
    "patches and distortions) and folds of the training images of CIFAR-10. Some of "
    "them can be among the images that the sample, ecoc-digits and three-vs-eight set "
    "apart for testing.",
)
# Number of samples from which the mean distance is estimated.
ENOUGH = 5000


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


def feature_words(transformer: Any) -> str:
    """Return what a transformer of images makes, in words, from its own parts.

    >>> feature_words(make_pipeline(Deskew("moments"), HOG()))
    'deskewed HOG'
    """
    parts = getattr(transformer, "steps", [("", transformer)])
    return " ".join(_word(part) for _, part in parts)


def _word(part: Any) -> str:
    words = {"Deskew": "deskewed", "ToGrey": "grey", "Trim": "trimmed"}
    name = type(part).__name__
    return words.get(name, name)


class MeanDistance(TransformerMixin, BaseEstimator):
    """Scale features so that the mean of |x - z|² over pairs of samples is given."""

    def __init__(self, distance: float = 1.0):
        self.distance = distance

    def fit(self, X: NDArray, y: Any = None) -> MeanDistance:
        """Estimate the mean squared distance from some thousand samples."""
        some = X[:: max(1, len(X) // ENOUGH)]
        found = mean_distance(some)
        self.scale_ = np.sqrt(self.distance / found) if found > 0 else 1.0
        return self

    def transform(self, X: NDArray) -> NDArray:
        """Return the scaled features."""
        return X * X.dtype.type(self.scale_)
