"""All problems of a fit at once, on the whole Gram matrix on a card."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mercer.core.smo import POLISH, POLISHED, POLISHING_STEPS
from mercer.engines.cpu.decompose import Task
from mercer.engines.cuda.launches import Launcher, Outcomes, Packed, group_sizes, pack
from mercer.engines.cuda.products import compute_f
from mercer.engines.cuda.values import Values

__all__ = ["WholeSolver"]


class WholeSolver:
    """Solves tasks on the whole matrix, one thread block for each.

    Parameters
    ----------
    values : Values
    tasks : list of Task
    max_iter : int
        Most steps of each task.
    stop : array
        ``stop[0]`` becomes 1 when the work is to end early.
    progress : callable or None
        It is called with the tasks after each launch.
    part_bytes : int
        Bytes of the matrix that are computed at once.
    """

    def __init__(
        self,
        values: Values,
        tasks: list[Task],
        max_iter: int,
        stop: NDArray,
        progress: Callable[[Sequence[Task]], None] | None,
        part_bytes: int,
    ):
        self._values, self._tasks = values, tasks
        self._max_iter, self._progress = max_iter, progress
        self._matrix = values.whole(part_bytes)
        self._launcher = Launcher(values.card, stop)
        for task in tasks:
            compute_f(values, task, self._matrix)

    def solve(self, tol: float) -> None:
        """Solve all tasks to a KKT gap, from where they stand."""
        outcomes = self._run(self._tasks, tol, self._max_iter)
        for t, task in enumerate(self._tasks):
            task.note(tuple(column[t] for column in outcomes), tol)
        small = [
            task for task in self._tasks if task.done and len(task.beta) <= POLISHED
        ]
        if small and self._matrix.dtype == np.float64:
            self._polish(small, tol)
        if self._progress is not None:
            self._progress(self._tasks)

    def _polish(self, tasks: list[Task], tol: float) -> None:
        """Solve small tasks more exactly; see :func:`mercer.core.smo.solve_and_polish`.

        This makes solutions independent of the rounding of kernel values.
        """
        before = [(task.beta.copy(), task.f.copy(), task.n_iter) for task in tasks]
        few = np.array([POLISHING_STEPS * len(task.beta) for task in tasks])
        steps = self._run(tasks, POLISH * tol, self._max_iter, few).steps
        for task, taken in zip(tasks, steps, strict=True):
            task.n_iter += int(taken)
            # A product has hardly any rounding errors, unlike many steps.
            compute_f(self._values, task, self._matrix)
        outcomes = self._run(tasks, tol, self._max_iter)
        for t, task in enumerate(tasks):
            task.note(tuple(column[t] for column in outcomes), tol)
            if not task.done:
                task.beta[:], task.f[:], _ = before[t]
                task.note((0, tol, False), tol)

    def _run(
        self,
        tasks: list[Task],
        tol: float,
        max_iter: int,
        few: NDArray | None = None,
    ) -> Outcomes:
        """Take steps on tasks; their ``beta`` and ``f`` change."""
        most = np.array([max_iter - task.n_iter for task in tasks], dtype=np.int64)
        if few is not None:
            most = np.minimum(most, few)
        packed = self._pack(tasks)
        before = [task.n_iter for task in tasks]

        def report(steps: NDArray, gap: NDArray, goes_on: NDArray) -> None:
            for t, task in enumerate(tasks):
                task.n_iter = before[t] + int(steps[t])
                task.gap = float(max(gap[t], 0.0))
                task.done = bool(task.gap <= tol)
            if self._progress is not None and goes_on.any():
                self._progress(self._tasks)

        tolerance = np.full(len(tasks), tol)
        n = len(self._values)
        outcomes = self._launcher.run(
            self._matrix, n, 0, packed, tolerance, most, report
        )
        to_host = self._values.card.to_host
        beta, gradient = to_host(packed.beta), to_host(packed.gradient)
        first = 0
        for task, n_iter in zip(tasks, before, strict=True):
            own = slice(first, first + len(task.beta))
            task.beta[:] = beta[own]
            task.f[task.problem.row] = gradient[own] - task.problem.p
            task.n_iter = n_iter
            first = own.stop
        return outcomes

    def _pack(self, tasks: list[Task]) -> Packed:
        rows = [task.gram_rows(task.problem.row) for task in tasks]
        problems = [task.problem for task in tasks]
        gradients = [
            task.f[one.row] + one.p for task, one in zip(tasks, problems, strict=True)
        ]
        joined = {
            "column": rows,
            "diagonal": [self._values.diag[own] for own in rows],
            "lo": [one.lo for one in problems],
            "hi": [one.hi for one in problems],
            "beta": [task.beta for task in tasks],
            "gradient": gradients,
        }
        card = self._values.card
        arrays = {
            name: card.to_card(np.concatenate(own)) for name, own in joined.items()
        }
        sizes = [group_sizes(one) for one in problems]
        return pack(card, self._matrix.dtype, sizes, arrays)
