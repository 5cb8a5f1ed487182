"""Working sets on a card, where the whole Gram matrix or a problem is too large.

In each round every problem gets a working set: new variables that violate strongly, and
those of the last set that moved last. Their rows are computed by a matrix product, or
are those of a whole matrix; a thread block for each problem takes pair steps on the
working set; then ``f`` is brought up to date from the same rows, in double precision.
This is the method of :mod:`mercer.engines.cpu.decompose` with sizes for a card.

Coefficients and ``f`` stay on the card for as long as a problem is being solved. Which
variables are members is decided in the main memory, from the strongest violators that
the card has found.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.engines.cpu.decompose import INNER_TOLERANCE, Task
from mercer.engines.cuda.launches import Launcher, group_sizes, pack
from mercer.engines.cuda.pair import parts
from mercer.engines.cuda.products import add_rows, compute_f, gather
from mercer.engines.cuda.values import CardFit, Values, stretches

__all__ = ["WorkingSetSolver"]

# Members of a working set, and how many of them are new in a round. Trials on one H200
# took 1.5 to 2 times as long with half of these sizes.
LARGEST_SET = 1024
MOST_FRESH = 512
# With fewer members than this, sets would be replaced again and again before they are
# solved; so many rows are computed even if the budget is smaller.
LEAST_SET = 8
# Steps on a working set in one round: a problem that needs more goes on in the next, so
# that others do not wait for it. It is the number of the same trials.
MOST_STEPS_OF_A_ROUND = 20_000
# Problems that are solved at once; more would hardly find a free multiprocessor.
MOST_ACTIVE = 128
# The budget divided by this is for rows while they are computed. They take several
# times their own size until they are finished.
ROOM_SHARE = 4
TIMES_THEIR_SIZE = 4
# More rounds than a problem takes, so that two of them fit into one number.
MOST_ROUNDS = 2**26


class _Look(NamedTuple):
    """What the card has found out about a problem."""

    gap: float
    pair: tuple[int, int]  #: the variables of one group that violate most
    strong: NDArray[np.int64]  #: strong violators that are not members, strongest first


class _Problem:
    """One problem on the card, and its working set.

    The member at place k of the working set has row k of the pool, if there is a pool.
    """

    def __init__(self, task: Task, values: Values, size: int, memory: Any):
        card, problem = values.card, task.problem
        self.task, self.size = task, min(size, len(problem.p))
        self.memory = memory  #: memory for rows; None if there is a whole matrix
        self.pool = None
        if memory is not None:
            n = len(task.f)
            self.pool = memory[: size * n].reshape(size, n)
        self._values = values
        self._own = task.gram_rows(np.arange(len(task.f)))  #: Gram row of each own row
        self._stretches = stretches(task.columns)
        self._ends = np.append(0, np.cumsum(group_sizes(problem)))
        self.p, self.lo, self.hi = map(card.to_card, problem[:3])
        self.row = card.to_card(problem.row)
        self.beta, self.f = card.to_card(task.beta), card.to_card(task.f)
        columns = np.arange(len(self._own)) if memory is not None else self._own
        self.columns = card.to_card(columns.astype(np.int32))
        self.members = np.empty(0, dtype=np.int64)
        self.moved_in = self.came_in = self.members
        self.n_rounds = 0
        self.has_new = self.has_moved = True
        self.is_full = False

    def look(self, tol: float) -> _Look:
        """Find the gap and the variables that violate most."""
        xp, card = self._values.card.xp, self._values.card
        G = self.f[self.row] + self.p
        is_number = G == G
        grows = xp.where((self.beta < self.hi) & is_number, G, np.inf)
        shrinks = xp.where((self.beta > self.lo) & is_number, G, -np.inf)
        found = []
        groups = [
            slice(int(a), int(b))
            for a, b in zip(self._ends, self._ends[1:], strict=False)
        ]
        for own in groups:
            at_least, at_most = grows[own].argmin(), shrinks[own].argmax()
            ends = grows[own].min(), shrinks[own].max()
            places = at_least.astype(np.float64), at_most.astype(np.float64)
            found.append(xp.stack([*ends, *places]))
        least, most, at_least, at_most = card.to_host(xp.stack(found)).T
        with np.errstate(invalid="ignore"):
            gaps = np.nan_to_num(most - least, nan=-np.inf, posinf=np.inf)
        worst = int(gaps.argmax())
        begin = int(self._ends[worst])
        pair = begin + int(at_least[worst]), begin + int(at_most[worst])
        gap = max(float(gaps[worst]), 0.0)
        if gap <= tol:
            return _Look(gap, pair, np.empty(0, dtype=np.int64))
        # Violations of both sides: with the variable of the other side that violates
        # most with all of the group.
        for g, own in enumerate(groups):
            grows[own] = float(most[g]) - grows[own]
            shrinks[own] -= float(least[g])
        if len(self.members):
            index = card.to_card(self.members)
            grows[index] = shrinks[index] = -np.inf
        count = min(self._fresh() // 2, len(self.task.beta))
        strong = []
        for violation in (grows, shrinks):
            at = xp.argpartition(-violation, count - 1)[:count]
            strong.append(xp.stack([at.astype(np.float64), violation[at]]))
        return _Look(gap, pair, self._merged(card.to_host(xp.stack(strong)), tol))

    def _fresh(self) -> int:
        """Return how many new variables a round may have, an even number.

        Half of the members may stay, except in the first round: two sets that replace
        each other again and again would undo each other's steps.
        """
        if len(self.members):
            return max(2, min(MOST_FRESH, self.size // 2) // 2 * 2)
        return max(2, self.size // 2 * 2)

    @staticmethod
    def _merged(strong: NDArray, tol: float) -> NDArray[np.int64]:
        """Put the strong violators of both sides in one order, each of them once."""
        at, violation = (strong[:, k].reshape(-1) for k in (0, 1))
        order = np.argsort(-violation, kind="stable")
        order = order[violation[order] > tol]
        found, first = np.unique(at[order].astype(np.int64), return_index=True)
        return found[np.argsort(first)]

    def choose(self, look: _Look) -> NDArray[np.int64]:
        """Choose the next working set; return the places of new members."""
        self.n_rounds += 1
        is_pair = np.isin(self.members, look.pair)
        wanted = [v for v in dict.fromkeys(look.pair) if v not in self.members]
        others = look.strong[~np.isin(look.strong, look.pair)]
        most = min(self._fresh(), self.size - int(is_pair.sum()))
        new = np.concatenate([np.array(wanted, dtype=np.int64), others])[:most]
        n_old = len(self.members)
        n_leaving = max(0, n_old + len(new) - self.size)
        # Members that moved last stay, and among these the ones that came last.
        standing = self.moved_in * MOST_ROUNDS + self.came_in
        standing[is_pair] = np.iinfo(np.int64).max
        leaving = np.argsort(standing, kind="stable")[:n_leaving]
        added = np.arange(n_old, n_old + len(new) - n_leaving)
        places = np.concatenate([leaving, added])
        grown = np.zeros(len(added), dtype=np.int64)
        self.members, self.moved_in, self.came_in = (
            np.concatenate([old, grown])
            for old in (self.members, self.moved_in, self.came_in)
        )
        self.members[places] = new
        self.moved_in[places] = self.came_in[places] = self.n_rounds
        self.has_new, self.is_full = len(new) > 0, self.is_full or n_leaving > 0
        return places

    def rows(self, places: NDArray | slice = slice(None)) -> NDArray:
        """Return the Gram rows of members."""
        return self._own[self.task.problem.row[self.members[places]]]

    def fill_pool(self, places: NDArray, part_bytes: int) -> None:
        """Compute the rows of new members."""
        if self.pool is None or not len(places):
            return
        card, n = self._values.card, len(self._own)
        for part in parts(len(places), n * self._values.dtype.itemsize, part_bytes):
            block = card.xp.empty((part.stop - part.start, n), self._values.dtype)
            rows = self.rows(places[part])
            self._values.fill(rows, self._stretches, block)
            # Rounding must not make a sample differ from itself.
            own = self.task.problem.row[self.members[places[part]]]
            diagonal = self._values.diag[rows].astype(block.dtype)
            at = card.xp.arange(len(rows)), card.to_card(own)
            block[at] = card.to_card(diagonal)
            self.pool[card.to_card(places[part])] = block

    def fill_square(self, matrix: Any, square: Any) -> None:
        """Put the kernel values of members with each other together."""
        card, m = self._values.card, len(self.members)
        rows = self.task.problem.row[self.members]
        if self.pool is not None:
            left, right, source = np.arange(m), rows, self.pool
        else:
            left = right = self._own[rows]
            source = matrix
        gather(card, source, left, right, square)

    def slots(self, places: NDArray) -> NDArray:
        """Return which rows of the pool, or of the whole matrix, members have."""
        return places if self.pool is not None else self.rows(places)

    def download(self) -> None:
        """Bring the solution so far to the task."""
        to_host = self._values.card.to_host
        self.task.beta[:], self.task.f[:] = to_host(self.beta), to_host(self.f)
        self.task.certificate = None


class WorkingSetSolver:
    """Solves tasks by working sets, several at once.

    Parameters
    ----------
    fit : CardFit
    budget : int
        Bytes for rows and working sets, besides a whole matrix.
    is_whole : bool
        Whether rows are those of a whole matrix on the card.
    """

    def __init__(self, fit: CardFit, budget: int, is_whole: bool):
        values, tasks, self._max_iter, self._stop, self._progress = fit
        self._values, self._tasks = values, tasks
        room = budget // ROOM_SHARE
        self._part_bytes = room // TIMES_THEIR_SIZE
        self._matrix = values.whole(self._part_bytes) if is_whole else None
        self._launcher = Launcher(values.card, self._stop)
        n_rows = max(len(task.f) for task in tasks)
        self._size, self._n_active = self._divide(n_rows, budget - room)
        for task in tasks:
            compute_f(values, task, self._matrix, self._part_bytes)

    def _divide(self, n_rows: int, budget: int) -> tuple[int, int]:
        """Return the size of working sets, and how many problems are solved at once."""
        itemsize = self._values.dtype.itemsize
        row = 0 if self._matrix is not None else n_rows * itemsize

        def needed(size: int) -> int:
            return size * row + size * size * itemsize

        size = LARGEST_SET
        while size > LEAST_SET and needed(size) > budget:
            size //= 2
        n_active = int(np.clip(budget // max(1, needed(size)), 1, MOST_ACTIVE))
        return size, min(n_active, len(self._tasks))

    def solve(self, tol: float) -> None:
        """Solve all tasks to a KKT gap, from where they stand."""
        waiting = list(self._tasks)
        for task in waiting:
            task.done = task.stalled = False
        active: list[_Problem] = []
        free = self._pools()
        shape = (self._n_active, self._size, self._size)
        squares = self._values.card.xp.empty(shape, dtype=self._values.dtype)
        while (waiting or active) and not self._stop[0]:
            while waiting and free:
                task, memory = waiting.pop(0), free.pop()
                active.append(_Problem(task, self._values, self._size, memory))
            active = self._choose(active, free, tol)
            if active:
                self._improve(active, squares, tol)
            if self._progress is not None:
                self._progress(self._tasks)
        for one in active:
            self._end(one, free, tol)
        for task in waiting:
            task.note((0, np.inf, False), tol)

    def _pools(self) -> list[Any]:
        """Return memory for the rows of each problem that is solved at once."""
        if self._matrix is not None:
            return [None] * self._n_active
        n_rows = max(len(task.f) for task in self._tasks)
        empty, dtype = self._values.card.xp.empty, self._values.dtype
        return [empty(self._size * n_rows, dtype) for _ in range(self._n_active)]

    def _end(self, problem: _Problem, free: list[Any], tol: float) -> None:
        """Bring a problem's solution to its task, and give its memory back."""
        problem.download()
        task, stalled = problem.task, problem.task.stalled
        task.note((0, task.gap, stalled), tol)
        free.append(problem.memory)

    def _choose(
        self, active: list[_Problem], free: list[Any], tol: float
    ) -> list[_Problem]:
        """Choose working sets, and compute their rows; return who goes on."""
        going_on = []
        for one in active:
            task, look = one.task, one.look(tol)
            task.gap = look.gap
            task.done = look.gap <= tol
            if not (task.done or task.n_iter >= self._max_iter):
                places = one.choose(look)
                # If none has moved and none is new, the next round would be the same.
                task.stalled = not (one.has_moved or one.has_new)
                if not task.stalled:
                    one.fill_pool(places, self._part_bytes)
                    going_on.append(one)
                    continue
            self._end(one, free, tol)
        return going_on

    def _improve(self, active: list[_Problem], squares: Any, tol: float) -> None:
        """Take pair steps on all working sets, and bring ``f`` up to date."""
        card, xp = self._values.card, self._values.card.xp
        orders, groups, indices = [], [], []
        for b, one in enumerate(active):
            one.fill_square(self._matrix, squares[b])
            group = one.task.problem.group[one.members]
            order = np.argsort(group, kind="stable")
            orders.append(order)
            groups.append(np.bincount(group, minlength=1))
            indices.append(card.to_card(one.members[order]))
        chosen = list(zip(active, indices, strict=True))
        arrays = {
            "column": card.to_card(np.concatenate(orders)),
            "diagonal": card.to_card(
                np.concatenate(
                    [
                        self._values.diag[one.rows(order)]
                        for one, order in zip(active, orders, strict=True)
                    ]
                )
            ),
            "lo": xp.concatenate([one.lo[index] for one, index in chosen]),
            "hi": xp.concatenate([one.hi[index] for one, index in chosen]),
            "beta": xp.concatenate([one.beta[index] for one, index in chosen]),
            "gradient": xp.concatenate(
                [one.f[one.row[index]] + one.p[index] for one, index in chosen]
            ),
        }
        packed = pack(card, self._values.dtype, groups, arrays)
        before = card.to_host(packed.beta)
        tolerance = np.array([self._inner_tol(one, tol) for one in active])
        most = np.array([self._max_iter - one.task.n_iter for one in active])
        steps = self._launcher.run(
            squares, self._size, self._size**2, packed, tolerance,
            np.minimum(most, MOST_STEPS_OF_A_ROUND),
        ).steps  # fmt: skip
        after = card.to_host(packed.beta)
        first = 0
        for b, (one, index) in enumerate(chosen):
            own = slice(first, first + len(orders[b]))
            one.beta[index] = packed.beta[own]
            change = after[own] - before[own]
            self._update(one, orders[b], change)
            one.task.n_iter += int(steps[b])
            first = own.stop

    def _inner_tol(self, one: _Problem, tol: float) -> float:
        """Return how exactly to solve a working set.

        Where all violators are members already, there is nothing to wait for.
        """
        if not one.has_new:
            return 0.5 * tol
        return max(INNER_TOLERANCE * one.task.gap, 0.5 * tol)

    def _update(self, one: _Problem, order: NDArray, change: NDArray) -> None:
        """Let the changes of members change ``f``."""
        has_moved = change != 0.0
        moved = order[has_moved]
        one.has_moved = bool(len(moved))
        one.moved_in[moved] = one.n_rounds
        source = self._matrix if one.pool is None else one.pool
        slot = one.slots(moved)
        add_rows(self._values.card, source, slot, change[has_moved], one.columns, one.f)
