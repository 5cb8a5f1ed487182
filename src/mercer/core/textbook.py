r"""Solvers of textbooks and studies, on the dual problem of the library.

All solvers make the same step.  With :math:`G = K\beta + p` and the curvature
:math:`a = K_{ii} + K_{jj} - 2K_{ij}`, the amount

.. math:: \delta = \min\{(G_j - G_i)/a, \; hi_i - \beta_i, \; \beta_j - lo_j\}

moves from :math:`\beta_j` to :math:`\beta_i`, two variables of one group with
:math:`G_j > G_i`.  A step that reaches a bound ends exactly on it.  Only pairs that
violate by more than ``tol`` are moved, so each solver ends after finitely many steps
(Keerthi & Gilbert 2002).  The labels of the textbooks are the signs of :math:`\beta`.
The solvers differ in how they choose the pair:

* :func:`random_pair` draws the pair uniformly at random.  It usually takes millions of
  draws, most of which do not lead to a step.
* :func:`simplified` is the simplified SMO of the CS229 hand-out after Platt (1998).
  The first variable is a violator at the present bias of its group, and the second is a
  random member of this group.  The solver gives up after ten sweeps without a step, so
  the gap may stay larger than ``tol``.  The hand-out skips moves below 1e-5 and pairs
  without curvature; here the test on ``tol`` has the same effect, whatever the scale of
  the box.
* :func:`platt` is Platt's SMO with the two thresholds of Keerthi, Shevade,
  Bhattacharyya & Murthy (2001), modification 1.  Sweeps over all variables alternate
  with sweeps over :math:`I_0 = \{lo < \beta < hi\}`.  The partner is the variable
  at :math:`b_{up} = \min G` or :math:`b_{low} = \max G`, both taken over :math:`I_0`
  and the last pair only.  ``f`` is kept for all rows, where the text keeps it on
  :math:`I_0`: steps take more work, and examinations take none.
* :func:`most_violating` takes the pair that violates most (WSS 1 of Fan, Chen & Lin
  2005).
* :func:`largest_gain` takes the same ``i``, and the ``j`` with the largest gain
  :math:`(G_j - G_i)^2 / 2a` (WSS 2).

All five take :class:`Rows`, which hold the Gram matrix or compute a row when a solver
asks for it, and count the rows that were computed; the choice of the pair is then the
only difference between two runs.  :func:`by_rows` is the last two for rows that come
from a Python function.  The texts have one group of variables.  Here both variables of
a pair are from the same group, and each group has its own bias or thresholds, so that
every solver takes every problem of the library.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit
from mercer.core.problem import DualProblem
from mercer.core.smo import is_rounding

__all__ = [
    "BY_ROWS",
    "COMPILED",
    "IN_MEMORY",
    "Rows",
    "by_rows",
    "computed_rows",
    "held_rows",
    "largest_gain",
    "most_violating",
    "platt",
    "random_pair",
    "simplified",
]

# Least curvature: rounding or an indefinite kernel can make the true one 0 or negative.
TINY = 1e-12
# Number of sweeps without a step after which the simplified solver gives up.
PASSES = 10
# Shifts of Marsaglia's xorshift generator (2003), and the seed used in place of zero.
LEFT, RIGHT, AGAIN = np.uint64(13), np.uint64(7), np.uint64(17)
HALF_WORD = np.uint64(32)
NOT_ZERO = np.uint64(0x9E3779B97F4A7C15)


class Rows(NamedTuple):
    """Rows of a Gram matrix that are held, or computed when a solver asks for them.

    With ``keeps`` a row is computed once and stays; otherwise every request computes
    it, and the last two rows can be used at the same time.
    """

    values: NDArray  #: (n, n) with ``keeps``, else (2, n)
    is_held: NDArray  #: (n,), whether a row is in ``values``
    diag: NDArray  #: (n,)
    X: NDArray  #: (n, n_features), or (0, 0) if all rows are held
    gamma: float  #: the Gaussian kernel's, or 0 for the linear kernel
    keeps: bool
    computed: NDArray  #: (1,), the number of rows that were computed


def held_rows(K: NDArray) -> Rows:
    """Return the rows of a Gram matrix that is in memory, shape (n, n)."""
    n = len(K)
    none = np.zeros((0, 0), dtype=K.dtype)
    diag = np.ascontiguousarray(K.diagonal())
    count = np.zeros(1, dtype=np.int64)
    return Rows(K, np.ones(n, dtype=np.bool_), diag, none, 0.0, True, count)


def computed_rows(X: NDArray, gamma: float, keeps: bool) -> Rows:
    """Return rows of a Gaussian or, with ``gamma`` 0, a linear kernel: none is held."""
    n = len(X)
    diag = np.ones(n, X.dtype) if gamma else np.einsum("ij,ij->i", X, X)
    values = np.empty((n if keeps else 2, n), dtype=X.dtype)
    count = np.zeros(1, dtype=np.int64)
    held = np.zeros(n, dtype=np.bool_)
    return Rows(values, held, diag, X, float(gamma), keeps, count)


@jit
def random_pair(
    K: Rows,
    problem: DualProblem,
    beta: NDArray,
    f: NDArray,
    tol: float,
    max_iter: int,
    seed_state: NDArray,
    stop: NDArray,
):
    """Make steps on random pairs of one group; check the gap after every ``m`` draws.

    ``K`` gives the rows of the Gram matrix.  ``beta`` and ``f`` change in
    place.  ``seed_state`` holds one uint64.  Another thread may set ``stop[0]`` to end
    the run.  Return the fields of ``smo.Outcome``; ``n_iter`` counts all draws.
    """
    group = problem.group
    m = len(group)
    n_iter = 0
    moved = True
    while True:
        gap, up, low = _widest(problem, beta, f)
        if gap <= tol or n_iter >= max_iter or stop[0] != 0:
            return n_iter, gap, False
        if not moved and _is_stuck(K, problem, beta, f, up, low):
            return n_iter, gap, True
        moved = False
        for _ in range(min(m, max_iter - n_iter)):
            i = _draw(seed_state, m)
            j = _draw(seed_state, m)
            if group[i] == group[j] and _step(K, problem, beta, f, i, j, tol):
                moved = True
            n_iter += 1


@jit
def simplified(
    K: Rows,
    problem: DualProblem,
    beta: NDArray,
    f: NDArray,
    tol: float,
    max_iter: int,
    seed_state: NDArray,
    stop: NDArray,
):
    """Pair each violator at the present bias with a random partner, sweep by sweep.

    Arguments and result are those of :func:`random_pair`; ``n_iter`` counts steps.  If
    no variable violates by half of ``tol``, the gap is within ``tol``.
    """
    p, lo, hi, row = problem.p, problem.lo, problem.hi, problem.row
    m = len(p)
    n_iter = 0
    idle = 0
    first, stop_at, edge = _groups(problem, beta, f)
    # At beta = 0 the middle is 0, which is the first bias of the hand-out.
    middle = np.zeros(len(edge))
    for g in range(len(edge)):
        up, low = edge[g]
        if up >= 0 and low >= 0:
            middle[g] = 0.5 * (f[row[up]] + p[up] + f[row[low]] + p[low])
    gap, up, low = _widest(problem, beta, f)
    while gap > tol and idle < PASSES and n_iter < max_iter and stop[0] == 0:
        before = n_iter
        for i in range(m):
            g = problem.group[i]
            error = f[row[i]] + p[i] - middle[g]
            grows = error < -0.5 * tol and beta[i] < hi[i]
            shrinks = error > 0.5 * tol and beta[i] > lo[i]
            size = stop_at[g] - first[g]
            if size < 2 or not (grows or shrinks):
                continue
            j = first[g] + (i - first[g] + 1 + _draw(seed_state, size - 1)) % size
            if _step(K, problem, beta, f, i, j, tol):
                middle[g] = _middle(problem, beta, f, i, j)
                n_iter += 1
                if n_iter >= max_iter or stop[0] != 0:
                    break
        idle = idle + 1 if n_iter == before else 0
        gap, up, low = _widest(problem, beta, f)
    return n_iter, gap, False


@jit
def platt(
    K: Rows,
    problem: DualProblem,
    beta: NDArray,
    f: NDArray,
    tol: float,
    max_iter: int,
    seed_state: NDArray,
    stop: NDArray,
):
    """Alternate sweeps over all variables with sweeps over those inside the box.

    Arguments and result are those of :func:`random_pair`, but there are no random
    draws; ``n_iter`` counts steps.
    """
    p, lo, hi, group = problem.p, problem.lo, problem.hi, problem.group
    n_iter = 0
    everything = True
    gap, _, _ = _widest(problem, beta, f)
    first, stop_at, edge = _groups(problem, beta, f)
    while gap > tol and n_iter < max_iter and stop[0] == 0:
        before = n_iter
        settled = False
        for t in range(len(p)):
            if not everything and (beta[t] <= lo[t] or beta[t] >= hi[t]):
                continue
            other = _examine(K, problem, beta, f, tol, t, edge[group[t]])
            if other >= 0:
                edge[group[t]] = t, other
                # A step changes the gradient of all groups.
                for g in range(len(edge)):
                    _find_edge(problem, beta, f, first[g], stop_at[g], edge[g])
                n_iter += 1
                if n_iter >= max_iter or stop[0] != 0:
                    break
            if not everything:
                settled = _are_settled(problem, f, edge, tol)
                if settled:
                    break
        unchanged = n_iter == before
        if everything:
            gap, _, _ = _widest(problem, beta, f)
            # A full sweep examines every violating pair, and no pair could move.
            if unchanged and gap > tol:
                return n_iter, gap, True
        everything = not everything and (unchanged or settled)
    gap, _, _ = _widest(problem, beta, f)
    return n_iter, gap, False


@jit
def most_violating(
    K: Rows,
    problem: DualProblem,
    beta: NDArray,
    f: NDArray,
    tol: float,
    max_iter: int,
    seed_state: NDArray,
    stop: NDArray,
):
    """Make steps on the pair that violates most.

    Arguments and result are those of :func:`random_pair`, but there are no random
    draws; ``n_iter`` counts steps.
    """
    n_iter = 0
    while True:
        gap, i, j = _widest(problem, beta, f)
        if gap <= tol or n_iter >= max_iter or stop[0] != 0:
            return n_iter, gap, False
        Ki, Kj = _row(K, problem.row[i]), _row(K, problem.row[j])
        if not _move(problem, beta, f, Ki, Kj, i, j):
            return n_iter, gap, True
        n_iter += 1


@jit
def largest_gain(
    K: Rows,
    problem: DualProblem,
    beta: NDArray,
    f: NDArray,
    tol: float,
    max_iter: int,
    seed_state: NDArray,
    stop: NDArray,
):
    """Make steps on the variable that violates most and its partner of largest gain.

    Arguments and result are those of :func:`most_violating`.
    """
    n_iter = 0
    while True:
        gap, i, j = _widest(problem, beta, f)
        if gap <= tol or n_iter >= max_iter or stop[0] != 0:
            return n_iter, gap, False
        Ki = _row(K, problem.row[i])
        j = _best_partner(problem, beta, f, Ki, K.diag, i)
        if not _move(problem, beta, f, Ki, _row(K, problem.row[j]), i, j):
            return n_iter, gap, True
        n_iter += 1


def by_rows(
    rule: str,
    row: Callable[[int], NDArray],
    diag: NDArray,
    problem: DualProblem,
    beta: NDArray,
    f: NDArray,
    tol: float,
    max_iter: int,
    stop: NDArray,
) -> tuple[int, float, bool]:
    """Make the steps of "wss1" or "wss2" on rows from a Python function.

    ``row(r)`` returns row ``r`` of the Gram matrix, shape (n_rows,), and ``diag`` is
    its diagonal.  ``beta`` and ``f`` change in place.  Return the fields of
    ``smo.Outcome``.
    """
    n_iter = 0
    while True:
        gap, i, j = _widest(problem, beta, f)
        if gap <= tol or n_iter >= max_iter or stop[0] != 0:
            return n_iter, gap, False
        Ki = row(problem.row[i])
        if rule == "wss2":
            j = _best_partner(problem, beta, f, Ki, diag, i)
        if not _move(problem, beta, f, Ki, row(problem.row[j]), i, j):
            return n_iter, gap, True
        n_iter += 1


@jit
def _row(K, r):
    """Return row ``r``, computed if it is not held; see :class:`Rows`."""
    if K.keeps:
        if not K.is_held[r]:
            _compute_row(K, r, K.values[r])
            K.is_held[r] = True
        return K.values[r]
    # Two rows in turn: a pair needs both at the same time.
    out = K.values[K.computed[0] % 2]
    _compute_row(K, r, out)
    return out


@jit
def _compute_row(K, r, out):
    """Write a row of the Gaussian or the linear kernel, and count it."""
    X = K.X
    x = X[r]
    for t in range(len(out)):
        z = X[t]
        total = X.dtype.type(0)
        if K.gamma > 0.0:
            for k in range(len(x)):
                total += (x[k] - z[k]) * (x[k] - z[k])
            out[t] = np.exp(-K.gamma * total)
        else:
            for k in range(len(x)):
                total += x[k] * z[k]
            out[t] = total
    K.computed[0] += 1


@jit
def _widest(problem, beta, f):
    """Return the KKT gap and its pair: ``i`` may grow, ``j`` may shrink.

    If there is no such pair, the gap is -inf and the indices are -1.
    """
    p, lo, hi, _, row, group = problem
    gap, i, j = -np.inf, -1, -1
    least, most, up, low = np.inf, -np.inf, -1, -1
    for t in range(len(p)):
        if t > 0 and group[t] != group[t - 1]:
            least, most, up, low = np.inf, -np.inf, -1, -1
        G = f[row[t]] + p[t]
        if beta[t] < hi[t] and G < least:
            least, up = G, t
        if beta[t] > lo[t] and G > most:
            most, low = G, t
        if most - least > gap:
            gap, i, j = most - least, up, low
    return gap, i, j


@jit
def _groups(problem, beta, f):
    """Return where each group begins and ends, and its pair that violates most.

    If no pair of a group can move, at least one of the two indices is -1.  If a group
    has no variables, both are.
    """
    p, lo, hi, _, row, group = problem
    n_groups = group[-1] + 1
    first = np.zeros(n_groups, dtype=np.int64)
    stop_at = np.zeros(n_groups, dtype=np.int64)
    edge = np.full((n_groups, 2), -1)
    for t in range(len(p)):
        g = group[t]
        if stop_at[g] == 0:
            first[g] = t
        stop_at[g] = t + 1
        G = f[row[t]] + p[t]
        up, low = edge[g]
        if beta[t] < hi[t] and (up < 0 or G < f[row[up]] + p[up]):
            edge[g, 0] = t
        if beta[t] > lo[t] and (low < 0 or G > f[row[low]] + p[low]):
            edge[g, 1] = t
    return first, stop_at, edge


@jit
def _are_settled(problem, f, edge, tol):
    """Tell whether the thresholds of each group are within ``tol`` of each other."""
    p, row = problem.p, problem.row
    for up, low in edge:
        if up >= 0 and low >= 0:
            if not f[row[low]] + p[low] - f[row[up]] - p[up] <= tol:
                return False
    return True


@jit
def _best_partner(problem, beta, f, Ki, diag, i):
    """Find the variable of ``i``'s group that may shrink with the largest gain."""
    p, lo, row, group = problem.p, problem.lo, problem.row, problem.group
    Gi = f[row[i]] + p[i]
    best, j = 0.0, -1
    for t in range(len(p)):
        violation = f[row[t]] + p[t] - Gi
        if t != i and group[t] == group[i] and beta[t] > lo[t] and violation > 0.0:
            a = diag[row[i]] + diag[row[t]] - 2.0 * np.float64(Ki[row[t]])
            gain = violation * violation / max(a, TINY)
            if gain > best:
                best, j = gain, t
    return j


@jit
def _target(problem, beta, f, Ki, Kj, i, j):
    """Return the step from ``j`` to ``i`` and the two values it leads to."""
    p, lo, hi, row = problem.p, problem.lo, problem.hi, problem.row
    at_i, at_j = row[i], row[j]
    G_i, G_j = f[at_i] + p[i], f[at_j] + p[j]
    if is_rounding(G_j - G_i, G_i, G_j, p[i]):
        return 0.0, beta[i], beta[j]
    a = np.float64(Ki[at_i]) + np.float64(Kj[at_j]) - 2.0 * np.float64(Ki[at_j])
    delta = (G_j - G_i) / max(a, TINY)
    room_i = hi[i] - beta[i]
    room_j = beta[j] - lo[j]
    delta = min(delta, room_i, room_j)
    # A variable that reaches a bound is set to it exactly, so that it counts as being
    # at the bound.
    new_i = hi[i] if delta >= room_i else beta[i] + delta
    new_j = lo[j] if delta >= room_j else beta[j] - delta
    return delta, new_i, new_j


@jit
def _move(problem, beta, f, Ki, Kj, i, j):
    """Make the step from ``j`` to ``i``, where ``G[j] > G[i]``; False if it is 0."""
    delta, new_i, new_j = _target(problem, beta, f, Ki, Kj, i, j)
    if new_i == beta[i] and new_j == beta[j]:
        return False
    beta[i] = new_i
    beta[j] = new_j
    for r in range(len(f)):
        f[r] += delta * (np.float64(Ki[r]) - np.float64(Kj[r]))
    return True


@jit
def _step(K, problem, beta, f, i, j, tol):
    """Make a step on a pair if it violates by more than ``tol``, in either direction.

    Return whether ``beta`` has changed.
    """
    p, lo, hi, row = problem.p, problem.lo, problem.hi, problem.row
    violation = f[row[j]] + p[j] - f[row[i]] - p[i]
    if violation < 0.0:
        i, j = j, i
    if i == j or abs(violation) <= tol or beta[i] >= hi[i] or beta[j] <= lo[j]:
        return False
    return _move(problem, beta, f, _row(K, row[i]), _row(K, row[j]), i, j)


@jit
def _is_stuck(K, problem, beta, f, i, j):
    """Tell whether the step on a pair is too small to change ``beta``."""
    Ki, Kj = _row(K, problem.row[i]), _row(K, problem.row[j])
    _, new_i, new_j = _target(problem, beta, f, Ki, Kj, i, j)
    return new_i == beta[i] and new_j == beta[j]


@jit
def _middle(problem, beta, f, i, j):
    """Return minus the hand-out's bias after a step on ``i`` and ``j``."""
    p, lo, hi, row = problem.p, problem.lo, problem.hi, problem.row
    Gi = f[row[i]] + p[i]
    Gj = f[row[j]] + p[j]
    if lo[i] < beta[i] < hi[i]:
        return Gi
    if lo[j] < beta[j] < hi[j]:
        return Gj
    return 0.5 * (Gi + Gj)


@jit
def _examine(K, problem, beta, f, tol, t, edge):
    """Pair ``t`` with the farther threshold if it violates; return the partner.

    ``edge`` holds the indices of ``b_up`` and ``b_low`` of the group of ``t``.  The
    result is -1 if nothing moved.
    """
    p, lo, hi, row = problem.p, problem.lo, problem.hi, problem.row
    if edge[0] < 0 or edge[1] < 0:
        return -1  # no pair of this group can move, now or later
    G = f[row[t]] + p[t]
    may_grow, may_shrink = beta[t] < hi[t], beta[t] > lo[t]
    # If t is inside the box, the thresholds include it already.
    if may_grow and not may_shrink and G < f[row[edge[0]]] + p[edge[0]]:
        edge[0] = t
    if may_shrink and not may_grow and G > f[row[edge[1]]] + p[edge[1]]:
        edge[1] = t
    below = f[row[edge[1]]] + p[edge[1]] - G if may_grow else -np.inf
    above = G - f[row[edge[0]]] - p[edge[0]] if may_shrink else -np.inf
    if max(below, above) <= tol:
        return -1
    other = edge[1] if below > above else edge[0]
    return other if _step(K, problem, beta, f, t, other, tol) else -1


@jit
def _find_edge(problem, beta, f, first, stop_at, edge):
    """Set ``edge`` over a group's variables inside the box and the last pair.

    ``edge`` holds the last pair.  One of its variables may grow and one may shrink, so
    both thresholds are found.  The variables of the group are ``first`` to ``stop_at``.
    """
    i, j = edge
    p, lo, hi, row = problem.p, problem.lo, problem.hi, problem.row
    least, most = np.inf, -np.inf
    for t in range(first, stop_at):
        may_grow, may_shrink = beta[t] < hi[t], beta[t] > lo[t]
        if (may_grow and may_shrink) or t == i or t == j:
            G = f[row[t]] + p[t]
            if may_grow and G < least:
                least, edge[0] = G, t
            if may_shrink and G > most:
                most, edge[1] = G, t


@jit
def _draw(state, n):
    """Draw an index below ``n``, which is at most 2**32."""
    x = state[0] if state[0] != 0 else NOT_ZERO
    x ^= x << LEFT
    x ^= x >> RIGHT
    x ^= x << AGAIN
    state[0] = x
    return np.int64(((x >> HALF_WORD) * np.uint64(n)) >> HALF_WORD)


IN_MEMORY = {"random": random_pair, "simplified": simplified, "platt": platt}
COMPILED = {**IN_MEMORY, "wss1": most_violating, "wss2": largest_gain}
BY_ROWS = ("wss1", "wss2")
