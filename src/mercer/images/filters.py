"""Smoothing filters: median filter and Gaussian blur.

Compiled functions move a window over each image of a batch of grey images (m, h, w).
``rows`` and ``columns`` extend the image beyond its border: tap ``t`` of the window
around row ``r`` reads the row ``rows[r + t]`` of the image, and the same holds for
columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin

from mercer.core.jit import jit
from mercer.images.base import ImageTransformer
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval
from mercer.runtime.validation import stores_parameters

__all__ = ["GaussianBlur", "MedianFilter"]


def _mirrored(size: int, before: int, after: int) -> NDArray[np.intp]:
    """Return the indices that extend an axis by its mirror image at both ends."""
    return np.pad(np.arange(size), (before, after), mode="symmetric")


class _Filter(OneToOneFeatureMixin, ImageTransformer):
    """Base class of filters that treat every channel as a grey image."""

    def _fill(self, batch: NDArray, out: NDArray) -> None:
        m, h, w, c = batch.shape
        planes = np.ascontiguousarray(np.moveaxis(batch, 3, 1)).reshape(m * c, h, w)
        filtered = np.empty_like(planes)
        self._filter(planes, filtered)
        out[:] = np.moveaxis(filtered.reshape(m, c, h, w), 1, 3)

    def _filter(self, planes: NDArray, out: NDArray) -> None:
        """Write the filtered grey images ``planes`` (m, h, w) to ``out``."""
        raise NotImplementedError


@public("mercer.images")
class MedianFilter(_Filter):
    """Replace every pixel by the median of a square window around it.

    The image is mirrored at its border, as in ``scipy.ndimage.median_filter``.
    The channels of colour images are filtered separately.

    Parameters
    ----------
    size : int, default=3
        Side length of the window in pixels.
    shape, n_jobs, verbose : as in :class:`ImageTransformer`

    Attributes
    ----------
    image_shape_, n_features_in_, feature_names_in_ : as in :class:`ImageTransformer`

    See Also
    --------
    GaussianBlur : a weighted mean in place of the median.

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

    @stores_parameters
    def __init__(
        self,
        size: int = 3,
        *,
        shape: Sequence[int] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ): ...

    def _filter(self, planes: NDArray, out: NDArray) -> None:
        before = self.size // 2
        rows, columns = (
            _mirrored(n, before, self.size - before - 1) for n in planes.shape[1:]
        )
        median(planes, self.size, rows, columns, out)


@public("mercer.images")
class GaussianBlur(_Filter):
    r"""Blur images with a Gaussian of standard deviation ``sigma``.

    .. math::

        x'_{rc} = \sum_{s,t} g_s g_t \, x_{r+s, c+t}, \qquad
        g_s \propto \exp(-s^2 / 2\sigma^2), \quad |s| \le \mathrm{truncate} \cdot \sigma

    The image is mirrored at its border, as in ``scipy.ndimage.gaussian_filter``.
    The channels of colour images are blurred separately.

    Parameters
    ----------
    sigma : float, default=1.0
        Standard deviation in pixels. With 0 the images stay unchanged.
    truncate : float, default=4.0
        Number of standard deviations that the window reaches to each side.
    shape, n_jobs, verbose : as in :class:`ImageTransformer`

    Attributes
    ----------
    image_shape_, n_features_in_, feature_names_in_ : as in :class:`ImageTransformer`

    See Also
    --------
    MedianFilter : removes single pixels and keeps edges.

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

    @stores_parameters
    def __init__(
        self,
        sigma: float = 1.0,
        *,
        truncate: float = 4.0,
        shape: Sequence[int] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ): ...

    def _weights(self) -> NDArray:
        reach = int(self.truncate * self.sigma + 0.5)
        steps = np.arange(-reach, reach + 1)
        # The lower limit avoids a division by zero: for such a small sigma only the
        # weight in the middle is not zero.
        weights = np.exp(-0.5 * (steps / max(self.sigma, 1e-15)) ** 2)
        return weights / weights.sum()

    def _filter(self, planes: NDArray, out: NDArray) -> None:
        weights = self._weights().astype(planes.dtype)
        reach = len(weights) // 2
        rows, columns = (_mirrored(n, reach, reach) for n in planes.shape[1:])
        convolve(planes, weights, rows, columns, out)


@jit
def convolve(
    images: NDArray, weights: NDArray, rows: NDArray, columns: NDArray, out: NDArray
):
    """Convolve images with ``weights``, which have their dtype, along both axes."""
    h, w = images.shape[1:]
    middle = np.empty((h, w), images.dtype)
    line = np.empty(len(columns), images.dtype)
    for i in range(len(images)):
        middle[:] = 0
        for r in range(h):
            for t in range(len(weights)):
                _add_scaled(images[i, rows[r + t]], weights[t], middle[r])
        out[i] = 0
        for r in range(h):
            _take(middle[r], columns, line)
            for t in range(len(weights)):
                _add_scaled(line[t : t + w], weights[t], out[i, r])


@jit
def _add_scaled(source, scale, target):
    """Add ``scale * source`` to ``target``."""
    for k in range(len(target)):
        target[k] += scale * source[k]


@jit
def _take(source, index, target):
    """Copy the entries named by ``index``."""
    for k in range(len(index)):
        target[k] = source[index[k]]


@jit
def median(images: NDArray, size: int, rows: NDArray, columns: NDArray, out: NDArray):
    """Take the median of each window of ``size`` by ``size`` pixels.

    If the number of pixels is even, the greater of the two in the middle is taken.
    """
    if size == 3:
        _median_of_nine(images, rows, columns, out)
    else:
        _median_of_many(images, size, rows, columns, out)


@jit
def _median_of_nine(images, rows, columns, out):
    """Take medians of windows of 3 by 3 pixels.

    With the three columns of a window sorted, the median of all nine pixels is the
    median of three candidates: the greatest of the least, the median of the medians and
    the least of the greatest entries of the columns.
    """
    h, w = images.shape[1:]
    lines = np.empty((3, w + 2), images.dtype)
    low, middle, high = np.empty_like(lines)
    for i in range(len(images)):
        for r in range(h):
            for t in range(3):
                _take(images[i, rows[r + t]], columns, lines[t])
            x, y, z = lines[0], lines[1], lines[2]
            for c in range(w + 2):
                a, b = min(x[c], y[c]), max(x[c], y[c])
                low[c] = min(a, z[c])
                high[c] = max(b, z[c])
                middle[c] = max(a, min(b, z[c]))
            target = out[i, r]
            for c in range(w):
                a = max(max(low[c], low[c + 1]), low[c + 2])
                b = _middle(middle[c], middle[c + 1], middle[c + 2])
                d = min(min(high[c], high[c + 1]), high[c + 2])
                target[c] = _middle(a, b, d)


@jit
def _middle(a, b, c):
    """Return the median of three."""
    return max(min(a, b), min(max(a, b), c))


@jit
def _median_of_many(images, size, rows, columns, out):
    """Select the median in a copy of each window."""
    h, w = images.shape[1:]
    window = np.empty(size * size, images.dtype)
    for i in range(len(images)):
        for r in range(h):
            for c in range(w):
                for s in range(size):
                    line = images[i, rows[r + s]]
                    for t in range(size):
                        window[s * size + t] = line[columns[c + t]]
                out[i, r, c] = _select(window, len(window) // 2)


@jit
def _select(values, k):
    """Return the entry at ``k`` of the sorted ``values``, which are reordered."""
    left, right = 0, len(values) - 1
    while left < right:
        pivot = values[(left + right) // 2]
        i, j = left, right
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            right = j
        elif k >= i:
            left = i
        else:
            break
    return values[k]
