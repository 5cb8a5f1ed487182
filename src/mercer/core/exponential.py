r"""Exponentials of whole tiles, as vector instructions.

Write :math:`e^{-u} = 2^r \, 2^s` with integer :math:`r` and :math:`|s| \le 1/2`.  The
integer is written to the exponent bits, and :math:`2^s` is a Taylor polynomial that is
long enough for the type (relative error below 2e-9 in single and 2e-17 in double
precision).  Numba turns these loops into vector instructions, which it does not do for
loops that call ``np.exp``.  Results below the smallest normal number become that
number, which is as good as 0.
"""

import math

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = ["exponential", "gaussian", "squared_differences", "squared_distances"]

LOG2_E = math.log2(math.e)
# These are the coefficients of 2**s = sum of (s ln 2)**k / k!, highest power first.
SHORT = tuple(
    np.float32(math.log(2.0) ** k / math.factorial(k)) for k in range(7, -1, -1)
)
LONG = tuple(math.log(2.0) ** k / math.factorial(k) for k in range(13, -1, -1))


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
def _gaussian_single(dots, x_norm, z_norm, gamma):
    scale = np.float32(-gamma * LOG2_E)
    for i in range(dots.shape[0]):
        row = dots[i]
        xi = x_norm[i]
        for j in range(len(row)):
            d2 = max(xi + z_norm[j] - np.float32(2.0) * row[j], np.float32(0.0))
            row[j] = _exp2_single(scale * d2)


@jit
def _gaussian_double(dots, x_norm, z_norm, gamma):
    scale = -gamma * LOG2_E
    for i in range(dots.shape[0]):
        row = dots[i]
        xi = x_norm[i]
        for j in range(len(row)):
            d2 = max(xi + z_norm[j] - 2.0 * row[j], 0.0)
            row[j] = _exp2_double(scale * d2)


@jit
def _exponential_single(values, factor):
    scale = np.float32(-factor * LOG2_E)
    for i in range(values.shape[0]):
        row = values[i]
        for j in range(len(row)):
            row[j] = _exp2_single(scale * row[j])


@jit
def _exponential_double(values, factor):
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
    run = _gaussian_single if single else _gaussian_double
    run(dots, x_norm, z_norm, float(gamma))
    return dots


def exponential(values: NDArray, factor: float) -> NDArray:
    r"""Turn ``values`` >= 0 (m, n) into :math:`e^{-factor \cdot v}`, in place."""
    single = values.dtype == np.float32
    run = _exponential_single if single else _exponential_double
    run(values, float(factor))
    return values
