"""Selection of the working set: the variables to optimise next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = ["Room", "choose_set", "kth_largest", "mark_strong", "room_for"]

# Violations of at least this fraction of the strongest are about as useful.
ABOUT_AS_STRONG = 0.8
# More values than this are sorted into bins before the k-th largest is looked for: the
# comparisons of quickselect, whose outcome no processor can guess, take longer. Values
# with the same exponent and the same leading bits of the fraction share a bin. The bins
# reach down 64 powers of two from the largest value, and the last one has all the rest.
FEW_VALUES = 256
BINS = 2048
BITS_BELOW = 47


class Room(NamedTuple):
    """Memory for a choice, a place for each variable.

    It is given again and again: to get new memory from the system for each choice
    takes longer than to choose.
    """

    gradient: NDArray[np.float64]
    score: NDArray[np.float64]
    where: NDArray[np.int64]
    is_in: NDArray[np.bool_]
    is_out: NDArray[np.bool_]


def room_for(m: int) -> Room:
    """Return memory for choices among so many variables."""
    gradient, score = np.empty((2, m))
    is_in, is_out = np.empty((2, m), dtype=np.bool_)
    return Room(gradient, score, np.empty(m, dtype=np.int64), is_in, is_out)


@jit
def choose_set(problem, beta, f, previous, standing, size, fresh, tol, room):
    """Choose the variables of the next working set; return a mask and the gap.

    The mask is a part of ``room``, and so valid until the next choice.

    The set has at most ``fresh`` new variables: the pair that violates most, which
    guarantees progress, and then strong violators, half of which may grow and half of
    which may shrink.  It is filled up with variables of the previous set, those of the
    highest ``standing`` first.
    """
    p, lo, hi = problem.p, problem.lo, problem.hi
    row, group = problem.row, problem.group
    m = len(p)
    n_groups = group[m - 1] + 1
    least = np.full(n_groups, np.inf)
    most = np.full(n_groups, -np.inf)
    at_least = np.zeros(n_groups, dtype=np.int64)
    at_most = np.zeros(n_groups, dtype=np.int64)
    G, score, where, is_in, is_out = room
    for t in range(m):
        is_in[t] = False
        is_out[t] = True
        g = group[t]
        G[t] = f[row[t]] + p[t]
        # Which bounds hold is hard to guess for a processor, but a new extreme is rare.
        grows = G[t] if beta[t] < hi[t] else np.inf
        shrinks = G[t] if beta[t] > lo[t] else -np.inf
        if grows < least[g]:
            least[g] = grows
            at_least[g] = t
        if shrinks > most[g]:
            most[g] = shrinks
            at_most[g] = t
    worst = (most - least).argmax()
    gap = most[worst] - least[worst]
    if not gap > tol:
        return is_in, max(gap, 0.0)

    for t in previous:
        is_out[t] = False
    pair = (at_least[worst], at_most[worst])
    n_new, n_old = 0, 0
    for t in pair:
        is_in[t] = True
        if is_out[t]:
            n_new += 1
        else:
            n_old += 1
    fresh = min(fresh, size - n_old)
    for side in range(2):
        n = 0
        for t in range(m):
            if side == 0:
                violation = most[group[t]] - G[t]
                moves = beta[t] < hi[t]
            else:
                violation = G[t] - least[group[t]]
                moves = beta[t] > lo[t]
            # Writing always and counting sometimes is faster than a branch.
            score[n] = violation
            where[n] = t
            n += moves & (violation > tol) & is_out[t] & (not is_in[t])
        take = min(n, (fresh // 2 if side == 0 else fresh) - n_new)
        if take > 0:
            mark_strong(score[:n], where, take, is_in)
            n_new += take

    _keep_best(previous, standing, size - n_new - n_old, is_in)
    return is_in, gap


@jit
def _keep_best(previous, standing, count, is_in):
    """Mark ``count`` of the previous members that are not marked yet, the best first.

    Among members of the same standing, those that come first are marked.
    """
    n = 0
    score = np.empty(len(previous))
    for k in range(len(previous)):
        if not is_in[previous[k]]:
            score[n] = standing[k]
            n += 1
    if count <= 0 or n == 0:
        return
    lowest = -np.inf
    if n > count:
        lowest = kth_largest(score[:n], count)
    for takes_equal in (False, True):
        for k in range(len(previous)):
            t = previous[k]
            is_next = standing[k] == lowest if takes_equal else standing[k] > lowest
            if count > 0 and is_next and not is_in[t]:
                is_in[t] = True
                count -= 1


@jit
def mark_strong(score, where, count, mark):
    """Set ``mark[where[k]]`` for ``count`` of the strongest scores.

    The very strongest violators are often near-duplicates of each other, and most of
    them are satisfied once some have moved.  If enough scores are about as strong as
    the strongest, the marks are therefore spread evenly over all of these.
    """
    low = ABOUT_AS_STRONG * score.max()
    n_eligible = 0
    for k in range(len(score)):
        n_eligible += score[k] >= low
    if n_eligible < count:
        low = kth_largest(score, count)
        n_eligible = 0
        for k in range(len(score)):
            n_eligible += score[k] >= low
    seen = 0
    for k in range(len(score)):
        if score[k] >= low:
            if (seen + 1) * count // n_eligible > seen * count // n_eligible:
                mark[where[k]] = True
            seen += 1


@jit
def kth_largest(values, k):
    """Return the k-th largest of ``values``, none of which is negative."""
    if len(values) > FEW_VALUES:
        values, k = _in_one_bin(values, k)
    else:
        values = values.copy()
    first = 0
    last = len(values) - 1
    k -= 1
    while first < last:
        pivot = values[(first + last) // 2]
        i = first
        j = last
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            last = j
        elif k >= i:
            first = i
        else:
            break
    return values[k]


@jit
def _in_one_bin(values, k):
    """Return the values of the bin that holds the k-th largest, and its place there."""
    top = (np.float64(values.max()).view(np.int64) >> BITS_BELOW) - (BINS - 1)
    bits = values.view(np.int64)
    counts = np.zeros(BINS, dtype=np.int64)
    for v in bits:
        counts[max((v >> BITS_BELOW) - top, 0)] += 1
    chosen = BINS - 1
    while counts[chosen] < k:
        k -= counts[chosen]
        chosen -= 1
    found = np.empty(counts[chosen] + 1)  # one place for what does not count
    n = 0
    for t in range(len(values)):
        found[n] = values[t]
        n += max((bits[t] >> BITS_BELOW) - top, 0) == chosen
    return found[:n], k
