r"""SimpleMKL (Rakotomamonjy, Bach, Canu & Grandvalet 2008): reduced gradient.

On the simplex, the value J(d) of the machines has the gradient
:math:`\partial J/\partial d_k = -\frac12 s_k`.  A direction keeps the sum of the
weights, because the largest weight makes up for the changes of the others, and no
weight falls below 0.  Directions are conjugate as long as the same weights are free.
The line search looks for a zero of the derivative along the direction, which is known
whenever the machines are solved.  Each machine starts from its last solution.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.machines.mkl.problem import SAFETY, Found, Problem, Round

__all__ = ["descend"]

# The line search ends when the slope has fallen to this fraction.
SLOPE_LEFT = 0.1
MOST_TRIALS = 12


def descend(
    problem: Problem,
    max_iter: int,
    weights: NDArray,
    before: Round | None = None,
) -> Found:
    """Solve the problem with p = 1; ``max_iter`` limits how often machines are solved.

    The iteration starts from ``weights``, or continues from ``before`` if it is given.
    """
    if before is not None:
        weights = before.weights
    now = problem.solve(weights, before)
    last: tuple[NDArray, NDArray, NDArray] | None = None
    while not now.is_within(SAFETY * problem.tol):
        if problem.is_stopped or len(problem.rounds) >= max_iter:
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


def _search(problem: Problem, now: Round, direction: NDArray, max_iter: int) -> Round:
    """Return the best machines along a direction, or ``now`` if none is better."""
    falling = direction < 0
    if not falling.any():
        return now
    longest = float((now.weights[falling] / -direction[falling]).min())
    slope = -0.5 * float(direction @ now.s)
    low, high, slope_low, slope_high = 0.0, longest, slope, np.inf
    step, at = longest, now
    for _ in range(MOST_TRIALS):
        if problem.is_stopped or len(problem.rounds) >= max_iter:
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
