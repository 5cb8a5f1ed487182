r"""Group-lasso iteration: alternate between machines and weights (Xu et al. 2010).

The weights d become :math:`d_k \propto (d_k^2 s_k)^{1/(p+1)}`, and each machine starts
from its last solution.  Two things make the iteration quick.  Machines are first solved
loosely, and never more tightly than the accuracy of the weights is worth.  And the
change of :math:`\log d` is stretched as long as the value decreases.  Kernels whose
weight vanishes (with p = 1, or because the machines do not use them) are left out, and
come back if their weight should become positive again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.machines.mkl.problem import SAFETY, Found, Problem, Round
from mercer.machines.mkl.weights import Ball

__all__ = ["alternate"]

# Growth of the stretch from one round to the next, and the largest stretch.
GROWTH = 1.6
LONGEST = 12.0
# For p = 1, weights below this fraction of the largest weight become zero.
NEGLIGIBLE = 1e-6
# If the machines' gap is below this fraction of the gap, they are not the bottleneck.
TRIFLE = 0.01
# Weight of a kernel that comes back, as a fraction of the largest weight.
REVIVED = 1e-3


def alternate(
    problem: Problem,
    max_iter: int,
    weights: NDArray,
    before: Round | None = None,
) -> Found:
    """Solve the problem; ``max_iter`` limits how often the machines are solved.

    The iteration starts from ``weights``, or continues from ``before`` if it is given.
    """
    ball, pace = problem.ball, problem.pace
    if before is not None:
        start, change = direction(ball, before)
        weights = moved(ball, start, before.s, pace.stretch * change)
    now = problem.solve(weights, before)
    while not now.is_within(SAFETY * problem.tol):
        if problem.is_stopped or len(problem.rounds) >= max_iter:
            break
        can_tighten = problem.tighten(now, TRIFLE)
        start, change = direction(ball, now)
        weights = moved(ball, start, now.s, pace.stretch * change)
        new = problem.solve(weights, now)
        here = float(ball.slope(start, now.s) * start @ change)
        there = float(ball.slope(new.weights, new.s) * new.weights @ change)
        if new.primal - new.machine_gap > now.primal and pace.stretch > 1.0:
            pace.stretch = 1.0
            continue
        if not can_tighten and abs(new.gap - now.gap) <= 1e-9 * now.gap:
            now = new
            break
        now = new
        # This is where along the change a linear slope would have been zero.
        best = here / (here - there) if here < there else GROWTH
        longer = pace.stretch * min(best, GROWTH)
        pace.stretch = float(np.clip(longer, 1.0, LONGEST))
    return problem.found(now)


def direction(ball: Ball, now: Round) -> tuple[NDArray, NDArray]:
    """Return the weights to start from, and the change of their logarithms."""
    d, s = now.weights.copy(), now.s
    if ball.p == 1:
        missing = (d == 0) & (s > 0) & (s >= (1.0 - 1e-12) * s[d > 0].max(initial=0.0))
        d[missing] = REVIVED * d.max()
    else:
        # A kernel that was useless for the last machines may be useful for these.
        missing = (d == 0) & (s > 0)
        d[missing] = np.minimum(ball.best(s)[missing], REVIVED * d.max())
    target = ball.group_lasso(d, s)
    used = (d > 0) & (target > 0)
    d[~used] = 0.0
    change = np.zeros(len(d))
    change[used] = np.log(target[used] / d[used])
    return d, change


def moved(ball: Ball, d: NDArray, s: NDArray, change: NDArray) -> NDArray:
    """Return weights after a change of their logarithms."""
    shape = d * np.exp(change - change.max(initial=0.0))
    if ball.p == 1:
        shape[shape < NEGLIGIBLE * shape.max()] = 0.0
    size = ball.norm(shape)
    if not size > 0:
        return d
    return ball.scaled(shape / size, d * d * np.maximum(s, 0.0))
