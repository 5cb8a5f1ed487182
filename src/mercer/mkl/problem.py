r"""One problem of multiple kernel learning: machines that share their kernel weights.

The weights d and the coefficients :math:`\beta_t` of every machine are certified
together.  With :math:`s_k = \sum_t \beta_t^T K_k \beta_t` the duality gap is the sum of
the gaps of the machines with the kernel :math:`\sum_k d_k K_k`, and what the weights
cost above the best ones for s (:meth:`mercer.mkl.weights.Ball.excess`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.decompose import Task
from mercer.core.problem import Solution
from mercer.mkl.base import BaseGrams, Products, Solved
from mercer.mkl.weights import Ball
from mercer.solvers import MOST_STEPS, Settings, TaskSpec

__all__ = ["SAFETY", "Found", "Problem", "Round", "solve_fixed"]

# The solvers stop at this part of the tolerance: the rest is for rounding errors.
SAFETY = 0.9
# Machines are solved as tightly as this at first, in units of the margin; no tighter
# than the least, where rounding in single precision would not let them.
LOOSE = 0.05
TIGHTEST = 1e-11
# Rounds in which the gap should become half of what it was.
PATIENCE = 3
# What the next round may leave of what the weights add to the gap; and the least factor
# by which the tolerance of machines changes.
AHEAD = 0.15
LARGEST_DROP = 0.02
# Part of the largest value there could be that counts as nothing.
NOTHING = 1e-9
TIGHTEST_SINGLE = 2e-6


class Round(NamedTuple):
    """Where the problem stands: weights, machines, and how good both are."""

    weights: NDArray
    solutions: list[Solution]
    s: NDArray  #: summed over the machines, shape (n_kernels,)
    primal: float  #: value at these weights, an upper bound of the least
    dual: float  #: a lower bound
    machine_gap: float  #: what the machines add to the gap
    excess: float  #: what the weights add
    size: float = 0.0  #: values below this are nothing but rounding
    F: Products | None = None  #: of each machine, where they are at hand

    @property
    def gap(self) -> float:
        """Primal minus dual."""
        return self.machine_gap + self.excess

    def is_within(self, tol: float) -> bool:
        """Whether the gap is at most this part of the value."""
        return bool(self.gap <= tol * max(abs(self.primal), self.size))


class Found(NamedTuple):
    """The end of a run."""

    last: Round
    n_iter: int
    history: dict[str, NDArray]


class Pace:
    """How tightly machines are solved, and how far weights go; kept between chunks."""

    def __init__(self) -> None:
        self.inner_tol = LOOSE
        self.stretch = 1.0
        self.is_spent = False  #: whether a machine has taken all steps it may


class Problem:
    """Machines on base Gram matrices, with one set of weights."""

    def __init__(
        self,
        store: BaseGrams,
        specs: Sequence[TaskSpec],
        ball: Ball,
        settings: Settings,
        report: Callable[[Sequence[Any]], None] | None = None,
    ):
        self.store = store
        self.specs = list(specs)
        self.ball = ball
        self.settings = settings
        self.tol = settings.tol
        self.report = report
        self.tasks = [Task(s.problem, s.blocks, store.starts) for s in specs]
        self.rows = [t.gram_rows(np.arange(len(t.f))) for t in self.tasks]
        self.rounds: list[tuple[float, float, NDArray]] = []
        self.pace = Pace()
        self._mark, self._waiting = np.inf, 0
        self._size = NOTHING * sum(
            float(np.abs(s.problem.p) @ (s.problem.hi - s.problem.lo)) for s in specs
        )
        self.is_fixed = False  #: whether the weights are what they are

    @property
    def is_stopped(self) -> bool:
        """Whether somebody asked for an early end, or a machine has none."""
        return bool(self.store.threads.stop[0]) or self.pace.is_spent

    def solve(
        self, weights: NDArray, before: Round | None = None, tol: float | None = None
    ) -> Round:
        """Solve the machines with fixed weights, from where they stood before."""
        specs, F = self.specs, None
        if before is not None:
            F = before.F
            specs = [
                spec._replace(problem=spec.problem._replace(start=solution.beta))
                for spec, solution in zip(specs, before.solutions, strict=True)
            ]
        settings = self.settings._replace(
            tol=self.pace.inner_tol if tol is None else tol, max_iter=-1
        )
        found = self.store.solve(weights, specs, F, settings, self.report)
        if any(solution.n_iter >= MOST_STEPS for solution in found.solutions):
            self.pace.is_spent = True
        return self.certified(weights, found)

    def certified(self, weights: NDArray, found: Solved) -> Round:
        """Return both bounds for weights and machines, and note them."""
        solutions, s, F = found
        machine_gap = sum(
            gap_bound(spec, solution)
            for spec, solution in zip(self.specs, solutions, strict=True)
        )
        excess = 0.0 if self.is_fixed else self.ball.excess(weights, s)
        linear = sum(
            float(spec.problem.p @ solution.beta)
            for spec, solution in zip(self.specs, solutions, strict=True)
        )
        if self.is_fixed:
            dual = -linear - 0.5 * float(weights @ s)
        else:
            dual = -linear - self.ball.dual_term(s)
        if not np.isfinite(dual + machine_gap + excess):
            raise ValueError(
                "The dual coefficients or kernel weights are not finite. The input "
                "data may contain large values and need to be preprocessed."
            )
        now = Round(
            weights, solutions, s, dual + machine_gap + excess, dual, machine_gap,
            excess, self._size, F,
        )  # fmt: skip
        self.rounds.append((-dual, now.gap, weights))
        return now

    def margins(self, now: Round) -> NDArray:
        """Return how far samples are from being needed, by the machine next to them.

        Support vectors are needed, come what may.
        """
        distance = np.full(self.store.n, np.inf)
        for spec, rows, solution in zip(
            self.specs, self.rows, now.solutions, strict=True
        ):
            p, lo, hi, _, row, group = spec.problem
            slack = solution.f[row] + p - np.asarray(solution.multipliers)[group]
            beta = solution.beta
            idle = np.where(beta <= lo, slack, np.where(beta >= hi, -slack, -np.inf))
            idle[beta != 0] = -np.inf
            np.minimum.at(distance, rows[row], idle)
        return distance

    def tighten(self, found: Round, trifle: float = 0.0) -> bool:
        """Solve machines more tightly if they hold the gap up; False if they cannot.

        They do if most of the gap is theirs; and if it does not fall while more than a
        ``trifle`` of it is, for weights that follow machines solved loosely may go
        astray.
        """
        self._waiting += 1
        if found.gap < 0.5 * self._mark:
            self._mark, self._waiting = found.gap, 0
        wanted = max(found.excess, 0.5 * self.tol * abs(found.primal))
        is_patient = self._waiting < PATIENCE or found.machine_gap <= trifle * wanted
        if found.machine_gap <= 0.5 * wanted and is_patient:
            return True
        if self.pace.inner_tol <= self.least_tol:
            return False
        self._waiting = 0
        # The gap of machines goes with their tolerance, and what the weights add falls
        # to about a tenth in a round.
        goal = max(AHEAD * found.excess, 0.5 * self.tol * abs(found.primal))
        factor = np.clip(goal / max(found.machine_gap, 1e-300), LARGEST_DROP, 0.2)
        self.pace.inner_tol = max(self.least_tol, float(factor) * self.pace.inner_tol)
        return True

    @property
    def least_tol(self) -> float:
        """How tightly machines can be solved in the precision of the matrices."""
        return TIGHTEST if self.store.is_double else TIGHTEST_SINGLE

    def found(self, last: Round) -> Found:
        """Return the end of the run with its history."""
        objective, gap, weights = zip(*self.rounds, strict=True)
        history = {
            "objective": np.array(objective),
            "dual_gap": np.array(gap),
            "weights": np.array(weights),
        }
        return Found(last, len(self.rounds), history)


def gap_bound(spec: TaskSpec, solution: Solution) -> float:
    """Return the duality gap of a machine, the rounding errors of f included."""
    p, lo, hi, _, row, group = spec.problem
    slack = solution.f[row] + p - np.asarray(solution.multipliers)[group]
    error = solution.error
    above = (slack + error) * (solution.beta - lo)
    below = (slack - error) * (solution.beta - hi)
    return float(np.maximum(above, below).sum())


def solve_fixed(
    problem: Problem,
    max_iter: int,
    weights: NDArray,
    before: Round | None = None,
) -> Found:
    """Solve the machines alone, with weights that are not to be changed."""
    problem.is_fixed = True
    if before is not None:
        weights = before.weights
    now = problem.solve(weights, before)
    while not now.is_within(SAFETY * problem.tol):
        over = problem.is_stopped or len(problem.rounds) >= max_iter
        if over or not problem.tighten(now):
            break
        now = problem.solve(weights, now)
    return problem.found(now)
