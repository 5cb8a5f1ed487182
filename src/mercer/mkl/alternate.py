r"""Group-lasso iteration: machines and closed-form weights in turn (Xu et al. 2010).

Weights go from d to :math:`d_k \propto (d_k^2 s_k)^{1/(p+1)}`, and each machine starts
from the last.  Two things make it quick: machines are first solved loosely, and no more
tightly than the weights deserve; and the change of :math:`\log d` is stretched as long
as the value falls.  Kernels whose weight vanishes (p = 1, or without use for the
machines) are left out, and come back if it turns out that they should.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.mkl.problem import SAFETY, Found, Problem, Round
from mercer.mkl.weights import Ball

__all__ = ["alternate"]

# How the stretch of a change grows, and how far.
GROWTH = 1.6
LONGEST = 12.0
# Weights below this part of the largest are zero, where zeros are to be expected.
NEGLIGIBLE = 1e-6
# Part of the gap that is too small for machines to be what holds it up.
TRIFLE = 0.01
# Weight of a kernel that comes back.
REVIVED = 1e-3


def alternate(
    problem: Problem,
    max_iter: int,
    weights: NDArray,
    before: Round | None = None,
) -> Found:
    """Solve the problem; ``max_iter`` limits how often machines are solved.

    It begins with ``weights``, or goes on from ``before`` where that is given.
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
        # Where along this change the slope would have been zero.
        best = here / (here - there) if here < there else GROWTH
        longer = pace.stretch * min(best, GROWTH)
        pace.stretch = float(np.clip(longer, 1.0, LONGEST))
    return problem.found(now)


def direction(ball: Ball, now: Round) -> tuple[NDArray, NDArray]:
    """Return where to start from, and how the logarithms of weights should change."""
    d, s = now.weights.copy(), now.s
    if ball.p == 1:
        missing = (d == 0) & (s > 0) & (s >= (1.0 - 1e-12) * s[d > 0].max(initial=0.0))
        d[missing] = REVIVED * d.max()
    else:
        # What had no use for the last machines may have one for these.
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
