"""The base class of the image transformers: input, batches, threads and progress."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mercer.images.stack import Stack, as_stack, check_finite
from mercer.runtime.progress import CountProgress
from mercer.runtime.soundness import whole_number
from mercer.runtime.threads import Threads
from mercer.runtime.validation import (
    fit_method,
    takes_card_arrays,
    validate_data,
)

__all__ = ["ImageTransformer", "in_batches", "read_array"]

# Number of values in a batch: one megabyte in single precision, so that a batch and its
# results fit into a second-level cache.
BATCH = 2**18


def read_array(estimator: Any, X: Any, *, reset: bool) -> NDArray:
    """Check that X is a finite numeric array of two or more dimensions, and return it.

    With ``reset`` the number of features is stored in the estimator; otherwise it is
    compared with the stored number.
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
            f"{name}: expected 2D array or a stack of images, got an array of shape "
            f"{X.shape} instead. Reshape your data: X[None] is a stack of one sample."
        )
    check_finite(X, name)
    n_features = math.prod(X.shape[1:])
    if reset:
        estimator.n_features_in_ = n_features
    elif n_features != getattr(estimator, "n_features_in_", n_features):
        raise ValueError(
            f"X has {n_features} features, but {name} is expecting "
            f"{estimator.n_features_in_} features as input. Pass samples of the same "
            "size as in fit."
        )
    return X


def in_batches(
    pixels: NDArray,
    out: NDArray,
    fill: Callable[[NDArray, NDArray], None],
    estimator: Any,
) -> None:
    """Call ``fill(batch, part of out)`` for all images, in threads.

    A batch is a C-contiguous copy in the dtype of ``out``.  Compiled code is therefore
    only compiled for one layout and two dtypes, and no copy of the whole stack is made.
    """
    n = len(pixels)
    size = max(1, BATCH // max(1, math.prod(pixels.shape[1:])))

    def work(first: int) -> None:
        part = slice(first, first + size)
        fill(np.array(pixels[part], dtype=out.dtype, order="C"), out[part])

    if n <= size:
        work(0)
        return
    progress = CountProgress(estimator, n, "images", estimator.verbose)
    with Threads(estimator.n_jobs) as threads:
        threads.map(work, range(0, n, size), after_each=lambda: progress.add(size))
    progress.finish()


class ImageTransformer(TransformerMixin, BaseEstimator):
    """Base class of transformers that turn each image into one result.

    A subclass defines :meth:`_fill`.  It defines :meth:`_output_shape` too if its
    results do not have the shape of the images.  The results are flattened if the
    images were.

    Parameters
    ----------
    shape : tuple of int, default=None
        Shape of one image, (h, w) or (h, w, 3), for images that come flattened. One
        number may be -1. None takes flattened images to be square.
    n_jobs : int, default=None
        Number of threads; -1 means all cores, None as many as BLAS may use. The result
        does not depend on it.
    verbose : bool or int, default=False
        Whether to log progress on large stacks.

    Attributes
    ----------
    image_shape_ : tuple of int
        Shape of one image.
    n_features_in_ : int
        Number of pixels of one image times its number of channels.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns in ``fit``, if the images were flattened and all column
        names were strings.
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
        """Check the images, and learn the parameters that depend on them.

        Parameters
        ----------
        X : array of shape (n, h, w), (n, h, w, 3) or (n, n_pixels)
            The images.
        y : ignored, default=None

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

    @takes_card_arrays
    def transform(self, X: Any) -> NDArray:
        """Transform the images.

        Parameters
        ----------
        X : array of shape (n, h, w), (n, h, w, 3) or (n, n_pixels)
            The images.

        Returns
        -------
        ndarray
            The results, flattened if the images were. They are float32 if float32
            holds all values of the images' dtype, and float64 otherwise.
        """
        stack = self._read_again(X)
        shape = self._output_shape(stack.shape)
        n = len(stack)
        # _fill expects a channel axis at the end of an image, also for grey images.
        full = shape if len(shape) != 2 else (*shape, 1)
        out = np.empty((n, *full), dtype=stack.dtype)

        def fill(batch: NDArray, part: NDArray) -> None:
            with np.errstate(over="ignore", invalid="ignore"):
                self._fill(batch, part)
                is_finite = np.isfinite(part.sum()) or np.isfinite(part).all()
            if not is_finite:
                raise ValueError(
                    f"{type(self).__name__}: the results are not finite, because "
                    "values of X or parameters are too large. Scale X, for example "
                    "with Rescale."
                )

        in_batches(stack.pixels, out, fill, self)
        return out.reshape(n, -1) if stack.is_flat else out.reshape(n, *shape)

    def _read(self, X: Any, *, reset: bool) -> Stack:
        name = type(self).__name__
        X = read_array(self, X, reset=reset)
        fitted = None if reset else getattr(self, "image_shape_", None)
        if fitted is None:
            return as_stack(X, self.shape, name)
        if X.ndim > 2 and X.shape[1:] != fitted:
            raise ValueError(
                f"{name} was fitted to images of shape {fitted}, got images of shape "
                f"{X.shape[1:]}. Fit it to images of this shape, or resize the images."
            )
        return as_stack(X, fitted, name)

    def _read_again(self, X: Any) -> Stack:
        """Read images in a method other than ``fit``.

        Parameters may have been set since then, and attributes changed.
        """
        if not self._is_stateless:
            check_is_fitted(self)
        self._validate_params()
        if hasattr(self, "image_shape_"):
            try:
                self._check_learnt()
            except (AttributeError, TypeError, ValueError) as error:
                raise NotFittedError(
                    f"{type(self).__name__}: {error}. A parameter was set, or an "
                    "attribute changed, after fit. Call fit again."
                ) from error
        return self._read(X, reset=False)

    def _check_learnt(self) -> None:
        """Refuse what ``fit`` has stored if it does not fit together.

        It must fit the parameters, too.
        """
        sizes = self.image_shape_
        if not isinstance(sizes, tuple) or not all(
            isinstance(size, Integral) and size >= 1 for size in sizes
        ):
            raise ValueError(f"image_shape_ is {sizes!r}, not the shape of an image")
        if math.prod(sizes) != whole_number(self, "n_features_in_"):
            raise ValueError(
                f"image_shape_ is {sizes!r}, not the shape of an image of "
                f"{self.n_features_in_} values"
            )

    def _learn(self, stack: Stack) -> None:
        """Store what depends on the images given to ``fit``."""

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of one result; raise an error if the image is too small."""
        return shape

    def _fill(self, batch: NDArray, out: NDArray) -> None:
        """Transform a batch (m, h, w, c) into ``out``, of the same dtype."""
        raise NotImplementedError
