r"""The Gram matrix: the only owner of batches, tiles, caching and the memory budget.

A kernel value is computed once and serves every problem of a fit.  Samples are sorted
into *blocks* (the classes, where some problems leave some out), so that each problem
sees a few contiguous stretches of columns.  Two kinds:

* :class:`WholeGram` has the matrix in memory, one triangle computed, or given;
* :class:`RowGram` computes the rows that are asked for, block by block, and keeps as
  many as the budget allows; the least recently used make way.  With a budget for one
  working set only, rows are in effect recomputed each time.

Tiles do not depend on the number of threads, and so neither do the values.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.rows import mirror, scatter_rows
from mercer.engines.cpu.coefficients import Weights
from mercer.kernels.base import Kernel, evaluate_once
from mercer.kernels.given import Custom
from mercer.kernels.operand import Operand, Pair, Scratch
from mercer.runtime.memory import WORKERS, divide
from mercer.runtime.threads import Threads

__all__ = [
    "USUAL",
    "Demand",
    "RowGram",
    "Source",
    "Tiles",
    "Tiling",
    "WholeGram",
    "apply",
    "is_custom",
    "kernel_matrix",
    "own_scratch",
    "plan_tiles",
    "run_tiles",
    "warm_up",
]

# A tile has about so many values: large enough for the matrix product, small enough for
# the cache.  It is as high as can be, up to a limit: each tile has to bring its columns
# into the order that the product likes, and its rows share that work.
TILE_VALUES = 2_000_000
TILE_ROWS = 1024
# Tiles of a triangle: low, for what they compute below the diagonal is lost; not too
# wide, for they are read once more across their rows.
STRIP_ROWS = 256
STRIP_COLUMNS = 2000


# Tiles of all threads together take at most one part in so many of the budget, and so
# do the values that certificates are computed from.
TILES_PART = 8
# No tile is smaller than this, even if the budget is.
LEAST_TILE = 64 * 64
# Rows on which it is measured how much memory a kernel takes for a value.
PROBED_ROWS = 8


class Tiling(NamedTuple):
    """How large tiles may be, and how many threads may compute them at once."""

    values: int = TILE_VALUES  #: of a tile
    at_once: int | None = None  #: threads; None for all
    n_bytes: int = 0  #: memory that is set aside for the tiles of all threads
    bytes_per_value: float = 0.0  #: that a tile takes while it is computed

    def shape(self, rows: int, columns: int) -> tuple[int, int]:
        """Return the shape of tiles: this one, or one as nearly square as can be."""
        if rows * columns > self.values:
            rows = min(rows, isqrt(self.values))
            columns = self.values // rows
        return rows, columns


# Tiles where no budget is given.
USUAL = Tiling()


def plan_tiles(
    kernels: Sequence[Kernel],
    operand: Operand,
    budget: int | None,
    *,
    shared: bool | None = None,
) -> Tiling:
    """Decide on tiles that keep to their part of the budget, or to none if it is None.

    ``shared`` is whether kernels are evaluated together; None is where they must be.
    """
    if budget is None:
        return USUAL
    per_value = _bytes_per_value(kernels, operand, shared)
    wanted = int(TILE_VALUES * per_value)
    workers = 1 if _has_function(kernels) else WORKERS
    total = min(budget // TILES_PART, workers * wanted)
    room = divide(budget // TILES_PART, wanted, workers)
    values = max(LEAST_TILE, int(room.each / per_value))
    return Tiling(values, room.at_once, total, per_value)


def _bytes_per_value(
    kernels: Sequence[Kernel], operand: Operand, shared: bool | None
) -> float:
    """Measure how much memory a kernel value takes while a tile is computed."""
    n_leaves = sum(1 for kernel in kernels for _ in kernel.leaves())
    if _has_function(kernels):
        # A user's function is not called to no purpose. Its result is copied once, and
        # operations on results take as many arrays again.
        return 3.0 * 8.0 * n_leaves
    for kernel in kernels:
        warm_up(kernel, operand)
    some = operand.rows(slice(0, PROBED_ROWS))
    pair = Pair(some, some, shared=n_leaves > 1 if shared is None else shared)
    results = [evaluate_once(kernel, pair) for kernel in kernels]
    taken = pair.n_bytes(*results) / max(len(some), 1) ** 2
    # Several kernels may be multiplied by factors of their own.
    return taken + (operand.dtype.itemsize if shared else 0)


def _has_function(kernels: Sequence[Kernel]) -> bool:
    """Tell whether a user's own function is among the kernels."""
    return any(map(is_custom, kernels))


class Demand(NamedTuple):
    """Rows that a problem needs of one block of columns."""

    block: int
    rows: NDArray[np.intp]


class Source(NamedTuple):
    """Where rows of one block lie: row r is ``pool[slot[r]]`` from ``column`` on."""

    pool: NDArray
    slot: NDArray[np.int64]
    column: int


def _width(n_rows: int) -> int:
    """Return how many columns a tile of so many rows should have."""
    return max(1, TILE_VALUES // max(n_rows, 1))


def _height(n_rows: int) -> int:
    """Return how many rows a tile should have, so that there is work for threads."""
    return min(TILE_ROWS, max(128, -(-n_rows // 8)))


def _ranges(first: int, stop: int, most: int) -> list[slice]:
    """Cut a range into as few parts of at most ``most`` as can be, all about equal."""
    if stop <= first:
        return []
    count = -(-(stop - first) // most)
    cuts = [first + (stop - first) * k // count for k in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(cuts)]


_thread = threading.local()


def own_scratch() -> Scratch:
    """Return this thread's arrays for a tile; those of its last tile are taken back."""
    if not hasattr(_thread, "scratch"):
        _thread.scratch = Scratch()
    return _thread.scratch.reset()


class Tiles:
    """Evaluates tiles of a kernel; a tile lasts until the thread asks for the next."""

    def __init__(self, kernel: Kernel):
        self._kernel = kernel
        self._shared = sum(1 for _ in kernel.leaves()) > 1

    def __call__(self, left: Operand, right: Operand) -> NDArray:
        pair = Pair(left, right, shared=self._shared, scratch=own_scratch())
        return self._kernel.evaluate(pair)


def is_custom(kernel: Kernel) -> bool:
    """Tell whether a user's own function is a part of the kernel."""
    return any(isinstance(leaf, Custom) for leaf in kernel.leaves())


def run_tiles(
    kernels: Sequence[Kernel],
    threads: Threads,
    work: Any,
    tiles: Sequence,
    at_once: int | None = None,
) -> list:
    """Run tile jobs in threads; a user's own function only ever in one at a time."""
    if _has_function(kernels):
        return threads.map(lambda every: [work(t) for t in every], [tiles])[0]
    return threads.map(work, tiles, at_once=at_once)


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
        threads: Threads,
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


def symmetric_matrix(
    kernel: Kernel, operand: Operand, threads: Threads, tiling: Tiling = USUAL
) -> NDArray:
    """Return the whole matrix of one operand with itself."""
    n = len(operand)
    matrix = np.empty((n, n), dtype=operand.dtype)
    tile_of = Tiles(kernel)
    height, width = tiling.shape(STRIP_ROWS, STRIP_COLUMNS)
    strips = [(rows, operand.rows(rows)) for rows in _ranges(0, n, height)]

    def fill(tile: tuple[slice, Operand, slice]) -> None:
        rows, left, columns = tile
        values = tile_of(left, operand.rows(columns))
        mirror(values, matrix, rows.start, columns.start)

    tiles = [
        (rows, left, columns)
        for rows, left in strips
        for columns in _ranges(rows.start, n, width)
    ]
    warm_up(kernel, operand)
    run_tiles([kernel], threads, fill, tiles, tiling.at_once)
    return matrix


def warm_up(kernel: Kernel, operand: Operand) -> None:
    """Derive what the kernel keeps of an operand before threads ask for its parts."""
    if not _has_function([kernel]):
        kernel.evaluate(Pair(operand.rows(slice(0, 1)), operand))


class RowGram:
    """A Gram matrix of which rows are computed when asked for, and kept in a budget."""

    def __init__(
        self,
        kernel: Kernel,
        operand: Operand,
        starts: Sequence[int],
        budget: int,
        threads: Threads,
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
        # At least two rows: less than a pair no solver can work with.
        self.capacity = int(np.clip(budget // (n * self.dtype.itemsize), 2, n))
        self._threads = threads
        self._tiling = tiling
        self._tile_of = Tiles(kernel)
        self._clock = 0
        self._stores = [
            _RowStore(n, stop - first, self.capacity, self.dtype, patience)
            for first, stop in zip(self.starts[:-1], self.starts[1:], strict=True)
        ]
        warm_up(kernel, operand)

    def provide(self, demands: Sequence[Demand]) -> None:
        """Make rows available, computing those that are not kept, all in one go.

        Together the demands on one block must not exceed ``capacity``.
        """
        self._clock += 1
        tiles = []
        for block in sorted({demand.block for demand in demands}):
            rows = np.unique(
                np.concatenate([d.rows for d in demands if d.block == block])
            )
            store = self._stores[block]
            missing, slots = store.place(rows, self._clock)
            first, stop = self.starts[block], self.starts[block + 1]
            height, _ = self._tiling.shape(TILE_ROWS, stop - first)
            for part in _ranges(0, len(missing), height):
                left = self.operand.rows(missing[part])
                for columns in _ranges(first, stop, self._tiling.values // len(left)):
                    tiles.append((store, slots[part], left, columns, first))

        def fill(tile: tuple) -> None:
            store, slots, left, columns, first = tile
            values = self._tile_of(left, self.operand.rows(columns))
            scatter_rows(values, store.pool, slots, columns.start - first)

        run_tiles([self.kernel], self._threads, fill, tiles, self._tiling.at_once)

    def source(self, block: int) -> Source:
        """Return where the rows of a block lie."""
        store = self._stores[block]
        return Source(store.pool, store.slot, 0)


class _RowStore:
    """Slots for rows of one block; the least recently used row gives way."""

    def __init__(
        self, n: int, width: int, capacity: int, dtype: np.dtype, patience: int | None
    ):
        self._patience = patience
        self.pool = np.empty((capacity, width), dtype=dtype)
        self.slot = np.full(n, -1, dtype=np.int64)
        self._row = np.full(capacity, -1, dtype=np.int64)
        self._used_at = np.zeros(capacity, dtype=np.int64)
        self._filled = 0

    def place(self, rows: NDArray, clock: int) -> tuple[NDArray, NDArray]:
        """Return the rows that must be computed, and the slots reserved for them."""
        slots = self.slot[rows]
        here = slots >= 0
        self._used_at[slots[here]] = clock
        missing = rows[~here]
        taken = self._free_slots(len(missing), clock)
        self.slot[missing] = taken
        self._row[taken] = missing
        self._used_at[taken] = clock
        return missing, taken

    def _free_slots(self, count: int, clock: int) -> NDArray:
        """Make room: of rows long unused, else in fresh memory, else by force.

        To use memory again costs less than to have the system clear some more.
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


def apply(
    kernel: Kernel,
    left: Operand,
    right: Operand,
    weights: Weights,
    threads: Threads,
    budget: int | None = None,
) -> NDArray:
    """Return ``K(left, right) @ weights``, shape (m, n_tasks).

    Products are taken in the precision of the data and added up in double precision.
    Tiles keep to their part of the budget, where there is one.
    """
    dtype = np.result_type(left.dtype, right.dtype)
    result = np.zeros((len(left), weights.matrix.shape[1]))
    tile_of = Tiles(kernel)
    tiling = plan_tiles([kernel], right, budget if len(right) else None)
    height = _height(len(left))
    height, width = tiling.shape(height, _width(height))
    pieces = [
        (right.rows(columns), weights.dense_parts(columns, dtype))
        for columns in _ranges(0, len(right), width)
    ]
    if pieces:
        warm_up(kernel, right)

    def fill(rows: slice) -> None:
        part = left.rows(rows)
        for other, dense_parts in pieces:
            values = tile_of(part, other)
            for columns, used, weight in dense_parts:
                result[rows, used] += values[:, columns] @ weight

    tiles = _ranges(0, len(left), height)
    run_tiles([kernel], threads, fill, tiles, tiling.at_once)
    return result


def kernel_matrix(
    kernel: Kernel, left: Operand, right: Operand | None, threads: Threads
) -> NDArray:
    """Return all values of a bound kernel; ``right=None`` means ``left`` again."""
    if right is None:
        return symmetric_matrix(kernel, left, threads)
    matrix = np.empty(
        (len(left), len(right)), dtype=np.result_type(left.dtype, right.dtype)
    )
    tile_of = Tiles(kernel)
    warm_up(kernel, right)

    def fill(rows: slice) -> None:
        part = left.rows(rows)
        for columns in _ranges(0, len(right), _width(len(part))):
            matrix[rows, columns] = tile_of(part, right.rows(columns))

    run_tiles([kernel], threads, fill, _ranges(0, len(left), _height(len(left))))
    return matrix
