r"""The working-set solver, for Gram matrices that are computed row by row.

In each round every problem picks a working set of variables: some of them new ones
that violate strongly, the rest kept from before.  Members that moved last stay, since
they will move again once others have; free variables that do not move only fill the
set.

The rows of all working sets are computed together, in batches large enough for the
matrix product; each problem solves its working set with the pair solver, and updates
its :math:`f = K\beta` from the same rows.  All problems do a round at the same time, so
that a row that several of them need is computed once, and the result does not depend on
the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.core.choice import choose_set
from mercer.core.problem import (
    Certificate,
    DualProblem,
    Layout,
    certify,
    layout,
)
from mercer.core.smo import minimise_pairs
from mercer.core.tiles import add_rows, fill_columns, fill_rows, ranges

__all__ = ["Task", "decompose", "refresh"]

# The inner problems are solved this much more tightly than the outer one is violated.
# If members have to leave for others, the next working sets undo much of what further
# steps would do.
INNER_TOLERANCE = 0.1
INNER_TOLERANCE_OF_FULL_SET = 0.15
# More rounds than a problem takes, so that two of them fit into one number.
MOST_ROUNDS = 2.0**26
# Number of new variables in a working set.  The first sets have few, because the first
# gradient says little about which variables will matter.  Where members have to leave,
# many variables matter, and more of them at a time take fewer rounds.
FIRST_FRESH = 64
MOST_FRESH = 128
MOST_FRESH_OF_FULL_SET = 512
# New variables of all problems together, so that their rows fill a matrix product.
ALL_FRESH = 256


class Rows(Protocol):
    """What the solver needs of a Gram matrix (see :mod:`mercer.engines.cpu.gram`)."""

    starts: list[int]

    @property
    def capacity(self) -> int: ...

    @property
    def dtype(self) -> Any: ...

    def provide(self, demands: Sequence[Any]) -> None: ...

    def source(self, block: int) -> Any: ...


class Wanted(NamedTuple):
    """Rows that a task wants of one block."""

    block: int
    rows: NDArray[np.intp]


class Task:
    """One problem on some blocks of the Gram matrix, and its solution so far."""

    def __init__(self, problem: DualProblem, blocks: Sequence[int], starts: list[int]):
        self.problem = problem
        self.blocks = list(blocks)
        self.columns = np.array([starts[b : b + 2] for b in blocks], dtype=np.int64)
        #: first row of each block in the problem's own numbering, then the end
        self.offsets = np.append(0, np.cumsum(np.diff(self.columns, axis=1)))
        self.beta = problem.start.copy()
        self.f = np.zeros(int(self.offsets[-1]))
        self.fresh = FIRST_FRESH  #: how many new variables the next set may have
        self.is_full = False  #: whether members have had to leave the working set
        self.n_iter = 0
        self.gap = np.inf
        self.stalled = False
        self.done = False
        self.certificate: Certificate | None = None  #: of where it stands, if known
        self.working_set = np.empty(0, dtype=np.int64)
        self._new = self.working_set  #: positions of the latest members
        self.n_rounds = 0
        #: the round in which a variable moved last, and that in which it came
        self._moved_in = np.zeros(len(problem.p), dtype=np.int64)
        self._came_in = np.zeros(len(problem.p), dtype=np.int64)
        self._square: NDArray | None = None
        self.moved: tuple[NDArray, NDArray] = (np.empty(0, np.int64), np.empty(0))

    def layout(self) -> Layout:
        """Describe the problem's place in a whole matrix."""
        return layout(self.problem, self.columns)

    def gram_rows(self, rows: NDArray) -> NDArray:
        """Turn the problem's own row numbers into those of the Gram matrix."""
        which = np.searchsorted(self.offsets, rows, side="right") - 1
        return rows - self.offsets[which] + self.columns[which, 0]

    def choose(self, size: int, fresh: int, tol: float) -> None:
        """Choose the next working set, and note whether the problem is solved.

        Members that stay keep their position, so that their part of the square Gram
        matrix stays too; new ones take the places of those that leave, or come last.
        """
        problem = self.problem
        members = self.working_set
        # Members that moved last stay, and of those the ones that came last.
        standing = self._moved_in[members] * MOST_ROUNDS + self._came_in[members]
        chosen, self.gap = choose_set(
            problem, self.beta, self.f, members, standing, size, fresh, tol
        )
        self.done = self.gap <= tol
        # If all gradients have overflowed, no variable is chosen.
        self.stalled = not (self.done or chosen.any())
        if self.done or self.stalled:
            self.working_set = self._new = np.empty(0, dtype=np.int64)
            self._square = None
            return
        leaving = np.flatnonzero(~chosen[members])
        is_coming = chosen.copy()
        is_coming[members] = False
        coming = np.flatnonzero(is_coming)
        self.is_full |= len(leaving) > 0
        self.n_rounds += 1
        self._came_in[coming] = self.n_rounds
        self._moved_in[coming] = self.n_rounds - 1
        if problem.group[-1] > 0:
            # Groups must stay together, so members cannot keep their positions.
            self.working_set = np.flatnonzero(chosen)
            self._new = np.arange(len(self.working_set))
            return
        old = len(members)
        added = np.arange(old, old + len(coming) - len(leaving))
        self._new = np.concatenate([leaving, added])
        self.working_set = np.concatenate([members, np.empty(len(added), np.int64)])
        self.working_set[self._new] = coming

    def note(self, outcome: tuple[int, float, bool], tol: float) -> None:
        """Record how a run of another solver ended."""
        n_iter, _, self.stalled = outcome
        self.n_iter += n_iter
        self.certificate = certify(self.problem, self.beta, self.f)
        self.gap = self.certificate.kkt_gap
        self.done = self.gap <= tol

    def wanted(self) -> list[Wanted]:
        """Return the rows that the working set needs, for each block."""
        rows = self.gram_rows(np.unique(self.problem.row[self.working_set]))
        return [Wanted(block, rows) for block in self.blocks]

    def parts(self, gram: Rows, size: int, count: int) -> list[tuple[Task, slice]]:
        """Divide the new members into so many parts for :meth:`extend`."""
        if self._square is None:
            size = min(size, len(self.problem.p))
            self._square = np.empty((size, size), dtype=gram.dtype)
        step = max(1, -(-len(self._new) // count))
        return [(self, part) for part in ranges(0, len(self._new), step)]

    def improve(self, tol: float, max_iter: int, stop: NDArray) -> None:
        """Solve the working set, and note which rows moved by how much."""
        assert self._square is not None
        ws = self.working_set
        problem = self.problem
        rows = problem.row[ws]
        p, lo, hi, start = (v[ws] for v in problem[:4])
        part = DualProblem(p, lo, hi, start, np.arange(len(ws)), problem.group[ws])
        beta, f = self.beta[ws], self.f[rows]
        fraction = INNER_TOLERANCE_OF_FULL_SET if self.is_full else INNER_TOLERANCE
        inner_tol = max(fraction * self.gap, 0.5 * tol)
        steps = max_iter - self.n_iter
        n_iter, _, _ = minimise_pairs(
            self._square, layout(part), part, beta, f, inner_tol, steps, stop
        )
        change = beta - self.beta[ws]
        self.beta[ws] = beta
        self.certificate = None
        self.n_iter += n_iter
        moved = np.flatnonzero(change)
        self._moved_in[ws[moved]] = self.n_rounds
        self.moved = _sum_by_row(rows[moved], change[moved])
        self.stalled = len(moved) == 0

    def extend(self, gram: Rows, part: slice) -> None:
        """Bring the matrix of the working set up to date for some of the new members.

        Parts do not touch each other's values, so that several can be done at a time.
        """
        assert self._square is not None
        rows = self.problem.row[self.working_set]
        new = self._new[part]
        new_rows = self.gram_rows(rows[new])
        by_column = np.argsort(rows)
        limits = np.searchsorted(rows[by_column], self.offsets)
        for b, block in enumerate(self.blocks):
            pool, slot, column = gram.source(block)
            position = by_column[limits[b] : limits[b + 1]]
            columns = rows[position] - self.offsets[b] + column
            fill_rows(pool, slot[new_rows], new, columns, position, self._square)
        is_old = np.ones(len(rows), dtype=np.bool_)
        is_old[self._new] = False
        fill_columns(new, np.flatnonzero(is_old), self._square)

    def update(self, gram: Rows, block: int, first: int, stop: int) -> None:
        """Update a part of ``f``: the columns from first to stop of a block."""
        b = self.blocks.index(block)
        pool, slot, column = gram.source(block)
        rows, weight = self.moved
        f = self.f[self.offsets[b] + first : self.offsets[b] + stop]
        add_rows(pool, slot[self.gram_rows(rows)], weight, column + first, f)


class Workers(Protocol):
    """Threads (see :mod:`mercer.runtime.threads`)."""

    count: int
    stop: NDArray[np.uint8]

    def map(self, function: Callable, items: Iterable) -> list: ...


def decompose(
    gram: Rows,
    tasks: Sequence[Task],
    tol: float,
    max_iter: int,
    threads: Workers,
    size: int,
    n_active: int,
    on_round: Callable[[Sequence[Task]], None] | None = None,
) -> None:
    """Solve all tasks to ``tol``, round by round, from their present solutions.

    At most ``n_active`` are solved at once, with working sets of ``size`` variables.
    """
    size = max(2, min(size, gram.capacity))
    waiting = list(tasks)
    active: list[Task] = []
    while (waiting or active) and not threads.stop[0]:
        _admit(waiting, active, gram, size, n_active)
        threads.map(
            lambda task: task.choose(size, min(task.fresh, max(2, size // 2)), tol),
            active,
        )
        active = [
            t for t in active if not (t.done or t.stalled or t.n_iter >= max_iter)
        ]
        if active:
            gram.provide([w for task in active for w in task.wanted()])
            _extend(gram, active, size, threads)
            threads.map(lambda task: task.improve(tol, max_iter, threads.stop), active)
            _update(gram, active, threads)
        usual = max(MOST_FRESH, ALL_FRESH // max(len(active), 1))
        for task in active:
            most = MOST_FRESH_OF_FULL_SET if task.is_full else usual
            task.fresh = min(2 * task.fresh, most)
        if on_round is not None:
            on_round(tasks)


def _admit(
    waiting: list[Task], active: list[Task], gram: Rows, size: int, n_active: int
) -> None:
    """Let tasks begin as long as the working sets of all tasks fit the budget.

    Tasks that share blocks with active tasks go first: matrix products are faster if
    many rows of a block are computed at a time, and the rows of samples with their own
    class serve several tasks.
    """
    in_use = [0] * len(gram.starts)
    for task in active:
        for b in task.blocks:
            in_use[b] += 1

    def rank(task: Task) -> tuple[int, int]:
        used = [in_use[b] for b in task.blocks]
        return used.count(0), -sum(used)

    while waiting and len(active) < n_active:
        task = min(waiting, key=rank)
        if active and any((in_use[b] + 1) * size > gram.capacity for b in task.blocks):
            break
        waiting.remove(task)
        active.append(task)
        for b in task.blocks:
            in_use[b] += 1


def _extend(gram: Rows, tasks: list[Task], size: int, threads: Workers) -> None:
    """Bring the matrices of all working sets up to date."""
    per_task = -(-threads.count // len(tasks))
    jobs = [job for task in tasks for job in task.parts(gram, size, per_task)]
    threads.map(lambda job: job[0].extend(gram, job[1]), jobs)


def _update(gram: Rows, tasks: list[Task], threads: Workers) -> None:
    threads.map(
        lambda job: job[0].update(gram, *job[1:]), _stretches(tasks, threads.count)
    )


def refresh(gram: Rows, task: Task, threads: Workers) -> None:
    """Recompute ``f`` from ``beta``, as many rows at a time as fit the budget."""
    rows, weight = _sum_by_row(task.problem.row, task.beta)
    keep = weight != 0
    rows, weight = rows[keep], weight[keep]
    task.f[:] = 0.0
    for first in range(0, len(rows), gram.capacity):
        part = slice(first, first + gram.capacity)
        wanted = task.gram_rows(rows[part])
        gram.provide([Wanted(block, wanted) for block in task.blocks])
        task.moved = (rows[part], weight[part])
        _update(gram, [task], threads)


def _stretches(tasks: list[Task], n_threads: int) -> list[tuple[Task, int, int, int]]:
    """Split the updates of ``f`` so that every thread has some."""
    per_task = -(-n_threads // len(tasks))
    jobs = []
    for task in tasks:
        for b, block in enumerate(task.blocks):
            width = int(task.offsets[b + 1] - task.offsets[b])
            step = max(1, -(-width // per_task))
            jobs += [
                (task, block, first, min(first + step, width))
                for first in range(0, width, step)
            ]
    return jobs


def _sum_by_row(rows: NDArray, change: NDArray) -> tuple[NDArray, NDArray]:
    """Add up the changes of variables that share a Gram row."""
    unique, at = np.unique(rows, return_inverse=True)
    return unique, np.bincount(at, weights=change, minlength=len(unique))
