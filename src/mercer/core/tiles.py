r"""Tiles of kernel values: how they are computed, and how they are put in place.

**Exponentials.**  Write :math:`e^{-u} = 2^r \, 2^s` with integer :math:`r` and
:math:`|s| \le 1/2`.  The integer is written to the exponent bits, and :math:`2^s` is a
Taylor polynomial that is long enough for the type (relative error below 2e-9 in single
and 2e-17 in double precision).  Numba turns these loops into vector instructions, which
it does not do for loops that call ``np.exp``.  Results below the smallest normal number
become that number, which is as good as 0.  The hyperbolic tangent is computed from
:math:`e^{-2|x|} - 1` in the same way, without losing digits where :math:`x` is small.

**Sums over features.**  With rows :math:`x` of ``X`` (m, d) and :math:`z` of ``Z``
(n, d),

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
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = [
    "add_rows",
    "additive_chi2",
    "centre_rows",
    "close_gaps",
    "column_range_and_sum",
    "dot_rows",
    "exponential",
    "exponential_double",
    "exponential_single",
    "fill_columns",
    "fill_rows",
    "gather_square",
    "gaussian",
    "gaussian_double",
    "gaussian_single",
    "hyperbolic_tangent",
    "intersection",
    "manhattan",
    "mirror",
    "powers",
    "ranges",
    "scatter_rows",
    "squared_differences",
    "squared_distances",
    "squared_norms_of_rows",
]

LOG2_E = math.log2(math.e)
# These are the coefficients of 2**s = sum of (s ln 2)**k / k!, highest power first.
SHORT = tuple(
    np.float32(math.log(2.0) ** k / math.factorial(k)) for k in range(7, -1, -1)
)
LONG = tuple(math.log(2.0) ** k / math.factorial(k) for k in range(13, -1, -1))

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

# One multiplication with gathered entries costs about as much as this many
# multiplications in a dense matrix product.
DENSE_ADVANTAGE = 40

# Number of columns whose sums stay in the first-level cache while rows are added.
SUMMED_COLUMNS = 2048
# Side length of the squares in which a tile is transposed, in single and in double
# precision.  A row of a square in single precision is a line of the cache.
SQUARE, SQUARE_OF_DOUBLES = 16, 32
# Number of rows of a working set's matrix to which columns are written in one go.
MIRRORED = 16


def ranges(first: int, stop: int, most: int, *, even: bool = True) -> list[slice]:
    """Cut a range into as few parts of at most ``most`` as possible.

    The parts are about equal, or all but the last one have the length ``most``.
    """
    if stop <= first:
        return []
    count = -(-(stop - first) // most)
    if even:
        cuts = [first + (stop - first) * k // count for k in range(count + 1)]
    else:
        cuts = [*range(first, stop, most), stop]
    return [slice(a, b) for a, b in pairwise(cuts)]


@jit
def _exp2_single(t):
    """Return ``2**t`` for a float32 ``t <= 0``."""
    t = max(t, np.float32(-126.0))
    r = np.rint(t)
    s = np.float32(t - r)
    c7, c6, c5, c4, c3, c2, c1, c0 = SHORT
    v = ((((((c7 * s + c6) * s + c5) * s + c4) * s + c3) * s + c2) * s + c1) * s + c0
    power = np.int32((np.int32(r) + np.int32(127)) << np.int32(23)).view(np.float32)
    return np.float32(v * power)


@jit
def _exp2_double(t):
    """Return ``2**t`` for a float64 ``t <= 0``."""
    t = max(t, -1022.0)
    r = np.rint(t)
    s = t - r
    v = LONG[0]
    for k in range(1, 14):
        v = v * s + LONG[k]
    power = np.int64((np.int64(r) + np.int64(1023)) << np.int64(52)).view(np.float64)
    return v * power


@jit
def gaussian_single(dots: NDArray, x_norm: NDArray, z_norm: NDArray, gamma: float):
    """Do what :func:`gaussian` does, in single precision."""
    scale = np.float32(-gamma * LOG2_E)
    for i in range(dots.shape[0]):
        row = dots[i]
        xi = x_norm[i]
        for j in range(len(row)):
            d2 = max(xi + z_norm[j] - np.float32(2.0) * row[j], np.float32(0.0))
            row[j] = _exp2_single(scale * d2)


@jit
def gaussian_double(dots: NDArray, x_norm: NDArray, z_norm: NDArray, gamma: float):
    """Do what :func:`gaussian` does, in double precision."""
    scale = -gamma * LOG2_E
    for i in range(dots.shape[0]):
        row = dots[i]
        xi = x_norm[i]
        for j in range(len(row)):
            d2 = max(xi + z_norm[j] - 2.0 * row[j], 0.0)
            row[j] = _exp2_double(scale * d2)


@jit
def exponential_single(values: NDArray, factor: float):
    """Do what :func:`exponential` does, in single precision."""
    scale = np.float32(-factor * LOG2_E)
    for i in range(values.shape[0]):
        row = values[i]
        for j in range(len(row)):
            row[j] = _exp2_single(scale * row[j])


@jit
def exponential_double(values: NDArray, factor: float):
    """Do what :func:`exponential` does, in double precision."""
    scale = -factor * LOG2_E
    for i in range(values.shape[0]):
        row = values[i]
        for j in range(len(row)):
            row[j] = _exp2_double(scale * row[j])


@jit
def squared_distances(dots: NDArray, x_norm: NDArray, z_norm: NDArray):
    """Turn ``dots`` (m, n) of two sets of vectors into squared distances, in place."""
    for i in range(dots.shape[0]):
        row = dots[i]
        xi = x_norm[i]
        for j in range(len(row)):
            row[j] = max(xi + z_norm[j] - row[j] - row[j], xi * 0)


@jit
def squared_differences(X: NDArray, Z: NDArray, out: NDArray):
    """Write squared distances into ``out`` (m, n), summed over squared differences.

    Unlike :func:`squared_distances` they do not lose digits if the vectors are long
    compared with their distance.
    """
    for i in range(len(X)):
        x = X[i]
        for j in range(len(Z)):
            z = Z[j]
            total = 0.0
            for k in range(len(x)):
                total += (x[k] - z[k]) ** 2
            out[i, j] = total


def gaussian(dots: NDArray, x_norm: NDArray, z_norm: NDArray, gamma: float) -> NDArray:
    r"""Turn ``dots`` (m, n) into :math:`e^{-\gamma \|x - z\|^2}`, in place.

    ``x_norm`` (m,) and ``z_norm`` (n,) are squared norms of the dtype of ``dots``.
    """
    single = dots.dtype == np.float32
    run = gaussian_single if single else gaussian_double
    run(dots, x_norm, z_norm, float(gamma))
    return dots


def exponential(values: NDArray, factor: float) -> NDArray:
    r"""Turn ``values`` >= 0 (m, n) into :math:`e^{-factor \cdot v}`, in place."""
    single = values.dtype == np.float32
    run = exponential_single if single else exponential_double
    run(values, float(factor))
    return values


@jit
def _tangent_single(x):
    """Return the hyperbolic tangent of a float32."""
    t = np.float32(-2.0 * LOG2_E) * abs(x)
    t = np.float32(-126.0) if t < np.float32(-126.0) else t  # a NaN stays a NaN
    r = np.rint(t)
    s = np.float32(t - r)
    c7, c6, c5, c4, c3, c2, c1, _ = SHORT
    v = ((((((c7 * s + c6) * s + c5) * s + c4) * s + c3) * s + c2) * s + c1) * s
    power = np.int32((np.int32(r) + np.int32(127)) << np.int32(23)).view(np.float32)
    one = np.float32(1.0)
    less = v if r == np.float32(0.0) else np.float32(power * (v + one) - one)
    found = np.float32(less / (np.float32(2.0) + less))
    return -found if x > np.float32(0.0) else found


@jit
def _tangent_double(x):
    """Return the hyperbolic tangent of a float64."""
    t = -2.0 * LOG2_E * abs(x)
    t = -1022.0 if t < -1022.0 else t
    r = np.rint(t)
    s = t - r
    v = LONG[0]
    for k in range(1, 13):
        v = v * s + LONG[k]
    v *= s
    power = np.int64((np.int64(r) + np.int64(1023)) << np.int64(52)).view(np.float64)
    less = v if r == 0.0 else power * (v + 1.0) - 1.0
    found = less / (2.0 + less)
    return -found if x > 0.0 else found


@jit
def hyperbolic_tangent(values: NDArray, scale: float, shift: float):
    """Turn ``values`` (m, n) into ``tanh(scale * values + shift)``, in place."""
    factor, summand = values.dtype.type(scale), values.dtype.type(shift)
    for i in range(values.shape[0]):
        row = values[i]
        if values.itemsize == 4:
            for j in range(len(row)):
                row[j] = _tangent_single(factor * row[j] + summand)
        else:
            for j in range(len(row)):
                row[j] = _tangent_double(factor * row[j] + summand)


@jit
def powers(values: NDArray, scale: float, shift: float, exponent: int, out: NDArray):
    """Write ``(scale * values + shift) ** exponent`` into ``out``, perhaps in place.

    The power is taken by squaring, row by row: a row stays in the first-level cache
    while the loops, which are vector instructions, pass over it.
    """
    factor, summand = values.dtype.type(scale), values.dtype.type(shift)
    base = np.empty(values.shape[1], dtype=values.dtype)
    highest = 1
    while 2 * highest <= exponent:
        highest *= 2
    for i in range(values.shape[0]):
        source, row = values[i], out[i]
        if exponent == 0:
            row[:] = 1
            continue
        for j in range(len(row)):
            base[j] = factor * source[j] + summand
        for j in range(len(row)):
            row[j] = base[j]
        bit = highest // 2
        while bit > 0:
            if exponent & bit:
                for j in range(len(row)):
                    row[j] = row[j] * row[j] * base[j]
            else:
                for j in range(len(row)):
                    row[j] = row[j] * row[j]
            bit //= 2


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


def dot_rows(X, Z, dtype) -> NDArray:
    """Return ``X @ Z.T`` (m, n), where each of the two tiles is dense or CSR.

    The two tiles are made dense for a matrix product if they have enough non-zeros for
    that to be faster.  Otherwise each row of ``X`` is written to a dense row once, and
    the non-zeros of every row of ``Z`` are multiplied with its entries.
    """
    d = X.shape[1]
    both_sparse = hasattr(X, "indptr") and hasattr(Z, "indptr")
    if not both_sparse or d * Z.shape[0] <= DENSE_ADVANTAGE * Z.nnz:
        return np.matmul(_dense(X, dtype), _dense(Z, dtype).T)
    out = np.empty((X.shape[0], Z.shape[0]), dtype=dtype)
    scratch = np.zeros(d, dtype=dtype)
    _gathered(_arrays(X, dtype), _arrays(Z, dtype), scratch, out)
    return out


def _dense(X, dtype) -> NDArray:
    if hasattr(X, "toarray"):
        X = X.toarray()
    return X.astype(dtype, copy=False)


def _arrays(X, dtype) -> tuple[NDArray, NDArray, NDArray]:
    indices = X.indices.astype(np.int64, copy=False)
    indptr = X.indptr.astype(np.int64, copy=False)
    return X.data.astype(dtype, copy=False), indices, indptr


@jit
def _gathered(left, right, scratch, out):
    x_data, x_index, x_start = left
    z_data, z_index, z_start = right
    for i in range(out.shape[0]):
        for k in range(x_start[i], x_start[i + 1]):
            scratch[x_index[k]] += x_data[k]
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(z_start[j], z_start[j + 1]):
                total += scratch[z_index[k]] * z_data[k]
            out[i, j] = total
        for k in range(x_start[i], x_start[i + 1]):
            scratch[x_index[k]] = 0.0


@jit
def column_range_and_sum(X: NDArray):
    """Return the minimum, the maximum and the float64 sum of each column."""
    n, d = X.shape
    low = X[0].copy()
    high = X[0].copy()
    total = np.zeros(d)
    for i in range(n):
        row = X[i]
        for k in range(d):
            low[k] = min(low[k], row[k])
            high[k] = max(high[k], row[k])
            total[k] += row[k]
    return low, high, total


@jit
def centre_rows(
    X: NDArray,
    rows: NDArray,
    center: NDArray,
    active: NDArray,
    out: NDArray,
    norms: NDArray,
):
    """Fill ``out`` with ``X[rows][:, active] - center[active]``.

    ``norms`` become squared distances from ``center`` over all columns.  The sums have
    a loop of their own.  If that loop also wrote to an array, the compiler would make
    two versions of it, one for arrays that are close to each other in memory and one
    for other arrays, and the two would add in different orders.
    """
    d = X.shape[1]
    shifted = np.empty(d, dtype=out.dtype)
    for i in range(len(rows)):
        row = X[rows[i]]
        for k in range(d):
            shifted[k] = row[k] - center[k]
        norm = 0.0
        for k in range(d):
            norm += np.float64(shifted[k]) * np.float64(shifted[k])
        norms[i] = norm
        target = out[i]
        for k in range(len(active)):
            target[k] = shifted[active[k]]


@jit
def squared_norms_of_rows(X: NDArray, rows: NDArray, norms: NDArray):
    """Fill ``norms`` with the squared norms of ``X[rows]``, in double precision."""
    for i in range(len(rows)):
        row = X[rows[i]]
        norm = 0.0
        for k in range(len(row)):
            norm += np.float64(row[k]) * np.float64(row[k])
        norms[i] = norm


@jit
def scatter_rows(values: NDArray, pool: NDArray, slot: NDArray, column: int):
    """Write the rows of a tile (m, w) into rows ``slot`` of ``pool`` at ``column``."""
    width = values.shape[1]
    for i in range(len(slot)):
        source = values[i]
        target = pool[slot[i], column : column + width]
        for k in range(width):
            target[k] = source[k]


@jit
def mirror(values: NDArray, matrix: NDArray, row: int, column: int):
    """Write a tile (m, w), and its transpose, into a symmetric matrix.

    The tile begins at (row, column) with column >= row.  If it crosses the diagonal,
    the values above the diagonal are used for both triangles.
    """
    m, w = values.shape
    for i in range(m):
        source = values[i]
        target = matrix[row + i, column : column + w]
        for k in range(w):
            target[k] = source[k]
    side = SQUARE if values.itemsize == 4 else SQUARE_OF_DOUBLES
    for k0 in range(0, w, side):
        for i0 in range(0, m, side):
            i1 = min(i0 + side, m)
            for k in range(k0, min(k0 + side, w)):
                last = min(i1, column + k - row)
                if last > i0:
                    target = matrix[column + k, row + i0 : row + last]
                    for i in range(last - i0):
                        target[i] = values[i0 + i, k]


@jit
def close_gaps(matrix: NDArray, target: NDArray, source: NDArray, n: int):
    """Move rows and columns ``source`` of ``matrix[:n, :n]`` to ``target``.

    No index is both a target and a source, so that doing it again changes nothing.
    """
    for k in range(len(target)):
        old = matrix[target[k], :n]
        new = matrix[source[k], :n]
        for c in range(n):
            old[c] = new[c]
    for r in range(n):
        row = matrix[r]
        for k in range(len(target)):
            row[target[k]] = row[source[k]]


@jit
def add_rows(pool: NDArray, slot: NDArray, weight: NDArray, column: int, f: NDArray):
    """Add ``weight[r] * pool[slot[r], column + c]`` to ``f[c]`` for all rows r.

    Four rows are added at a time, strip by strip, so that each sum is loaded and stored
    a quarter as often.  The order of additions does not depend on how callers split
    ``f``.
    """
    n_rows = len(slot)
    for c0 in range(0, len(f), SUMMED_COLUMNS):
        c1 = min(c0 + SUMMED_COLUMNS, len(f))
        part = f[c0:c1]
        first, last = column + c0, column + c1
        r = 0
        while r + 4 <= n_rows:
            k0 = pool[slot[r], first:last]
            k1 = pool[slot[r + 1], first:last]
            k2 = pool[slot[r + 2], first:last]
            k3 = pool[slot[r + 3], first:last]
            w0, w1, w2, w3 = weight[r], weight[r + 1], weight[r + 2], weight[r + 3]
            for c in range(len(part)):
                part[c] += (w0 * np.float64(k0[c]) + w1 * np.float64(k1[c])) + (
                    w2 * np.float64(k2[c]) + w3 * np.float64(k3[c])
                )
            r += 4
        while r < n_rows:
            k0 = pool[slot[r], first:last]
            w0 = weight[r]
            for c in range(len(part)):
                part[c] += w0 * np.float64(k0[c])
            r += 1


@jit
def fill_rows(
    pool: NDArray,
    slot: NDArray,
    new: NDArray,
    columns: NDArray,
    position: NDArray,
    square: NDArray,
):
    """Set ``square[new[i], position[k]] = pool[slot[i], columns[k]]``.

    This is fastest if the columns are sorted.
    """
    for i in range(len(new)):
        source = pool[slot[i]]
        target = square[new[i]]
        for k in range(len(columns)):
            target[position[k]] = source[columns[k]]


@jit
def fill_columns(new: NDArray, others: NDArray, square: NDArray):
    """Fill columns of a symmetric matrix from its rows ``new``, for the rows others."""
    for k0 in range(0, len(others), MIRRORED):
        k1 = min(k0 + MIRRORED, len(others))
        for i in range(len(new)):
            source = square[new[i]]
            for k in range(k0, k1):
                square[others[k], new[i]] = source[others[k]]


@jit
def gather_square(
    pool: NDArray, slot: NDArray, columns: NDArray, first: int, out: NDArray
):
    """Set ``out[i, first + k] = pool[slot[i], columns[k]]``."""
    for i in range(len(slot)):
        source = pool[slot[i]]
        target = out[i, first : first + len(columns)]
        for k in range(len(target)):
            target[k] = source[columns[k]]
