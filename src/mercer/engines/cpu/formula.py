"""The formula of a kernel, for compiled code that computes tiles without Python.

A kernel asks its pair for products, distances and functions of them.  The pair of this
module computes nothing: it notes what is asked for.  Kernels that come with Mercer ask
the same of every tile, so that the notes, as a list of operations on a few registers,
say what any tile is.  A kernel that a user has written may do anything with what it is
given, and is asked tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.formula_tiles import (
    ADD,
    AFFINE,
    CHI2,
    COLUMN_FACTORS,
    DISTANCES,
    EXPONENTIAL,
    FRAMED_PRODUCTS,
    GAUSSIAN,
    MANHATTAN,
    MINIMA,
    MULTIPLY,
    POWER,
    PRODUCTS,
    ROW_FACTORS,
    TANH,
    Formula,
)
from mercer.engines.cpu.pair import Frame, Operand
from mercer.kernels.base import (
    Kernel,
    Normalized,
    OnColumns,
    Power,
    Product,
    Scaled,
    Sum,
)
from mercer.kernels.dot import Cosine, Linear, Polynomial, Sigmoid
from mercer.kernels.histogram import AdditiveChi2, Chi2, Intersection
from mercer.kernels.pair import Pair
from mercer.kernels.radial import RBF, Laplacian

__all__ = ["Notes", "noted"]

#: kernels that ask the same of every tile; subclasses may not
KNOWN = {
    RBF, AdditiveChi2, Chi2, Cosine, Intersection, Laplacian, Linear, Normalized,
    Polynomial, Power, Product, Scaled, Sigmoid, Sum,
}  # fmt: skip
# Formulas that need more tiles at once are left to Python: tiles would be too small.
MOST_REGISTERS = 4
#: operations whose whole number is another register
JOINING = (ADD, MULTIPLY)
SUMS_OVER_FEATURES = (MANHATTAN, MINIMA, CHI2)


class NotNoted(Exception):
    """What a kernel has asked for is not among the operations of a formula."""


class Value:
    """A tile that is not computed: the operation that leaves it, and its operands."""

    def __init__(
        self, dtype: np.dtype, code: int, *of: Value, x=0.0, y=0.0, number=0
    ) -> None:
        self.dtype = dtype
        self.code = code
        self.of = of
        self.numbers = float(x), float(y)
        self.number = int(number)


class Notes(Pair):
    """A pair that notes what kernels ask for."""

    left: Operand
    right: Operand

    def __init__(self, left: Operand, right: Operand):
        super().__init__(left, right)
        self.frame: Frame | None = None  #: of all products that are in a frame
        self.needs_plain = False  #: whether rows are needed as they are
        self.row_factors: list[NDArray] = []
        self.column_factors: list[NDArray] = []

    def _value(self, code: int, *of: Value, **numbers: Any) -> Any:
        return Value(self.dtype, code, *of, **numbers)

    def _affine(self, code: int, of: Value, scale: float, shift: float) -> Any:
        """Note a function of ``scale * of + shift``, where ``of`` may be such a one."""
        if of.code == AFFINE:
            before, then = of.numbers
            (of,), scale, shift = of.of, scale * before, scale * then + shift
        return self._value(code, of, x=scale, y=shift)

    def _restricted(self, columns: Any) -> Pair:
        raise NotNoted("a part of the columns")

    def own(self, values: Any) -> Any:
        return values

    def elementwise(self, function: Callable, *values: Any) -> Any:
        first, *others = values
        if function is np.tanh:
            return self._affine(TANH, first, 1.0, 0.0)
        if function is np.negative:
            return self._affine(AFFINE, first, -1.0, 0.0)
        if function not in (np.add, np.multiply):
            raise NotNoted(str(function))
        (other,) = others
        adds = function is np.add
        if isinstance(other, Value):
            return self._value(ADD if adds else MULTIPLY, first, other)
        if np.ndim(other) == 0:
            scale, shift = (1.0, other) if adds else (other, 0.0)
            return self._affine(AFFINE, first, scale, shift)
        if adds:
            raise NotNoted("a sum with a vector")
        if np.ndim(other) == 2:
            self.row_factors.append(other[:, 0])
            return self._value(ROW_FACTORS, first, number=len(self.row_factors) - 1)
        self.column_factors.append(other)
        return self._value(COLUMN_FACTORS, first, number=len(self.column_factors) - 1)

    def power(
        self, values: Any, exponent: int, scale: float = 1.0, shift: float = 0.0
    ) -> Any:
        return self._value(POWER, values, x=scale, y=shift, number=exponent)

    def exponential(self, values: Any, gamma: float) -> Any:
        return self._value(EXPONENTIAL, values, x=gamma)

    def gaussian(self, gamma: float) -> Any:
        return self._value(GAUSSIAN, self._framed(gamma), x=gamma)

    def squared_distances(self, gamma: float = 1.0) -> Any:
        return self._value(DISTANCES, self._framed(gamma))

    def dots(self) -> Any:
        frame = self.right.frame_of_zeros(self.dtype)
        return self._plain(PRODUCTS) if frame is None else self._products_in(frame)

    def _framed(self, gamma: float) -> Value:
        return self._products_in(self.right.frame(gamma, self.dtype))

    def _products_in(self, frame: Frame) -> Value:
        """Note products in a frame; there may be one frame only."""
        is_usable = (
            frame.active is not None
            and len(frame.active)
            and frame.dtype == self.dtype
            and self.frame in (None, frame)
        )
        if not is_usable:
            raise NotNoted("several frames, or one of another precision")
        self.frame = frame
        return self.once("framed products", lambda: self._value(FRAMED_PRODUCTS))

    def _plain(self, code: int) -> Any:
        self.needs_plain = True
        return self.once(code, lambda: self._value(code))

    def manhattan(self) -> Any:
        return self._plain(MANHATTAN)

    def minima(self) -> Any:
        return self._plain(MINIMA)

    def chi2(self) -> Any:
        return self._plain(CHI2)


def noted(
    kernel: Kernel, left: Operand, right: Operand
) -> tuple[Formula, Notes, bool] | None:
    """Return the formula of a kernel, what it needs, and if it sums over features.

    Return None where compiled code cannot compute the values alone.
    """
    # A kernel that looks at some columns only is another kernel's, on other samples.
    while type(kernel) is OnColumns and not _is_sparse(left, right):
        left, right = left.columns(kernel.columns), right.columns(kernel.columns)
        kernel = kernel.kernel
    is_known = all(type(part) in KNOWN for part in _parts(kernel))
    if not is_known or left.dtype != right.dtype or _is_sparse(left, right):
        return None
    notes = Notes(left, right)
    try:
        value = kernel.evaluate(notes)
        formula = _formula(value)  # type: ignore[arg-type]
    except NotNoted:
        return None
    sums = bool(np.isin(formula.operations[:, 0], SUMS_OVER_FEATURES).any())
    return formula, notes, sums


def _is_sparse(*sides: Operand) -> bool:
    return any(sparse.issparse(side.stored()[0]) for side in sides)


def _parts(kernel: Kernel) -> Iterator[Kernel]:
    yield kernel
    for part in kernel.children():
        yield from _parts(part)


def _formula(value: Value) -> Formula:
    """Return operations that leave a value, in registers that are used again."""
    steps = list(_in_order(value, set()))
    # A value that is needed later must not be written over.
    left_to_use = {id(value): 1}
    for step in steps:
        for operand in step.of:
            left_to_use[id(operand)] = left_to_use.get(id(operand), 0) + 1
    free = list(reversed(range(MOST_REGISTERS)))
    place: dict[int, int] = {}
    operations, numbers = [], []
    for step in steps:
        sources = [place[id(operand)] for operand in step.of]
        for operand in step.of:
            left_to_use[id(operand)] -= 1
        if step.of and not left_to_use[id(step.of[0])]:
            target = sources[0]
        elif free:
            target = free.pop()
        else:
            raise NotNoted("too many registers")
        for operand, source in zip(step.of[1:], sources[1:], strict=True):
            if not left_to_use[id(operand)] and operand is not step.of[0]:
                free.append(source)
        place[id(step)] = target
        number = sources[1] if step.code in JOINING else step.number
        operations.append((step.code, target, sources[0] if sources else 0, number))
        numbers.append(step.numbers)
    n_registers = 1 + max(target for _, target, _, _ in operations)
    return Formula(np.array(operations), np.array(numbers), n_registers)


def _in_order(value: Value, seen: set[int]) -> Iterator[Value]:
    """Yield a value after all that it is computed from."""
    if id(value) in seen:
        return
    seen.add(id(value))
    for operand in value.of:
        yield from _in_order(operand, seen)
    yield value
