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

from mercer.core.linear_pieces import gather_dense, gather_sparse
from mercer.core.linear_products import sparse_combine, sparse_scores

__all__ = ["Features", "Run", "in_turn"]

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
LEAST_WORK = 400_000


def in_turn(function: Callable[[Any], Any], items: Iterable[Any]) -> list:
    """Apply a function to each item in this thread."""
    return [function(item) for item in items]


class Features:
    """Samples, dense or CSR, in single or double precision.

    Weights have a row for each problem, and so have decision values and coefficients.
    All sums are in double precision.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
    run : Run, default=in_turn
    """

    def __init__(self, X: Any, run: Run = in_turn):
        self.X = X
        self.n, self.d = X.shape
        self.is_sparse = sparse.issparse(X)
        self.n_values = X.nnz if self.is_sparse else self.n * self.d
        per_row = max(1, self.n_values // max(1, self.n))
        rows = max(64, BLOCK_VALUES // per_row, -(-self.n // MOST_BLOCKS))
        self.blocks = [
            slice(first, min(first + rows, self.n)) for first in range(0, self.n, rows)
        ]
        self.run_in_threads = run

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
        X = self.X
        if self.is_sparse:
            squares = sparse.csr_array(
                (X.data.astype(np.float64) ** 2, X.indices, X.indptr), X.shape
            )
            return np.asarray(squares.sum(axis=1)).ravel()
        result = np.empty(self.n)

        def fill(block: slice) -> None:
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
        X = self.X
        if self.is_sparse:
            columns = np.ascontiguousarray(weights.T)
            self.run(
                lambda b: sparse_scores(
                    X.data, X.indices, X.indptr, b.start, b.stop, columns, result
                ),
                self.blocks,
                work,
            )
            return result

        def fill(block: slice) -> None:
            part = X[block].astype(np.float64, copy=False)
            np.matmul(weights, part.T, out=result[:, block])

        self.run(fill, self.blocks, work)
        return result

    def combine(self, beta: NDArray) -> NDArray[np.float64]:
        """Return ``beta @ X``, shape (n_problems, d)."""
        X = self.X
        total = np.zeros((len(beta), self.d))
        work = self.n_values * len(beta)
        if self.is_sparse:
            # Sums are as long as there are features: few blocks, added at once.
            step = max(1, len(self.blocks) // 4)
            groups = [
                slice(part[0].start, part[-1].stop)
                for part in (
                    self.blocks[k : k + step] for k in range(0, len(self.blocks), step)
                )
            ]

            def add(block: slice) -> NDArray:
                sums = np.zeros((self.d, len(beta)))
                sparse_combine(
                    X.data, X.indices, X.indptr, block.start, block.stop, beta, sums
                )
                return sums

            for sums in self.run(add, groups, work):
                total += sums.T
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
    ) -> NDArray[np.float64]:
        """Return weighted samples as dense rows, with ``n_shifts`` more columns."""
        out = np.empty((len(rows), self.d + n_shifts))
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
