r"""Newton's method for linear machines, with all problems in shared passes over X.

Squared losses are piecewise quadratic: Newton's method with an exact line search solves
them in a few rounds.  The hinge and the epsilon-insensitive loss become piecewise
quadratic by a proximal term around coefficients ``base`` (see
:mod:`mercer.core.linear_pieces`).  When the smoothed problem is almost solved, its
coefficients become the new base, and sigma grows: this is the method of multipliers,
which reaches the solution of the original problem with a finite sigma.

The duality gap falls out of every round: the weights w are a point of the primal
problem, and the coefficients that respond to them one of the dual.

References
----------
Yin & Li, "A semismooth Newton method for support vector classification and
regression", Computational Optimization and Applications 73, 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mercer.core.linear_pieces import (
    repair_sums,
    respond,
    settle_shifts,
    step_length,
)
from mercer.engines.cpu.linear.curvature import Curvature, Products, conjugate_gradients
from mercer.engines.cpu.linear.features import Features
from mercer.engines.cpu.linear.problems import LinearProblems
from mercer.runtime.validation import check_finite

__all__ = ["AFTER_DESCENT", "SUM_ERROR", "NewtonTask", "first_sigmas", "newton"]

# The smoothed problem is solved well enough when this fraction of the gap is its own.
INNER_PART = 0.5
# Growth of sigma between two smoothed problems.
GROWTH = 3.0
# Largest sigma, in units of the largest coefficient: rounding errors of decision values
# are multiplied with it.
LARGEST_SIGMA = 1e5
# Factors of the first sigma: where weights and coefficients come from coordinate
# descent, where only weights are given, and where coefficients come from another fit.
AFTER_DESCENT = 10.0
AFTER_WEIGHTS = 3.0
AFTER_A_FIT = 30.0
# Sums of groups may be off by this fraction of the mass.
SUM_ERROR = 1e-10


@dataclass(eq=False)
class NewtonTask:
    """One problem while it is being solved."""

    number: int  #: its place among the problems
    w: NDArray  #: weights of the features
    u: NDArray  #: shifts
    beta: NDArray  #: coefficients that respond to the weights
    base: NDArray  #: centre of the proximal term
    inverse: float  #: 1 / sigma, or 0 for a squared loss
    score: NDArray  #: X w
    free: NDArray  #: which variables are between their bounds
    combined: NDArray = field(default_factory=lambda: np.empty(0))  #: X^T beta
    sums: NDArray = field(default_factory=lambda: np.empty(0))  #: sums of the groups
    primal: float = np.inf
    dual: float = -np.inf
    loss: float = np.inf
    rest: float = np.inf
    off: float = 0.0  #: how far fixed sums are off, as a fraction of the mass
    n_iter: int = 0
    done: bool = False
    stuck: bool = False  #: whether only rounding errors are left of the gradient
    seems_done: bool = False
    is_fresh: bool = True  #: whether the decision values are computed from the weights

    @property
    def gap(self) -> float:
        """Primal minus dual objective."""
        return self.primal - self.dual


#: tells whether a task is solved
Rule = Callable[[NewtonTask], bool]


def newton(
    features: Features,
    problems: LinearProblems,
    rule: Rule,
    max_iter: int,
    stop: NDArray,
    weights: NDArray | None = None,
    shifts: NDArray | None = None,
    beta: NDArray | None = None,
    report: Callable[[list[NewtonTask]], None] | None = None,
    products: Products | None = None,
    trust: float = AFTER_A_FIT,
) -> list[NewtonTask]:
    """Solve all problems from given weights or coefficients, or from 0.

    ``rule`` decides when a problem is solved; ``max_iter`` is the largest number of
    rounds. Decision values follow the weights from round to round. A problem that seems
    solved gets one more round, in which they are computed afresh. ``products`` are
    those of a solution with another C. ``trust`` says how close to given coefficients
    the first steps stay: it is the factor of the first sigma.
    """
    solver = _Newton(features, problems, weights, shifts, beta, products, trust)
    tasks = solver.tasks
    active = tasks
    for number in range(1, max(max_iter, 1) + 1):
        solver.evaluate(active)
        for task in active:
            task.n_iter = min(number, max_iter)
            is_solved = solver.sums_hold(task) and rule(task)
            task.done = is_solved and task.is_fresh
            task.seems_done = is_solved
        if report is not None:
            report(tasks)
        active = [task for task in active if not (task.done or task.stuck)]
        if not active or stop[0] or number >= max_iter:
            break
        solver.improve([task for task in active if not task.seems_done])
        solver.renew([task for task in active if task.seems_done or task.stuck])
    return tasks


def first_sigmas(
    features: Features, problems: LinearProblems
) -> tuple[NDArray, NDArray]:
    """Return the largest coefficient and a first sigma for each problem.

    Coefficients are not larger than their bounds, and change by about the inverse
    squared length of a sample.
    """
    norms = features.squared_norms()
    check_finite("weights or intercepts", norms)
    # A typical squared length, which has no outliers' influence.
    length = max(float(np.median(norms)), float(norms.mean()) * 1e-3, 1e-300)
    bounds = np.maximum(problems.hi, -problems.lo).max(axis=1)
    bounds = np.where(bounds > 0, bounds, 1.0)
    return bounds, np.minimum(bounds, 10.0 / length)


class _Newton:
    """The tasks, and what their rounds share."""

    def __init__(
        self,
        features: Features,
        problems: LinearProblems,
        weights: NDArray | None,
        shifts: NDArray | None,
        beta: NDArray | None,
        products: Products | None,
        trust: float,
    ):
        self.features = features
        self.problems = problems
        k, m = problems.p.shape
        d, e = features.d, problems.n_shifts
        self.bounds, sigma = first_sigmas(features, problems)
        if beta is not None:
            sigma = trust * sigma
        elif weights is not None:
            sigma = AFTER_WEIGHTS * sigma
        weights = np.zeros((k, d)) if weights is None else weights
        shifts = np.zeros((k, e)) if shifts is None else shifts
        scores = (
            features.scores(weights) if weights.any() else np.zeros((k, features.n))
        )
        self.tasks = [
            NewtonTask(
                number=c,
                w=weights[c].astype(np.float64),
                u=shifts[c].astype(np.float64),
                beta=np.zeros(m),
                base=np.zeros(m) if beta is None else beta[c].copy(),
                inverse=0.0 if problems.has_ridge else 1.0 / sigma[c],
                score=scores[c],
                free=np.zeros(m, dtype=np.bool_),
            )
            for c in range(k)
        ]
        self.curvature = Curvature(features, problems, products)

    def evaluate(self, tasks: list[NewtonTask]) -> None:
        """Let the coefficients respond to the weights, and measure the gap."""
        problems, features = self.problems, self.features
        p, lo, hi, ridge, row, group, value, penalty, totals = problems
        m = p.shape[1]

        def react(task: NewtonTask) -> None:
            c = task.number
            if problems.has_fixed_sums:
                settle_shifts(
                    task.score, task.u, value, p[c], lo[c], hi[c], ridge[c], task.base,
                    task.inverse, row, group, totals[c],
                )  # fmt: skip
            task.loss, task.rest = respond(
                task.score, task.u, value, p[c], lo[c], hi[c], ridge[c], task.base,
                task.inverse, row, group, task.beta, task.free,
            )  # fmt: skip
            if problems.has_fixed_sums:
                repair_sums(lo[c], hi[c], group, totals[c], task.beta, task.free)
                b = task.beta
                task.rest = float(b @ p[c] + 0.5 * (ridge[c] * b) @ b)

        features.run(react, tasks, 10 * m * len(tasks))
        by_row = np.empty((len(tasks), features.n))
        for i, task in enumerate(tasks):
            by_row[i] = np.bincount(row, task.beta, features.n)
        combined = features.combine(by_row)
        for i, task in enumerate(tasks):
            c, u = task.number, task.u
            task.combined = combined[i]
            task.sums = np.bincount(group, task.beta, len(u))[: len(u)]
            task.primal = (
                0.5 * (task.w @ task.w + penalty * (u @ u))
                + task.loss
                + value * (u @ totals[c])
            )
            norm = task.combined @ task.combined
            norm += penalty * value**2 * (task.sums @ task.sums)
            task.dual = -0.5 * norm - task.rest

    def gradient(self, task: NewtonTask) -> NDArray:
        """Return the gradient by weights and shifts."""
        problems = self.problems
        off = task.sums - problems.totals[task.number]
        shift = problems.penalty * task.u - problems.value * off
        return np.concatenate([task.w - task.combined, shift])

    def sums_hold(self, task: NewtonTask) -> bool:
        """Tell whether fixed sums are what they should be."""
        task.off = 0.0
        if self.problems.has_fixed_sums:
            off = float(np.abs(task.sums - self.problems.totals[task.number]).max())
            task.off = off / max(float(np.abs(task.beta).sum()), 1e-300)
        return task.off <= SUM_ERROR

    def _wants_new_base(self, task: NewtonTask, gradient: NDArray) -> bool:
        """Tell whether the smoothed problem is solved well enough."""
        if not task.inverse:
            return False
        if not self.sums_hold(task):
            return False
        d = self.features.d
        own = 0.5 * (gradient[:d] @ gradient[:d])
        own += 0.5 * self.problems.penalty * (gradient[d:] @ gradient[d:])
        return own <= INNER_PART * max(task.gap, 0.0)

    def _move_base(self, task: NewtonTask) -> None:
        task.base = task.beta.copy()
        least = 1.0 / (LARGEST_SIGMA * self.bounds[task.number])
        task.inverse = max(task.inverse / GROWTH, min(least, task.inverse))

    def improve(self, tasks: list[NewtonTask]) -> None:
        """Make one Newton step for each problem."""
        steps = []
        for task in tasks:
            gradient = self.gradient(task)
            if self._wants_new_base(task, gradient):
                self._move_base(task)
            else:
                steps.append((task, gradient))
        if not steps:
            return
        self._step(steps)

    def renew(self, tasks: list[NewtonTask]) -> None:
        """Compute decision values afresh from the weights."""
        late = [task for task in tasks if not task.is_fresh]
        if late:
            scores = self.features.scores(np.array([task.w for task in late]))
            for task, score in zip(late, scores, strict=True):
                task.score, task.is_fresh, task.stuck = score, True, False

    def _step(self, steps: list[tuple[NewtonTask, NDArray]]) -> None:
        directions = self._directions(steps)
        d = self.features.d
        along = self.features.scores(np.ascontiguousarray(directions[:, :d]))

        def move(i: int) -> None:
            self._move(steps[i][0], directions[i], along[i])

        work = 30 * self.problems.p.shape[1] * len(steps)
        self.features.run(move, list(range(len(steps))), work)

    def _directions(self, steps: list[tuple[NewtonTask, NDArray]]) -> NDArray:
        """Return Newton directions, exact where that is cheap enough."""
        result = np.empty((len(steps), len(steps[0][1])))
        direct = [
            i for i, (task, _) in enumerate(steps) if self.curvature.is_direct(task)
        ]
        others = [i for i in range(len(steps)) if i not in set(direct)]
        if direct:
            solved = self.curvature.solve([steps[i] for i in direct])
            result[direct] = solved
        if others:
            chosen = [steps[i] for i in others]
            result[others] = conjugate_gradients(self.features, self.problems, chosen)
        return result

    def _move(self, task: NewtonTask, direction: NDArray, along: NDArray) -> None:
        p, lo, hi, ridge, row, group, value, penalty, totals = self.problems
        c, d = task.number, self.features.d
        dw, du = direction[:d], direction[d:].copy()
        constant = task.w @ dw + penalty * (task.u @ du) + value * (totals[c] @ du)
        linear = dw @ dw + penalty * (du @ du)
        t = step_length(
            task.score, along, task.u, du, value, p[c], lo[c], hi[c], ridge[c],
            task.base, task.inverse, row, group, constant, linear,
        )  # fmt: skip
        if t == 0.0:
            # Only rounding errors are left of the gradient.
            if task.inverse and not np.array_equal(task.base, task.beta):
                self._move_base(task)
            else:
                task.stuck = True
            return
        task.w += t * dw
        task.u += t * du
        task.score += t * along
        task.is_fresh = False
