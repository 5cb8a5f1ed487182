"""Plans of many small problems, each of two classes.

With one-vs-one and a hundred classes there are 4,950 problems of two classes each.
What counts then is what each problem costs apart from its arithmetic.  So kernel values
of one class with a run of others are computed at once, and one compiled call solves all
problems of the run, in double precision: each certificate is computed from a product
with the kernel matrix, and nothing has to be measured afterwards.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.core.stacked import (
    OwnBlocks,
    Solutions,
    Specs,
    room_for,
    solve_class_pairs,
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


def are_small_pairs(plan: Plan, settings: Settings) -> bool:
    """Tell whether all problems of a plan are of two classes with few samples."""
    sizes = np.sort(np.diff(plan.starts))
    return (
        len(sizes) > 2
        and int(sizes[-2:].sum()) <= MOST_SAMPLES
        and settings.solver in ("auto", "smo")
        and plan.kernel.definiteness >= Definiteness.CONDITIONAL
        and not plan.kernel.is_custom()
        and bool((Specs.of(plan.specs).n_blocks() == 2).all())
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
    work = _Work(plan, settings, gram, threads.stop, progress is not None)
    after_each = None if progress is None else (lambda: progress(work.states))
    runs = work.runs()
    threads.map(work.solve, runs, after_each, at_once)
    for run in runs:  # some have not begun if the work was to end early
        if not work.is_begun[run[0]]:
            work.solve(run)
    found = Solutions(work.problems, work.results, settings.tol)
    are_solved = bool((found.converged | (found.n_iter == settings.max_iter)).all())
    if not work.is_finite or not (threads.stop[0] or are_solved):
        return None
    stopped_early = getattr(progress, "stopped_early", False)
    return Certified(found, True, stopped_early)


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

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        gram: BlockGram,
        stop: NDArray,
        with_states: bool,
    ):
        specs = Specs.of(plan.specs)
        self._starts = np.asarray(plan.starts, dtype=np.int64)
        sizes = np.diff(self._starts)
        pairs = specs.all_blocks().reshape(-1, 2)
        self._first, self._second = pairs.T
        #: the problems, those of the same two classes one after the other
        self._order = np.lexsort((self._second, self._first))
        self.problems = specs.stacked(sizes[pairs].sum(axis=1))
        self.results = room_for(self.problems)
        self.states = [Solved(np.inf, False, 0)] * (len(specs) if with_states else 0)
        self.is_begun = np.zeros(len(specs), dtype=bool)
        self.is_finite = True
        self._gram, self._stop, self._tol = gram, stop, settings.tol
        self._max_iter = settings.max_iter if settings.max_iter >= 0 else MOST_STEPS
        area = sizes**2
        self._own = OwnBlocks(
            np.concatenate([block.ravel() for block in gram.own]),
            np.cumsum(area) - area,
            sizes,
        )

    def runs(self) -> list[NDArray]:
        """Divide the problems into runs, of one class with others.

        The others are neighbours, whose columns are computed in one go.
        """
        first, second = self._first[self._order], self._second[self._order]
        step = np.diff(second)
        goes_on = (np.diff(first) == 0) & (step >= 0) & (step <= 1)
        cuts = np.flatnonzero(~goes_on) + 1
        runs: list[NDArray] = []
        for begin, end in pairwise([0, *cuts.tolist(), len(first)]):
            while begin < end:
                # As many as have columns within the limit, and all of one pair.
                most = self._starts[second[begin]] + RUN_COLUMNS
                last = int(np.searchsorted(self._starts, most, "right")) - 2
                last = max(last, int(second[begin]))
                stop = begin + int(np.searchsorted(second[begin:end], last, "right"))
                runs.append(self._order[begin:stop])
                begin = stop
        return runs

    def solve(self, numbers: NDArray) -> None:
        """Solve the problems of one class with a run of others."""
        self.is_begun[numbers[0]] = True
        first, second = int(self._first[numbers[0]]), self._second[numbers]
        across = self._gram.across(first, int(second[0]), int(second[-1]))
        # If the work is to end early, what is left is only certified where it stands.
        max_iter = 0 if self._stop[0] else self._max_iter
        solve_class_pairs(
            self._own, first, numbers, second, across,
            self._starts[second] - self._starts[second[0]], self.problems, self._tol,
            max_iter, self._stop, self.results,
        )  # fmt: skip
        if not np.isfinite(self.results.certificate[numbers]).all():
            self.is_finite = False
        if self.states:
            found = Solutions(self.problems, self.results, self._tol)
            for t in numbers.tolist():
                s = found[t]
                self.states[t] = Solved(s.kkt_gap, s.converged, s.n_iter)
