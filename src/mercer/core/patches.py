r"""Patches of images: contrast normalised, assigned to directions, pooled by regions.

A patch is a square of pixels with all channels, read row by row.  Its contrast is
normalised by :math:`(x - \bar x) / \sqrt{\operatorname{var} x + \epsilon}`.  The matrix
products between patches and directions are left to BLAS; this module does the rest.
Arrays are C-contiguous, float32 or float64.
"""

import math

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = ["add_to_nearest", "normalise", "pool_two_sided", "read_patches", "read_rows"]


@jit
def read_patches(images: NDArray, places: NDArray, size: int, out: NDArray):
    """Copy patches; ``places`` (n, 3) are image, row and column of their corners."""
    for i in range(len(places)):
        image = images[places[i, 0]]
        _copy_patch(image, places[i, 1], places[i, 2], size, out[i])


@jit
def read_rows(image: NDArray, first: int, n_rows: int, size: int, out: NDArray):
    """Copy the patches of some rows of positions, row by row."""
    n_columns = image.shape[1] - size + 1
    for r in range(n_rows):
        for c in range(n_columns):
            _copy_patch(image, first + r, c, size, out[r * n_columns + c])


@jit
def _copy_patch(image, row, column, size, patch):
    """Copy one patch, row by row."""
    length = size * image.shape[2]
    for r in range(size):
        source = image[row + r, column : column + size].ravel()
        target = patch[r * length : (r + 1) * length]
        for k in range(length):
            target[k] = source[k]


@jit
def normalise(patches: NDArray, epsilon: float):
    """Normalise the contrast of every patch in place."""
    d = patches.shape[1]
    for i in range(len(patches)):
        patch = patches[i]
        total, square = 0.0, 0.0
        for k in range(d):
            total += patch[k]
        mean = total / d
        for k in range(d):
            difference = patch[k] - mean
            square += difference * difference
        scale = 1.0 / math.sqrt(square / d + epsilon)
        for k in range(d):
            patch[k] = (patch[k] - mean) * scale


@jit
def add_to_nearest(
    dots: NDArray, X: NDArray, sums: NDArray, counts: NDArray, labels: NDArray
):
    """Add every row of ``X``, times its inner product, to the direction nearest to it.

    ``dots`` (n, k) are the inner products.  The nearest direction has the largest
    absolute one, the first of equals.  Return the sum of the squares of these.
    """
    total = 0.0
    for i in range(len(X)):
        row = dots[i]
        most, label = row.dtype.type(-1.0), 0
        for k in range(len(row)):
            if abs(row[k]) > most:
                most, label = abs(row[k]), k
        labels[i] = label
        counts[label] += 1
        weight = np.float64(row[label])
        total += weight * weight
        x, target = X[i], sums[label]
        for j in range(len(x)):
            target[j] += weight * x[j]
    return total


@jit
def pool_two_sided(
    responses: NDArray,
    regions: NDArray,
    offset: NDArray,
    threshold: float,
    out: NDArray,
):
    r"""Add what exceeds the threshold on either side to the region of its position.

    ``responses`` (n, k) less ``offset`` (k,) are added to ``out`` (regions, 2, k):
    :math:`\max(z - t, 0)` first, then :math:`\max(-z - t, 0)`.
    """
    limit = responses.dtype.type(threshold)
    zero = responses.dtype.type(0.0)
    for i in range(len(responses)):
        row = responses[i]
        above, below = out[regions[i], 0], out[regions[i], 1]
        for k in range(len(row)):
            z = row[k] - offset[k]
            above[k] += max(z - limit, zero)
            below[k] += max(-z - limit, zero)
