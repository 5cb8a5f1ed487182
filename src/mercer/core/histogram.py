r"""Tiles of the kernels that compare histograms entry by entry.

With rows :math:`x` of ``X`` (m, d) and :math:`z` of ``Z`` (n, d),

.. math::

    \chi^2(x, z) = \sum_k \frac{(x_k - z_k)^2}{x_k + z_k}, \qquad
    \sum_k \min(x_k, z_k), \qquad \sum_k |x_k - z_k| .

None of these is a matrix product, so the tile is blocked by hand.  A panel of ``Z`` is
transposed to (features, samples).  The inner loop runs over samples, with the entries
of two rows of ``X`` as constants.  The lanes of a vector are columns of the result, so
no sum runs across lanes, and a term costs the same for few features as for many.  Sums
are taken over 64 features and then added, which keeps errors in float32 below 1e-6.
"""

import math

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = ["additive_chi2", "intersection", "manhattan"]

# Features and samples of a panel. It has 128 kB in float32, which fits easily into a
# second-level cache.
DEPTH = 64
WIDTH = 512
# The number of features is rounded up to a multiple of one pass, and the number of
# samples to whole vectors, so that loops have no remainder.
PASS = 4
LANES = 32
# This bound keeps the unit in which data are read, and its inverse, in float32's range.
MAX_EXPONENT = 100

CHI2, INTERSECTION, MANHATTAN = range(3)


@jit
def additive_chi2(X: NDArray, Z: NDArray, out: NDArray):
    """Write the sums of (x - z)^2 / (x + z) into ``out`` (m, n), where 0 / 0 is 0.

    ``X`` (m, d) and ``Z`` (n, d) are C-contiguous without negative entries, ``out`` may
    be a view; all three have one dtype, float32 or float64.
    """
    _fill(CHI2, X, Z, out, _unit(X, Z))


@jit
def intersection(X: NDArray, Z: NDArray, out: NDArray):
    """Write the sums of min(x, z) into ``out`` (m, n).

    The arrays are as in :func:`additive_chi2`, but entries may be negative.
    """
    _fill(INTERSECTION, X, Z, out, 1.0)


@jit
def manhattan(X: NDArray, Z: NDArray, out: NDArray):
    """Write the sums of abs(x - z) into ``out`` (m, n).

    The arrays are as in :func:`additive_chi2`, but entries may be negative.
    """
    _fill(MANHATTAN, X, Z, out, 1.0)


@jit
def _unit(X, Z):
    """Return the smallest power of two above the mean entry of ``X`` and ``Z``."""
    _, exponent = math.frexp((_total(X) + _total(Z)) / (X.size + Z.size))
    return math.ldexp(1.0, min(max(exponent, -MAX_EXPONENT), MAX_EXPONENT))


@jit
def _total(A):
    """Sum a matrix in double precision."""
    total = 0.0
    for i in range(len(A)):
        a = A[i]
        for k in range(len(a)):
            total += np.float64(a[k])
    return total


@jit
def _fill(kind, X, Z, out, unit):
    """Write the sums named by ``kind`` into ``out``, with data in units of ``unit``.

    All three sums are homogeneous of degree one, so the results are multiplied by the
    unit again.  The unit is a power of two and therefore causes no rounding.
    """
    d, n = X.shape[1], len(Z)
    panel = np.zeros((DEPTH, min(WIDTH, _padded(n, LANES))), X.dtype)
    rows = np.zeros((2, DEPTH), X.dtype)
    sums = np.zeros((2, panel.shape[1]), X.dtype)
    scale, back = X.dtype.type(1.0 / unit), X.dtype.type(unit)
    out[:] = 0
    for j in range(0, n, WIDTH):
        width = min(WIDTH, n - j)
        lanes = _padded(width, LANES)
        to_x, to_y = sums[0, :lanes], sums[1, :lanes]
        for k in range(0, d, DEPTH):
            depth = min(DEPTH, d - k)
            _turn(Z[j : j + width, k : k + depth], scale, panel)
            rows[:, depth:] = 0
            used = _padded(depth, PASS)
            x, y = rows[0, :used], rows[1, :used]
            for i in range(0, len(X), 2):
                # If the number of rows is odd, the last row is paired with values of an
                # earlier row, whose sums are not used.
                count = min(2, len(X) - i)
                for s in range(count):
                    _copy_scaled(X[i + s, k : k + depth], scale, rows[s])
                sums[:] = 0
                if kind == CHI2:
                    _add_chi2(x, y, panel, to_x, to_y)
                elif kind == INTERSECTION:
                    _add_minima(x, y, panel, to_x, to_y)
                else:
                    _add_distances(x, y, panel, to_x, to_y)
                for s in range(count):
                    _add_scaled(sums[s], back, out[i + s, j : j + width])


@jit
def _padded(size, step):
    """Round ``size`` up to a multiple of ``step``."""
    return (size + step - 1) // step * step


@jit
def _turn(Z, scale, panel):
    """Write the transpose of ``scale * Z`` into the corner of ``panel``."""
    depth = Z.shape[1]
    for k in range(depth):
        _copy_scaled(Z[:, k], scale, panel[k])
    # Features that only fill up a pass are 0 in both operands, so their terms are 0.
    panel[depth:] = 0


@jit
def _copy_scaled(source, scale, target):
    """Write ``scale * source`` into the front of ``target``."""
    for k in range(len(source)):
        target[k] = scale * source[k]


@jit
def _add_scaled(source, scale, target):
    """Add the front of ``scale * source`` to ``target``."""
    for k in range(len(target)):
        target[k] += scale * source[k]


# The loops below add the terms of two rows x and y with all samples of a panel. A pass
# handles several features, so that the running sums are loaded less often.


@jit
def _add_chi2(x, y, panel, to_x, to_y):
    """Add the terms of the chi-squared distance."""
    # The floor keeps the product of two zero denominators a normal number.
    floor = np.sqrt(np.finfo(x.dtype).tiny)
    lanes = len(to_x)
    for k in range(0, len(x), 2):
        x0, x1, y0, y1 = x[k], x[k + 1], y[k], y[k + 1]
        a0, a1, b0, b1 = x0 + floor, x1 + floor, y0 + floor, y1 + floor
        z0, z1 = panel[k, :lanes], panel[k + 1, :lanes]
        for j in range(lanes):
            to_x[j] += _chi2_pair(x0 - z0[j], a0 + z0[j], x1 - z1[j], a1 + z1[j])
            to_y[j] += _chi2_pair(y0 - z0[j], b0 + z0[j], y1 - z1[j], b1 + z1[j])


@jit
def _chi2_pair(p, q, r, s):
    """Return p^2 / q + r^2 / s with one division; divisions are the bottleneck."""
    # Products of three entries must stay in range; the unit of _fill makes sure of it.
    return (p * p * s + r * r * q) / (q * s)


@jit
def _add_minima(x, y, panel, to_x, to_y):
    """Add the terms min(x, z)."""
    lanes = len(to_x)
    for k in range(0, len(x), 4):
        x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        y0, y1, y2, y3 = y[k], y[k + 1], y[k + 2], y[k + 3]
        z0, z1 = panel[k, :lanes], panel[k + 1, :lanes]
        z2, z3 = panel[k + 2, :lanes], panel[k + 3, :lanes]
        for j in range(lanes):
            a, b, c, d = z0[j], z1[j], z2[j], z3[j]
            to_x[j] += (min(x0, a) + min(x1, b)) + (min(x2, c) + min(x3, d))
            to_y[j] += (min(y0, a) + min(y1, b)) + (min(y2, c) + min(y3, d))


@jit
def _add_distances(x, y, panel, to_x, to_y):
    """Add the terms abs(x - z)."""
    lanes = len(to_x)
    for k in range(0, len(x), 4):
        x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        y0, y1, y2, y3 = y[k], y[k + 1], y[k + 2], y[k + 3]
        z0, z1 = panel[k, :lanes], panel[k + 1, :lanes]
        z2, z3 = panel[k + 2, :lanes], panel[k + 3, :lanes]
        for j in range(lanes):
            a, b, c, d = z0[j], z1[j], z2[j], z3[j]
            to_x[j] += (abs(x0 - a) + abs(x1 - b)) + (abs(x2 - c) + abs(x3 - d))
            to_y[j] += (abs(y0 - a) + abs(y1 - b)) + (abs(y2 - c) + abs(y3 - d))
