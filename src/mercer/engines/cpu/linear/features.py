"""Samples as linear machines see them: products with weights, in blocks and threads.

Blocks have a fixed size and their results are added in their order, so that nothing
depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.linear_lanes import (
    FEW_LANES,
    LANES,
    LINE,
    Rows,
    combine,
    compress,
    count_values,
    score,
    square,
)
from mercer.core.linear_pieces import gather_dense, gather_sparse

__all__ = ["Features", "Run", "aligned_zeros", "in_turn", "lane_groups", "lanes"]

#: applies a function to each of some items, perhaps in threads
Run = Callable[[Callable[[Any], Any], Iterable[Any]], list]

# Values of a block of samples: few enough that a block in double precision stays in a
# processor's cache, and enough to make a matrix product efficient.
BLOCK_VALUES = 1 << 18
# Sums of blocks are as large as the weights, so there are not too many blocks.
MOST_BLOCKS = 256
# Samples whose products of pairs of features are computed at a time.
GRAM_ROWS = 2048
# Below this many multiplications, threads cost more than they save.
LEAST_WORK = 1_500_000
# Dense samples are compressed if at most this fraction of their values is not 0, which
# makes passes over them faster.
MOST_VALUES = 0.35
# That fraction is first estimated on so many samples.
ESTIMATED_ON = 64
# Sums over samples are computed in about so many parts.
PARTS_OF_SUMS = 4


def in_turn(function: Callable[[Any], Any], items: Iterable[Any]) -> list:
    """Apply a function to each item in this thread."""
    return [function(item) for item in items]


def aligned_zeros(*shape: int) -> NDArray[np.float64]:
    """Return zeros that begin at a cache line, so that eight of them lie in one."""
    size = int(np.prod(shape))
    room = np.zeros(size + LINE // 8)
    skipped = -(room.ctypes.data // 8) % (LINE // 8)
    return room[skipped : skipped + size].reshape(shape)


def lanes(numbers: NDArray) -> NDArray[np.float64]:
    """Return up to eight rows of numbers as columns, side by side.

    There are one column, four or eight; unused ones are 0.
    """
    k, d = numbers.shape
    result = aligned_zeros(d, 1 if k == 1 else FEW_LANES if k <= FEW_LANES else LANES)
    result[:, :k] = numbers.T
    return result


def lane_groups(items: list) -> list[list]:
    """Divide problems into groups that are solved side by side.

    Up to two full groups are divided evenly, for two threads.
    """
    size = LANES
    if FEW_LANES < len(items) <= 2 * LANES:
        size = -(-len(items) // 2)
    return [items[i : i + size] for i in range(0, len(items), size)]


class Features:
    """Samples, dense or CSR, in single or double precision.

    Weights have a row for each problem, and so have decision values and coefficients.
    All sums are in double precision.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
    run : Run, default=in_turn
    is_reused : bool, default=False
        Whether there will be many passes, for which dense samples with many zeros are
        worth compressing.
    """

    def __init__(self, X: Any, run: Run = in_turn, is_reused: bool = False):
        self.X = X
        self.n, self.d = X.shape
        self.is_sparse = sparse.issparse(X)
        self.n_values = X.nnz if self.is_sparse else self.n * self.d
        self.blocks = self._divided()
        self.run_in_threads = run
        self._norms: NDArray | None = None
        self._rows: Rows | None = None
        if self.is_sparse:
            self._rows = Rows(
                X.data,
                X.indices.astype(np.int32, copy=False),
                X.indptr.astype(np.int64, copy=False),
                False,
            )
        elif is_reused:
            self._rows = self._compressed()
            if self._rows is not None:
                self.n_values = len(self._rows.data)
                self.blocks = self._divided()

    def _divided(self) -> list[slice]:
        """Return blocks of samples."""
        per_row = max(1, self.n_values // max(1, self.n))
        rows = max(64, BLOCK_VALUES // per_row, -(-self.n // MOST_BLOCKS))
        return [
            slice(first, min(first + rows, self.n)) for first in range(0, self.n, rows)
        ]

    def _compressed(self) -> Rows | None:
        """Return the values of dense samples that are not 0, unless they are many."""
        X = self.X
        some = X[:: max(1, self.n // ESTIMATED_ON)]
        if np.count_nonzero(some) > MOST_VALUES * some.size:
            return None
        indptr = np.zeros(self.n + 1, dtype=np.int64)
        counts = indptr[1:]
        self.run(
            lambda b: count_values(X, b.start, b.stop, counts),
            self.blocks,
            self.n_values,
        )
        np.cumsum(counts, out=counts)
        if indptr[-1] > MOST_VALUES * self.n_values:
            return None
        data = np.empty(indptr[-1], dtype=X.dtype)
        indices = np.empty(indptr[-1], dtype=np.int32)
        self.run(
            lambda b: compress(X, b.start, b.stop, indptr, data, indices),
            self.blocks,
            self.n_values,
        )
        return Rows(data, indices, indptr, False)

    def rows(self) -> Rows:
        """Return the samples one after the other, for coordinate descent."""
        if self._rows is not None:
            return self._rows
        columns = np.arange(self.d, dtype=np.int32)
        starts = self.d * np.arange(self.n + 1, dtype=np.int64)
        return Rows(np.ascontiguousarray(self.X).reshape(-1), columns, starts, True)

    def run(self, function: Callable[[Any], Any], items: Any, work: float) -> list:
        """Apply a function to items, in threads if there is enough work.

        Even a single item is left to another thread: the main thread stays free to
        notice an interrupt.
        """
        if work < LEAST_WORK:
            return in_turn(function, items)
        return self.run_in_threads(function, items)

    def squared_norms(self) -> NDArray[np.float64]:
        """Return the squared length of each sample."""
        if self._norms is None:
            self._norms = self._squared_norms()
        return self._norms

    def _squared_norms(self) -> NDArray[np.float64]:
        X, rows = self.X, self._rows
        result = np.empty(self.n)

        def fill(block: slice) -> None:
            if rows is not None:
                square(rows, block.start, block.stop, result)
            else:
                part = X[block].astype(np.float64, copy=False)
                np.einsum("ij,ij->i", part, part, out=result[block])

        self.run(fill, self.blocks, self.n_values)
        return result

    def scores(self, weights: NDArray) -> NDArray[np.float64]:
        """Return ``weights @ X.T``, shape (n_problems, n)."""
        result = np.zeros((len(weights), self.n))
        if not weights.any():
            return result
        work = self.n_values * len(weights)
        X, rows = self.X, self._rows
        if rows is not None:
            groups = [
                (lanes(weights[k : k + LANES]), result[k : k + LANES])
                for k in range(0, len(weights), LANES)
            ]

            def products(block: slice) -> None:
                for columns, out in groups:
                    score(rows, block.start, block.stop, columns, out)

            self.run(products, self.blocks, work)
            return result

        def fill(block: slice) -> None:
            part = X[block].astype(np.float64, copy=False)
            np.matmul(weights, part.T, out=result[:, block])

        self.run(fill, self.blocks, work)
        return result

    def combine(self, beta: NDArray) -> NDArray[np.float64]:
        """Return ``beta @ X``, shape (n_problems, d)."""
        X, rows = self.X, self._rows
        total = np.zeros((len(beta), self.d))
        work = self.n_values * len(beta)
        if rows is not None:
            # Sums are as long as there are features: few parts, added at once.
            step = max(1, len(self.blocks) // PARTS_OF_SUMS)
            parts = [
                slice(some[0].start, some[-1].stop)
                for some in (
                    self.blocks[k : k + step] for k in range(0, len(self.blocks), step)
                )
            ]

            def add(part: slice) -> list[NDArray]:
                sums = []
                for k in range(0, len(beta), LANES):
                    own = beta[k : k + LANES]
                    sums.append(lanes(np.zeros((len(own), self.d))))
                    combine(rows, part.start, part.stop, own, sums[-1])
                return sums

            for found in self.run(add, parts, work):
                for k, sums in enumerate(found):
                    own = total[k * LANES : (k + 1) * LANES]
                    own += sums[:, : len(own)].T
            return total

        def product(block: slice) -> NDArray:
            return beta[:, block] @ X[block].astype(np.float64, copy=False)

        for part in self.run(product, self.blocks, work):
            total += part
        return total

    def gather(
        self,
        rows: NDArray,
        weight: NDArray,
        value: float = 0.0,
        place: NDArray | None = None,
        n_shifts: int = 0,
        dtype: Any = np.float64,
    ) -> NDArray:
        """Return weighted samples as dense rows, with ``n_shifts`` more columns."""
        out = np.empty((len(rows), self.d + n_shifts), dtype=dtype)
        if place is None:
            place = np.zeros(len(rows), dtype=np.int64)
        X = self.X
        if self.is_sparse:
            gather_sparse(
                X.data, X.indices, X.indptr, rows, weight, value, place, self.d, out
            )
        else:
            gather_dense(X, rows, weight, value, place, out)
        return out
