r"""One problem of multiple kernel learning: machines that share their kernel weights.

The weights d and the coefficients :math:`\beta_t` of every machine are certified
together.  With :math:`s_k = \sum_t \beta_t^T K_k \beta_t` the duality gap is the sum of
the gaps of the machines with the kernel :math:`\sum_k d_k K_k`, plus the excess cost of
the weights over the best weights for s
(:meth:`mercer.machines.mkl.weights.Ball.excess`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import Solution
from mercer.engines.cpu.decompose import Task
from mercer.engines.cpu.solve import MOST_STEPS, Settings, TaskSpec
from mercer.machines.mkl.grams import BaseGrams, Products, Solved
from mercer.machines.mkl.weights import Ball
from mercer.runtime.validation import check_finite

__all__ = ["SAFETY", "JointProblem", "JointSolution", "Round"]

# The solvers stop at this fraction of the tolerance; the rest is for rounding errors.
SAFETY = 0.9
# The first tolerance of the machines, in units of the margin, and the least one that
# rounding errors allow in double and in single precision.
LOOSE = 0.05
TIGHTEST = 1e-11
TIGHTEST_SINGLE = 2e-6
# Number of rounds within which the gap should halve.
PATIENCE = 3
# Fraction of the weights' excess that the next round is expected to leave, and least
# factor by which the tolerance of machines changes at once.
AHEAD = 0.15
LARGEST_DROP = 0.02
# Values below this fraction of the largest possible value are rounding errors.
NOTHING = 1e-9


class Round(NamedTuple):
    """The state after a round: weights, machines, and bounds on the objective."""

    weights: NDArray
    solutions: list[Solution]
    s: NDArray  #: beta' K_k beta, summed over the machines, shape (n_kernels,)
    primal: float  #: objective at these weights, an upper bound on the optimum
    dual: float  #: a lower bound on the optimum
    machine_gap: float  #: contribution of the machines to the gap
    excess: float  #: contribution of the weights to the gap
    size: float = 0.0  #: values below this are only rounding errors
    F: Products | None = None  #: the products of each machine, if they are known

    @property
    def gap(self) -> float:
        """Primal minus dual."""
        return self.machine_gap + self.excess

    def is_within(self, tol: float) -> bool:
        """Whether the gap is at most this fraction of the objective."""
        return bool(self.gap <= tol * max(abs(self.primal), self.size))


class JointSolution(NamedTuple):
    """The result of a run."""

    last: Round
    n_iter: int
    history: dict[str, NDArray]


class Pace:
    """Tolerance of the machines and step length of the weights, kept between chunks."""

    def __init__(self) -> None:
        self.inner_tol = LOOSE
        self.stretch = 1.0
        self.is_spent = False  #: whether a machine has reached the limit on steps


class JointProblem:
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
        self.is_fixed = False  #: whether the weights are given, not learnt

    def is_over(self, max_iter: int) -> bool:
        """Whether the run must end: it was stopped, or no rounds or steps are left."""
        is_stopped = bool(self.store.threads.stop[0]) or self.pace.is_spent
        return is_stopped or len(self.rounds) >= max_iter

    def solve(
        self, weights: NDArray, before: Round | None = None, tol: float | None = None
    ) -> Round:
        """Solve the machines with fixed weights, starting from their last solutions."""
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
        """Return the bounds for weights and machines, and record them."""
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
        check_finite("dual coefficients or kernel weights", dual + machine_gap + excess)
        now = Round(
            weights, solutions, s, dual + machine_gap + excess, dual, machine_gap,
            excess, self._size, F,
        )  # fmt: skip
        self.rounds.append((-dual, now.gap, weights))
        return now

    def margins(self, now: Round) -> NDArray:
        """Return the least slack of each sample over all machines.

        Samples with a slack <= 0 are needed.  The slack of support vectors is -inf,
        because they are always needed.
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
        """Lower the tolerance of the machines if their part of the gap is too large.

        It is too large if it is most of the gap.  It is also too large if the gap has
        not fallen for a while and the part is more than the fraction ``trifle``:
        weights that are computed from loosely solved machines may be wrong.  Return
        False if the tolerance should be lower but cannot be.
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
        # The machines' gap is proportional to their tolerance, and the excess of the
        # weights falls to about a tenth in a round.
        goal = max(AHEAD * found.excess, 0.5 * self.tol * abs(found.primal))
        factor = np.clip(goal / max(found.machine_gap, 1e-300), LARGEST_DROP, 0.2)
        self.pace.inner_tol = max(self.least_tol, float(factor) * self.pace.inner_tol)
        return True

    @property
    def least_tol(self) -> float:
        """The least tolerance of machines in the precision of the matrices."""
        return TIGHTEST if self.store.is_double else TIGHTEST_SINGLE

    def found(self, last: Round) -> JointSolution:
        """Return the result of the run with its history."""
        objective, gap, weights = zip(*self.rounds, strict=True)
        history = {
            "objective": np.array(objective),
            "dual_gap": np.array(gap),
            "weights": np.array(weights),
        }
        return JointSolution(last, len(self.rounds), history)


def gap_bound(spec: TaskSpec, solution: Solution) -> float:
    """Return the duality gap of a machine, including the rounding errors of f."""
    p, lo, hi, _, row, group = spec.problem
    slack = solution.f[row] + p - np.asarray(solution.multipliers)[group]
    error = solution.error
    above = (slack + error) * (solution.beta - lo)
    below = (slack - error) * (solution.beta - hi)
    return float(np.maximum(above, below).sum())
