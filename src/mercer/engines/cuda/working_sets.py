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

from itertools import pairwise, starmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.smo import is_rounding
from mercer.engines.cpu.decompose import INNER_TOLERANCE, Task
from mercer.engines.cuda.card import to_card_together
from mercer.engines.cuda.launches import Launcher, group_sizes, pack
from mercer.engines.cuda.pair import parts
from mercer.engines.cuda.products import add_rows, compute_f, gather
from mercer.engines.cuda.sources import NOBODY, grid_of, typed
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
# Violators that are looked for, per violator that is wanted: the more there may be, the
# sooner the search can end.
MORE_THAN_WANTED = 2
# More rounds than a problem takes, so that two of them fit into one number.
MOST_ROUNDS = 2**26


class _Look(NamedTuple):
    """What the card has found out about a problem."""

    gap: float
    pair: tuple[int, int]  #: the variables of one group that violate most
    strong: NDArray[np.int64]  #: strong violators that are not members, strongest first
    is_rounding: bool = False  #: whether the gap is hardly more than rounding


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
        sizes = group_sizes(problem)
        ends = np.append(0, np.cumsum(sizes)).astype(np.int32)
        self._ends = card.to_card(ends)
        self._grid = grid_of("find_extremes", int(sizes.max()), len(sizes))
        self.beta, self.f = card.to_card(task.beta), card.to_card(task.f)
        p, lo, hi = map(card.to_card, problem[:3])
        row = card.to_card(problem.row.astype(np.int32))
        #: the problem as the functions of ``code/members.cu`` want it
        self._state = (self.f, row, p, self.beta, lo, hi)
        self._diagonal = card.to_card(values.diag[self._own].astype(values.dtype))
        columns = np.arange(len(self._own)) if memory is not None else self._own
        self.columns = card.to_card(columns.astype(np.int32))
        self.members = np.empty(0, dtype=np.int64)
        #: the round in which a variable was a member last
        self._member_in = card.xp.full(len(task.beta), -1, dtype=np.int32)
        self.moved_in = self.came_in = self.members
        self.n_rounds = 0
        self.has_new = self.has_moved = True
        self.is_full = False

    def look(self, tol: float) -> _Look:
        """Find the gap and the variables that violate most."""
        least, most, pairs = self._extremes()
        with np.errstate(invalid="ignore"):
            gaps = np.nan_to_num(most - least, nan=-np.inf, posinf=np.inf)
        worst = int(gaps.argmax())
        pair = int(pairs[worst, 0]), int(pairs[worst, 1])
        gap = max(float(gaps[worst]), 0.0)
        if gap <= tol:
            return _Look(gap, pair, np.empty(0, dtype=np.int64))
        p_i = self.task.problem.p[pair[0]]
        if is_rounding(gap, least[worst], most[worst], p_i):
            return _Look(gap, pair, np.empty(0, dtype=np.int64), True)
        return _Look(gap, pair, self._strongest(least, most, gap, tol))

    def _extremes(self) -> tuple[NDArray, NDArray, NDArray]:
        """Return the least and the largest gradient of each group, and their variables.

        The least is of variables that may grow, the largest of those that may shrink.
        """
        card, (blocks, n_groups) = self._values.card, self._grid[0]
        found = card.xp.empty((n_groups, blocks, 2, 2))
        function = card.function("find_extremes_double")
        function(*self._grid, (*self._state, self._ends, found))
        values, variables = np.moveaxis(card.to_host(found), -1, 0)
        values[..., 1] *= -1
        best = values.min(axis=1)
        # If several are equal, the first variable counts, whichever block has found it.
        variables[values != best[:, None]] = NOBODY
        return best[:, 0], -best[:, 1], variables.min(axis=1).astype(np.int64)

    def _strongest(
        self, least: NDArray, most: NDArray, gap: float, tol: float
    ) -> NDArray[np.int64]:
        """Return strong violators that are not members, the strongest first.

        A variable violates with the one of the other side that violates most with all
        of its group.
        """
        card, m = self._values.card, len(self.task.beta)
        xp = card.xp
        extremes = card.to_card(np.stack([least, most], axis=1))
        ranked = xp.empty(2 * m)
        function = card.function("rank_violators_double")
        function(
            *self._grid,
            (
                *self._state, self._ends, extremes, self._member_in,
                np.int32(self.n_rounds), ranked, np.int32(m),
            ),
        )  # fmt: skip
        count = self._fresh() // 2
        room = MORE_THAN_WANTED * count
        found = xp.empty((2, 1 + 2 * room))
        card.function("select_strongest_double")(
            *grid_of("select_strongest", m),
            (
                ranked, np.int32(m), np.float64(tol), np.float64(gap), np.int32(count),
                np.int32(room), found,
            ),
        )  # fmt: skip
        return self._merged(card.to_host(found), count)

    def _fresh(self) -> int:
        """Return how many new variables a round may have, an even number.

        Half of the members may stay, except in the first round: two sets that replace
        each other again and again would undo each other's steps.
        """
        if len(self.members):
            return max(2, min(MOST_FRESH, self.size // 2) // 2 * 2)
        return max(2, self.size // 2 * 2)

    @staticmethod
    def _merged(found: NDArray, count: int) -> NDArray[np.int64]:
        """Put the strongest violators of both sides in one order, each of them once."""
        sides = []
        for n, *pairs in found.tolist():
            own = np.array(pairs[: 2 * int(n)]).reshape(-1, 2)
            sides.append(own[np.lexsort((own[:, 0], -own[:, 1]))[:count]])
        at, violation = np.concatenate(sides).T
        at = at[np.argsort(-violation, kind="stable")].astype(np.int64)
        each, first = np.unique(at, return_index=True)
        return each[np.argsort(first)]

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
            block = self._values.block(self.rows(places[part]), self._stretches)
            own = self.task.problem.row[self.members[places[part]]]
            indices = to_card_together(
                card, places[part].astype(np.int32), own.astype(np.int32)
            )
            function = card.function(typed("store_rows", block.dtype))
            function(
                *grid_of("store_rows", len(own), n),
                (
                    block, *indices, self._diagonal, self.pool, np.int64(n),
                    np.int32(len(own)), np.int32(n),
                ),
            )  # fmt: skip

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

    def load(self, index: Any, arrays: dict[str, Any], own: slice) -> None:
        """Copy what pair steps need of members to a part of some arrays.

        ``index`` has the members on the card, in the order of the copies.
        """
        names = ("lo", "hi", "beta", "gradient", "diagonal")
        card, count = self._values.card, own.stop - own.start
        function = card.function(typed("load_members", self._values.dtype))
        function(
            *grid_of("load_members", count),
            (
                index, np.int32(count), *self._state, self._diagonal, self._member_in,
                np.int32(self.n_rounds), *(arrays[name][own] for name in names),
            ),
        )  # fmt: skip

    def store(self, index: Any, beta: Any) -> None:
        """Give members the coefficients that steps have found."""
        card, count = self._values.card, len(beta)
        card.function("store_members_double")(
            *grid_of("store_members", count),
            (index, np.int32(count), beta, self.beta),
        )

    def slots(self, places: NDArray) -> NDArray:
        """Return which rows of the pool, or of the whole matrix, members have."""
        return places if self.pool is not None else self.rows(places)

    def download(self) -> None:
        """Bring ``f`` to the task, which has the coefficients already."""
        self.task.f[:] = self._values.card.to_host(self.f)
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
                # A set always has the pair that violates most. If not even this pair
                # has moved, the next round would be the same again.
                task.stalled = look.is_rounding or not one.has_moved
                if not task.stalled:
                    one.fill_pool(places, self._part_bytes)
                    going_on.append(one)
                    continue
            self._end(one, free, tol)
        return going_on

    def _improve(self, active: list[_Problem], squares: Any, tol: float) -> None:
        """Take pair steps on all working sets, and bring ``f`` up to date."""
        card = self._values.card
        orders, groups = [], []
        for one in active:
            group = one.task.problem.group[one.members]
            orders.append(np.argsort(group, kind="stable"))
            groups.append(np.bincount(group, minlength=1))
        members = [one.members[o] for one, o in zip(active, orders, strict=True)]
        ends = np.cumsum([0, *map(len, members)]).tolist()
        parts_of = list(starmap(slice, pairwise(ends)))
        column, index = to_card_together(
            card, *(np.concatenate(a).astype(np.int32) for a in (orders, members))
        )
        names = ("lo", "hi", "beta", "gradient")
        arrays = {name: card.xp.empty(ends[-1]) for name in names}
        arrays["column"] = column
        arrays["diagonal"] = card.xp.empty(ends[-1], dtype=self._values.dtype)
        for b, (one, own) in enumerate(zip(active, parts_of, strict=True)):
            one.fill_square(self._matrix, squares[b])
            one.load(index[own], arrays, own)
        packed = pack(card, self._values.dtype, groups, arrays)
        tolerance = np.array([self._inner_tol(one, tol) for one in active])
        most = np.array([self._max_iter - one.task.n_iter for one in active])
        steps = self._launcher.run(
            squares, self._size, self._size**2, packed, tolerance,
            np.minimum(most, MOST_STEPS_OF_A_ROUND),
        ).steps  # fmt: skip
        after = card.to_host(packed.beta)
        for one, own, order, some, taken in zip(
            active, parts_of, orders, members, steps, strict=True
        ):
            one.store(index[own], packed.beta[own])
            self._update(one, order, after[own] - one.task.beta[some])
            one.task.beta[some] = after[own]
            one.task.n_iter += int(taken)

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
