"""The one loop over tiles of kernel values, and the memory that it may use.

Whoever needs kernel values gets them here, tile by tile: matrices, rows, products with
vectors, certificates.  This module decides how large tiles are, so that they keep to
their part of a memory budget, derives what kernels keep of the samples before threads
ask for parts of it, lends every thread scratch memory, and sees to it that a function
of the user is never called by two threads at once.

Tiles do not depend on the number of threads, and so neither do the values.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.tiles import mirror, ranges
from mercer.engines.cpu.pair import (
    Operand,
    TilePair,
    release_scratch,
    scratch_of_thread,
)
from mercer.engines.cpu.teams import (
    Stretch,
    apply_sides,
    fill_rows,
    fill_triangle,
    sides_of,
)
from mercer.kernels.base import Kernel, OnColumns, evaluate_once
from mercer.kernels.pair import columns_key
from mercer.runtime.threads import one_blas_thread

__all__ = [
    "MOST_WORKERS",
    "TILES_PART",
    "USUAL",
    "WORKERS",
    "Room",
    "Tiles",
    "Tiling",
    "Weights",
    "Workers",
    "apply",
    "budget_bytes",
    "coefficient_matrix",
    "count_workers",
    "divide",
    "free_memory",
    "from_pair_layout",
    "given_budget",
    "kernel_matrix",
    "plan_tiles",
    "symmetric_matrix",
]

MEGABYTE = 2**20
UNKNOWN_FREE_MEMORY = 4 * 2**30
# Memory is divided among a number of workers that does not depend on how many there
# are, nor must what they compute: among this number, or more while each has enough.
WORKERS = 8
MOST_WORKERS = 64

# Number of values in a tile: large enough that Python's part of the work does not
# count, small enough for a core's own cache and for many cores to have some.  A tile
# has as many rows as possible, up to a limit: each tile has to bring its columns into
# the order that the product needs, and its rows share that work.
TILE_VALUES = 500_000
TILE_ROWS = 256
# Where there are few values, tiles are smaller, so that there are this many tiles; but
# not smaller than this.
ENOUGH_TILES = 64
SMALL_TILE = 120_000
LEAST_ROWS = 64
# Memory for sums of stretches, where no budget is given.
SUMS_BYTES = 32 * MEGABYTE
# Tiles of a triangle have few rows: values below the diagonal are wasted.  They are not
# too wide, because they are read once more across their rows.
STRIP_ROWS = 256
STRIP_COLUMNS = 2000

# The tiles of all threads together take at most the budget divided by this number, and
# so do the values that certificates are computed from.
TILES_PART = 8
# No tile is smaller than this, even if the budget is.
LEAST_TILE = 64 * 64
# Number of rows on which it is measured how much memory a kernel takes for a value.
PROBED_ROWS = 8
# Up to this many multiplications are done in the calling thread: waking other threads
# would take longer.
SMALL_WORK = 200_000
# Up to this many multiplications, BLAS gets one thread.
ONE_BLAS_THREAD = 50_000_000


class Room(NamedTuple):
    """Memory that is divided among workers."""

    each: int  #: bytes that one worker may take
    at_once: int  #: workers that there is room for


def divide(total: int, wanted: int, workers: int = WORKERS) -> Room:
    """Divide memory among workers, of whom each could use ``wanted`` bytes."""
    each = max(1, min(wanted, total // max(workers, 1)))
    return Room(each, max(1, total // each))


def count_workers(total: int, enough: int) -> int:
    """Return among how many workers to divide memory; ``enough`` is a good share."""
    return int(np.clip(total // max(enough, 1), WORKERS, MOST_WORKERS))


def budget_bytes(cache_size: float | str) -> int:
    """Turn ``cache_size`` (MB, or "auto": a quarter of free memory) into bytes.

    The budget is for kernel values and for all scratch memory whose size goes with the
    square of the number of samples or with the tiles that threads compute. Samples,
    copies of them, vectors of one number per sample, and results are not in it.
    """
    if cache_size == "auto":
        return free_memory() // 4
    return int(float(cache_size) * MEGABYTE)


def given_budget(cache_size: float | str) -> int | None:
    """Return the bytes that a user has allowed; "auto" allows any number: None."""
    return None if cache_size == "auto" else budget_bytes(cache_size)


def free_memory() -> int:
    """Return the bytes that can be used without swapping, as far as they are known."""
    found = []
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    found.append(int(line.split()[1]) * 1024)
    except OSError:
        pass
    try:  # a container may have less than its machine
        with (
            open("/sys/fs/cgroup/memory.max") as most,
            open("/sys/fs/cgroup/memory.current") as current,
        ):
            found.append(max(0, int(most.read()) - int(current.read())))
    except (OSError, ValueError):
        pass
    if not found:
        try:
            found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
        except (AttributeError, OSError, ValueError):
            found.append(UNKNOWN_FREE_MEMORY)
    return min(found)


class Tiling(NamedTuple):
    """How large tiles may be, and how many threads may compute them at once."""

    values: int = TILE_VALUES  #: number of values in a tile
    at_once: int | None = None  #: number of threads; None for all
    n_bytes: int = 0  #: memory that is set aside for the tiles of all threads
    bytes_per_value: float = 0.0  #: memory that a tile takes while it is computed

    def shape(self, rows: int, columns: int) -> tuple[int, int]:
        """Return this shape, or if it is too large for a tile, a nearly square one."""
        if rows * columns > self.values:
            rows = min(rows, isqrt(self.values))
            columns = self.values // rows
        return rows, columns

    def enough(self, n_rows: int, n_columns: int) -> tuple[int, int]:
        """Return the shape of tiles so that there are enough of them for all threads.

        Few rows and many columns, or the other way round, are as good as a square.
        """
        values = n_rows * n_columns // ENOUGH_TILES
        values = min(max(values, SMALL_TILE), self.values)
        rows = int(np.clip(-(-n_rows // ENOUGH_TILES), LEAST_ROWS, TILE_ROWS))
        return self.shape(rows, max(1, values // rows))


# Tiles where no budget is given.
USUAL = Tiling()


class Workers(Protocol):
    """Threads, or an engine that has some."""

    @property
    def count(self) -> int:
        """The number of threads."""
        ...

    def map(
        self,
        function: Callable[[Any], Any],
        items: Iterable[Any],
        after_each: Callable[[], None] | None = None,
        at_once: int | None = None,
    ) -> list:
        """Apply a function to all items, at most ``at_once`` at a time."""
        ...

    def team(
        self, function: Callable[[], None], n_jobs: int, at_once: int | None = None
    ) -> None:
        """Call a function in several threads at once, in no more than so many jobs."""
        ...


def plan_tiles(
    kernels: Sequence[Kernel],
    operand: Operand,
    budget: int | None,
    *,
    shared: bool | None = None,
) -> Tiling:
    """Decide on tiles that keep to their part of the budget; None sets no limit.

    ``shared`` says whether kernels are evaluated together; None means: where they must.
    """
    if budget is None:
        return USUAL
    has_function = any(kernel.is_custom() for kernel in kernels)
    per_value = _bytes_per_value(kernels, operand, shared, has_function)
    wanted = int(TILE_VALUES * per_value)
    part = budget // TILES_PART
    workers = count_workers(part, wanted)
    workers = 1 if has_function else workers
    room = divide(part, wanted, workers)
    total = min(part, workers * room.each)
    values = max(LEAST_TILE, int(room.each / per_value))
    return Tiling(values, max(1, total // room.each), total, per_value)


def _bytes_per_value(
    kernels: Sequence[Kernel], operand: Operand, shared: bool | None, has_function: bool
) -> float:
    """Measure how much memory a kernel value takes while a tile is computed."""
    n_leaves = _count_leaves(kernels)
    if has_function:
        # A user's function is called for values that are needed, not for a trial.  Its
        # result is copied once, and operations on results take as many arrays again.
        return 3.0 * 8.0 * n_leaves
    for kernel in kernels:
        _warm_up(kernel, operand)
    some = operand.rows(slice(0, PROBED_ROWS))
    pair = TilePair(some, some, shared=n_leaves > 1 if shared is None else shared)
    results = [evaluate_once(kernel, pair) for kernel in kernels]
    taken = pair.n_bytes(*results) / max(len(some), 1) ** 2
    # Several kernels may be multiplied by factors of their own.
    return taken + (operand.dtype.itemsize if shared else 0)


def _count_leaves(kernels: Iterable[Kernel]) -> int:
    return sum(1 for kernel in kernels for _ in kernel.leaves())


def _warm_up(kernel: Kernel, operand: Operand) -> None:
    """Derive what a kernel keeps of an operand before threads ask for its parts."""
    kernel.evaluate(TilePair(operand.rows(slice(0, 1)), operand))


class Tiles:
    """Computes tiles of one or several kernels; several share what they have in common.

    A tile lasts until the thread asks for the next one.
    """

    def __init__(
        self,
        kernels: Kernel | Sequence[Kernel],
        anchor: Operand | None = None,
        threads: Workers | None = None,
        tiling: Tiling = USUAL,
        *,
        shared: bool | None = None,
        prepared: bool = False,
    ):
        """Prepare for tiles whose right side is a part of ``anchor``.

        Without ``threads``, all is done in the calling thread.  ``shared`` says whether
        all kernels are evaluated together; None means those that look at the same
        columns.  If ``prepared``, what they keep of the anchor is known, or is only
        needed once.
        """
        self._kernels = [kernels] if isinstance(kernels, Kernel) else list(kernels)
        self._threads = threads
        self.tiling = tiling
        self.anchor = anchor
        self._has_function = any(kernel.is_custom() for kernel in self._kernels)
        if shared is None:
            self._groups = _by_columns(self._kernels)
        else:
            self._groups = [(list(range(len(self._kernels))), shared)]
        if anchor is not None and not (prepared or self._has_function):
            for kernel in self._kernels:
                _warm_up(kernel, anchor)

    def __call__(
        self,
        left: Operand,
        right: Operand,
        kept: dict[Hashable, NDArray] | None = None,
    ) -> NDArray:
        """Return one tile of the only kernel.

        Products and distances outlive the tile in ``kept``, if given.
        """
        shared = self._groups[0][1]
        scratch = scratch_of_thread()
        pair = TilePair(left, right, shared=shared, scratch=scratch, kept=kept)
        return self._kernels[0].evaluate(pair)

    def each(
        self,
        left: Operand,
        right: Operand,
        kept: dict[Hashable, NDArray] | None = None,
    ) -> Iterator[tuple[int, NDArray]]:
        """Yield the number of each kernel and its tile, which lasts until the next."""
        if len(self._kernels) == 1:
            yield 0, self(left, right, kept)
            return
        for together, shared in self._groups:
            scratch = scratch_of_thread()
            pair = TilePair(left, right, shared=shared, scratch=scratch, kept=kept)
            for k in together:
                yield k, evaluate_once(self._kernels[k], pair)

    def alone(self, left: Operand, right: Operand) -> NDArray:
        """Return one tile, for which BLAS may use threads if it is large."""
        work = len(left) * len(right) * left.n_features
        with one_blas_thread() if work <= ONE_BLAS_THREAD else nullcontext():
            return self(left, right)

    def run(
        self, work: Callable[[Any], Any], jobs: Sequence, at_once: int | None = None
    ) -> list:
        """Run jobs that compute tiles in threads; return their results in order.

        A user's own function is only ever called by one thread at a time.
        """
        if self._threads is None:
            with np.errstate(over="ignore", invalid="ignore"):
                return [work(job) for job in jobs]
        if self._has_function:
            return self._threads.map(lambda every: [work(j) for j in every], [jobs])[0]
        limit = self.tiling.at_once if at_once is None else at_once
        if limit is not None and limit < self._threads.count:
            return self._threads.map(partial(_freeing, work), jobs, at_once=limit)
        return self._threads.map(work, jobs, at_once=limit)

    def team(self, function: Callable[[], None], n_jobs: int) -> None:
        """Call a function that takes jobs in several threads at once."""
        if self._threads is None:
            with np.errstate(over="ignore", invalid="ignore"):
                function()
            return
        limit = self.tiling.at_once
        if limit is not None and limit < self._threads.count:
            function = partial(_freeing, function)
        self._threads.team(function, n_jobs, limit)

    def triangle(
        self,
        matrices: Sequence[NDArray],
        height: int = STRIP_ROWS,
        width: int = STRIP_COLUMNS,
        *,
        even: bool = True,
        kept: list[dict] | None = None,
    ) -> None:
        """Fill the symmetric matrices of all kernels on the anchor's samples.

        One triangle is computed, in tiles of at most this height and width.  ``kept``
        is a list that is filled with the products and distances of all tiles, or has
        been filled with them before.
        """
        operand = self.anchor
        assert operand is not None
        n = len(operand)
        height, width = self.tiling.shape(height, width)
        strips = [(r, operand.rows(r)) for r in ranges(0, n, height, even=even)]
        tiles = [
            (rows, left, columns)
            for rows, left in strips
            for columns in ranges(rows.start, n, width, even=even)
        ]
        if kept is not None and not kept:
            kept += [{} for _ in tiles]

        def fill(t: int) -> None:
            rows, left, columns = tiles[t]
            right, known = operand.rows(columns), None if kept is None else kept[t]
            for k, values in self.each(left, right, known):
                mirror(values, matrices[k], rows.start, columns.start)

        self.run(fill, range(len(tiles)))

    def rectangle(
        self,
        left: Operand,
        visit: Callable[[slice, slice, int, NDArray], None],
        height: int,
        width: int,
        *,
        even: bool = True,
        in_order: bool = True,
    ) -> None:
        """Call ``visit(rows, columns, kernel number, tile)`` for ``K(left, anchor)``.

        ``in_order`` says whether a strip of rows is visited in one thread, from the
        left to the right; if not, any thread visits any tile.
        """
        right = self.anchor
        assert right is not None
        strips = [(r, left.rows(r)) for r in ranges(0, len(left), height, even=even)]
        pieces = [(c, right.rows(c)) for c in ranges(0, len(right), width, even=even)]
        groups = [pieces] if in_order else [[piece] for piece in pieces]

        def work(job: tuple[list[tuple[slice, Operand]], slice, Operand]) -> None:
            group, rows, own = job
            for columns, other in group:
                for k, values in self.each(own, other):
                    visit(rows, columns, k, values)

        self.run(work, [(group, *strip) for group in groups for strip in strips])


def _freeing(work: Callable[..., Any], *job: Any) -> Any:
    """Do a job and free the scratch memory.

    Where there is no room for the scratch memory of all threads, those that have some
    may be others each time.
    """
    try:
        return work(*job)
    finally:
        release_scratch()


def _by_columns(kernels: Sequence[Kernel]) -> list[tuple[list[int], bool]]:
    """Return groups of kernels that look at the same columns, and if they share values.

    A kernel that is alone in its group and is not composed of others may compute its
    values in place.
    """
    groups: dict[Hashable, list[int]] = {}
    for k, kernel in enumerate(kernels):
        is_part = isinstance(kernel, OnColumns)
        key = columns_key(kernel.columns) if is_part else None
        groups.setdefault(key, []).append(k)
    return [
        (group, len(group) > 1 or _count_leaves([kernels[group[0]]]) > 1)
        for group in groups.values()
    ]


def symmetric_matrix(
    kernel: Kernel, operand: Operand, threads: Workers, tiling: Tiling = USUAL
) -> NDArray:
    """Return the whole matrix of one operand with itself."""
    n = len(operand)
    matrix = np.empty((n, n), dtype=operand.dtype)
    workers = _if_worth_while(threads, operand, operand)
    tiles = Tiles(kernel, operand, workers, tiling)
    if workers is not None and (sides := sides_of(kernel, operand, operand)):
        fill_triangle(sides, matrix, tiles.team, tiling.values)
        return matrix
    height, width = tiling.enough(n, -(-n // 2))
    tiles.triangle([matrix], height, min(width, STRIP_COLUMNS))
    return matrix


def kernel_matrix(
    kernel: Kernel, left: Operand, right: Operand | None, threads: Workers
) -> NDArray:
    """Return all values of a bound kernel; ``right=None`` means ``left`` again."""
    if right is None:
        return symmetric_matrix(kernel, left, threads)
    shape = len(left), len(right)
    matrix = np.empty(shape, dtype=np.result_type(left.dtype, right.dtype))

    def fill(rows: slice, columns: slice, k: int, values: NDArray) -> None:
        matrix[rows, columns] = values

    workers = _if_worth_while(threads, left, right)
    tiles = Tiles(kernel, right, workers)
    if workers is not None and (sides := sides_of(kernel, left, right)):
        rows = np.arange(len(left))
        everything = [Stretch(rows, rows, 0, len(right), 0)]
        fill_rows(sides, everything, matrix.reshape(-1), tiles.team, USUAL.values)
        return matrix
    height, width = USUAL.enough(*shape)
    tiles.rectangle(left, fill, height, width, in_order=False)
    return matrix


class Weights(NamedTuple):
    """Coefficients of support vectors, which lie in stretches (the classes).

    Most tasks leave most stretches out, if tasks are pairs of classes; so the products
    go stretch by stretch, with the tasks that it takes part in.
    """

    matrix: sparse.csr_array  #: support vectors by tasks
    starts: Sequence[int]  #: where each stretch begins, then the end

    def dense_parts(
        self, rows: slice, dtype: np.dtype
    ) -> list[tuple[slice, NDArray, NDArray]]:
        """Return, within some rows, stretches, their tasks, and the coefficients."""
        parts = []
        for begin, end in pairwise(self.starts):
            first, stop = max(begin, rows.start), min(end, rows.stop)
            if first < stop:
                ends = self.matrix.indptr[first : stop + 1]
                entries = slice(ends[0], ends[-1])
                used, at = np.unique(self.matrix.indices[entries], return_inverse=True)
                row = np.repeat(np.arange(stop - first), np.diff(ends))
                weight = np.zeros((stop - first, len(used)), dtype=dtype)
                weight[row, at] = self.matrix.data[entries]
                parts.append(
                    (slice(first - rows.start, stop - rows.start), used, weight)
                )
        return parts


def apply(
    kernel: Kernel,
    left: Operand,
    right: Operand,
    weights: Weights,
    threads: Workers,
    budget: int | None = None,
) -> NDArray:
    """Return ``K(left, right) @ weights``, shape (m, n_tasks).

    Products are computed in the precision of the data and added in double precision.
    Tiles keep to their part of the budget, where there is one.
    """
    dtype = np.result_type(left.dtype, right.dtype)
    shape = len(left), weights.matrix.shape[1]
    if not (len(left) and len(right)):
        return np.zeros(shape)
    tiling = plan_tiles([kernel], right, budget)
    workers = _if_worth_while(threads, left, right)
    is_one = len(left) * len(right) <= tiling.values
    tiles = Tiles(kernel, right, workers, tiling, prepared=workers is None or is_one)
    room = SUMS_BYTES if budget is None else budget // TILES_PART
    if workers is not None and (sides := sides_of(kernel, left, right)):
        return apply_sides(
            sides, lambda columns: weights.dense_parts(columns, dtype), shape[1],
            tiles.team, tiling.values, room,
        )  # fmt: skip
    height, width = tiling.enough(len(left), len(right))
    strips = [(rows, left.rows(rows)) for rows in ranges(0, len(left), height)]
    pieces = [
        (right.rows(columns), weights.dense_parts(columns, dtype))
        for columns in ranges(0, len(right), width)
    ]
    # Where strips are few, several threads share one: each adds up a stretch of it.
    count = min(ENOUGH_TILES // len(strips), len(pieces), room // (8 * np.prod(shape)))
    stretches = ranges(0, len(pieces), -(-len(pieces) // max(1, int(count))))
    sums = np.zeros((len(stretches), *shape))
    jobs = [(k, *strip) for k in range(len(stretches)) for strip in strips]

    def add(job: tuple[int, slice, Operand]) -> None:
        k, rows, own = job
        target = sums[k, rows]
        for other, parts in pieces[stretches[k]]:
            values = tiles(own, other)
            for part, used, weight in parts:
                target[:, used] += values[:, part] @ weight

    tiles.run(add, jobs)
    return sums[0] if len(sums) == 1 else sums.sum(axis=0)


def _if_worth_while(threads: Workers, left: Operand, right: Operand) -> Workers | None:
    """Return the threads, or None if the work is too small for them."""
    work = len(left) * len(right) * right.n_features
    return None if work <= SMALL_WORK else threads


def coefficient_matrix(
    n: int, columns: Sequence[tuple[NDArray, NDArray]]
) -> sparse.csr_array:
    """Return a matrix of n rows; a column is given by rows and values, which add up."""
    rows = [r[v != 0] for r, v in columns]
    values = [v[v != 0] for _, v in columns]
    column = np.repeat(np.arange(len(columns)), [len(r) for r in rows])
    entries = (np.concatenate(values), (np.concatenate(rows), column))
    return sparse.coo_array(entries, shape=(n, len(columns))).tocsr()


def from_pair_layout(rows: NDArray, labels: NDArray) -> sparse.csr_array:
    """Return coefficients (n_SV, n_pairs), given one row per other class.

    A support vector of class c has at most n_classes - 1 coefficients, one for each
    other class; row r belongs to class r if r < c, else to class r + 1.
    """
    n_classes = len(rows) + 1
    if n_classes == 2:
        return sparse.csr_array(rows.T)
    row, vector = np.nonzero(rows)
    label = labels[vector]
    other = np.where(row < label, row, row + 1)
    first, second = np.minimum(label, other), np.maximum(label, other)
    # Pairs are numbered (0, 1), (0, 2), ..., (1, 2), ...
    pair = first * (2 * n_classes - first - 1) // 2 + second - first - 1
    shape = (rows.shape[1], n_classes * (n_classes - 1) // 2)
    return sparse.coo_array((rows[row, vector], (vector, pair)), shape=shape).tocsr()
