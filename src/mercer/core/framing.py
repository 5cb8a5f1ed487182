"""Subtract a centre from rows, and find the range and sum of each column."""

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = ["centre_rows", "column_range_and_sum"]


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
