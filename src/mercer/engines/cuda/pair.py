"""What kernels ask of a block on a card, and the blocks themselves.

A :class:`CardPair` answers the verbs of :class:`mercer.kernels.pair.Pair` with matrix
products of the card and the functions of ``sources.py``. Kernels, those of users too,
are the same on all devices.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engines.cuda.operand import DIFFERENCES, CardFrame, CardOperand
from mercer.engines.cuda.sources import grid_of, typed
from mercer.kernels.base import Kernel
from mercer.kernels.pair import Pair

__all__ = ["CardPair", "kernel_block", "kernel_diagonal", "parts", "whole_gram"]

# Bytes of sparse rows that are made dense at once, for a product with sparse rows.
DENSE_BYTES = 64 * 2**20
# Bytes of a part of a whole matrix that is computed at once.
PART_BYTES = 256 * 2**20


class CardPair(Pair):
    """Two operands on a card, and the intermediate results of their block.

    Parameters
    ----------
    left, right : CardOperand
    shared : bool, default=True
        Whether several kernels may ask for the same values; if not, values are changed
        in place, and the pair serves one evaluation.
    """

    left: CardOperand
    right: CardOperand

    def __init__(self, left: CardOperand, right: CardOperand, *, shared: bool = True):
        super().__init__(left, right)
        self.card = right.card
        self.xp = right.card.xp
        self._shared = shared
        #: the last result of a function; nobody else has asked for it
        self._free: Any = None

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        known = super().once(key, make)
        self._free = None
        return known

    def _restricted(self, columns: Any) -> CardPair:
        left, right = self.left.columns(columns), self.right.columns(columns)
        return CardPair(left, right, shared=self._shared)

    def from_host(self, values: NDArray) -> Any:
        return self.card.to_card(values)

    def _target(self, values: Any) -> Any:
        """Return where to write a function of ``values``: over them, or elsewhere."""
        if self._shared and values is not self._free:
            return self.xp.empty(values.shape, dtype=values.dtype)
        return values

    def own(self, values: Any) -> Any:
        if self._shared and values is not self._free:
            return values.copy()
        return values

    def elementwise(self, function: Callable, *values: Any) -> Any:
        self._free = function(*values, out=self._target(values[0]))
        return self._free

    def power(
        self, values: Any, exponent: int, scale: float = 1.0, shift: float = 0.0
    ) -> Any:
        base = self.own(values)
        base *= values.dtype.type(scale)
        base += values.dtype.type(shift)
        self._free = self._whole_power(base, exponent)
        return self._free

    def _whole_power(self, base: Any, exponent: int) -> Any:
        """Return a power by squaring, which keeps signs and takes few roundings."""
        if exponent == 0:
            base.fill(1)
            return base
        result = None
        while True:
            if exponent % 2 and result is None:
                result = base.copy() if exponent > 1 else base
            elif exponent % 2:
                result *= base
            exponent //= 2
            if not exponent:
                return result
            base *= base

    def exponential(self, values: Any, gamma: float) -> Any:
        found = self.own(values)
        found *= found.dtype.type(-gamma)
        self.xp.exp(found, out=found)
        return self._in_dtype(found)

    def gaussian(self, gamma: float) -> Any:
        frame = self.right.frame(gamma, self.dtype)
        if self._shared or frame is DIFFERENCES:
            return self.exponential(self.squared_distances(gamma), gamma)
        values, left, right = self._framed_dots(frame)
        arguments = (values, left, right, np.float64(gamma))
        self._launch("gaussian_in_place", values, arguments)
        return self._in_dtype(values)

    def _in_dtype(self, values: Any) -> Any:
        return values if values.dtype == self.dtype else values.astype(self.dtype)

    def dots(self) -> Any:
        return self.once(
            "dots", lambda: self._product(self.left.X, self.right.X, self.dtype)
        )

    def squared_distances(self, gamma: float = 1.0) -> Any:
        frame = self.right.frame(gamma, self.dtype)

        def make() -> Any:
            if frame is DIFFERENCES:
                return self._sums_over_columns("squared_differences", frame.dtype)
            values, left, right = self._framed_dots(frame)
            values *= values.dtype.type(-2)
            values += left[:, None]
            values += right
            return self.xp.maximum(values, values.dtype.type(0), out=values)

        return self.once(("squared distances", frame), make)

    def manhattan(self) -> Any:
        return self._of_columns("manhattan")

    def minima(self) -> Any:
        return self._of_columns("minima")

    def chi2(self) -> Any:
        return self._of_columns("chi2")

    def _of_columns(self, name: str) -> Any:
        return self.once(name, lambda: self._sums_over_columns(name, self.dtype))

    def _product(self, X: Any, Z: Any, dtype: np.dtype) -> Any:
        """Return ``X @ Z.T``, dense; sparse rows of X are made dense in parts."""
        X, Z = (side if side.dtype == dtype else side.astype(dtype) for side in (X, Z))
        is_sparse = self.card.sparse.issparse
        if not is_sparse(Z):
            return X @ Z.T
        found = self.xp.empty((X.shape[0], Z.shape[0]), dtype=dtype)
        for part in parts(X.shape[0], X.shape[1] * dtype.itemsize, DENSE_BYTES):
            rows = X[part]
            rows = rows.toarray() if is_sparse(rows) else rows
            found[part] = (Z @ rows.T).T
        return found

    def _framed_dots(self, frame: CardFrame) -> tuple[Any, Any, Any]:
        """Return products in a frame, and the squared norms of both sides in it."""
        x, z = self.left.framed(frame), self.right.framed(frame)
        dtype = np.result_type(x.matrix.dtype, z.matrix.dtype)
        values = self._product(x.matrix, z.matrix, dtype)
        return values, x.norms.astype(dtype), z.norms.astype(dtype)

    def _sums_over_columns(self, name: str, dtype: np.dtype) -> Any:
        """Return sums over the columns of functions of two values."""
        X, Z = (self._densely(side, dtype) for side in (self.left, self.right))
        out = self.xp.empty((len(self.left), len(self.right)), dtype=dtype)
        self._launch(name, out, (X, Z, out), np.int32(X.shape[1]))
        return out

    def _densely(self, side: CardOperand, dtype: np.dtype) -> Any:
        X = side.X.toarray() if side.is_sparse else side.X
        return self.xp.ascontiguousarray(X, dtype=dtype)

    def _launch(self, stem: str, block: Any, before: tuple, *after: Any) -> None:
        """Call a compiled function for all values of a block."""
        m, n = block.shape
        if m and n:
            function = self.card.function(typed(stem, block.dtype))
            function(*grid_of(stem, m, n), (*before, np.int32(m), np.int32(n), *after))


def parts(n_rows: int, row_bytes: int, budget: int) -> Iterator[slice]:
    """Yield slices of rows that take at most so many bytes together."""
    step = max(1, budget // max(1, row_bytes))
    for first in range(0, n_rows, step):
        yield slice(first, min(n_rows, first + step))


def kernel_block(kernel: Kernel, left: CardOperand, right: CardOperand) -> Any:
    """Return the values of a bound kernel on the card; the array is the caller's."""
    shared = sum(1 for _ in kernel.leaves()) > 1
    pair = CardPair(left, right, shared=shared)
    found = kernel.evaluate(pair)
    return found if found.dtype == pair.dtype else found.astype(pair.dtype)


def kernel_diagonal(kernel: Kernel, operand: CardOperand) -> NDArray[np.float64]:
    """Return ``k(x, x)`` of each row, in double precision, in the main memory.

    Diagonals are derived with NumPy from rows in the main memory: they are one number
    for each row.
    """
    return np.asarray(kernel.diagonal(operand.host), dtype=np.float64)


def whole_gram(
    kernel: Kernel, operand: CardOperand, part_bytes: int | None = None
) -> Any:
    """Return all values of the samples of an operand on the card, exactly symmetric.

    Strips of rows are computed of so many bytes at once.
    """
    part_bytes = PART_BYTES if part_bytes is None else part_bytes
    xp, n = operand.card.xp, len(operand)
    dtype = operand.dtype
    K = xp.empty((n, n), dtype=dtype)
    for part in parts(n, n * dtype.itemsize, part_bytes):
        rows, rest = operand.rows(part), operand.rows(slice(part.start, n))
        values = kernel_block(kernel, rows, rest)
        K[part, part.start :] = values
        width = part.stop - part.start
        # Values below the diagonal are those above it, in the square on it too.
        square = xp.triu(values[:, :width])
        K[part, part] = square + xp.triu(square, 1).T
        K[part.stop :, part] = values[:, width:].T
    diagonal = operand.card.to_card(kernel_diagonal(kernel, operand).astype(dtype))
    numbers = xp.arange(n)
    K[numbers, numbers] = diagonal
    return K
