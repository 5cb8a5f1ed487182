"""Selection of the working set: the variables to optimise next."""

import numpy as np

from mercer.core.jit import jit

__all__ = ["choose_set", "kth_largest", "mark_strong"]

# Violations of at least this fraction of the strongest are about as useful.
ABOUT_AS_STRONG = 0.8


@jit
def choose_set(problem, beta, f, previous, standing, size, fresh, tol):
    """Choose the variables of the next working set; return a mask and the gap.

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
    G = np.empty(m)
    for t in range(m):
        g = group[t]
        G[t] = f[row[t]] + p[t]
        if beta[t] < hi[t] and G[t] < least[g]:
            least[g] = G[t]
            at_least[g] = t
        if beta[t] > lo[t] and G[t] > most[g]:
            most[g] = G[t]
            at_most[g] = t
    worst = (most - least).argmax()
    gap = most[worst] - least[worst]
    is_in = np.zeros(m, dtype=np.bool_)
    if not gap > tol:
        return is_in, max(gap, 0.0)

    was_in = np.zeros(m, dtype=np.bool_)
    for t in previous:
        was_in[t] = True
    pair = (at_least[worst], at_most[worst])
    n_new, n_old = 0, 0
    for t in pair:
        is_in[t] = True
        if was_in[t]:
            n_old += 1
        else:
            n_new += 1
    fresh = min(fresh, size - n_old)
    score = np.empty(m)
    where = np.empty(m, dtype=np.int64)
    for side in range(2):
        n = 0
        for t in range(m):
            if side == 0:
                violation = most[group[t]] - G[t] if beta[t] < hi[t] else 0.0
            else:
                violation = G[t] - least[group[t]] if beta[t] > lo[t] else 0.0
            if violation > tol and not (is_in[t] or was_in[t]):
                score[n] = violation
                where[n] = t
                n += 1
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
        low = kth_largest(score.copy(), count)
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
    """Return the k-th largest of ``values`` by quickselect; ``values`` is reordered."""
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
