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

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.core.choice import Room, room_for
from mercer.core.problem import (
    Certificate,
    DualProblem,
    Layout,
    certify,
    layout,
)
from mercer.core.rounds import (
    Place,
    RowTable,
    State,
    choose_next,
    extend_square,
    improve_set,
    play_round,
    update_f,
)
from mercer.core.tiles import ranges

__all__ = ["Task", "decompose", "refresh"]

# The inner problems are solved this much more tightly than the outer one is violated.
# If members have to leave for others, the next working sets undo much of what further
# steps would do.
INNER_TOLERANCE = 0.1
INNER_TOLERANCE_OF_FULL_SET = 0.15
# Number of new variables in a working set.  The first sets have few, because the first
# gradient says little about which variables will matter.  Where members have to leave,
# many variables matter, and more of them at a time take fewer rounds.
FIRST_FRESH = 64
MOST_FRESH = 128
MOST_FRESH_OF_FULL_SET = 512
# Number of values of f that a thread updates at least, and of values of the matrix of a
# working set that it brings up to date: for fewer, waking a thread takes longer.
LEAST_UPDATED = 512
LEAST_EXTENDED = 2**17
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

    def table(self) -> RowTable: ...


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
        self.is_settled = False  #: whether its certificate needs no further steps
        self.certificate: Certificate | None = None  #: of where it stands, if known
        self.working_set = np.empty(0, dtype=np.int64)
        self._new = self.working_set  #: positions of the latest members
        self.n_rounds = 0
        #: while the problem is being solved: the round in which a variable moved last,
        #: that in which it came, and memory for choices
        self._moved_in: NDArray | None = None
        self._came_in: NDArray | None = None
        self._room: Room | None = None
        self._rows = self.working_set  #: Gram rows of the members
        self._square: NDArray | None = None
        self._place = Place(
            np.array(self.blocks, dtype=np.int64),
            np.ascontiguousarray(self.columns[:, 0]),
            self.offsets,
        )
        self.last_steps = 0  #: steps of the latest round
        self.moved: tuple[NDArray, NDArray] = (np.empty(0, np.int64), np.empty(0))

    def layout(self) -> Layout:
        """Describe the problem's place in a whole matrix."""
        return layout(self.problem, self.columns)

    def gram_rows(self, rows: NDArray) -> NDArray:
        """Turn the problem's own row numbers into those of the Gram matrix."""
        which = np.searchsorted(self.offsets, rows, side="right") - 1
        return rows - self.offsets[which] + self.columns[which, 0]

    def _state(self) -> State:
        if self._moved_in is None or self._came_in is None or self._room is None:
            self._moved_in, self._came_in = np.zeros((2, len(self.beta)), np.int64)
            self._room = room_for(len(self.beta))
        return State(self.beta, self.f, self._moved_in, self._came_in, self._room)

    def choose(self, size: int, tol: float) -> None:
        """Choose the next working set, and note whether the problem is solved."""
        fresh = min(self.fresh, max(2, size // 2))
        self._take(
            choose_next(
                self._place, self.problem, self._state(), self.working_set,
                self.n_rounds, size, fresh, tol,
            ),
            tol,
        )  # fmt: skip

    def _take(self, choice: tuple, tol: float) -> None:
        """Go on to the working set that was chosen."""
        self.gap, members, new, n_leaving, n_chosen, rows = choice
        self.done = self.gap <= tol
        # If all gradients have overflowed, no variable is chosen. A set always has the
        # pair that violates most. If not even this pair has moved in floating point,
        # the next round would be the same again.
        is_same = len(self.working_set) > 0 and self.last_steps == 0
        self.stalled = not self.done and (not n_chosen or is_same)
        if self.done or self.stalled:
            self.working_set = self._new = self._rows = np.empty(0, dtype=np.int64)
            self._square = self._moved_in = self._came_in = self._room = None
            return
        self.is_full |= n_leaving > 0
        self.n_rounds += 1
        self.working_set, self._new, self._rows = members, new, rows

    def note(self, outcome: tuple[int, float, bool], tol: float) -> None:
        """Record how a run of another solver ended."""
        n_iter, _, self.stalled = outcome
        self.n_iter += n_iter
        self.certificate = certify(self.problem, self.beta, self.f)
        self.gap = self.certificate.kkt_gap
        self.done = self.gap <= tol

    def wanted(self) -> list[Wanted]:
        """Return the rows that the working set needs, for each block."""
        return [Wanted(block, self._rows) for block in self.blocks]

    def make_room(self, gram: Rows, size: int) -> None:
        """Have memory for the Gram matrix of working sets."""
        if self._square is None:
            size = min(size, len(self.problem.p))
            self._square = np.empty((size, size), dtype=gram.dtype)

    def _inner_tol(self, tol: float) -> float:
        fraction = INNER_TOLERANCE_OF_FULL_SET if self.is_full else INNER_TOLERANCE
        return max(fraction * self.gap, 0.5 * tol)

    def play(
        self, table: RowTable, size: int, tol: float, max_iter: int, stop: NDArray
    ) -> None:
        """Do a whole round, and choose the working set of the next one."""
        assert self._square is not None
        fresh = min(self.fresh, max(2, size // 2))
        moves, choice = play_round(
            table, self._place, self.problem, self._state(), self.working_set,
            self._new, self._square, self._inner_tol(tol), max_iter - self.n_iter,
            self.n_rounds, size, fresh, tol, stop,
        )  # fmt: skip
        self._note_moves(*moves)
        self._take(choice, tol)

    def parts(self, count: int) -> list[tuple[Task, slice]]:
        """Divide the new members into at least one part, for :meth:`extend`."""
        count = min(count, len(self._new) * len(self.working_set) // LEAST_EXTENDED)
        count = max(1, count)
        step = max(1, -(-len(self._new) // count))
        parts = ranges(0, len(self._new), step) or [slice(0, 0)]
        return [(self, part) for part in parts]

    def extend(self, table: RowTable, part: slice) -> None:
        """Bring the matrix of the working set up to date for some of the new members.

        Parts do not touch each other's values, so that several can be done at a time.
        """
        assert self._square is not None
        extend_square(
            table, self._place, self.problem.row, self.working_set, self._new,
            part.start, part.stop, self._square,
        )  # fmt: skip

    def improve(self, tol: float, max_iter: int, stop: NDArray) -> None:
        """Solve the working set, and note which rows moved by how much."""
        assert self._square is not None
        moves = improve_set(
            self.problem, self._state(), self.working_set, self._square,
            self._inner_tol(tol), max_iter - self.n_iter, self.n_rounds, stop,
        )  # fmt: skip
        self._note_moves(*moves)

    def _note_moves(self, n_iter: int, rows: NDArray, weight: NDArray) -> None:
        self.certificate = None
        self.n_iter += n_iter
        self.last_steps = n_iter
        self.moved = rows, weight

    def stretches(self, count: int) -> list[tuple[Task, slice]]:
        """Divide ``f`` into so many parts for :meth:`update`."""
        step = max(LEAST_UPDATED, -(-len(self.f) // count))
        return [(self, part) for part in ranges(0, len(self.f), step)]

    def update(self, table: RowTable, part: slice) -> None:
        """Update a part of ``f``."""
        update_f(table, self._place, *self.moved, part.start, part.stop, self.f)


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
    waiting = [task for task in tasks if not task.is_settled]
    active: list[Task] = []

    def still_active(some: list[Task]) -> list[Task]:
        return [t for t in some if not (t.done or t.stalled or t.n_iter >= max_iter)]

    while (waiting or active) and not threads.stop[0]:
        begun = _admit(waiting, active, gram, size, n_active)
        threads.map(lambda task: task.choose(size, tol), begun)
        active = still_active(active + begun)
        if active:
            gram.provide([w for task in active for w in task.wanted()])
            usual = max(MOST_FRESH, ALL_FRESH // len(active))
            for task in active:
                task.make_room(gram, size)
                most = MOST_FRESH_OF_FULL_SET if task.is_full else usual
                task.fresh = min(2 * task.fresh, most)
            _play(gram.table(), active, size, tol, max_iter, threads)
            active = still_active(active)
        if on_round is not None:
            on_round(tasks)


def _play(
    table: RowTable,
    tasks: list[Task],
    size: int,
    tol: float,
    max_iter: int,
    threads: Workers,
) -> None:
    """Let all tasks do a round, and choose the working set of the next one.

    If there are fewer tasks than threads, several threads share what can be shared;
    the result is the same.
    """
    stop = threads.stop
    if len(tasks) >= threads.count:
        # Those that took most steps come first, so that threads end at about the same
        # time.
        tasks = sorted(tasks, key=lambda task: -task.last_steps)
        threads.map(lambda task: task.play(table, size, tol, max_iter, stop), tasks)
        return
    each = -(-threads.count // len(tasks))
    _in_parts(
        [task.parts(each) for task in tasks],
        lambda task, part: task.extend(table, part),
        lambda task: task.improve(tol, max_iter, stop),
        threads,
    )
    _in_parts(
        [task.stretches(each) for task in tasks],
        lambda task, part: task.update(table, part),
        lambda task: task.choose(size, tol),
        threads,
    )


def _in_parts(
    parts: list[list[tuple[Task, slice]]],
    work: Callable[[Task, slice], None],
    then: Callable[[Task], None],
    threads: Workers,
) -> None:
    """Do the parts of each task in threads, and then what needs all of them.

    The thread that ends the last part of a task goes on with the task, while others
    still do parts of other tasks.  Nobody waits in between.
    """
    # Taking a number is one step for all threads; the last to take one gets 0.
    left = [deque(range(len(some))) for some in parts]

    def do(job: tuple[deque[int], Task, slice]) -> None:
        numbers, task, part = job
        work(task, part)
        if numbers.pop() == 0:
            then(task)

    jobs = zip(left, parts, strict=True)
    threads.map(do, [(numbers, *part) for numbers, some in jobs for part in some])


def _admit(
    waiting: list[Task], active: list[Task], gram: Rows, size: int, n_active: int
) -> list[Task]:
    """Let tasks begin as long as the working sets of all tasks fit the budget.

    Return them.  Tasks that share blocks with active tasks go first: products are
    faster if many rows of a block are computed at a time, and the rows of samples with
    their own class serve several tasks.
    """
    in_use = [0] * len(gram.starts)
    for task in active:
        for b in task.blocks:
            in_use[b] += 1

    def rank(task: Task) -> tuple[int, int]:
        used = [in_use[b] for b in task.blocks]
        return used.count(0), -sum(used)

    begun: list[Task] = []
    while waiting and len(active) + len(begun) < n_active:
        task = min(waiting, key=rank)
        is_full = any((in_use[b] + 1) * size > gram.capacity for b in task.blocks)
        if (active or begun) and is_full:
            break
        waiting.remove(task)
        begun.append(task)
        for b in task.blocks:
            in_use[b] += 1
    return begun


def _update(table: RowTable, tasks: list[Task], threads: Workers) -> None:
    each = -(-threads.count // len(tasks))
    jobs = [part for task in tasks for part in task.stretches(each)]
    threads.map(lambda job: job[0].update(table, job[1]), jobs)


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
        _update(gram.table(), [task], threads)


def _sum_by_row(rows: NDArray, change: NDArray) -> tuple[NDArray, NDArray]:
    """Add up the changes of variables that share a Gram row."""
    unique, at = np.unique(rows, return_inverse=True)
    return unique, np.bincount(at, weights=change, minlength=len(unique))
