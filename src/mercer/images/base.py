"""What all transformers of images share: reading, batches, threads, progress."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.fitting import fit_method
from mercer.images.stack import Stack, as_stack, check_finite
from mercer.progress import CountProgress
from mercer.threads import Threads
from mercer.validation import validate_data

__all__ = ["ImageTransformer", "from_planes", "read_array", "to_planes"]

# Values of a batch; in single precision a megabyte, and with the results inside a
# second-level cache.
BATCH = 2**18


def read_array(estimator: Any, X: Any, *, reset: bool) -> NDArray:
    """Return validated numbers of two or more dimensions, of any numeric dtype.

    ``reset`` stores the number of features, otherwise it is compared with the stored.
    """
    name = type(estimator).__name__
    X = validate_data(
        estimator,
        X,
        reset=reset,
        dtype="numeric",
        ensure_2d=False,
        allow_nd=True,
        ensure_all_finite=False,
    )
    if X.ndim < 2:
        raise ValueError(
            f"{name}: expected 2D array or a stack of images, got shape {X.shape} "
            "instead. Reshape your data: X[None] makes one sample of it."
        )
    check_finite(X, name)
    n_features = math.prod(X.shape[1:])
    if reset:
        estimator.n_features_in_ = n_features
    elif n_features != getattr(estimator, "n_features_in_", n_features):
        raise ValueError(
            f"X has {n_features} features, but {name} is expecting "
            f"{estimator.n_features_in_} features as input: the samples must have the "
            "size of those in fit."
        )
    return X


def in_batches(
    pixels: NDArray,
    out: NDArray,
    fill: Callable[[NDArray, NDArray], None],
    estimator: Any,
) -> None:
    """Call ``fill(batch, part of out)`` for all images, in threads.

    A batch is a C-contiguous copy in the dtype of ``out``: compiled code meets one
    layout and two dtypes, and the whole stack is never converted at once.
    """
    n = len(pixels)
    size = max(1, BATCH // max(1, math.prod(pixels.shape[1:])))
    parts = [slice(first, min(first + size, n)) for first in range(0, n, size)]

    def work(part: slice) -> None:
        fill(np.array(pixels[part], dtype=out.dtype, order="C"), out[part])

    if len(parts) == 1:
        work(parts[0])
        return
    progress = CountProgress(estimator, n, "images", estimator.verbose)
    with Threads(estimator.n_jobs) as threads:
        threads.map(work, parts, after_each=lambda: progress.add(size))
    progress.finish()


class ImageTransformer(TransformerMixin, BaseEstimator):
    """Base of the transformers: every image becomes one result, by itself.

    A subclass gives :meth:`_fill`, and :meth:`_output_shape` if results are not images
    of the same shape.  Results are images in the form of the input, flattened or not.
    """

    _parameter_constraints: ClassVar[dict] = {
        "shape": [tuple, list, None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    #: Whether ``fit`` learns anything beyond the shape of the images.
    _is_stateless: ClassVar[bool] = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = not self._is_stateless
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @fit_method
    def fit(self, X: Any, y: Any = None) -> ImageTransformer:
        """Check the images, and learn what is to be learnt from them.

        Parameters
        ----------
        X : array of shape (n, h, w), (n, h, w, 3) or (n, n_pixels)
            The images.
        y : None
            Not used.

        Returns
        -------
        self
        """
        del y
        stack = self._read(X, reset=True)
        self.image_shape_ = stack.shape
        self._n_features_out = math.prod(self._output_shape(stack.shape))
        self._learn(stack)
        return self

    def transform(self, X: Any) -> NDArray:
        """Transform the images.

        Parameters
        ----------
        X : array of shape (n, h, w), (n, h, w, 3) or (n, n_pixels)
            The images.

        Returns
        -------
        ndarray
            The results, float32 unless the images need float64; flattened if the
            images were.
        """
        stack = self._read_again(X)
        shape = self._output_shape(stack.shape)
        n = len(stack)
        # Images have their channels last, even if there is but one.
        full = shape if len(shape) != 2 else (*shape, 1)
        out = np.empty((n, *full), dtype=stack.dtype)
        in_batches(stack.pixels, out, self._fill, self)
        return out.reshape(n, -1) if stack.is_flat else out.reshape(n, *shape)

    def _read(self, X: Any, *, reset: bool) -> Stack:
        name = type(self).__name__
        X = read_array(self, X, reset=reset)
        fitted = None if reset else getattr(self, "image_shape_", None)
        if fitted is None:
            return as_stack(X, self.shape, name)
        if X.ndim > 2 and X.shape[1:] != fitted:
            raise ValueError(
                f"{name}: fitted to images of shape {fitted}, got images of shape "
                f"{X.shape[1:]}. Fit it to these, or bring them to one shape."
            )
        return as_stack(X, fitted, name)

    def _read_again(self, X: Any) -> Stack:
        """Read images for another method than ``fit``."""
        if self._is_stateless:
            self._validate_params()
        else:
            check_is_fitted(self)
        return self._read(X, reset=False)

    def _learn(self, stack: Stack) -> None:
        """Learn from the images of a fit."""

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a result, after a check that the image has one."""
        return shape

    def _fill(self, batch: NDArray, out: NDArray) -> None:
        """Transform a batch (m, h, w, c) into ``out``, of the same dtype."""
        raise NotImplementedError


def to_planes(batch: NDArray) -> NDArray:
    """Return the channels of images (m, h, w, c) as grey images (m c, h, w)."""
    m, h, w, c = batch.shape
    if c == 1:
        return batch.reshape(m, h, w)
    return np.ascontiguousarray(np.moveaxis(batch, 3, 1)).reshape(m * c, h, w)


def from_planes(planes: NDArray, out: NDArray) -> None:
    """Undo :func:`to_planes`, into ``out``."""
    m, h, w, c = out.shape
    out[:] = np.moveaxis(planes.reshape(m, c, h, w), 1, 3)
