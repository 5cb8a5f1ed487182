r"""Gram matrices for solvers: whole, by rows, or in blocks.

A kernel value is computed once and serves every problem of a fit.  Samples are sorted
into *blocks* (the classes, where some problems leave some out), so that each problem
sees a few contiguous stretches of columns.  There are three kinds:

* :class:`WholeGram` has the matrix in memory, computed or given;
* :class:`RowGram` computes the rows that are asked for, block by block, and keeps as
  many as the budget allows; the least recently used ones are overwritten.  If the
  budget only allows one working set, rows are in effect computed each time;
* :class:`BlockGram` is for many small problems.  With many classes, a problem of two of
  them is small, and the matrix of all samples is large.  The block of each class with
  itself is computed once and kept; that of two classes serves the problems of this pair
  only, and lasts as long as they are solved.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.rounds import RowTable, gather_missing
from mercer.core.smo import Rows
from mercer.core.tiles import mirror, ranges, scatter_rows
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.teams import Stretch, fill_rows, sides_of
from mercer.engines.cpu.tiles import (
    ENOUGH_TILES,
    SMALL_TILE,
    TILE_ROWS,
    USUAL,
    Tiles,
    Tiling,
    Workers,
    symmetric_matrix,
)
from mercer.kernels.base import Kernel

__all__ = ["RUN_COLUMNS", "BlockGram", "Demand", "RowGram", "Source", "WholeGram"]


class Demand(NamedTuple):
    """Rows that a problem needs of one block of columns."""

    block: int
    rows: NDArray[np.intp]


class Source(NamedTuple):
    """Where rows of one block lie: row r is ``pool[slot[r]]`` from ``column`` on."""

    pool: NDArray
    slot: NDArray[np.int64]
    column: int


class WholeGram:
    """A Gram matrix in memory."""

    def __init__(self, matrix: NDArray, diag: NDArray, starts: Sequence[int]):
        self.matrix = matrix
        self.diag = diag
        self.starts = list(starts)
        self._slot = np.arange(len(matrix), dtype=np.int64)

    @classmethod
    def compute(
        cls,
        kernel: Kernel,
        operand: Operand,
        starts: Sequence[int],
        threads: Workers,
        tiling: Tiling = USUAL,
    ) -> WholeGram:
        """Evaluate one triangle in threads, and mirror it."""
        diag = kernel.diagonal(operand)
        matrix = symmetric_matrix(kernel, operand, threads, tiling)
        np.fill_diagonal(matrix, diag)
        return cls(matrix, diag, starts)

    @property
    def dtype(self) -> np.dtype:
        """The floating-point type of the values."""
        return self.matrix.dtype

    @property
    def capacity(self) -> int:
        """How many rows are at hand at once."""
        return len(self.matrix)

    def provide(self, demands: Sequence[Demand]) -> None:
        """Make rows available: they all are."""

    def source(self, block: int) -> Source:
        """Return where the rows of a block lie."""
        return Source(self.matrix, self._slot, self.starts[block])

    def table(self) -> RowTable:
        """Return where the rows of all blocks lie."""
        n, n_blocks = len(self.matrix), len(self.starts) - 1
        nothing = np.zeros(n_blocks, dtype=np.int64)
        return RowTable(
            self.matrix.reshape(-1),
            nothing,
            np.full(n_blocks, n),
            self._slot[None],
            nothing,
            np.array(self.starts[:-1], dtype=np.int64),
            n,
        )


class RowGram:
    """A Gram matrix of which rows are computed when asked for, and kept in a budget."""

    def __init__(
        self,
        kernel: Kernel,
        operand: Operand,
        starts: Sequence[int],
        budget: int,
        threads: Workers,
        patience: int | None = None,
        tiling: Tiling = USUAL,
    ):
        """Prepare for rows on demand; ``budget`` is for the rows alone.

        A row that was not asked for in more than ``patience`` requests may be
        overwritten even while there is room for more.
        """
        self.kernel = kernel
        self.operand = operand
        self.starts = list(starts)
        self.diag = kernel.diagonal(operand)
        self.dtype = operand.dtype
        n = len(operand)
        # A solver needs at least two rows.
        self.capacity = int(np.clip(budget // (n * self.dtype.itemsize), 2, n))
        self._tiles = Tiles(kernel, operand, threads, tiling)
        self._sides = sides_of(kernel, operand, operand)
        self._clock = 0
        # One array for all stores, so that compiled code can fill them together.
        self._pool = np.empty(self.capacity * n, dtype=self.dtype)
        self._slot = np.full((len(self.starts) - 1, n), -1, dtype=np.int64)
        self._stores = []
        for slot, (first, stop) in zip(self._slot, pairwise(self.starts), strict=True):
            own = self._pool[self.capacity * first : self.capacity * stop]
            pool = own.reshape(self.capacity, stop - first)
            self._stores.append(_RowStore(slot, pool, patience))

    def provide(self, demands: Sequence[Demand]) -> None:
        """Make rows available, computing those that are not kept, all in one go.

        Together the demands on one block must not exceed ``capacity``.
        """
        self._clock += 1
        by_block: dict[int, list[NDArray]] = {}
        for block, rows in demands:
            by_block.setdefault(block, []).append(rows)
        missing = {
            block: self._stores[block].place(some, self._clock)
            for block, some in sorted(by_block.items())
        }
        if self._sides is not None:
            stretches = [
                Stretch(
                    *found, self.starts[block], self.starts[block + 1],
                    self.capacity * self.starts[block],
                )
                for block, found in missing.items()
            ]  # fmt: skip
            values = self._tiles.tiling.values
            fill_rows(self._sides, stretches, self._pool, self._tiles.team, values)
            return
        jobs = self._jobs(missing)

        def fill(job: tuple) -> None:
            store, slots, left, columns, first = job
            values = self._tiles(left, self.operand.rows(columns))
            scatter_rows(values, store.pool, slots, columns.start - first)

        self._tiles.run(fill, jobs)

    def _jobs(self, missing: dict[int, tuple[NDArray, NDArray]]) -> list[tuple]:
        """Cut the rows that are missing in each block into tiles for all threads."""
        tiling = self._tiles.tiling
        widths = np.diff(self.starts)
        total = sum(len(rows) * int(widths[b]) for b, (rows, _) in missing.items())
        values = min(max(total // ENOUGH_TILES, SMALL_TILE), tiling.values)
        jobs = []
        for block, (rows, slots) in missing.items():
            first, stop = self.starts[block], self.starts[block + 1]
            height, _ = tiling.shape(TILE_ROWS, stop - first)
            for part in ranges(0, len(rows), height):
                left = self.operand.rows(rows[part])
                width = max(1, values // len(left))
                jobs += [
                    (k, (self._stores[block], slots[part], left, columns, first))
                    for k, columns in enumerate(ranges(first, stop, width))
                ]
        # The first thread with some rows derives what the kernel keeps of them; it has
        # done so before another one needs it, if all rows have their turn in between.
        jobs.sort(key=itemgetter(0))
        return [job for _, job in jobs]

    def source(self, block: int) -> Source:
        """Return where the rows of a block lie."""
        store = self._stores[block]
        return Source(store.pool, store.slot, 0)

    def table(self) -> RowTable:
        """Return where the rows of all blocks lie."""
        starts = np.array(self.starts, dtype=np.int64)
        return RowTable(
            self._pool,
            self.capacity * starts[:-1],
            np.diff(starts),
            self._slot,
            np.arange(len(starts) - 1),
            np.zeros(len(starts) - 1, dtype=np.int64),
            self.capacity,
        )


# If more than this fraction of the computed rows had been computed before, rows
# are kept for as long as the budget allows.
COMING_BACK = 0.05


class _RowStore:
    """Slots for rows of one block; the least recently used row gives way."""

    def __init__(self, slot: NDArray, pool: NDArray, patience: int | None):
        n, capacity = len(slot), len(pool)
        self._patience = patience
        self.pool = pool
        self.slot = slot
        self._was_here = np.zeros(n, dtype=np.bool_)
        self._n_computed = self._n_back = 0
        self._row = np.full(capacity, -1, dtype=np.int64)
        self._used_at = np.zeros(capacity, dtype=np.int64)
        self._filled = 0

    def place(self, demands: Sequence[NDArray], clock: int) -> tuple[NDArray, NDArray]:
        """Return the rows that must be computed, and the slots reserved for them."""
        found = np.empty(min(len(self.slot), sum(map(len, demands))), dtype=np.int64)
        count = 0
        for rows in demands:
            count = gather_missing(rows, self.slot, self._used_at, clock, found, count)
        missing = np.sort(found[:count])
        self.slot[missing] = -1
        if self._patience is not None:
            self._n_back += int(np.count_nonzero(self._was_here[missing]))
            self._n_computed += len(missing)
            if self._n_back > COMING_BACK * self._n_computed:
                self._patience = None
            self._was_here[missing] = True
        taken = self._free_slots(len(missing), clock)
        self.slot[missing] = taken
        self._row[taken] = missing
        self._used_at[taken] = clock
        return missing, taken

    def _free_slots(self, count: int, clock: int) -> NDArray:
        """Return slots of rows long unused, else fresh ones, else recently used ones.

        Using memory again costs less than having the system clear more of it.
        """
        used_at = self._used_at[: self._filled]
        if self._patience is None:
            stale = np.empty(0, dtype=np.int64)
        else:
            stale = np.flatnonzero(used_at < clock - self._patience)[:count]
        n_fresh = min(count - len(stale), len(self._row) - self._filled)
        n_forced = count - len(stale) - n_fresh
        if n_forced:
            stale = np.argpartition(used_at, count - n_fresh - 1)[: count - n_fresh]
            if used_at[stale].max() >= clock:
                raise MemoryError("More rows were asked for than the budget holds.")
        self.slot[self._row[stale]] = -1
        fresh = np.arange(self._filled, self._filled + n_fresh)
        self._filled += n_fresh
        return np.concatenate([np.sort(stale), fresh])


# Number of columns that are computed in one go.
RUN_COLUMNS = 2000

Choice = tuple[int, ...]  #: some of the blocks


class BlockGram:
    """The blocks of a Gram matrix, of classes with themselves and with each other."""

    def __init__(
        self,
        kernel: Kernel,
        operand: Operand,
        starts: Sequence[int],
        threads: Workers,
        at_once: int | None = None,
    ):
        """Compute the blocks of classes with themselves, ``at_once`` in threads."""
        self.dtype = operand.dtype
        self._operand = operand
        self._starts = list(starts)
        self._tiles = Tiles(kernel, operand, threads)
        self._parts = [
            operand.rows(slice(first, stop)) for first, stop in pairwise(starts)
        ]
        self._local = threading.local()
        diag = kernel.diagonal(operand).astype(self.dtype)
        self._diag = [diag[first:stop] for first, stop in pairwise(starts)]

        def own_block(b: int) -> NDArray:
            values = self._tiles(self._parts[b], self._parts[b])
            block = np.empty(values.shape, dtype=self.dtype)
            mirror(values, block, 0, 0)
            np.fill_diagonal(block, self._diag[b])
            return block

        #: the blocks of classes with themselves
        self.own = self._tiles.run(own_block, range(len(self._parts)), at_once)

    def runs(self, choices: Iterable[Choice]) -> list[list[Choice]]:
        """Divide choices of blocks into runs that are computed in one go.

        A run has pairs of one block with others that are neighbours.
        """
        runs: list[list[Choice]] = []
        sizes = np.diff(self._starts).tolist()
        width = 0
        for choice in choices:
            last = runs[-1][-1] if runs else ()
            width += sizes[choice[-1]]
            goes_on = (
                len(choice) == len(last) == 2
                and choice == (last[0], last[1] + 1)
                and width <= RUN_COLUMNS
            )
            if goes_on:
                runs[-1].append(choice)
            else:
                runs.append([choice])
                width = sizes[choice[-1]]
        return runs

    def squares(self, run: list[Choice]) -> Iterator[tuple[Choice, NDArray | Rows]]:
        """Yield the matrices of a run; each lasts until the next.

        The rows of a matrix of two blocks are put together as they are needed.
        """
        if len(run[0]) != 2:
            yield run[0], self._square(run[0])
            return
        values = self.across(*run[0], run[-1][1])
        first = self._starts[run[0][1]]
        for a, b in run:
            own, other = self.own[a], self.own[b]
            square = self._room(len(own) + len(other))
            diag = np.concatenate([self._diag[a], self._diag[b]])
            begin = self._starts[b] - first
            yield (a, b), Rows.of_classes(square, diag, own, other, values, begin)

    def across(self, own: int, first: int, last: int) -> NDArray:
        """Return the block of one class with a run of others, side by side.

        It lasts until the thread asks for the next one.
        """
        columns = slice(self._starts[first], self._starts[last + 1])
        return self._tiles(self._parts[own], self._operand.rows(columns))

    def _square(self, choice: Choice) -> NDArray:
        sizes = [len(self._parts[b]) for b in choice]
        at = np.concatenate([[0], np.cumsum(sizes)])
        square = self._room(int(at[-1]))
        for i, a in enumerate(choice):
            rows = slice(at[i], at[i + 1])
            square[rows, rows] = self.own[a]
            for j in range(i + 1, len(choice)):
                values = self._tiles(self._parts[a], self._parts[choice[j]])
                mirror(values, square, at[i], at[j])
        return square

    def _room(self, n: int) -> NDArray:
        room = getattr(self._local, "room", None)
        if room is None or room.size < n * n:
            room = self._local.room = np.empty(n * n, dtype=self.dtype)
        return room[: n * n].reshape(n, n)
