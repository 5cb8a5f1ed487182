"""Whole Gram matrices of many kernels on the same samples.

What the kernels of a search have in common, squared distances above all, is computed
once, tile by tile, and kept: each further kernel costs one pass over it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.rows import mirror
from mercer.engines.cpu.gram import own_scratch, plan_tiles, warm_up
from mercer.kernels.base import Kernel
from mercer.kernels.given import Custom
from mercer.kernels.operand import Operand, Pair, Scratch, columns_key
from mercer.runtime.threads import Threads

__all__ = ["GramMaker", "SharedGram", "bytes_of_parts", "exact_bytes"]

# As in gram: tiles of a triangle are low, and not too wide.
TILE_ROWS = 256
TILE_COLUMNS = 2000
# Rows on which rounding errors are measured.
SAMPLED_ROWS = 64
# Columns of these that are computed at a time.
EXACT_COLUMNS = 256


def exact_bytes(n: int) -> int:
    """Return the memory of a matrix's sampled rows, which are put together once."""
    return 2 * SAMPLED_ROWS * n * 8


class SharedGram(NamedTuple):
    """The kernel values of all samples, and some of them in double precision."""

    matrix: NDArray  #: shape (n, n)
    sampled: NDArray[np.intp]  #: rows on which rounding errors are measured
    exact: NDArray[np.float64]  #: their kernel values, shape (len(sampled), n)

    @classmethod
    def given(cls, matrix: NDArray) -> SharedGram:
        """Take a matrix of the user's as exact."""
        sampled = _sample(len(matrix))
        return cls(matrix, sampled, matrix[sampled].astype(np.float64))


class StoredPair(Pair):
    """A pair of which the parts that have no parameters outlive it, in ``kept``."""

    def __init__(
        self,
        left: Operand,
        right: Operand,
        scratch: Scratch,
        kept: dict,
        path: tuple[Hashable, ...] = (),
    ):
        super().__init__(left, right, shared=True, scratch=scratch)
        self._kept = kept
        self._path = path

    def once(self, key: Hashable, make: Any) -> Any:
        has_no_parameters = isinstance(key, str) or (
            isinstance(key, tuple) and key[0] == "squared distances"
        )
        if not has_no_parameters:
            return super().once(key, make)
        place = (self._path, key)
        if place not in self._kept:
            self._kept[place] = make().copy()
        return self._kept[place]

    def on(self, columns: Any) -> Pair:
        key = columns_key(columns)
        return super().once(
            ("on", key),
            lambda: StoredPair(
                self.left.columns(columns),
                self.right.columns(columns),
                self.scratch,
                self._kept,
                (*self._path, key),
            ),
        )


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
        threads: Threads,
        *,
        keeps: bool,
    ):
        """Prepare for some kernels, with tiles that keep to their part of the budget.

        ``keeps`` is whether what kernels have in common is kept.
        """
        self._X = X
        self._threads = threads
        self._operand = Operand(X.astype(dtype, copy=False), run=threads.map)
        n = X.shape[0]
        plans = [
            plan_tiles([kernel], self._operand, budget, shared=True)
            for kernel in kernels
        ]
        least = min(plans, key=lambda plan: plan.values)
        self._at_once = least.at_once
        height, width = least.shape(TILE_ROWS, TILE_COLUMNS)
        self._tiles: list[tuple[slice, slice]] = [
            (rows, columns)
            for rows in _ranges(0, n, height)
            for columns in _ranges(rows.start, n, width)
        ]
        self._kept: list[dict] = [{} for _ in self._tiles]
        self._keeps = keeps

    def make(self, kernel: Kernel) -> SharedGram:
        """Return the matrix of a bound kernel; tiles do not depend on the threads."""
        operand, n = self._operand, len(self._operand)
        matrix = np.empty((n, n), dtype=operand.dtype)
        warm_up(kernel, operand)

        def fill(t: int) -> None:
            rows, columns = self._tiles[t]
            kept = self._kept[t] if self._keeps else {}
            pair = StoredPair(
                operand.rows(rows),
                operand.rows(columns),
                own_scratch(),
                kept,
            )
            mirror(kernel.evaluate(pair), matrix, rows.start, columns.start)

        if any(isinstance(leaf, Custom) for leaf in kernel.leaves()):
            for t in range(len(self._tiles)):  # a user's function in one thread only
                fill(t)
        else:
            tiles = range(len(self._tiles))
            self._threads.map(fill, tiles, at_once=self._at_once)
        np.fill_diagonal(matrix, kernel.diagonal(operand))
        sampled = _sample(n)
        return SharedGram(matrix, sampled, self._exact(kernel, sampled))

    def _exact(self, kernel: Kernel, sampled: NDArray) -> NDArray:
        """Return some rows from data in double precision."""
        left = _double(self._X[sampled])

        def part(columns: slice) -> NDArray:
            right = Operand(_double(self._X[columns]))
            return kernel.evaluate(Pair(Operand(left), right))

        parts = _ranges(0, self._X.shape[0], EXACT_COLUMNS)
        if any(isinstance(leaf, Custom) for leaf in kernel.leaves()):
            return np.hstack([part(columns) for columns in parts])
        return np.hstack(self._threads.map(part, parts))


def _double(X: Any) -> Any:
    X = X.astype(np.float64)
    return X if sparse.issparse(X) else np.ascontiguousarray(X)


def _sample(n: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, n - 1, min(n, SAMPLED_ROWS)).astype(np.intp))


def _ranges(first: int, stop: int, most: int) -> list[slice]:
    """Cut a range into as few parts of at most ``most`` as can be, all about equal."""
    count = -(-(stop - first) // most)
    cuts = [first + (stop - first) * k // count for k in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(cuts)]
