"""Kernel values on a card, for solvers: computed from samples, or given as a matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.engines.cpu.certificates import errors_on, sampled_products
from mercer.engines.cpu.decompose import Task
from mercer.engines.cuda.card import Card
from mercer.engines.cuda.operand import CardOperand
from mercer.engines.cuda.pair import kernel_block, kernel_diagonal, parts, whole_gram
from mercer.kernels.base import Kernel

__all__ = ["CardFit", "GivenValues", "SampleValues", "Values", "stretches"]

# Bytes of kernel values in double precision that certificates compute at once, at most.
CERTIFIED_BYTES = 256 * 2**20
# Copies of the samples that a card has at the same time: the rows as they came, in
# their order, and in the coordinates in which distances are computed.
COPIES = 3
# Samples that would take more than this part of the free memory come in parts, and a
# part takes at most so much of it.
LARGEST_SHARE = 0.5
SHARE_OF_A_PART = 0.05


class Values(Protocol):
    """The kernel values of some samples with each other."""

    card: Card
    dtype: np.dtype
    diag: NDArray[np.float64]  #: in the main memory
    is_given: bool  #: whether there is nothing more precise than these values

    def __len__(self) -> int: ...

    def whole(self, part_bytes: int) -> Any:
        """Return the whole matrix on the card, computed in parts of so many bytes."""
        ...

    def block(self, rows: NDArray, columns: Sequence[slice]) -> Any:
        """Return the values of some rows with stretches of columns."""
        ...


class CardFit(NamedTuple):
    """What the solvers of a card are given of a fit."""

    values: Values
    tasks: list[Task]
    max_iter: int  #: most steps of each task
    stop: NDArray  #: ``stop[0]`` becomes 1 when the work is to end early
    #: called with the tasks whenever they have come further
    progress: Callable[[Sequence[Task]], None] | None = None


def stretches(columns: NDArray) -> list[slice]:
    """Return the stretches of Gram columns of a task, joined where they touch.

    ``columns`` has where each stretch begins and ends, (n_stretches, 2).
    """
    joined: list[slice] = []
    for first, stop in columns.tolist():
        if joined and joined[-1].stop == first:
            joined[-1] = slice(joined[-1].start, stop)
        else:
            joined.append(slice(first, stop))
    return joined


def _offsets(columns: Sequence[slice]) -> list[slice]:
    """Return where stretches lie when they are put side by side."""
    ends = np.cumsum([0, *(part.stop - part.start for part in columns)])
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


class GivenValues:
    """A kernel matrix in the main memory."""

    is_given = True

    def __init__(self, card: Card, matrix: NDArray):
        self.card = card
        self.matrix = matrix
        self.dtype = matrix.dtype
        self.diag = np.array(matrix.diagonal(), dtype=np.float64)

    def __len__(self) -> int:
        return len(self.matrix)

    def whole(self, part_bytes: int) -> Any:
        return self.card.to_card(np.ascontiguousarray(self.matrix))

    def block(self, rows: NDArray, columns: Sequence[slice]) -> Any:
        values = np.concatenate([self.matrix[rows, own] for own in columns], axis=1)
        return self.card.to_card(np.ascontiguousarray(values))


class SampleValues:
    """Values that the card computes from samples.

    If the samples do not fit the card, they are copied to it in parts, each time that
    values are computed.

    Parameters
    ----------
    kernel : Kernel
        Bound to data.
    card : Card
    X : array or CSR matrix
        In the main memory or on the card.
    order : array of int
        The order in which the samples are meant.
    dtype : dtype
        The precision of values; that of the samples or lower.
    """

    is_given = False

    def __init__(self, kernel: Kernel, card: Card, X: Any, order: NDArray, dtype: Any):
        self.kernel, self.card = kernel, card
        self._X, self._order = X, order
        self.dtype = np.dtype(dtype)
        self.diag = kernel_diagonal(kernel, CardOperand(card, X))[order]
        free = card.memory()
        #: the samples on the card; None if they come in parts
        self.operand: CardOperand | None = None
        self._part_bytes = int(SHARE_OF_A_PART * free)
        if card.is_here(X) or COPIES * self._row_bytes() * len(order) <= (
            LARGEST_SHARE * free
        ):
            in_order = bool((np.diff(order) == 1).all())
            exact = CardOperand(card, X, None if in_order else order)
            self.operand = exact.astype(dtype)
            if not kernel.is_custom():
                # The card gets the samples and what the kernel derives from them before
                # its free memory is divided.
                kernel_block(kernel, self.operand.rows(slice(0, 1)), self.operand)

    def _row_bytes(self) -> int:
        """Return the bytes of a sample on the card, of an average one if sparse."""
        n, d = self._X.shape
        if sparse.issparse(self._X):
            return -(-self._X.nnz * (self.dtype.itemsize + 4) // max(1, n)) + 4
        return d * self.dtype.itemsize

    def __len__(self) -> int:
        return len(self._order)

    def whole(self, part_bytes: int) -> Any:
        if self.operand is not None:
            return whole_gram(self.kernel, self.operand, part_bytes)
        n = len(self)
        K = self._in_parts(np.arange(n), [slice(0, n)])
        diagonal = self.card.to_card(self.diag.astype(self.dtype))
        K.reshape(-1)[:: n + 1] = diagonal
        return K

    def block(self, rows: NDArray, columns: Sequence[slice]) -> Any:
        if self.operand is not None and len(columns) == 1:
            right = self.operand.rows(columns[0])
            return kernel_block(self.kernel, self._rows(rows), right)
        return self._in_parts(rows, columns)

    def _in_parts(self, rows: NDArray, columns: Sequence[slice]) -> Any:
        """Return a block that is put together from stretches, and from samples."""
        n = sum(own.stop - own.start for own in columns)
        out = self.card.xp.empty((len(rows), n), dtype=self.dtype)
        row_bytes = 0 if self.operand is not None else COPIES * self._row_bytes()
        for some in parts(len(rows), row_bytes, max(len(rows), self._part_bytes)):
            left = self._rows(rows[some])
            for own, place in zip(columns, _offsets(columns), strict=True):
                for part, right in self._right(own):
                    first = place.start + part.start - own.start
                    target = slice(first, first + part.stop - part.start)
                    out[some, target] = kernel_block(self.kernel, left, right)
        return out

    def _rows(self, rows: NDArray) -> CardOperand:
        """Return some samples, in the precision of the values."""
        if self.operand is not None:
            return self.operand.rows(self.card.to_card(rows))
        X = self._X[self._order[rows]].astype(self.dtype, copy=False)
        return CardOperand(self.card, X)

    def _right(self, columns: slice) -> Iterator[tuple[slice, CardOperand]]:
        """Yield the samples of a stretch, in parts if they do not fit the card."""
        if self.operand is not None:
            yield columns, self.operand.rows(columns)
            return
        n = columns.stop - columns.start
        for part in parts(n, COPIES * self._row_bytes(), self._part_bytes):
            own = slice(columns.start + part.start, columns.start + part.stop)
            yield own, self._rows(np.arange(own.start, own.stop))

    def _in_double(self, rows: NDArray) -> CardOperand:
        """Return some samples in double precision, as exact as they were given."""
        if self.operand is not None and self._X.dtype == self.dtype:
            own = self._rows(rows).X
            return CardOperand(self.card, own.astype(np.float64))
        index = self._order[rows]
        if self.card.is_here(self._X):
            index = self.card.to_card(index)
        return CardOperand(self.card, self._X[index].astype(np.float64))

    def products(
        self, rows: NDArray, used: NDArray, weights: NDArray, budget: int
    ) -> NDArray:
        """Return ``K(rows, used) @ weights``, all of it in double precision."""
        xp, to_card = self.card.xp, self.card.to_card
        total = np.zeros((len(rows), weights.shape[1]))
        budget = min(budget, CERTIFIED_BYTES)
        n_leaves = sum(1 for _ in self.kernel.leaves())
        n_features = self._X.shape[1]
        # A tile of this shape keeps to the budget, with its samples.
        per_value = 8 * (2 + 2 * n_leaves)
        most = budget // (32 * max(1, n_features))
        height = max(16, min(len(rows), most, isqrt(budget // per_value)))
        width = max(16, min(most, budget // (per_value * height)))
        for right in parts(len(used), 1, width):
            other = self._in_double(used[right])
            own_weights = to_card(np.ascontiguousarray(weights[right]))
            for left in parts(len(rows), 1, height):
                values = kernel_block(self.kernel, self._in_double(rows[left]), other)
                total[left] += self.card.to_host(xp.matmul(values, own_weights))
        return total

    def errors(self, tasks: list[Task], budget: int) -> NDArray:
        """Return the largest error of each task's ``f`` on some rows."""
        sample, used, coefficients = sampled_products(tasks, len(self))
        weights = sparse.csr_array(coefficients).toarray()
        return errors_on(tasks, sample, self.products(sample, used, weights, budget))

    def exact(self, task: Task, rows: NDArray, budget: int) -> NDArray:
        """Return ``f`` on some rows of a task, in double precision."""
        by_row = np.bincount(task.problem.row, task.beta, len(task.f))
        used = np.flatnonzero(by_row)
        left, right = task.gram_rows(rows), task.gram_rows(used)
        return self.products(left, right, by_row[used, None], budget)[:, 0]
