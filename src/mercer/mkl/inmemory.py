"""Base Gram matrices that are all in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from mercer.core.mkl import add_scaled
from mercer.core.rows import add_rows, gather_square, mirror
from mercer.gram import WholeGram, own_scratch
from mercer.kernels.base import Kernel, OnColumns, evaluate_once
from mercer.kernels.given import Precomputed
from mercer.kernels.operand import Operand, Pair, columns_key
from mercer.mkl.base import STRIP, BaseGrams, cut, run_tiles
from mercer.threads import Threads

__all__ = ["GramsInMemory"]

# Tiles of a triangle; of more than four kernels they are less wide.
TILE_ROWS = 256
TILE_COLUMNS = 1024


class GramsInMemory(BaseGrams):
    """All base matrices in memory."""

    def __init__(self, matrices: list[NDArray], starts: list[int], threads: Threads):
        super().__init__(len(matrices[0]), len(matrices), starts, threads)
        self.matrices = matrices
        self._sum: NDArray | None = None

    @classmethod
    def compute(
        cls,
        kernels: Sequence[Kernel],
        operand: Operand,
        starts: list[int],
        threads: Threads,
    ) -> GramsInMemory:
        """Evaluate one triangle of all kernels, tile by tile, and mirror it."""
        n = len(operand)
        matrices = [np.empty((n, n), dtype=operand.dtype) for _ in kernels]
        strips = [(rows, operand.rows(rows)) for rows in cut(n, TILE_ROWS)]
        width = TILE_COLUMNS * 4 // max(4, min(len(kernels), 32))
        groups = _by_columns(kernels)

        def fill(tile: tuple[slice, Operand, slice]) -> None:
            rows, left, columns = tile
            right = operand.rows(columns)
            for together, is_shared in groups:
                pair = Pair(left, right, shared=is_shared, scratch=own_scratch())
                for k in together:
                    values = evaluate_once(kernels[k], pair)
                    mirror(values, matrices[k], rows.start, columns.start)

        tiles = [
            (rows, left, slice(rows.start + part.start, rows.start + part.stop))
            for rows, left in strips
            for part in cut(n - rows.start, width)
        ]
        run_tiles(kernels, operand, threads, fill, tiles)
        for kernel, matrix in zip(kernels, matrices, strict=True):
            np.fill_diagonal(matrix, kernel.diagonal(operand))
        return cls(matrices, starts, threads)

    @property
    def is_double(self) -> bool:
        return all(matrix.dtype == np.float64 for matrix in self.matrices)

    def combined(self, weights: NDArray) -> tuple[Kernel, WholeGram]:
        if self._sum is None:
            dtype = np.result_type(*self.matrices)
            self._sum = np.empty((self.n, self.n), dtype=dtype)
        total = self._sum
        used = np.flatnonzero(weights > 0)
        factors = weights * self.factors

        def fill(rows: slice) -> None:
            if not len(used):
                total[rows] = 0
            for position, k in enumerate(used):
                source = self.matrices[k][rows]
                add_scaled(total[rows], source, float(factors[k]), position == 0)

        self.threads.map(fill, cut(self.n, 16))
        diag = np.array(total.diagonal(), dtype=np.float64)
        return Precomputed(), WholeGram(total, diag, self.starts)

    def diagonals(self) -> NDArray:
        return np.stack([m.diagonal().astype(np.float64) for m in self.matrices])

    def products(self, B: NDArray) -> NDArray:
        F = np.zeros((self.n_kernels, B.shape[1], self.n))
        columns = [(np.flatnonzero(b), b[np.flatnonzero(b)]) for b in B.T]

        def fill(part: tuple[int, slice]) -> None:
            k, where = part
            matrix, factor = self.matrices[k], self.factors[k]
            for t, (rows, values) in enumerate(columns):
                add_rows(matrix, rows, factor * values, where.start, F[k, t, where])

        parts = [(k, w) for k in range(self.n_kernels) for w in cut(self.n, 2048)]
        self.threads.map(fill, parts)
        return F.transpose(0, 2, 1)

    def squares(self, rows: NDArray) -> NDArray:
        dtype = np.result_type(*self.matrices)
        squares = np.empty((self.n_kernels, len(rows), len(rows)), dtype=dtype)

        def fill(k: int) -> None:
            gather_square(self.matrices[k], rows, rows.astype(np.uint64), 0, squares[k])
            if self.factors[k] != 1.0:
                squares[k] *= squares.dtype.type(self.factors[k])

        self.threads.map(fill, range(self.n_kernels))
        return squares

    def add_columns(self, F: NDArray, rows: NDArray, change: NDArray) -> None:
        def fill(k: int) -> None:
            add_rows(self.matrices[k], rows, self.factors[k] * change, 0, F[k])

        self.threads.map(fill, range(self.n_kernels))

    def restricted(self, rows: NDArray, starts: list[int]) -> GramsInMemory:
        if len(rows) == self.n:
            return self
        parts = list(self.squares(rows))
        return GramsInMemory(parts, starts, self.threads)

    def _strips(self, visit: Callable[[slice, NDArray], None]) -> None:
        for rows in cut(self.n, STRIP):
            parts = zip(self.matrices, self.factors, strict=True)
            visit(rows, np.stack([m[rows] * m.dtype.type(f) for m, f in parts]))


def _by_columns(kernels: Sequence[Kernel]) -> list[tuple[list[int], bool]]:
    """Return which kernels look at the same columns, and whether they share values.

    A kernel that shares with none, and is no expression, may work in place.
    """
    groups: dict[Hashable, list[int]] = {}
    for k, kernel in enumerate(kernels):
        is_part = isinstance(kernel, OnColumns)
        key = columns_key(kernel.columns) if is_part else None
        groups.setdefault(key, []).append(k)
    return [
        (group, len(group) > 1 or sum(1 for _ in kernels[group[0]].leaves()) > 1)
        for group in groups.values()
    ]
