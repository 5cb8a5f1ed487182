"""The engine that computes on a graphics card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.engines.cpu.certificates import refine
from mercer.engines.cpu.decompose import Task
from mercer.engines.cpu.engine import CpuEngine
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.small import Expansion
from mercer.engines.cpu.solve import Progress
from mercer.engines.cpu.tiles import Weights, coefficient_matrix
from mercer.engines.cuda.card import Card
from mercer.engines.cuda.gram_product import CardProduct
from mercer.engines.cuda.operand import CardOperand
from mercer.engines.cuda.pair import kernel_block, kernel_diagonal, parts, whole_gram
from mercer.engines.cuda.solve import solve_plan
from mercer.engines.engine import Certified, Plan, Settings
from mercer.kernels.base import Kernel, bind_to_both
from mercer.kernels.pair import as_matrix

__all__ = ["CudaEngine"]

# Number of columns whose products are summed in the precision of the data, before
# double precision takes over.
COLUMNS = 4096
# A tile takes at most this part of the memory, and at most so many bytes.
TILE_PART = 4
TILE_BYTES = 512 * 2**20
# Samples on the right take at most this part of the memory; beyond it they come in
# parts.
RIGHT_PART = 2

# The support vectors of machines, on the cards that have predicted with them.
_ON_CARDS: WeakKeyDictionary[Expansion, dict[Card, CardOperand]] = WeakKeyDictionary()


class CudaEngine(CpuEngine):
    """Computes kernel values and solutions on one card.

    Samples and results are arrays in the main memory. What is no work for a card is
    done by the threads of the processor, which the engine has too.

    Parameters
    ----------
    card : Card
    n_jobs : int, default=None
        Number of threads of the processor.
    """

    def __init__(self, card: Card, n_jobs: int | None = None):
        super().__init__(n_jobs)
        self.card = card

    def memory(self, cache_size: float | str = "auto") -> int:
        """Return the bytes of the card that kernel values and scratch memory may take.

        Parameters
        ----------
        cache_size : float or "auto", default="auto"
            Megabytes; "auto" means what is free on the card, less a margin.
        """
        return self.card.memory(cache_size)

    def good_order(self, X: Any) -> None:
        """Return None: on a card no order of the rows takes less time than another."""

    def matrix(self, kernel: Kernel, X: Any, Z: Any = None) -> NDArray:
        bound, left, right = bind_to_both(kernel, X, Z)
        with self.card.at_work():
            room = self.memory()
            if Z is None and _has_room(left, room):
                return self._symmetric(bound, CardOperand(self.card, left), room)
            dtype = np.result_type(left.dtype, right.dtype)
            found = np.empty((left.shape[0], right.shape[0]), dtype=dtype)
            for columns, there in self._in_parts(right, room):
                for rows, here in self._strips(bound, left, len(there), room):
                    block = kernel_block(bound, here, there)
                    found[rows, columns] = self.card.to_host(block)
            if Z is None:
                _mirror(found)
            return found

    def _symmetric(self, kernel: Kernel, operand: CardOperand, room: int) -> NDArray:
        """Return the matrix of samples with themselves, exactly symmetric."""
        n = len(operand)
        if 3 * n * n * operand.dtype.itemsize <= room:
            return self.card.to_host(whole_gram(kernel, operand))
        found = np.empty((n, n), dtype=operand.dtype)
        for rows, here in self._strips(kernel, operand, n, room):
            rest = slice(rows.start, n)
            block = kernel_block(kernel, here, operand.rows(rest))
            found[rows, rest] = self.card.to_host(block)
            found[rest, rows] = found[rows, rest].T
        np.fill_diagonal(found, kernel_diagonal(kernel, operand))
        return found

    def apply(
        self,
        kernel: Kernel,
        X: Any,
        Z: Any,
        V: Weights | NDArray,
        budget: int | None = None,
    ) -> NDArray:
        if not isinstance(V, Weights):
            V = Weights(sparse.csr_array(V), [0, len(V)])
        left = as_matrix(X)
        room = self.memory() if budget is None else budget
        result = np.zeros((left.shape[0], V.matrix.shape[1]))
        with self.card.at_work():
            right = Z if isinstance(Z, CardOperand) else as_matrix(Z)
            for columns, there in self._in_parts(right, room):
                self._add(kernel, left, there, V, columns.start, room, result)
        return result

    def _add(
        self,
        kernel: Kernel,
        X: Any,
        right: CardOperand,
        weights: Weights,
        start: int,
        room: int,
        result: NDArray,
    ) -> None:
        """Add ``K(X, right) @ weights``; the weights of ``right`` begin at ``start``.

        Products are computed in the precision of the data and added in double
        precision.
        """
        xp, to_card = self.card.xp, self.card.to_card
        dtype = np.result_type(X.dtype, right.dtype)
        pieces = []
        for columns in parts(len(right), 1, COLUMNS):
            own = slice(start + columns.start, start + columns.stop)
            tasks = [
                (part, to_card(used), to_card(weight))
                for part, used, weight in weights.dense_parts(own, dtype)
            ]
            pieces.append((right.rows(columns), tasks))
        width = min(COLUMNS, len(right))
        for rows, here in self._strips(kernel, X, width, room):
            total = xp.zeros((len(here), result.shape[1]))
            for there, tasks in pieces:
                values = kernel_block(kernel, here, there)
                for part, used, weight in tasks:
                    total[:, used] += values[:, part] @ weight
            result[rows] += self.card.to_host(total)

    def _in_parts(self, Z: Any, room: int) -> Iterator[tuple[slice, CardOperand]]:
        """Yield samples on the card: all of them if there is room, else in parts."""
        if isinstance(Z, CardOperand):
            yield slice(0, len(Z)), Z
            return
        # Beside the rows there is a copy in the frame that distances need.
        for part in parts(Z.shape[0], 2 * _row_bytes(Z), max(1, room // RIGHT_PART)):
            yield part, CardOperand(self.card, Z[part])

    def _strips(
        self, kernel: Kernel, X: Any, width: int, room: int
    ) -> Iterator[tuple[slice, CardOperand]]:
        """Yield samples in strips whose kernel values, ``width`` a row, have room."""
        n_leaves = sum(1 for _ in kernel.leaves())
        per_row = 8 * width * (1 + 2 * n_leaves)
        is_there = isinstance(X, CardOperand)
        if not is_there:
            per_row += 2 * _row_bytes(X)
        most = max(1, min(TILE_BYTES, room // TILE_PART))
        n = len(X) if is_there else X.shape[0]
        for part in parts(n, per_row, most):
            yield part, X.rows(part) if is_there else CardOperand(self.card, X[part])

    def expand(
        self, expansion: Expansion, X: Any, budget: int | None = None
    ) -> NDArray[np.float64]:
        vectors = self._on_card(expansion, budget)
        return self.apply(expansion.kernel, X, vectors, expansion.weights, budget)

    def _on_card(self, expansion: Expansion, budget: int | None) -> Any:
        """Return support vectors, which stay on the card for the next prediction."""
        known = _ON_CARDS.setdefault(expansion, {})
        if self.card not in known:
            X = expansion.vectors.X
            if not _has_room(X, self.memory() if budget is None else budget):
                return X  # they come in parts
            known[self.card] = CardOperand(self.card, X)
        return known[self.card]

    def solve(
        self, plan: Plan, settings: Settings, progress: Progress | None = None
    ) -> Certified:
        with self.card.at_work(settings.cache_size):
            return solve_plan(plan, settings, self.card, progress, self.stop)

    def refine(
        self,
        parts: Sequence[dict[str, NDArray]],
        kernel: Kernel,
        vectors: Any,
        support: NDArray,
        budget: int | None = None,
    ) -> list[tuple[float, float]]:
        def products(
            kernels: Sequence[Kernel], data: Operand, tasks: Sequence[Task], *_: Any
        ) -> list[tuple[NDArray, NDArray]]:
            X = data.X.astype(np.float64, copy=False)
            columns = [(task.problem.row, task.beta) for task in tasks]
            V = coefficient_matrix(X.shape[0], columns)
            (only,) = kernels
            K_beta = self.apply(only, X, X, Weights(V, [0, X.shape[0]]), budget)
            used = [np.unique(task.problem.row[task.beta != 0]) for task in tasks]
            return [(rows, K_beta[None, rows, t]) for t, rows in enumerate(used)]

        return refine(parts, kernel, vectors, support, self, budget, products)

    def product(
        self,
        kernel: Kernel,
        X: Any,
        order: NDArray[np.intp] | None,
        cache_size: float | str,
        work: int = 0,
    ) -> Any:
        with self.card.at_work(cache_size):
            operand = CardOperand(self.card, X, order)
            return CardProduct(kernel, operand, self.memory(cache_size))


def _has_room(X: Any, room: int) -> bool:
    """Tell whether samples, and a copy of them, fit on the card as a whole."""
    return 2 * X.shape[0] * _row_bytes(X) <= room // RIGHT_PART


def _mirror(matrix: NDArray) -> None:
    """Copy the values above the diagonal to the places below it."""
    for part in parts(len(matrix), 1, COLUMNS):
        square = np.triu(matrix[part, part])
        matrix[part, part] = square + np.triu(square, 1).T
        matrix[part.stop :, part] = matrix[part, part.stop :].T


def _row_bytes(X: Any) -> int:
    """Return the bytes of a row, dense or sparse, at least."""
    if sparse.issparse(X):
        return 1 + 12 * X.nnz // max(1, X.shape[0])
    return X.shape[1] * X.dtype.itemsize
