r"""Assign samples to the nearest centre, with bounds that avoid most distances.

Each sample has an upper bound on the distance to its own centre, and a lower bound on
the distance to all other centres (Hamerly, 2010).  When centres move, the bounds are
widened by the distances moved, and distances are computed only for samples whose bounds
cross.  Distances from matrix products come with a bound on their rounding error.  If
that leaves a doubt about which centre is nearest, differences in double precision
decide.
"""

import math

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = [
    "assign",
    "centre",
    "decide",
    "gather",
    "give_way",
    "move_between",
    "nearest",
    "settle",
    "squared_distances",
    "sum_columns",
]


@jit
def sum_columns(X: NDArray):
    """Return the sum of each column, in double precision."""
    sums = np.zeros(X.shape[1])
    for i in range(len(X)):
        x = X[i]
        for j in range(len(x)):
            sums[j] += np.float64(x[j])
    return sums


@jit
def centre(X: NDArray, mean: NDArray, norms: NDArray):
    """Subtract ``mean`` from all rows, and write down their squared norms."""
    for i in range(len(X)):
        x = X[i]
        total = 0.0
        for j in range(len(x)):
            x[j] -= mean[j]
            total += np.float64(x[j]) * np.float64(x[j])
        norms[i] = total


@jit
def squared_distances(
    X: NDArray, x_norm: NDArray, points: NDArray, p_norm: NDArray, out: NDArray
):
    """Write the squared distances of samples and points (m, d), in double precision.

    Entry (t, i) of ``out`` is the distance of sample i from point t.
    """
    for i in range(len(X)):
        x = X[i]
        for t in range(len(points)):
            point = points[t]
            dot = 0.0
            for j in range(len(x)):
                dot += np.float64(x[j]) * point[j]
            out[t, i] = max(x_norm[i] + p_norm[t] - 2.0 * dot, 0.0)


@jit
def gather(X: NDArray, rows: NDArray, out: NDArray):
    """Copy some rows."""
    for i in range(len(rows)):
        source = X[rows[i]]
        target = out[i]
        for j in range(len(source)):
            target[j] = source[j]


@jit
def give_way(
    labels: NDArray,
    upper: NDArray,
    lower: NDArray,
    moved: NDArray,
    half_gap: NDArray,
    out: NDArray,
):
    """Widen the bounds by the distances that centres ``moved``.

    Return the number of samples whose nearest centre is now in doubt; the indices of
    these samples are written to ``out``.  ``half_gap`` is half the distance of each
    centre from the nearest other centre: no other centre is nearer to a sample that is
    closer than that to its own centre.
    """
    first, second, which = 0.0, 0.0, -1
    for c in range(len(moved)):
        if moved[c] > first:
            second, first, which = first, moved[c], c
        elif moved[c] > second:
            second = moved[c]
    count = 0
    for i in range(len(labels)):
        c = labels[i]
        u = upper[i] + moved[c]
        lo = lower[i] - (second if c == which else first)
        upper[i] = u
        lower[i] = lo
        if u >= max(lo, half_gap[c]):
            out[count] = i
            count += 1
    return count


@jit
def assign(
    dots: NDArray,
    rows: NDArray,
    x_norm: NDArray,
    c_norm: NDArray,
    relative_error: float,
    labels: NDArray,
    upper: NDArray,
    lower: NDArray,
    doubtful: NDArray,
):
    """Assign ``rows`` to the nearest centres, given their inner products (m, k).

    Return the number of samples in doubt; their indices are written to ``doubtful``.
    """
    largest = math.sqrt(max(0.0, c_norm.max()))
    count = 0
    for r in range(len(rows)):
        i = rows[r]
        best, second, label = np.inf, np.inf, 0
        for c in range(len(c_norm)):
            value = c_norm[c] - 2.0 * np.float64(dots[r, c])
            if value < best:
                second, best, label = best, value, c
            elif value < second:
                second = value
        root = math.sqrt(x_norm[i])
        error = relative_error * (root + largest) * (root + largest)
        labels[i] = label
        upper[i], lower[i] = _bounds(x_norm[i], best, second, error)
        if second - best <= 2.0 * error:
            doubtful[count] = i
            count += 1
    return count


@jit
def _bounds(x_norm, best, second, error):
    """Return the upper and the lower bound from squared distances less ``x_norm``."""
    upper = math.sqrt(max(x_norm + best + error, 0.0))
    return upper, math.sqrt(max(x_norm + second - error, 0.0))


@jit
def _dot(x, center):
    """Return an inner product in the precision of its arguments."""
    total = x[0] * center[0]
    for j in range(1, len(x)):
        total += x[j] * center[j]
    return np.float64(total)


@jit
def settle(
    X: NDArray,
    rows: NDArray,
    x_norm: NDArray,
    factor: NDArray,
    c_norm: NDArray,
    half_gap: NDArray,
    relative_error: float,
    labels: NDArray,
    upper: NDArray,
    lower: NDArray,
    doubtful: NDArray,
):
    """Assign ``rows`` to the nearest centres, whose rounded values are ``factor``.

    This does what :func:`assign` does, with inner products of its own.  Most rows only
    need the product with their own centre: it brings the upper bound up to date, which
    then often lies below the lower bound again.
    """
    largest = math.sqrt(max(0.0, c_norm.max()))
    count = 0
    for r in range(len(rows)):
        i = rows[r]
        x = X[i]
        root = math.sqrt(x_norm[i])
        error = relative_error * (root + largest) * (root + largest)
        own, own_value = labels[i], np.inf
        if own >= 0:
            own_value = c_norm[own] - 2.0 * _dot(x, factor[own])
            upper[i] = math.sqrt(max(x_norm[i] + own_value + error, 0.0))
            if upper[i] < max(lower[i], half_gap[own]):
                continue
        best, second, label = np.inf, np.inf, 0
        for c in range(len(c_norm)):
            value = own_value
            if c != own:
                value = c_norm[c] - 2.0 * _dot(x, factor[c])
            if value < best:
                second, best, label = best, value, c
            elif value < second:
                second = value
        labels[i] = label
        upper[i], lower[i] = _bounds(x_norm[i], best, second, error)
        if second - best <= 2.0 * error:
            doubtful[count] = i
            count += 1
    return count


@jit
def decide(
    X: NDArray,
    rows: NDArray,
    centers: NDArray,
    labels: NDArray,
    upper: NDArray,
    lower: NDArray,
):
    """Assign ``rows`` to the nearest centres by differences in double precision.

    ``X`` (m, d) holds the samples of ``rows``, in the same order.
    """
    for r in range(len(rows)):
        best, second, label = np.inf, np.inf, 0
        for c in range(len(centers)):
            value = _squared_difference(X[r], centers[c])
            if value < best:
                second, best, label = best, value, c
            elif value < second:
                second = value
        i = rows[r]
        labels[i] = label
        upper[i] = math.sqrt(best)
        lower[i] = math.sqrt(second)


@jit
def nearest(X: NDArray, centers: NDArray, labels: NDArray):
    """Write the nearest centre of each sample, by differences in double precision."""
    for i in range(len(X)):
        best = np.inf
        for c in range(len(centers)):
            value = _squared_difference(X[i], centers[c])
            if value < best:
                best = value
                labels[i] = c


@jit
def _squared_difference(x, center):
    """Return the squared distance in double precision."""
    total = 0.0
    for j in range(len(x)):
        difference = np.float64(x[j]) - center[j]
        total += difference * difference
    return total


@jit
def move_between(
    X: NDArray,
    rows: NDArray,
    before: NDArray,
    after: NDArray,
    weight: NDArray,
    sums: NDArray,
    counts: NDArray,
):
    """Move ``rows`` from the sums (k, d) of their old clusters to the new ones.

    ``before`` is -1 for a sample that was in no cluster.
    """
    for r in range(len(rows)):
        i = rows[r]
        w = weight[i]
        x = X[i]
        if before[i] >= 0:
            total = sums[before[i]]
            for j in range(len(x)):
                total[j] -= w * np.float64(x[j])
            counts[before[i]] -= w
        total = sums[after[i]]
        for j in range(len(x)):
            total[j] += w * np.float64(x[j])
        counts[after[i]] += w
