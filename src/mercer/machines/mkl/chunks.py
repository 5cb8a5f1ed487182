r"""Chunking: learn from the samples that matter, and certify on all samples.

A sample on the right side of its margin in every machine has :math:`\beta = 0` and does
not influence the solution.  The problem is therefore first solved, loosely, on some of
the samples.  The machines are then evaluated on all samples.  The next chunk consists
of the support vectors and of the samples that are on the wrong side of a margin, or
close to it.  Since :math:`\beta = 0` outside of a chunk, the dual value of the chunk is
that of the whole problem, and the contribution of the other samples to the gap is
computed from their :math:`f = K\beta`.  The gap is thus that of the whole problem, and
the iteration ends when it is within the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import DualProblem
from mercer.engines.cpu.decompose import Task
from mercer.engines.cpu.solve import TaskSpec
from mercer.machines.mkl.inmemory import GramsInMemory
from mercer.machines.mkl.joint_problem import SAFETY, JointProblem, JointSolution, Round

__all__ = ["Iteration", "by_chunks"]

Iteration = Callable[..., JointSolution]

# Problems with fewer samples are solved as a whole.
CHUNKS_FROM = 2000
# The first chunk has one in this many samples, and is solved to this tolerance.
ONE_IN = 4
FIRST_TOLERANCE = 0.1
# Later chunks are solved to this fraction of the tolerance; the rest is left for the
# samples outside of the chunk.
PART_OF_TOLERANCE = 0.7
# Number of samples close to the margin to add, as a fraction of the needed samples.
COMPANY = 0.2
# Largest ratio between the sizes of a chunk and the one before.
GROWTH = 2
# A chunk with more than this fraction of the samples is replaced by all samples.
MOST = 0.6


def by_chunks(
    problem: JointProblem, iterate: Iteration, max_iter: int, weights: NDArray
) -> JointSolution:
    """Solve the problem with ``iterate``, on chunks of the samples if that is faster.

    The iteration starts from ``weights``.
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
        if problem.is_over(max_iter) or now.is_within(SAFETY * problem.tol):
            return problem.found(now)
        wanted, n_needed = relevant(problem, now, GROWTH * len(rows))
        if tol < problem.tol:
            # From here on no sample leaves the chunk, so that chunks cannot repeat.
            wanted = np.union1d(wanted, rows)
            if len(wanted) == len(rows):
                break  # no sample is missing: rounding errors keep the gap too large
        if n_needed <= len(wanted):
            tol = PART_OF_TOLERANCE * problem.tol
        rows = wanted
    del chunk, memory  # makes room for the problem on all samples
    return iterate(problem, max_iter, weights, now)


def _ends(problem: JointProblem) -> tuple[list[int], list[int]]:
    return problem.store.starts[:-1], problem.store.starts[1:]


def _pays(problem: JointProblem) -> bool:
    """Whether there are enough samples, and a single sum constraint per machine."""
    return problem.store.n >= CHUNKS_FROM and all(
        spec.problem.group[-1] == 0 for spec in problem.specs
    )


def _most_rows(problem: JointProblem) -> int:
    """Return the largest number of samples in a chunk.

    The copies of the matrices for a chunk must fit into the memory of one and a half
    matrices of all samples.
    """
    n, n_kernels = problem.store.n, problem.store.n_kernels
    return int(n * min(MOST, np.sqrt(1.5 / (n_kernels + 1.5))))


def relevant(
    problem: JointProblem, now: Round, most: int
) -> tuple[NDArray[np.intp], int]:
    """Return the support vectors, the worst violators and the samples close to these.

    Also return how many samples are needed, which may be more than ``most``.
    """
    n = problem.store.n
    distance = problem.margins(now)
    n_needed = int((distance <= 0).sum())
    n_support = int((distance == -np.inf).sum())
    count = min(n, max(n_support, min(most, int((1.0 + COMPANY) * n_needed) + 1)))
    chosen = np.argpartition(distance, count - 1)[:count]
    # Every block must have a sample.
    first = [a for a, b in zip(*_ends(problem), strict=True) if b > a]
    return np.union1d(chosen, np.array(first, dtype=np.intp)), n_needed


class Chunk:
    """The problem on some of the samples."""

    def __init__(
        self,
        whole: JointProblem,
        store: GramsInMemory,
        rows: NDArray[np.intp],
        memory: NDArray,
    ):
        """Restrict the problem to sorted rows, with matrices stored in ``memory``."""
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
        self.part = JointProblem(
            part_store, specs, whole.ball, whole.settings, whole.report
        )
        self.part.is_fixed = whole.is_fixed
        self.part.pace = whole.pace

    def restricted(self, now: Round) -> Round:
        """Return the machines on the chunk, which must have all support vectors."""
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
        """Return the machines on all samples, certified on all samples."""
        whole = self.whole
        tasks = [Task(s.problem, s.blocks, whole.store.starts) for s in whole.specs]
        for task, kept, solution in zip(tasks, self._kept, last.solutions, strict=True):
            task.beta[:] = 0.0
            task.beta[kept] = solution.beta
            task.n_iter = solution.n_iter
        found = self.store.certified(last.weights, tasks, whole.tol)
        return whole.certified(last.weights, found)
