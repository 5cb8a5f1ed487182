"""Features of images that several studies use."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.extmath import randomized_svd

from mercer.images import HOG, Deskew
from mercer.runtime.validation import stores_parameters
from studies.published import Late

__all__ = [
    "CHOSEN_EARLIER",
    "Compressed",
    "MeanDistance",
    "Notebook",
    "Remembered",
    "digit_features",
    "feature_words",
    "mean_distance",
    "pixels",
]

CHOSEN_EARLIER = Late(
    "The changes that the recipes of “Beyond the report” try, and the sizes of HOG, of "
    "patches, of distortions and of C",
    "Before these recipes were scored, after test scores of earlier recipes had been "
    "seen",
    "Training images of MNIST (the last 10,000 for HOG, draws from all 60,000 for "
    "patches, distortions and machines of several classes) and folds of the training "
    "images of CIFAR-10. Some of them can be among the images that the sample, "
    "ecoc-digits and three-vs-eight set apart for testing.",
)
# Number of samples from which the mean distance is estimated.
ENOUGH = 5000
# Number of images that are described at a time: the long descriptions of all images
# never exist at once.
AT_ONCE = 4096


def pixels(images: NDArray) -> NDArray[np.float32]:
    """Return images as rows of pixels in [0, 1]."""
    return (images.reshape(len(images), -1) / np.float32(255)).astype(np.float32)


def digit_features() -> Pipeline:
    """Return the transformer that makes the features of the best model of digits."""
    return make_pipeline(Deskew("moments"), HOG(4, 3, 12, "L1-sqrt", True, True))


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


class Compressed(TransformerMixin, BaseEstimator):
    """Describe images, and keep the principal components of the descriptions.

    Distances hardly change if most of the variance is kept, and machines on thousands
    of columns become machines on some hundred.  The components come from some thousand
    of the images.

    Parameters
    ----------
    view : transformer
        What describes the images.
    n_components : int
        Number of components, at most the number of images or of columns.
    n_images : int, default=10000
        Number of images, about, from which the components are found.
    """

    @stores_parameters
    def __init__(self, view: Any, n_components: int, n_images: int = 10_000): ...

    def fit(self, X: NDArray, y: Any = None) -> Compressed:
        """Fit the view to all images, and find the components."""
        self.view_ = clone(self.view).fit(X, y)
        some = X[:: max(1, len(X) // self.n_images)]
        described = self._describe(some)
        self.mean_ = described.mean(axis=0)
        described -= self.mean_
        count = min(self.n_components, *described.shape)
        *_, self.components_ = randomized_svd(
            described, count, n_iter=2, random_state=0
        )
        return self

    def _describe(self, X: NDArray) -> NDArray:
        return self.view_.transform(X).reshape(len(X), -1)

    def transform(self, X: NDArray) -> NDArray:
        """Return the components of the descriptions."""
        parts = [
            (self._describe(X[first : first + AT_ONCE]) - self.mean_)
            @ self.components_.T
            for first in range(0, len(X), AT_ONCE)
        ]
        return np.concatenate(parts)


class Notebook:
    """Results that are kept until newer ones need their room.

    Parameters
    ----------
    room : float, default=2000
        Megabytes for all results.
    """

    def __init__(self, room: float = 2000.0):
        self.room = room
        self._kept: OrderedDict[Any, tuple[Any, int]] = OrderedDict()

    def __deepcopy__(self, memo: Any) -> Notebook:
        return self  # clones of an estimator write into the same notebook

    def look_up(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what is kept under a key; what is not there is made."""
        if key not in self._kept:
            found = make()
            self._kept[key] = (found, getattr(found, "nbytes", 0))
            while sum(size for _, size in self._kept.values()) > self.room * 2**20:
                self._kept.popitem(last=False)
            return found
        self._kept.move_to_end(key)
        return self._kept[key][0]


class Remembered(TransformerMixin, BaseEstimator):
    """A view whose results are kept in a notebook, for images that come again."""

    def __init__(self, view: Any, notebook: Notebook):
        self.view = view
        self.notebook = notebook

    def fit(self, X: NDArray, y: Any = None) -> Remembered:
        """Fit the view, or take the one that was fitted to the same images."""
        self.key_ = (repr(self.view), _digest(X))
        self.view_ = self.notebook.look_up(
            self.key_, lambda: clone(self.view).fit(X, y)
        )
        return self

    def transform(self, X: NDArray) -> NDArray:
        """Return the view of the images, which is made once."""
        key = (self.key_, _digest(X))
        return self.notebook.look_up(key, lambda: self.view_.transform(X))


def _digest(X: NDArray) -> tuple[Any, ...]:
    """Return a short text that stands for an array."""
    content = hashlib.blake2b(np.ascontiguousarray(X).view(np.uint8), digest_size=16)
    return X.shape, X.dtype.str, content.hexdigest()
