"""Kernels that the user brings: a matrix, or a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.kernels.base import Kernel
from mercer.kernels.operand import Operand, Pair

__all__ = ["Custom", "Precomputed"]


class Precomputed(Kernel):
    """The data are the kernel matrix itself.

    It cannot be a part of a larger expression: combine the matrices instead.
    """

    def bind(self, X: Any) -> Kernel:
        return self

    def evaluate(self, pair: Pair) -> NDArray:
        raise ValueError(
            "A precomputed kernel has no formula to evaluate: it cannot be combined "
            "with other kernels. Combine the matrices and pass the result."
        )

    def diagonal(self, operand: Operand) -> NDArray:
        return np.asarray(operand.X.diagonal(), dtype=np.float64)


class Custom(Kernel):
    """A function of two matrices, ``function(X, Z)`` -> (m, n).

    It is called with blocks of rows, so it must treat pairs of rows one by one: no
    centring or scaling by what else is in the block.
    """

    def __init__(self, function: Callable[[Any, Any], Any]):
        self.function = function

    def bind(self, X: Any) -> Kernel:
        if not callable(self.function):
            raise TypeError(
                f"Custom takes a function of two matrices, got {self.function!r}."
            )
        return self

    def evaluate(self, pair: Pair) -> NDArray:
        values = self.function(pair.left.X, pair.right.X)
        if sparse.issparse(values):
            values = values.toarray()
        dtype = pair.dtype if pair.dtype == np.float32 else np.float64  # of any samples
        values = np.array(values, dtype=dtype, order="C")
        expected = (len(pair.left), len(pair.right))
        if values.shape != expected:
            raise ValueError(
                f"The kernel function returned shape {values.shape} for "
                f"{expected[0]} x {expected[1]} rows; it must return {expected}."
            )
        if not np.isfinite(values).all():
            raise ValueError("The kernel function returned NaN or infinity.")
        return values

    def diagonal(self, operand: Operand) -> NDArray:
        def blocks() -> Iterator[NDArray]:
            for first in range(0, len(operand), 128):
                part = operand.rows(slice(first, first + 128))
                yield np.diagonal(self.evaluate(Pair(part, part)))

        return np.concatenate([np.empty(0), *blocks()]).astype(np.float64)
