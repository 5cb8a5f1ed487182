"""Smoothing: median filter and Gaussian blur."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils._param_validation import Interval

from mercer.core.image_filters import convolve, median
from mercer.images.base import ImageTransformer, from_planes, to_planes

__all__ = ["GaussianBlur", "MedianFilter"]


def _mirrored(size: int, before: int, after: int) -> NDArray[np.intp]:
    """Return where to read an axis that continues mirrored beyond its ends."""
    return np.pad(np.arange(size), (before, after), mode="symmetric")


class MedianFilter(OneToOneFeatureMixin, ImageTransformer):
    """Replace every pixel by the median of a square window around it.

    Beyond its border the image continues mirrored, as in
    :func:`scipy.ndimage.median_filter`.  Channels of colour are filtered apart.

    Parameters
    ----------
    size : int, default=3
        Side of the window in pixels.
    shape : tuple of int, default=None
        Shape of one image if they come flattened, (h, w) or (h, w, 3), channels last;
        one number may be -1. None is for square images.
    n_jobs : int, default=None
        Threads; None is as many as BLAS may use. The result is the same for any
        number.
    verbose : bool or int, default=False
        Whether to log progress on large stacks.

    Attributes
    ----------
    image_shape_ : tuple of int
        Shape of one image.
    n_features_in_ : int
        Number of pixels of an image, times channels.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where flattened images had names that are all text.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.images import MedianFilter
    >>> dot = np.zeros((1, 5, 5))
    >>> dot[0, 2, 2] = 1
    >>> MedianFilter().fit(dot).transform(dot).max()
    np.float64(0.0)
    """

    _parameter_constraints: ClassVar[dict] = {
        "size": [Interval(Integral, 1, None, closed="left")],
        **ImageTransformer._parameter_constraints,
    }

    def __init__(
        self,
        size: int = 3,
        *,
        shape: Sequence[int] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ):
        self.size = size
        self.shape = shape
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fill(self, batch: NDArray, out: NDArray) -> None:
        planes = to_planes(batch)
        result = np.empty_like(planes)
        before = self.size // 2
        rows, columns = (
            _mirrored(size, before, self.size - before - 1) for size in batch.shape[1:3]
        )
        median(planes, self.size, rows, columns, result)
        from_planes(result, out)


class GaussianBlur(OneToOneFeatureMixin, ImageTransformer):
    r"""Blur with a Gaussian of standard deviation ``sigma``.

    .. math::

        x'_{rc} = \sum_{s,t} g_s g_t \, x_{r+s, c+t}, \qquad
        g_s \propto \exp(-s^2 / 2\sigma^2), \quad |s| \le \mathrm{truncate} \cdot \sigma

    Beyond its border the image continues mirrored, as in
    :func:`scipy.ndimage.gaussian_filter`.  Channels of colour are blurred apart.

    Parameters
    ----------
    sigma : float, default=1.0
        Standard deviation in pixels; 0 changes nothing.
    truncate : float, default=4.0
        How many standard deviations the window reaches to each side.
    shape : tuple of int, default=None
        Shape of one image if they come flattened, (h, w) or (h, w, 3), channels last;
        one number may be -1. None is for square images.
    n_jobs : int, default=None
        Threads; None is as many as BLAS may use. The result is the same for any
        number.
    verbose : bool or int, default=False
        Whether to log progress on large stacks.

    Attributes
    ----------
    image_shape_ : tuple of int
        Shape of one image.
    n_features_in_ : int
        Number of pixels of an image, times channels.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where flattened images had names that are all text.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.images import GaussianBlur
    >>> line = np.zeros((1, 1, 5))
    >>> line[0, 0, 2] = 1
    >>> GaussianBlur(sigma=0.5).fit(line).transform(line).round(2)
    array([[[0.  , 0.11, 0.79, 0.11, 0.  ]]])
    """

    _parameter_constraints: ClassVar[dict] = {
        "sigma": [Interval(Real, 0.0, None, closed="left")],
        "truncate": [Interval(Real, 0.0, None, closed="neither")],
        **ImageTransformer._parameter_constraints,
    }

    def __init__(
        self,
        sigma: float = 1.0,
        *,
        truncate: float = 4.0,
        shape: Sequence[int] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ):
        self.sigma = sigma
        self.truncate = truncate
        self.shape = shape
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _weights(self) -> NDArray:
        reach = int(self.truncate * self.sigma + 0.5)
        steps = np.arange(-reach, reach + 1)
        # Where sigma is 0 or next to it, a single weight is left.
        weights = np.exp(-0.5 * (steps / max(self.sigma, 1e-15)) ** 2)
        return weights / weights.sum()

    def _fill(self, batch: NDArray, out: NDArray) -> None:
        planes = to_planes(batch)
        result = np.empty_like(planes)
        weights = self._weights().astype(planes.dtype)
        reach = len(weights) // 2
        rows, columns = (_mirrored(size, reach, reach) for size in batch.shape[1:3])
        convolve(planes, weights, rows, columns, result)
        from_planes(result, out)
