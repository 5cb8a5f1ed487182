r"""Products of a Gram matrix with a few vectors, within the memory budget.

The matrix is divided into strips of rows, and only the part of a strip from the
diagonal to the right is used: :math:`K V` uses a strip :math:`T` twice, once for its
own rows and once, transposed, for the rows of its columns.  As many strips are kept as
fit into the budget; the others are computed again for every product.  Products are
computed in the precision of the data and added in double precision, in an order that
does not depend on the threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mercer.core.tiles import ranges
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.tiles import Tiles, Workers, plan_tiles
from mercer.kernels.base import Kernel

__all__ = ["GivenProduct", "GramProduct", "centred_times"]

# Number of rows in a strip. They are few, because values below the diagonal are wasted.
STRIP_ROWS = 256
# Number of strips whose products are computed before they are added.
STRIPS_AT_ONCE = 32
# Number of columns in a tile that is computed, and in a piece that is multiplied. A
# piece is read twice, and should stay in the processor's cache in between. A tile has
# whole pieces.
TILE_COLUMNS = 1024
PIECE_COLUMNS = 1024
# Number of rows in a tile of chosen columns, which are computed as rows.
TILE_ROWS = 512


class GramProduct:
    """A symmetric Gram matrix that is computed from samples and multiplies vectors."""

    def __init__(
        self,
        kernel: Kernel,
        operand: Operand,
        budget: int,
        threads: Workers,
        work: int = 0,
    ):
        """Keep what fits into the budget beside tiles and ``work`` bytes.

        ``work`` is for the arrays that callers have while they multiply; products
        themselves keep to a quarter of it.
        """
        self.dtype = operand.dtype
        self.n = len(operand)
        self.diag = np.asarray(kernel.diagonal(operand), dtype=np.float64)
        self._operand = operand
        tiling = plan_tiles([kernel], operand, budget)
        self._tiles = Tiles(kernel, operand, threads, tiling, prepared=True)
        self._work = work
        height, self._width = tiling.shape(STRIP_ROWS, TILE_COLUMNS)
        self._strips = ranges(0, self.n, height, even=False)
        self._kept: dict[int, NDArray] = {}
        self._fill(max(0, budget - tiling.n_bytes - work))

    def _fill(self, budget: int) -> None:
        """Compute and keep the first strips, as many as the budget allows."""
        shapes = [(s.stop - s.start, self.n - s.start) for s in self._strips]
        ends = np.cumsum([height * width for height, width in shapes])
        count = int(np.searchsorted(ends, budget // self.dtype.itemsize, "right"))
        # One large array is allocated faster than many small ones.
        room = np.empty(ends[count - 1] if count else 0, dtype=self.dtype)

        def keep(k: int) -> None:
            rows, (height, width) = self._strips[k], shapes[k]
            strip = room[ends[k] - height * width : ends[k]].reshape(height, width)
            for columns, values in self._strip(rows):
                first, stop = columns.start - rows.start, columns.stop - rows.start
                strip[:, first:stop] = values
            self._kept[k] = strip

        self._tiles.run(keep, range(count))

    @property
    def is_whole(self) -> bool:
        """Whether all values are in memory."""
        return len(self._kept) == len(self._strips)

    @cached_property
    def sums(self) -> NDArray:
        """The sum of each row, in double precision."""
        return self.times(np.ones((self.n, 1))).ravel()

    def _strip(self, rows: slice) -> Iterator[tuple[slice, NDArray]]:
        """Compute the tiles of a strip, one after the other."""
        left = self._operand.rows(rows)
        for columns in ranges(rows.start, self.n, self._width, even=False):
            values = self._tiles(left, self._operand.rows(columns))
            if columns.start == rows.start:
                np.fill_diagonal(values, self.diag[rows])
            yield columns, values

    def _pieces(self, k: int) -> Iterator[tuple[slice, NDArray]]:
        """Yield a strip in pieces whose widths do not depend on what is kept.

        With cache_size="auto", the number of strips that are kept depends on the free
        memory.  Sums over pieces of other widths would be rounded differently, and
        results would change from run to run.
        """
        rows = self._strips[k]
        if k in self._kept:
            parts = iter([(slice(rows.start, self.n), self._kept[k])])
        else:
            parts = self._strip(rows)
        for columns, values in parts:
            for first in range(0, values.shape[1], PIECE_COLUMNS):
                piece = values[:, first : first + PIECE_COLUMNS]
                start = columns.start + first
                yield slice(start, start + piece.shape[1]), piece

    def times(self, V: NDArray) -> NDArray:
        """Return ``K @ V``, shape (n, p), in double precision."""
        V = np.ascontiguousarray(V, dtype=self.dtype)
        W = np.ascontiguousarray(V.T)
        result = np.zeros(W.shape)

        def part(k: int) -> tuple[NDArray, NDArray]:
            rows = self._strips[k]
            own = np.zeros((rows.stop - rows.start, V.shape[1]))
            others = np.empty((V.shape[1], self.n - rows.start), dtype=self.dtype)
            for columns, values in self._pieces(k):
                own += values @ V[columns]
                first, stop = columns.start - rows.start, columns.stop - rows.start
                np.matmul(W[:, rows], values, out=others[:, first:stop])
            return own, others

        # The sums are the same for any number of strips.
        at_once = STRIPS_AT_ONCE
        if self._work:
            room = self._work // 4 // (V.shape[1] * self.n * self.dtype.itemsize)
            at_once = int(np.clip(room, 1, STRIPS_AT_ONCE))
        for group in ranges(0, len(self._strips), at_once, even=False):
            some = range(group.start, group.stop)
            found = self._tiles.run(part, some)
            for k, (own, others) in zip(some, found, strict=True):
                rows = self._strips[k]
                result[:, rows] += own.T
                # The square on the diagonal must only be added once.
                result[:, rows.stop :] += others[:, len(own) :]
        return np.ascontiguousarray(result.T)

    def columns(self, index: NDArray) -> NDArray:
        """Return some columns, shape (n, m), in the precision of the data."""
        index = np.asarray(index, dtype=np.intp)
        found = np.empty((self.n, len(index)), dtype=self.dtype)
        # The chosen rows are on the left, so that what the right side needs is derived
        # once.
        height, width = self._tiles.tiling.shape(TILE_ROWS, TILE_COLUMNS)
        jobs = [
            (part, left, rows)
            for part in ranges(0, len(index), height, even=False)
            for left in [self._operand.rows(index[part])]
            for rows in ranges(0, self.n, width, even=False)
        ]

        def fill(job: tuple[slice, Operand, slice]) -> None:
            part, left, rows = job
            found[rows, part] = self._tiles(left, self._operand.rows(rows)).T

        self._tiles.run(fill, jobs)
        found[index, np.arange(len(index))] = self.diag[index]
        return found

    def whole(self) -> NDArray:
        """Return the whole matrix, in the precision of the data."""
        matrix = np.empty((self.n, self.n), dtype=self.dtype)

        def fill(k: int) -> None:
            rows = self._strips[k]
            for columns, values in self._pieces(k):
                matrix[rows, columns] = values
                matrix[columns, rows] = values.T
            # In the square on the diagonal, the upper triangle is used for both.
            square = matrix[rows, rows]
            square[:] = np.triu(square) + np.triu(square, 1).T

        self._tiles.run(fill, range(len(self._strips)))
        return matrix


class GivenProduct:
    """A Gram matrix in memory, given by the user or computed by a function."""

    is_whole = True

    def __init__(self, matrix: NDArray, threads: Workers):
        self.dtype = matrix.dtype
        self.n = len(matrix)
        self.diag = np.array(matrix.diagonal(), dtype=np.float64)
        self._matrix = matrix
        self._threads = threads

    @cached_property
    def sums(self) -> NDArray:
        """The sum of each row, in double precision."""
        return self.times(np.ones((self.n, 1))).ravel()

    def times(self, V: NDArray) -> NDArray:
        """Return ``K @ V``, shape (n, p), in double precision."""
        V = np.ascontiguousarray(V, dtype=self.dtype)
        result = np.empty(V.shape)

        def fill(rows: slice) -> None:
            result[rows] = self._matrix[rows] @ V

        self._threads.map(fill, ranges(0, self.n, STRIP_ROWS, even=False))
        return result

    def columns(self, index: NDArray) -> NDArray:
        """Return some columns, shape (n, m)."""
        return self._matrix[:, index]

    def whole(self) -> NDArray:
        """Return a copy of the matrix."""
        return self._matrix.copy()


def centred_times(product: GramProduct | GivenProduct, V: NDArray) -> NDArray:
    r"""Return :math:`H K H V` with :math:`H = I - 11^T / n`."""
    found = product.times(V - V.mean(axis=0))
    return found - found.mean(axis=0)
