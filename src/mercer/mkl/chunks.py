r"""Learning on the samples that matter, certified on all of them.

A sample on the right side of its margin in every machine has :math:`\beta = 0` and no
say.  So the problem is first solved, loosely, on some samples; their machines are then
looked at on all samples, and the next chunk is the support vectors and those that turn
out to be on the wrong side, or close to it.  With :math:`\beta = 0` elsewhere the dual
value of a chunk is that of the whole problem, and what the samples left out add to the
gap is computed from their :math:`f = K\beta`: the certificate is that of the whole
problem, and the end is when it is within the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mercer.core.decompose import Task
from mercer.core.problem import DualProblem
from mercer.mkl.inmemory import GramsInMemory
from mercer.mkl.problem import SAFETY, Found, Problem, Round
from mercer.solvers import TaskSpec

__all__ = ["Iteration", "by_chunks"]

Iteration = Callable[..., Found]

# Below this many samples all of them are taken at once.
CHUNKS_FROM = 2000
# The first chunk is one sample in so many, and solved as loosely as this.
ONE_IN = 4
FIRST_TOLERANCE = 0.1
# Further chunks leave so much of the tolerance to the samples that are left out.
PART_OF_TOLERANCE = 0.7
# Samples close to the margin that come along, as a part of those that must.
COMPANY = 0.2
# How many times as large as the last the next chunk may be.
GROWTH = 2
# Above this part of all samples, the rest comes along, too.
MOST = 0.6


def by_chunks(
    problem: Problem, iterate: Iteration, max_iter: int, weights: NDArray
) -> Found:
    """Solve the problem by ``iterate``, on chunks of the samples where that pays.

    It begins with ``weights``.
    """
    store = problem.store
    if not isinstance(store, GramsInMemory) or not _pays(problem):
        return iterate(problem, max_iter, weights)
    chunk: Chunk | None = None
    now: Round | None = None
    tol = max(FIRST_TOLERANCE, problem.tol)
    memory = store.memory_for(_most_rows(problem))
    rows = np.unique(
        np.concatenate(
            [np.arange(a, b, ONE_IN) for a, b in zip(*_ends(problem), strict=True)]
            + [
                own[spec.problem.row[spec.problem.start != 0]]
                for spec, own in zip(problem.specs, problem.rows, strict=True)
            ]
        )
    )
    while len(rows) <= _most_rows(problem):
        chunk = Chunk(problem, store, rows, memory)
        chunk.part.tol = tol
        left = max_iter - len(problem.rounds)
        before = None if now is None else chunk.restricted(now)
        end = iterate(chunk.part, left, weights, before)
        problem.rounds += chunk.part.rounds[:-1]
        now = chunk.lifted(end.last)
        is_over = problem.is_stopped or len(problem.rounds) >= max_iter
        if is_over or now.is_within(SAFETY * problem.tol):
            return problem.found(now)
        wanted, n_needed = relevant(problem, now, GROWTH * len(rows))
        if tol < problem.tol:
            # From here on none leaves, so that chunks cannot go in circles.
            wanted = np.union1d(wanted, rows)
            if len(wanted) == len(rows):
                break  # nobody is missing: rounding is in the way
        if n_needed <= len(wanted):
            tol = PART_OF_TOLERANCE * problem.tol
        rows = wanted
    del chunk, memory  # there is no room for all samples beside them
    return iterate(problem, max_iter, weights, now)


def _ends(problem: Problem) -> tuple[list[int], list[int]]:
    return problem.store.starts[:-1], problem.store.starts[1:]


def _pays(problem: Problem) -> bool:
    """Whether there are enough samples, and a sum that chunks can keep."""
    return problem.store.n >= CHUNKS_FROM and all(
        spec.problem.group[-1] == 0 for spec in problem.specs
    )


def _most_rows(problem: Problem) -> int:
    """Return how many samples a chunk may have: its copies need memory, too.

    There is room for one and a half matrices of all samples.
    """
    n, n_kernels = problem.store.n, problem.store.n_kernels
    return int(n * min(MOST, np.sqrt(1.5 / (n_kernels + 1.5))))


def relevant(problem: Problem, now: Round, most: int) -> tuple[NDArray[np.intp], int]:
    """Return support vectors, the worst violations, and what comes close to these.

    Beside them, how many there are if they are not cut down to ``most``.
    """
    n = problem.store.n
    distance = problem.margins(now)
    n_needed = int((distance <= 0).sum())
    n_support = int((distance == -np.inf).sum())
    count = min(n, max(n_support, min(most, int((1.0 + COMPANY) * n_needed) + 1)))
    chosen = np.argpartition(distance, count - 1)[:count]
    # No block may be empty.
    first = [a for a, b in zip(*_ends(problem), strict=True) if b > a]
    return np.union1d(chosen, np.array(first, dtype=np.intp)), n_needed


class Chunk:
    """The problem on some of the samples."""

    def __init__(
        self,
        whole: Problem,
        store: GramsInMemory,
        rows: NDArray[np.intp],
        memory: NDArray,
    ):
        """Restrict the problem to sorted rows, its matrices to the memory given."""
        self.whole, self.store = whole, store
        starts = np.searchsorted(rows, store.starts).tolist()
        is_kept = np.zeros(store.n, dtype=bool)
        is_kept[rows] = True
        #: samples and variables of each machine that are in the chunk
        self._rows = [np.flatnonzero(is_kept[own]) for own in whole.rows]
        self._kept: list[NDArray] = []
        specs = []
        for spec, own in zip(whole.specs, whole.rows, strict=True):
            mine = is_kept[own]
            kept = np.flatnonzero(mine[spec.problem.row])
            p, lo, hi, start, row, group = spec.problem
            number = np.cumsum(mine) - 1
            part = DualProblem(
                p[kept], lo[kept], hi[kept], start[kept], number[row[kept]], group[kept]
            )
            specs.append(TaskSpec(part, spec.blocks))
            self._kept.append(kept)
        part_store = store.restricted(rows, starts, memory)
        self.part = Problem(part_store, specs, whole.ball, whole.settings, whole.report)
        self.part.is_fixed = whole.is_fixed
        self.part.pace = whole.pace

    def restricted(self, now: Round) -> Round:
        """Return the machines as those of the chunk, which has all support vectors."""
        solutions = [
            solution._replace(beta=solution.beta[kept], f=solution.f[rows])
            for solution, kept, rows in zip(
                now.solutions, self._kept, self._rows, strict=True
            )
        ]
        F = None
        if now.F is not None:
            F = [
                np.ascontiguousarray(own[:, rows])
                for own, rows in zip(now.F, self._rows, strict=True)
            ]
        return now._replace(solutions=solutions, F=F)

    def lifted(self, last: Round) -> Round:
        """Return the machines as those of all samples, certified on all of them."""
        whole = self.whole
        tasks = [Task(s.problem, s.blocks, whole.store.starts) for s in whole.specs]
        for task, kept, solution in zip(tasks, self._kept, last.solutions, strict=True):
            task.beta[:] = 0.0
            task.beta[kept] = solution.beta
            task.n_iter = solution.n_iter
        found = self.store.certified(last.weights, tasks, whole.tol)
        return whole.certified(last.weights, found)
