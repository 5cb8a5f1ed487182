"""Whole Gram matrices of many kernels on the same samples.

What the kernels of a search have in common, squared distances above all, is computed
once, tile by tile, and kept: each further kernel costs one pass over it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.tiles import ranges
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.tiles import Tiles, Workers, plan_tiles
from mercer.kernels.base import Kernel
from mercer.selection.path import SAMPLED_ROWS, SharedGram, sample

__all__ = [
    "GramMaker",
    "bytes_of_parts",
    "exact_bytes",
    "exact_rows",
]

# Shape of the tiles of a triangle.
TILE_ROWS = 256
TILE_COLUMNS = 2000
# Number of columns of these rows that are computed at a time.
EXACT_COLUMNS = 256


def exact_bytes(n: int) -> int:
    """Return the memory of a matrix's sampled rows, which are put together once."""
    return 2 * SAMPLED_ROWS * n * 8


def bytes_of_parts(kernels: Iterable[Kernel], n: int) -> int:
    """Return the memory that the common parts of kernels take at most."""
    counts = [len(list(kernel.leaves())) for kernel in kernels]
    kinds = {type(leaf) for kernel in kernels for leaf in kernel.leaves()}
    # Distances may need double precision even where the values do not.
    return max(counts) * len(kinds) * n * (n + TILE_ROWS) // 2 * 8


class GramMaker:
    """Computes Gram matrices of the same samples, one kernel after the other."""

    def __init__(
        self,
        X: Any,
        dtype: Any,
        kernels: Sequence[Kernel],
        budget: int,
        threads: Workers,
        *,
        keeps: bool,
    ):
        """Prepare for some kernels, with tiles that keep to their part of the budget.

        ``keeps`` is whether what kernels have in common is kept.
        """
        self._X = X
        self._threads = threads
        self._operand = Operand(X.astype(dtype, copy=False), run=threads.map)
        plans = [
            plan_tiles([kernel], self._operand, budget, shared=True)
            for kernel in kernels
        ]
        self._tiling = min(plans, key=lambda plan: plan.values)
        self._kept: list[dict] | None = [] if keeps else None

    def make(self, kernel: Kernel) -> SharedGram:
        """Return the matrix of a bound kernel; tiles do not depend on the threads."""
        operand, n = self._operand, len(self._operand)
        matrix = np.empty((n, n), dtype=operand.dtype)
        tiles = Tiles(kernel, operand, self._threads, self._tiling, shared=True)
        tiles.triangle([matrix], TILE_ROWS, TILE_COLUMNS, kept=self._kept)
        np.fill_diagonal(matrix, kernel.diagonal(operand))
        sampled = sample(n)
        exact = exact_rows(kernel, self._X, sampled, self._threads)
        return SharedGram(matrix, sampled, exact, matrix.diagonal().copy())


def exact_rows(kernel: Kernel, X: Any, sampled: NDArray, threads: Workers) -> NDArray:
    """Return some rows of a Gram matrix from data in double precision."""
    left = Operand(_double(X[sampled]))
    exact = np.empty((len(sampled), X.shape[0]))
    tiles = Tiles(kernel, None, threads, shared=True)

    def fill(columns: slice) -> None:
        right = Operand(_double(X[columns]))
        exact[:, columns] = tiles(left, right)

    tiles.run(fill, ranges(0, exact.shape[1], EXACT_COLUMNS))
    return exact


def _double(X: Any) -> Any:
    X = X.astype(np.float64)
    return X if sparse.issparse(X) else np.ascontiguousarray(X)
