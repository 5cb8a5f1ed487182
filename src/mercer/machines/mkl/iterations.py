r"""Iterations that solve the machines with fixed weights, and then move the weights.

In every iteration each machine starts from its last solution, and ``max_iter`` limits
how often the machines are solved.  An iteration starts from ``weights``, or continues
from ``before`` if it is given.

:func:`solve_fixed` does not move the weights.

:func:`alternate` is the group-lasso iteration (Xu et al. 2010): the weights d become
:math:`d_k \propto (d_k^2 s_k)^{1/(p+1)}`.  Two things make it quick.  Machines are
first solved loosely, and never more tightly than the accuracy of the weights is worth.
And the change of :math:`\log d` is stretched as long as the value decreases.  Kernels
whose weight vanishes (with p = 1, or because the machines do not use them) are left
out, and come back if their weight should become positive again.

:func:`descend` is SimpleMKL (Rakotomamonjy, Bach, Canu & Grandvalet 2008), for p = 1.
On the simplex, the value J(d) of the machines has the gradient
:math:`\partial J/\partial d_k = -\frac12 s_k`.  A direction keeps the sum of the
weights, because the largest weight makes up for the changes of the others, and no
weight falls below 0.  Directions are conjugate as long as the same weights are free.
The line search looks for a zero of the derivative along the direction, which is known
whenever the machines are solved.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.machines.mkl.joint_problem import (
    SAFETY,
    JointProblem,
    JointSolution,
    Round,
)
from mercer.machines.mkl.weights import Ball

__all__ = ["alternate", "descend", "solve_fixed"]

# Group lasso: growth of the stretch from one round to the next, and its maximum.
GROWTH = 1.6
LONGEST = 12.0
# For p = 1, weights below this fraction of the largest weight become zero.
NEGLIGIBLE = 1e-6
# If the machines' gap is below this fraction of the gap, they are not the bottleneck.
TRIFLE = 0.01
# Weight of a kernel that comes back, as a fraction of the largest weight.
REVIVED = 1e-3
# SimpleMKL: the line search ends when the slope has fallen to this fraction.
SLOPE_LEFT = 0.1
MOST_TRIALS = 12


def solve_fixed(
    problem: JointProblem,
    max_iter: int,
    weights: NDArray,
    before: Round | None = None,
) -> JointSolution:
    """Solve the machines only; ``problem.is_fixed`` must be set."""
    if before is not None:
        weights = before.weights
    now = problem.solve(weights, before)
    while not now.is_within(SAFETY * problem.tol):
        if problem.is_over(max_iter) or not problem.tighten(now):
            break
        now = problem.solve(weights, now)
    return problem.found(now)


def alternate(
    problem: JointProblem,
    max_iter: int,
    weights: NDArray,
    before: Round | None = None,
) -> JointSolution:
    """Solve the problem by the group-lasso iteration."""
    ball, pace = problem.ball, problem.pace
    if before is not None:
        start, change = direction(ball, before)
        weights = moved(ball, start, before.s, pace.stretch * change)
    now = problem.solve(weights, before)
    while not now.is_within(SAFETY * problem.tol):
        if problem.is_over(max_iter):
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


def descend(
    problem: JointProblem,
    max_iter: int,
    weights: NDArray,
    before: Round | None = None,
) -> JointSolution:
    """Solve the problem with p = 1 by reduced gradients."""
    if before is not None:
        weights = before.weights
    now = problem.solve(weights, before)
    last: tuple[NDArray, NDArray, NDArray] | None = None
    while not now.is_within(SAFETY * problem.tol):
        if problem.is_over(max_iter):
            break
        can_tighten = problem.tighten(now)
        steepest, free = reduced_gradient(now)
        direction = steepest
        if last is not None and (last[2] == free).all():
            old, course = last[0], last[1]
            mix = steepest @ (steepest - old) / max(old @ old, 1e-300)
            conjugate = steepest + max(0.0, mix) * course
            # The conjugate direction must descend and keep all weights >= 0.
            if conjugate @ now.s > 0 and not (conjugate[~free] < 0).any():
                direction = conjugate
        new = _search(problem, now, direction, max_iter)
        if new is now:
            if direction is not steepest:
                last = None
                continue
            if not can_tighten:
                break
            now = problem.solve(now.weights, now)
            continue
        last = (steepest, direction, free)
        now = new
    return problem.found(now)


def reduced_gradient(now: Round) -> tuple[NDArray, NDArray]:
    """Return the direction of descent on the simplex, and which weights are free."""
    d, gradient = now.weights, -0.5 * now.s
    base = int(np.argmax(d))
    reduced = gradient - gradient[base]
    free = (d > 0) | (reduced < 0)
    direction = np.where(free, -reduced, 0.0)
    direction[base] = 0.0
    direction[base] = -direction.sum()
    return direction, free


def _search(
    problem: JointProblem, now: Round, direction: NDArray, max_iter: int
) -> Round:
    """Return the best machines along a direction, or ``now`` if none is better."""
    falling = direction < 0
    if not falling.any():
        return now
    longest = float((now.weights[falling] / -direction[falling]).min())
    slope = -0.5 * float(direction @ now.s)
    low, high, slope_low, slope_high = 0.0, longest, slope, np.inf
    step, at = longest, now
    for _ in range(MOST_TRIALS):
        if problem.is_over(max_iter):
            break
        weights = np.maximum(now.weights + step * direction, 0.0)
        if step == longest:
            weights[falling & (weights <= 1e-12 * weights.max())] = 0.0
        new = problem.solve(weights / weights.sum(), at)
        here = -0.5 * float(direction @ new.s)
        if np.array_equal(new.s, at.s):
            # If the machines do not move, their tolerance may be too large for the
            # slope to mean anything; or all variables are at bounds, where they stay.
            if new.primal < at.primal:
                return new
            break
        at = new
        if here <= 0 and step == longest:
            return new
        if abs(here) <= SLOPE_LEFT * abs(slope):
            return new
        if here < 0:
            low, slope_low = step, here
        else:
            high, slope_high = step, here
        part = -slope_low / (slope_high - slope_low) if slope_high < np.inf else 0.5
        # A step close to an end of the bracket would hardly shorten it.
        step = low + (high - low) * float(np.clip(part, 0.02, 0.98))
    is_better = at.primal - at.machine_gap <= now.primal
    return at if is_better else now
