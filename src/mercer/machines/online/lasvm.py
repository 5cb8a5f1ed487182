r"""LASVM: a support vector machine that learns from one sample at a time.

With :math:`\beta = y\alpha`, :math:`f = K\beta` and :math:`g = y - f`, a sample may
grow while :math:`\beta_s < B_s = \max(0, C_s y_s)` and shrink while :math:`\beta_s >
A_s = \min(0, C_s y_s)`.  Every update is a step on a pair, in which :math:`\beta_i`
grows and :math:`\beta_j` shrinks by

.. math::

    \lambda = \min\Bigl\{\frac{g_i - g_j}{K_{ii} + K_{jj} - 2 K_{ij}},
              \; B_i - \beta_i, \; \beta_j - A_j\Bigr\},

which both bounds limit.  *Process* adds a new sample to the set and makes a step with
the member of the set that violates most against it.  *Reprocess* makes a step on the
most violating pair of the set.  It then removes the members that are not support
vectors (:math:`\beta_s = 0`) and cannot become support vectors at the present
gradients: those with :math:`y_s = 1` and :math:`g_s \le \min g_j`, or with
:math:`y_s = -1` and :math:`g_s \ge \max g_i`.

Every function takes the machine as arrays over the stored samples ``0..n-1``.
``active`` marks the members of the set; ``f`` is up to date for all stored samples.

References: Bordes, Ertekin, Weston & Bottou, "Fast kernel classifiers with online and
active learning", JMLR 6, 2005.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = [
    "IN_TURN",
    "NEAREST",
    "WORST",
    "Members",
    "extremes",
    "learn",
    "let_go",
    "products",
    "release",
    "restore",
]

# Least curvature: rounding or an indefinite kernel can make the true one 0 or negative.
TINY = 1e-12
# A step makes two gradients equal, and rounding must not decide which is larger: among
# gradients that differ by no more than this, the first is taken.
SAME = 1e-9
# How the next of the waiting samples is chosen: the first one, the one with the least
# |f + b|, or the one with the least y (f + b).
IN_TURN, NEAREST, WORST = 0, 1, 2
# Shifts of Marsaglia's xorshift generator (2003), and the seed used in place of zero.
LEFT, RIGHT, LAST = np.uint64(13), np.uint64(7), np.uint64(17)
NOT_ZERO = np.uint64(0x9E3779B97F4A7C15)


class Members(NamedTuple):
    """One machine over the stored samples; arrays of at least ``n`` entries."""

    side: NDArray[np.float64]  #: 1, -1, or 0 for samples without a side
    cost: NDArray[np.float64]  #: largest |beta|
    beta: NDArray[np.float64]
    f: NDArray[np.float64]
    active: NDArray[np.bool_]


@jit
def products(K: NDArray, first: int, n: int, beta: NDArray, f: NDArray):
    """Set ``f[first:n]`` to ``K[first:n, :n] @ beta[:n]``, in double precision."""
    weight = beta[:n]
    for r in range(first, n):
        row = K[r, :n]
        total = 0.0
        for s in range(len(row)):
            total += weight[s] * np.float64(row[s])
        f[r] = total


@jit
def learn(
    K: NDArray,
    n: int,
    machine: Members,
    waiting: NDArray,
    count: int,
    tau: float,
    n_reprocess: int,
    choice: int,
    n_candidates: int,
    seed_state: NDArray,
):
    """Process ``count`` of the ``waiting`` samples, each followed by reprocessing.

    The order of ``waiting`` changes.  Samples that are members of the set already are
    skipped.  Return the number of steps.
    """
    side, cost, active = machine.side, machine.cost, machine.active
    left = len(waiting)
    n_steps = 0
    for step in range(count):
        if choice == IN_TURN:
            k = waiting[step]
        else:
            at = _choose(waiting[:left], n, machine, choice, n_candidates, seed_state)
            k = waiting[at]
            left -= 1
            waiting[at] = waiting[left]
        if active[k] or side[k] == 0.0 or cost[k] <= 0.0:
            continue
        active[k] = True
        i, j = extremes(n, machine)
        if side[k] > 0.0:
            i = k
        else:
            j = k
        if i >= 0 and j >= 0 and i != j:
            n_steps += _step(K, n, machine, i, j, tau)
        for _ in range(n_reprocess):
            i, j = extremes(n, machine)
            if i < 0 or j < 0 or _step(K, n, machine, i, j, tau) == 0:
                break
            n_steps += 1
        if i >= 0 and j >= 0:
            let_go(n, machine)
    return n_steps


@jit
def restore(K: NDArray, n: int, machine: Members, tau: float, max_steps: int):
    """Reprocess while a pair of the set violates by more than ``tau``.

    Return the number of steps.
    """
    n_steps = 0
    while n_steps < max_steps:
        i, j = extremes(n, machine)
        if i < 0 or j < 0 or _step(K, n, machine, i, j, tau) == 0:
            break
        n_steps += 1
    return n_steps


@jit
def release(K: NDArray, n: int, machine: Members, k: int):
    """Remove sample ``k`` from the set, and give its ``beta`` to other members.

    The ``beta`` goes to the members that may take it and whose gradients favour it
    most.  The sum of all ``beta`` does not change: the others always have room.
    """
    side, cost, beta, f, active = machine
    active[k] = False
    while beta[k] != 0.0:
        i, j = extremes(n, machine)
        to = i if beta[k] > 0.0 else j
        if to < 0:  # rounding errors have taken the last room
            _add(K, n, f, k, -beta[k])
            beta[k] = 0.0
            break
        bound = side[to] * cost[to]
        limit = max(0.0, bound) if beta[k] > 0.0 else min(0.0, bound)
        room = limit - beta[to]
        if abs(room) >= abs(beta[k]):
            move = beta[k]
            beta[to] = _within(beta[to] + move, bound)
        else:
            move = room
            beta[to] = limit
        _add(K, n, f, to, move)
        _add(K, n, f, k, -move)
        beta[k] -= move


@jit
def extremes(n: int, machine: Members):
    """Find the largest ``g`` that may grow and the least that may shrink; -1: none."""
    side, cost, beta, f, active = machine
    i = j = -1
    most, least = -np.inf, np.inf
    for s in range(n):
        if active[s]:
            g = side[s] - f[s]
            bound = side[s] * cost[s]
            if g > most + SAME and beta[s] < max(0.0, bound):
                most = g
                i = s
            if g < least - SAME and beta[s] > min(0.0, bound):
                least = g
                j = s
    return i, j


@jit
def _step(K, n, machine, i, j, tau):
    """Make a step on a pair if it violates by more than ``tau``; return 1 if it did."""
    side, cost, beta, f = machine.side, machine.cost, machine.beta, machine.f
    gain = (side[i] - f[i]) - (side[j] - f[j])
    high = max(0.0, side[i] * cost[i])
    low = min(0.0, side[j] * cost[j])
    if not gain > tau or beta[i] >= high or beta[j] <= low:
        return 0
    Ki, Kj = K[i, :n], K[j, :n]
    curvature = np.float64(Ki[i]) + np.float64(Kj[j]) - 2.0 * np.float64(Ki[j])
    size = min(gain / max(curvature, TINY), high - beta[i], beta[j] - low)
    new_i = high if size >= high - beta[i] else beta[i] + size
    new_j = low if size >= beta[j] - low else beta[j] - size
    if new_i == beta[i] and new_j == beta[j]:
        return 0
    beta[i] = new_i
    beta[j] = new_j
    part = f[:n]
    for s in range(len(part)):
        part[s] += size * (np.float64(Ki[s]) - np.float64(Kj[s]))
    return 1


@jit
def let_go(n: int, machine: Members):
    """Remove the members that are not support vectors and cannot become such."""
    side, beta, f, active = machine.side, machine.beta, machine.f, machine.active
    i, j = extremes(n, machine)
    if i < 0 or j < 0:
        return
    most, least = side[i] - f[i], side[j] - f[j]
    for s in range(n):
        if active[s] and beta[s] == 0.0:
            g = side[s] - f[s]
            if (side[s] > 0.0 and g <= least) or (side[s] < 0.0 and g >= most):
                active[s] = False


@jit
def _within(value, bound):
    """Clip a sum, which may have a rounding error, to between 0 and ``bound``."""
    return min(max(value, min(0.0, bound)), max(0.0, bound))


@jit
def _add(K, n, f, k, weight):
    row = K[k, :n]
    part = f[:n]
    for s in range(len(part)):
        part[s] += weight * np.float64(row[s])


@jit
def _choose(waiting, n, machine, choice, n_candidates, seed_state):
    """Return the position of the best among some randomly drawn waiting samples."""
    side, f = machine.side, machine.f
    i, j = extremes(n, machine)
    bias = 0.0
    if i >= 0 and j >= 0:
        bias = 0.5 * (side[i] - f[i] + side[j] - f[j])
    best, at = np.inf, 0
    for c in range(min(n_candidates, len(waiting))):
        # If there are enough candidates for all waiting samples, each is tried once.
        place = c if n_candidates >= len(waiting) else _draw(seed_state, len(waiting))
        k = waiting[place]
        decision = f[k] + bias
        score = abs(decision) if choice == NEAREST else side[k] * decision
        if score < best:
            best = score
            at = place
    return at


@jit
def _draw(state, n):
    """Draw an index below ``n``."""
    x = state[0] if state[0] != 0 else NOT_ZERO
    x ^= x << LEFT
    x ^= x >> RIGHT
    x ^= x << LAST
    state[0] = x
    return np.int64((x >> np.uint64(32)) * np.uint64(n) >> np.uint64(32))
