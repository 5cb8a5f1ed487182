"""From plans to certified solutions on a card: which solver runs on which values.

Where the whole Gram matrix fits the card and problems are not too large for one thread
block, all problems are solved at once (:mod:`mercer.engines.cuda.whole`); else by
working sets (:mod:`mercer.engines.cuda.working_sets`). Rounding errors, certificates
and the way from single to double precision are those of the processor
(:mod:`mercer.engines.precision`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import Solution
from mercer.engines.cpu.certificates import (
    judged,
    rounding_errors,
)
from mercer.engines.cpu.decompose import Task
from mercer.engines.cpu.gram import WholeGram
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.solve import MOST_STEPS, tries_single
from mercer.engines.cuda.card import Card
from mercer.engines.cuda.values import CardFit, GivenValues, SampleValues, Values
from mercer.engines.cuda.whole import WholeSolver
from mercer.engines.cuda.working_sets import WorkingSetSolver
from mercer.engines.engine import Certified, Plan, Settings, TaskSpec
from mercer.engines.precision import solve_to_certificates
from mercer.kernels.given import call_function

__all__ = ["SOLVERS", "solve_plan"]

#: solvers that a card has
SOLVERS = ("auto", "smo", "decompose")
# Up to this many variables, one thread block solves a problem on the whole matrix in
# less time than working sets take. A trial on one H200 had problems of 12,600
# variables; the limit itself has not been measured.
MOST_IN_A_BLOCK = 16_384
# Memory for parts of a matrix while it is computed, and for certificates: this share of
# the budget, but not less than the first number of bytes and not more than the second.
# Parts take several times their own size until they are finished, and small parts take
# longer to ask for than to compute.
SPARE_SHARE = 1 / 16
SPARE_BYTES = 256 * 2**20, 4 * 2**30
TIMES_THEIR_SIZE = 8

Progress = Callable[[Sequence[Task]], None]


def solve_plan(
    plan: Plan,
    settings: Settings,
    card: Card,
    progress: Any = None,
    stop: NDArray | None = None,
) -> Certified:
    """Solve all problems of a plan on a card, and certify the solutions.

    ``progress`` is called with the tasks as they are solved, and may set ``stop[0]`` to
    end the fit early.
    """
    if settings.solver not in SOLVERS:
        known = ", ".join(map(repr, SOLVERS))
        raise ValueError(
            f"solver={settings.solver!r} does not run on a graphics card, only {known} "
            "do. Choose one of these, or device='cpu'."
        )
    stop = np.zeros(1, dtype=np.uint8) if stop is None else stop
    host = _on_host(plan, card)
    work = _OnCard(plan, plan.specs, host, settings, card, progress, stop)
    solutions = solve_to_certificates(plan.specs, work.tasks, settings.tol, work)
    found = judged(plan, solutions, host, card.to_host(plan.X))
    return found._replace(stopped_early=getattr(progress, "stopped_early", False))


def _on_host(plan: Plan, card: Card) -> Operand | WholeGram:
    """Return the samples in the main memory, or the given matrix, in their order."""
    X, order = card.to_host(plan.samples), plan.order
    if plan.function is None and not plan.is_matrix:
        return Operand(X, order=order)
    matrix = X if plan.function is None else call_function(plan.function, X, X, X.dtype)
    if not (np.diff(order) == 1).all():
        matrix = matrix[np.ix_(order, order)]
    return WholeGram(matrix, np.array(matrix.diagonal(), dtype=np.float64), plan.starts)


class _OnCard:
    """Solves the tasks of some problems with kernel values of one precision."""

    def __init__(
        self,
        plan: Plan,
        specs: Sequence[TaskSpec],
        host: Operand | WholeGram,
        settings: Settings,
        card: Card,
        progress: Progress | None,
        stop: NDArray,
    ):
        self.tasks = [Task(one.problem, one.blocks, list(plan.starts)) for one in specs]
        self._plan, self._host, self._settings = plan, host, settings
        self._card, self._progress, self._stop = card, progress, stop
        self._values: Values
        kernel = plan.kernel
        self.is_custom = kernel.is_custom()
        if isinstance(host, WholeGram):
            self._values = GivenValues(card, host.matrix)
        else:
            dtype = host.dtype
            if settings.precise:
                dtype = np.dtype(np.float64)
            elif tries_single(kernel, host, settings):
                dtype = np.dtype(np.float32)
            self._values = SampleValues(kernel, card, plan.samples, plan.order, dtype)
        self.is_single = self._values.dtype == np.float32 and not self._values.is_given
        budget = card.memory(settings.cache_size)
        self._solver: WholeSolver | WorkingSetSolver | None = self._prepare(budget)
        #: memory for certificates, which are computed while the solver has its own
        self._spare = _spare_bytes(budget)

    def _prepare(self, budget: int) -> WholeSolver | WorkingSetSolver:
        """Choose the solver."""
        settings, values, tasks = self._settings, self._values, self.tasks
        max_iter = settings.max_iter
        if max_iter < 0:
            max_iter = max(MOST_STEPS, 100 * max(len(task.beta) for task in tasks))
        n, largest = len(values), max(len(task.beta) for task in tasks)
        needed = n * n * values.dtype.itemsize
        spare = _spare_bytes(budget)
        rest = budget - spare - needed
        if settings.solver == "smo" and rest < 0:
            raise MemoryError(
                f"solver='smo' needs the whole Gram matrix on the card, "
                f"{needed / 2**20:.3g} MB for {n} samples; cache_size="
                f"{settings.cache_size!r} leaves {max(0, rest + needed) / 2**20:.3g} "
                "MB for it. Raise cache_size, or use solver='decompose'."
            )
        has_whole = rest >= 0 and settings.solver != "decompose"
        fit = CardFit(values, tasks, max_iter, self._stop, self._progress)
        if has_whole and (settings.solver == "smo" or largest <= MOST_IN_A_BLOCK):
            return WholeSolver(fit, spare // TIMES_THEIR_SIZE)
        # Problems that share samples share the kernel values of a whole matrix.
        is_shared = sum(len(task.f) for task in tasks) >= 2 * n
        is_whole = has_whole and is_shared
        return WorkingSetSolver(fit, rest if is_whole else budget, is_whole=is_whole)

    def solve(self, tol: float) -> None:
        assert self._solver is not None
        self._solver.solve(tol)

    def errors(self) -> NDArray:
        if isinstance(self._values, SampleValues):
            return self._values.errors(self.tasks, self._spare)
        return rounding_errors(self._plan.kernel, self._host, self.tasks, None)

    def exact(self, some: Sequence[tuple[Task, NDArray]]) -> list[NDArray]:
        assert isinstance(self._values, SampleValues)
        return [self._values.exact(task, rows, self._spare) for task, rows in some]

    def solve_in_double(self, specs: Sequence[TaskSpec]) -> list[Solution]:
        self._solver = None
        self._values = None  # type: ignore[assignment]
        precise = self._settings._replace(precise=True)
        again = _OnCard(
            self._plan, specs, self._host, precise, self._card, self._progress,
            self._stop,
        )  # fmt: skip
        return solve_to_certificates(specs, again.tasks, precise.tol, again)


def _spare_bytes(budget: int) -> int:
    """Return the bytes of a budget that are not for kernel values of the solver."""
    least, most = SPARE_BYTES
    return min(max(least, int(SPARE_SHARE * budget)), most, budget // 4)
