"""Filters that move a window over each image of a batch of grey images.

``rows`` and ``columns`` extend the image beyond its border: tap ``t`` of the window
around row ``r`` reads the row ``rows[r + t]`` of the image, and the same holds for
columns.  Images are (m, h, w), C-contiguous, float32 or float64; so is ``out``.
"""

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = ["convolve", "median"]


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
