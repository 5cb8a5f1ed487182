r"""Dual coordinate descent for sparse samples, several problems at a time.

The dual problem of :mod:`mercer.core.linear_pieces` is solved one variable after the
other: with the gradient :math:`G = w \cdot x + p + r\beta`, a variable becomes
:math:`\beta - G / (\|x\|^2 + r)`, clipped to its bounds, and the weights
:math:`w = X^T \beta` follow.  The problems of one-vs-rest have the same samples.  Their
weights for one feature lie side by side, and one visit of a sample changes all of them.

Variables at a bound whose gradient is far on the right side are set aside until the
others are solved.

References
----------
Hsieh, Chang, Lin, Keerthi & Sundararajan, "A dual coordinate descent method for
large-scale linear SVM", ICML 2008.
"""

import numpy as np

from mercer.core.jit import jit

__all__ = ["LANES", "descend"]

# Problems that are solved together: as many numbers as a cache line holds.  The loops
# below are written out for this number.
LANES = 8


@jit
def _next(state):
    """Return the next number of a linear congruential generator (Knuth's MMIX)."""
    state[0] = state[0] * np.uint64(6364136223846793005) + np.uint64(
        1442695040888963407
    )
    return state[0] >> np.uint64(33)


@jit
def _dot(data, indices, first, end, w, G):
    """Add the products of a sample with eight columns of weights to ``G``.

    Sums in local variables stay in registers.
    """
    a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(first, end):
        x, j = data[k], indices[k]
        a += x * w[j, 0]
        b += x * w[j, 1]
        c += x * w[j, 2]
        d += x * w[j, 3]
        e += x * w[j, 4]
        f += x * w[j, 5]
        g += x * w[j, 6]
        h += x * w[j, 7]
    G[0] += a
    G[1] += b
    G[2] += c
    G[3] += d
    G[4] += e
    G[5] += f
    G[6] += g
    G[7] += h


@jit
def _add(data, indices, first, end, w, change):
    """Add a multiple of a sample to each of eight columns of weights."""
    a, b, c, d = change[0], change[1], change[2], change[3]
    e, f, g, h = change[4], change[5], change[6], change[7]
    for k in range(first, end):
        x, j = data[k], indices[k]
        w[j, 0] += x * a
        w[j, 1] += x * b
        w[j, 2] += x * c
        w[j, 3] += x * d
        w[j, 4] += x * e
        w[j, 5] += x * f
        w[j, 6] += x * g
        w[j, 7] += x * h


@jit
def descend(
    data, indices, indptr, norms, w, u, value, p, lo, hi, ridge, row, beta,
    eps, most_epochs, state, stop,
):  # fmt: skip
    """Make epochs until the projected gradient of all problems is within ``eps``.

    ``w`` has shape (n_features, lanes), the other arrays of problems (m, lanes), with
    one lane or eight.
    Return the number of epochs and the range of the projected gradient.
    """
    m, lanes = p.shape
    order = np.arange(m)
    count = m
    G = np.empty(lanes)
    change = np.empty(lanes)
    # Bounds of the projected gradient in the epoch before, and in this one.
    old_high, old_low = np.full(lanes, np.inf), np.full(lanes, -np.inf)
    high, low = np.empty(lanes), np.empty(lanes)
    worst = np.inf
    for epoch in range(most_epochs):
        high[:] = -np.inf
        low[:] = np.inf
        for i in range(count):
            j = i + np.int64(_next(state) % np.uint64(count - i))
            order[i], order[j] = order[j], order[i]
        s = 0
        while s < count:
            v = order[s]
            first, end = indptr[row[v]], indptr[row[v] + 1]
            pv, lv, hv, rv, bv = p[v], lo[v], hi[v], ridge[v], beta[v]
            for c in range(lanes):
                G[c] = pv[c] + rv[c] * bv[c] + value * u[c]
            if lanes == LANES:
                _dot(data, indices, first, end, w, G)
            else:
                total = 0.0
                for k in range(first, end):
                    total += data[k] * w[indices[k], 0]
                G[0] += total
            aside, moves = True, False
            for c in range(lanes):
                change[c] = 0.0
                b, g = bv[c], G[c]
                if lv[c] == hv[c]:
                    continue
                if b == lv[c] and g >= 0.0:
                    if g <= old_high[c]:
                        aside = False
                    high[c] = max(high[c], 0.0)
                    low[c] = min(low[c], 0.0)
                    continue
                if b == hv[c] and g <= 0.0:
                    if g >= old_low[c]:
                        aside = False
                    high[c] = max(high[c], 0.0)
                    low[c] = min(low[c], 0.0)
                    continue
                aside = False
                high[c] = max(high[c], g)
                low[c] = min(low[c], g)
                curvature = norms[row[v]] + rv[c]
                new = b
                if curvature > 0.0:
                    new = min(max(b - g / curvature, lv[c]), hv[c])
                elif g != 0.0:
                    new = lv[c] if g > 0.0 else hv[c]
                if new != b:
                    change[c] = new - b
                    bv[c] = new
                    moves = True
            if aside:
                count -= 1
                order[s], order[count] = order[count], order[s]
                continue
            if moves:
                if lanes == LANES:
                    _add(data, indices, first, end, w, change)
                else:
                    step = change[0]
                    for k in range(first, end):
                        w[indices[k], 0] += data[k] * step
                for c in range(lanes):
                    u[c] += value * change[c]
            s += 1
        worst = 0.0
        for c in range(lanes):
            if high[c] >= low[c]:
                worst = max(worst, high[c] - low[c])
        if stop[0]:
            return epoch + 1, worst
        if worst <= eps:
            if count == m:
                return epoch + 1, worst
            count = m
            old_high[:] = np.inf
            old_low[:] = -np.inf
            continue
        for c in range(lanes):
            old_high[c] = high[c] if high[c] > 0.0 else np.inf
            old_low[c] = low[c] if low[c] < 0.0 else -np.inf
    return most_epochs, worst
