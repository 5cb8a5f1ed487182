"""Products of a Gram matrix on a card with a few vectors, within the memory budget."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engines.cuda.operand import CardOperand
from mercer.engines.cuda.pair import kernel_block, kernel_diagonal, parts, whole_gram
from mercer.kernels.base import Kernel

__all__ = ["CardProduct"]

# Number of columns whose products are summed in the precision of the data, before
# double precision takes over.
COLUMNS = 4096
# Bytes of a strip of rows that is computed at once.
STRIP_BYTES = 256 * 2**20


class CardProduct:
    """A symmetric Gram matrix on a card that multiplies vectors.

    It has the meaning of :class:`mercer.engines.cpu.products.GramProduct`. The whole
    matrix stays on the card if it fits into the budget; if not, as many strips of rows
    as fit, and the others are computed again for every product.

    Parameters
    ----------
    kernel : Kernel
        Bound to data.
    operand : CardOperand
    budget : int
        Bytes of the card for kernel values and scratch memory.
    """

    def __init__(self, kernel: Kernel, operand: CardOperand, budget: int):
        self.dtype = operand.dtype
        self.n = len(operand)
        self.diag = kernel_diagonal(kernel, operand)
        self._kernel = kernel
        self._operand = operand
        self._card = operand.card
        n_leaves = sum(1 for _ in kernel.leaves())
        row = self.n * self.dtype.itemsize
        scratch = min(STRIP_BYTES, budget // 4)
        self._strips = list(parts(self.n, 8 * self.n * (1 + 2 * n_leaves), scratch))
        self._kept: list[Any] = []
        room = budget - 2 * scratch
        if self.n * row <= room:
            self._kept = [whole_gram(kernel, operand, scratch // 2)]
            self._strips = [slice(0, self.n)]
            return
        for rows in self._strips:
            room -= (rows.stop - rows.start) * row
            if room < 0:
                break
            self._kept.append(self._computed(rows))

    @property
    def is_whole(self) -> bool:
        """Whether all values are on the card."""
        return len(self._kept) == len(self._strips)

    def _computed(self, rows: slice) -> Any:
        """Return the values of some rows."""
        values = kernel_block(self._kernel, self._operand.rows(rows), self._operand)
        numbers = self._card.xp.arange(rows.start, rows.stop)
        diagonal = self._card.to_card(self.diag[rows].astype(self.dtype))
        values[numbers - rows.start, numbers] = diagonal
        return values

    def _strip(self, k: int) -> Any:
        return self._kept[k] if k < len(self._kept) else self._computed(self._strips[k])

    @cached_property
    def sums(self) -> NDArray:
        """The sum of each row, in double precision."""
        return self.times(np.ones((self.n, 1))).ravel()

    def times(self, V: NDArray) -> NDArray:
        """Return ``K @ V``, shape (n, p), in double precision."""
        with self._card.at_work():
            there = self._card.to_card(np.ascontiguousarray(V, dtype=self.dtype))
            result = np.empty(V.shape)
            for k, rows in enumerate(self._strips):
                values = self._strip(k)
                shape = (rows.stop - rows.start, V.shape[1])
                total = self._card.xp.zeros(shape)
                for columns in parts(self.n, 1, COLUMNS):
                    total += values[:, columns] @ there[columns]
                result[rows] = self._card.to_host(total)
            return result

    def columns(self, index: NDArray) -> NDArray:
        """Return some columns, shape (n, m), in the precision of the data."""
        index = np.asarray(index, dtype=np.intp)
        with self._card.at_work():
            left = self._operand.rows(index)
            found = self._card.to_host(kernel_block(self._kernel, left, self._operand))
        found = np.ascontiguousarray(found.T)
        found[index, np.arange(len(index))] = self.diag[index]
        return found

    def whole(self) -> NDArray:
        """Return the whole matrix, in the precision of the data."""
        matrix = np.empty((self.n, self.n), dtype=self.dtype)
        with self._card.at_work():
            for k, rows in enumerate(self._strips):
                matrix[rows] = self._card.to_host(self._strip(k))
        upper = np.triu(matrix)
        return upper + np.triu(upper, 1).T
