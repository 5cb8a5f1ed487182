"""Problems that lie in one kernel matrix on a card, all of them at once.

:class:`PairSolver` takes pair steps on any problems whose samples are rows of one
matrix: those of a fit, or those of all folds and settings of a search.
:class:`WholeSolver` solves the tasks of a fit with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import DualProblem, certify
from mercer.core.smo import POLISH, POLISHED, POLISHING_STEPS
from mercer.engines.cuda.card import Card
from mercer.engines.cuda.launches import Launcher, Outcomes, Packed, group_sizes, pack
from mercer.engines.cuda.products import product_with
from mercer.engines.cuda.values import CardFit

__all__ = ["Member", "PairSolver", "WholeSolver"]

#: gets the number of steps so far, the gap, and whether steps go on, of each problem
Report = Callable[[NDArray, NDArray, NDArray], None]


class Member(NamedTuple):
    """A problem, the rows of the matrix that are its samples, and where it stands."""

    problem: DualProblem
    rows: NDArray[np.intp]
    beta: NDArray[np.float64]  #: changes in place
    f: NDArray[np.float64]  #: changes in place


class PairSolver:
    """Takes pair steps on problems that lie in one matrix, a thread block for each.

    Parameters
    ----------
    card : Card
    matrix : array on the card, shape (n, n)
    diag : array of shape (n,)
        The diagonal, in the main memory.
    stop : array
        ``stop[0]`` becomes 1 when the work is to end early.
    """

    def __init__(self, card: Card, matrix: Any, diag: NDArray, stop: NDArray):
        self._card, self._matrix, self._diag = card, matrix, diag
        self._launcher = Launcher(card, stop)

    def compute_f(self, member: Member) -> None:
        """Compute ``f`` of a problem from its coefficients."""
        problem, rows, beta, f = member
        by_row = np.bincount(problem.row, beta, len(f))
        f[:] = product_with(self._card, self._matrix, rows, by_row)

    def run(
        self,
        members: Sequence[Member],
        tol: NDArray,
        most_steps: NDArray,
        report: Report | None = None,
    ) -> Outcomes:
        """Take steps until each problem is solved, stalls, or has had its steps."""
        packed = self._pack(members)
        n = self._matrix.shape[1]
        outcomes = self._launcher.run(
            self._matrix, n, 0, packed, tol, most_steps, report
        )
        to_host = self._card.to_host
        beta, gradient = to_host(packed.beta), to_host(packed.gradient)
        first = 0
        for member in members:
            own = slice(first, first + len(member.beta))
            member.beta[:] = beta[own]
            member.f[member.problem.row] = gradient[own] - member.problem.p
            first = own.stop
        return outcomes

    def polish(
        self, members: Sequence[Member], tol: NDArray, most_steps: NDArray
    ) -> NDArray[np.int64]:
        """Solve small problems in double precision more exactly, if that can be done.

        This makes solutions independent of the rounding of kernel values; see
        :func:`mercer.core.smo.solve_and_polish`. The problems are solved to ``tol``
        before. Return how many steps were taken.
        """
        taken = np.zeros(len(members), dtype=np.int64)
        small = [
            t
            for t, member in enumerate(members)
            if self._matrix.dtype == np.float64 and len(member.beta) <= POLISHED
        ]
        if not small:
            return taken
        chosen = [members[t] for t in small]
        before = [(member.beta.copy(), member.f.copy()) for member in chosen]
        few = np.array([POLISHING_STEPS * len(member.beta) for member in chosen])
        most = most_steps[small]
        steps = self.run(chosen, POLISH * tol[small], np.minimum(most, few)).steps
        for member in chosen:
            # A product has hardly any rounding errors, unlike many steps.
            self.compute_f(member)
        steps = steps + self.run(chosen, tol[small], most - steps).steps
        for member, goal, (beta, f) in zip(chosen, tol[small], before, strict=True):
            found = certify(member.problem, member.beta, member.f)
            if not found.kkt_gap <= goal:
                # Steps always decrease the objective, but not the gap.
                member.beta[:], member.f[:] = beta, f
        taken[small] = steps
        return taken

    def _pack(self, members: Sequence[Member]) -> Packed:
        rows = [member.rows[member.problem.row] for member in members]
        problems = [member.problem for member in members]
        joined = {
            "column": rows,
            "diagonal": [self._diag[own] for own in rows],
            "lo": [problem.lo for problem in problems],
            "hi": [problem.hi for problem in problems],
            "beta": [member.beta for member in members],
            "gradient": [
                member.f[problem.row] + problem.p
                for member, problem in zip(members, problems, strict=True)
            ],
        }
        arrays = {
            name: self._card.to_card(np.concatenate(own))
            for name, own in joined.items()
        }
        sizes = [group_sizes(problem) for problem in problems]
        return pack(self._card, self._matrix.dtype, sizes, arrays)


class WholeSolver:
    """Solves the tasks of a fit on the whole matrix.

    ``part_bytes`` are computed at once.
    """

    def __init__(self, fit: CardFit, part_bytes: int):
        values, tasks = fit.values, fit.tasks
        self._tasks, self._max_iter, self._progress = tasks, fit.max_iter, fit.progress
        matrix = values.whole(part_bytes)
        self._solver = PairSolver(values.card, matrix, values.diag, fit.stop)
        self._members = [
            Member(
                task.problem, task.gram_rows(np.arange(len(task.f))), task.beta, task.f
            )
            for task in tasks
        ]
        for member in self._members:
            self._solver.compute_f(member)

    def solve(self, tol: float) -> None:
        """Solve all tasks to a KKT gap, from where they stand."""
        tasks = self._tasks
        before = np.array([task.n_iter for task in tasks])
        most = self._max_iter - before

        def report(steps: NDArray, gap: NDArray, goes_on: NDArray) -> None:
            for t, task in enumerate(tasks):
                task.n_iter = int(before[t] + steps[t])
                task.gap = float(max(gap[t], 0.0))
                task.done = bool(task.gap <= tol)
            if self._progress is not None and goes_on.any():
                self._progress(tasks)

        goals = np.full(len(tasks), tol)
        outcomes = self._solver.run(self._members, goals, most, report)
        steps = outcomes.steps
        good = np.flatnonzero(outcomes.gap <= tol)
        members = [self._members[t] for t in good]
        more = self._solver.polish(members, goals[good], (most - steps)[good])
        for t, task in enumerate(tasks):
            task.n_iter = int(before[t])
            task.note(outcomes.of(t), tol)
        for task, taken in zip([tasks[t] for t in good], more, strict=True):
            task.n_iter += int(taken)
        if self._progress is not None:
            self._progress(tasks)
