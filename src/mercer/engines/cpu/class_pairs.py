"""Plans of many small problems, each of two classes.

With one-vs-one and a hundred classes there are 4,950 problems of two classes each.
What counts then is what each problem costs apart from its arithmetic.  So kernel values
of one class with a run of others are computed at once, and one compiled call solves all
problems of the run, in double precision: each certificate is computed from a product
with the kernel matrix, and nothing has to be measured afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.core.stacked import (
    OwnBlocks,
    room_for,
    solutions_of,
    solve_class_pairs,
    stack,
)
from mercer.engines.cpu.gram import RUN_COLUMNS, BlockGram
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.small import Solved
from mercer.engines.cpu.solve import MOST_STEPS
from mercer.engines.cpu.tiles import budget_bytes, plan_tiles
from mercer.engines.engine import Certified, Plan, Settings
from mercer.kernels.base import Definiteness
from mercer.runtime.threads import Threads

__all__ = ["are_small_pairs", "solve_small_pairs"]

# Up to this many samples of two classes together, their problem is small.
MOST_SAMPLES = 512

Choice = tuple[int, ...]


def are_small_pairs(plan: Plan, settings: Settings) -> bool:
    """Tell whether all problems of a plan are of two classes with few samples."""
    sizes = np.sort(np.diff(plan.starts))
    return (
        len(sizes) > 2
        and int(sizes[-2:].sum()) <= MOST_SAMPLES
        and settings.solver in ("auto", "smo")
        and plan.kernel.definiteness >= Definiteness.CONDITIONAL
        and not plan.kernel.is_custom()
        and all(len(spec.blocks) == 2 for spec in plan.specs)
    )


def solve_small_pairs(
    plan: Plan, settings: Settings, threads: Threads, progress: Any = None
) -> Certified | None:
    """Return certified solutions of a plan of small problems of two classes.

    ``progress`` is called after each run of problems, and may stop the threads.  Return
    None if there is too little memory, if values overflow, or if rounding errors keep
    a problem from being solved.
    """
    samples = Operand(plan.samples, order=plan.order, run=threads.map)
    at_once = _at_once(plan, samples, settings)
    if not at_once:
        return None
    gram = BlockGram(
        plan.kernel, samples.astype(np.float64), plan.starts, threads, at_once
    )
    work = _Work(plan, settings, gram, threads.stop)
    after_each = None if progress is None else (lambda: progress(work.states))
    runs = gram.runs(work.together)
    threads.map(work.solve, runs, after_each, at_once)
    for run in runs:  # some have not begun if the work was to end early
        if work.solutions[work.together[run[0]][0]] is None:
            work.solve(run)
    if not work.is_finite or not (threads.stop[0] or work.are_solved(settings)):
        return None
    stopped_early = getattr(progress, "stopped_early", False)
    return Certified(work.solutions, True, stopped_early)


def _at_once(plan: Plan, samples: Operand, settings: Settings) -> int:
    """Return how many threads have the memory that a run of problems takes."""
    budget = budget_bytes(settings.cache_size)
    sizes = np.diff(plan.starts).astype(np.int64)
    largest = int(sizes.max())
    tiling = plan_tiles([plan.kernel], samples, budget)
    across = largest * max(RUN_COLUMNS, largest) * int(2 * tiling.bytes_per_value)
    left = budget - 8 * int((sizes**2).sum())
    return max(0, left) // (across + 8 * (2 * largest) ** 2)


class _Work:
    """The problems, and the solutions that are there so far."""

    def __init__(self, plan: Plan, settings: Settings, gram: BlockGram, stop: NDArray):
        self.together: dict[Choice, list[int]] = {}
        for t, spec in enumerate(plan.specs):
            self.together.setdefault(spec.blocks, []).append(t)
        self.solutions: list[Any] = [None] * len(plan.specs)
        self.states = [Solved(np.inf, False, 0)] * len(plan.specs)
        self.is_finite = True
        self._plan, self._gram, self._stop = plan, gram, stop
        self._tol = settings.tol
        self._max_iter = settings.max_iter if settings.max_iter >= 0 else MOST_STEPS
        sizes = np.diff(plan.starts).astype(np.int64)
        area = sizes**2
        self._own = OwnBlocks(
            np.concatenate([block.ravel() for block in gram.own]),
            np.cumsum(area) - area,
            sizes,
        )

    def are_solved(self, settings: Settings) -> bool:
        """Tell whether all problems are solved, or were given all of their steps."""
        return all(s.converged or s.n_iter == settings.max_iter for s in self.solutions)

    def solve(self, run: list[Choice]) -> None:
        """Solve the problems of one class with a run of others."""
        first, next_to = run[0][0], run[0][1]
        numbers = [t for choice in run for t in self.together[choice]]
        second = np.array([choice[1] for choice in run for _ in self.together[choice]])
        starts = np.asarray(self._plan.starts)
        problems = stack(
            [self._plan.specs[t].problem for t in numbers],
            self._own.size[first] + self._own.size[second],
        )
        results = room_for(problems)
        # If the work is to end early, what is left is only certified where it stands.
        max_iter = 0 if self._stop[0] else self._max_iter
        solve_class_pairs(
            self._own, first, second, self._gram.across(run),
            starts[second] - starts[next_to], problems, self._tol, max_iter,
            self._stop, results,
        )  # fmt: skip
        if not np.isfinite(results.certificate).all():
            self.is_finite = False
        found = solutions_of(problems, results, self._tol, 0, len(numbers))
        for t, s in zip(numbers, found, strict=True):
            self.solutions[t] = s
            self.states[t] = Solved(s.kkt_gap, s.converged, s.n_iter)
