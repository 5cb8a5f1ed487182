r"""Assigning samples to the nearest of some centres, with bounds that spare most work.

For each sample an upper bound of the distance to its own centre is kept, and a lower
bound of that to all others (Hamerly, 2010).  When centres move, the bounds give way by
as much; only where they cross is anything computed.  Distances that come from matrix
products carry a bound of their rounding error; where that leaves a doubt about which
centre is nearest, differences in double precision decide.
"""

import math

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = ["assign", "decide", "gather", "give_way", "move_between"]


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
    """Widen the bounds by how far centres ``moved``; return the number of doubtful.

    Their indices are written to ``out``.  ``half_gap`` is half the distance of each
    centre from the next: a sample closer than that has no other centre nearer.
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
    """Take the nearest centre for each of ``rows``, given their products (m, k).

    Return how many are in doubt; their indices are written to ``doubtful``.
    """
    largest = 0.0
    for c in range(len(c_norm)):
        largest = max(largest, c_norm[c])
    largest = math.sqrt(largest)
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
        upper[i] = math.sqrt(max(x_norm[i] + best + error, 0.0))
        lower[i] = math.sqrt(max(x_norm[i] + second - error, 0.0))
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
    """Assign ``rows`` of samples (m, d), given in the same order, by differences."""
    for r in range(len(rows)):
        x = X[r]
        best, second, label = np.inf, np.inf, 0
        for c in range(len(centers)):
            center = centers[c]
            value = 0.0
            for j in range(len(x)):
                difference = np.float64(x[j]) - center[j]
                value += difference * difference
            if value < best:
                second, best, label = best, value, c
            elif value < second:
                second = value
        i = rows[r]
        labels[i] = label
        upper[i] = math.sqrt(best)
        lower[i] = math.sqrt(second)


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
    """Take ``rows`` out of the sums (k, d) of their old clusters, into the new ones.

    ``before`` is -1 where a sample was in none.
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
