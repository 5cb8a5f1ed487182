"""NumPy in the place of a graphics card, as strict as CuPy, or stricter.

The code of `mercer.engines.cuda` is written against `card.xp`. Here that namespace is
NumPy behind a wall: arrays "on the card" are of a class of their own, which NumPy
cannot read and which does not mix with NumPy arrays. Functions that CuPy lacks are
refused where CuPy is installed. Memory is counted, so that tests can have a small card.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
import re
import weakref
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from mercer.engines.cuda.card import Card, check_arguments

# Names of functions whose arguments may be host arrays: they copy to the card.
COPYING = {"asarray", "array", "ascontiguousarray"}

try:  # it can be imported without a card
    CUPY = importlib.import_module("cupy")
except ImportError:
    CUPY = None

USED: set[str] = set()  #: names of `xp` that any code has asked for


class NoRoom(MemoryError):
    """The stand-in for CuPy's OutOfMemoryError."""


class Ledger:
    """The bytes of arrays on the card, and the most there have been."""

    def __init__(self, limit: int | None):
        self.limit = limit
        self.used = 0
        self.peak = 0
        self._known: dict[int, int] = {}

    def note(self, array: np.ndarray) -> None:
        while isinstance(array.base, np.ndarray):
            array = array.base
        key = id(array)
        if key in self._known:
            return
        if self.limit is not None and self.used + array.nbytes > self.limit:
            raise NoRoom(f"{array.nbytes} bytes were asked for.")
        self._known[key] = array.nbytes
        self.used += array.nbytes
        self.peak = max(self.peak, self.used)
        weakref.finalize(array, self._forget, key)

    def _forget(self, key: int) -> None:
        self.used -= self._known.pop(key)


class CardArray:
    """An array on the card: NumPy must not read it, and iteration is refused."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: np.ndarray, card: HostCard):
        self._values = values
        self._card = card
        card.ledger.note(values)

    def __array__(self, *args: Any, **options: Any) -> np.ndarray:
        raise TypeError("Implicit conversion of an array on the card to NumPy.")

    def __iter__(self) -> Any:
        raise TypeError("Iteration over an array on the card.")

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in ARRAY_NAMES:
            raise AttributeError(
                f"Arrays of CuPy have no {name!r} that is in use here."
            )
        found = getattr(self._values, name)
        if callable(found):
            return self._card.wrap_function(name, found, of_arrays=True)
        return self._card.wrap(found)

    def __getitem__(self, key: Any) -> Any:
        return self._card.wrap(self._values[self._card.unwrap(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._values[self._card.unwrap(key)] = self._card.unwrap(value)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __float__(self) -> float:
        return float(self._values)

    def __int__(self) -> int:
        return int(self._values)

    def __repr__(self) -> str:
        return f"CardArray({self._values!r})"


# What CuPy's arrays have, of what NumPy's arrays have.
ARRAY_NAMES = set(
    "T all any argmax argmin argsort astype copy cumsum diagonal dot dtype fill flags "
    "flatten itemsize max mean min nbytes ndim nonzero prod ravel repeat reshape shape "
    "size sort squeeze std strides sum take trace transpose var view".split()
)


def _binary(function: Callable) -> Callable:
    def forward(self: CardArray, other: Any) -> Any:
        if sparse.issparse(other):
            return NotImplemented
        return self._card.wrap(function(self._values, self._card.unwrap(other)))

    return forward


def _reflected(function: Callable) -> Callable:
    def backward(self: CardArray, other: Any) -> Any:
        return self._card.wrap(function(self._card.unwrap(other), self._values))

    return backward


for _name in (
    "add sub mul truediv floordiv mod pow matmul and_ or_ xor lt le gt ge eq ne"
).split():
    _function = getattr(operator, _name)
    _stem = _name.rstrip("_")
    setattr(CardArray, f"__{_stem}__", _binary(_function))
    if _stem not in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(CardArray, f"__r{_stem}__", _reflected(_function))


def _unary(function: Callable) -> Callable:
    return lambda self: self._card.wrap(function(self._values))


def _in_place(function: Callable) -> Callable:
    def change(self: CardArray, other: Any) -> CardArray:
        function(self._values, self._card.unwrap(other))
        return self

    return change


for _name in ("neg", "abs", "invert", "pos"):
    setattr(CardArray, f"__{_name}__", _unary(getattr(operator, _name)))
for _name in ("iadd", "isub", "imul", "itruediv", "iand", "ior"):
    setattr(CardArray, f"__{_name}__", _in_place(getattr(operator, _name)))


class CardMatrix:
    """A CSR matrix on the card, with the few things that CuPy's has and we use."""

    def __init__(self, matrix: sparse.csr_matrix, card: HostCard):
        self._matrix = matrix
        self._card = card
        for part in (matrix.data, matrix.indices, matrix.indptr):
            card.ledger.note(part)

    shape = property(lambda self: self._matrix.shape)
    dtype = property(lambda self: self._matrix.dtype)
    nnz = property(lambda self: self._matrix.nnz)
    T = property(lambda self: CardMatrix(self._matrix.T, self._card))

    def _array(self, part: np.ndarray) -> CardArray:
        return CardArray(part, self._card)

    data = property(lambda self: self._array(self._matrix.data))
    indices = property(lambda self: self._array(self._matrix.indices))
    indptr = property(lambda self: self._array(self._matrix.indptr))

    def __array__(self, *args: Any, **options: Any) -> np.ndarray:
        raise TypeError("Implicit conversion of a matrix on the card to NumPy.")

    def __getitem__(self, key: Any) -> CardMatrix:
        return CardMatrix(self._matrix[self._card.unwrap(key)], self._card)

    def __matmul__(self, other: Any) -> Any:
        inner = (
            other._matrix if isinstance(other, CardMatrix) else self._card.unwrap(other)
        )
        found = self._matrix @ inner
        if sparse.issparse(found):
            return CardMatrix(sparse.csr_matrix(found), self._card)
        return self._card.wrap(found)

    def astype(self, dtype: Any) -> CardMatrix:
        return CardMatrix(self._matrix.astype(dtype), self._card)

    def toarray(self) -> CardArray:
        return CardArray(self._matrix.toarray(), self._card)

    def tocsr(self) -> CardMatrix:
        return CardMatrix(self._matrix.tocsr(), self._card)

    def get(self) -> sparse.csr_matrix:
        return self._matrix


class HostCard(Card):
    """NumPy in the place of a card, for tests.

    Parameters
    ----------
    limit : int, default=None
        Bytes of memory that the card has.
    twins : dict, default=None
        What each compiled function does, in NumPy: ``twin(grid, block, *arguments)``.
    """

    name = "The stand-in for a card"
    out_of_memory = NoRoom

    def __init__(
        self, limit: int | None = None, twins: Mapping[str, Callable] | None = None
    ):
        self.ledger = Ledger(limit)
        self._twins = dict(twins or {})
        self.launches: list[str] = []
        self.xp = _Namespace(self)
        self.sparse = SimpleNamespace(
            issparse=lambda X: isinstance(X, CardMatrix),
            csr_matrix=lambda X: CardMatrix(sparse.csr_matrix(X), self),
        )

    def wrap(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return CardArray(value, self)
        if isinstance(value, np.generic):  # CuPy's reductions are arrays
            return CardArray(np.asarray(value), self)
        if isinstance(value, tuple | list):
            return type(value)(self.wrap(part) for part in value)
        return value

    def unwrap(self, value: Any, copying: bool = False) -> Any:
        if isinstance(value, CardArray):
            return value._values
        if isinstance(value, CardMatrix) or sparse.issparse(value):
            raise TypeError("A sparse matrix where an array is needed.")
        if isinstance(value, np.ndarray) and not copying:
            raise TypeError("An array of the host meets an array on the card.")
        if isinstance(value, tuple):
            return tuple(self.unwrap(part, copying) for part in value)
        if isinstance(value, list):
            return [self.unwrap(part, copying) for part in value]
        return value

    def wrap_function(
        self, name: str, function: Callable, of_arrays: bool = False
    ) -> Callable:
        signature = signature_of(name, of_arrays)

        @functools.wraps(function)
        def wrapped(*args: Any, **options: Any) -> Any:
            copying = name in COPYING
            if signature is not None:
                try:
                    signature.bind(*args, **options)
                except TypeError as error:
                    raise TypeError(f"CuPy's {name}: {error}") from None
            args = tuple(self.unwrap(value, copying) for value in args)
            out = options.get("out")
            options = {k: self.unwrap(v, copying) for k, v in options.items()}
            found = function(*args, **options)
            if isinstance(out, CardArray):
                return out
            # CuPy has no views of host memory.
            if copying and not any(isinstance(v, CardArray) for v in args):
                if isinstance(found, np.ndarray):
                    found = found.copy()
            return self.wrap(found)

        return wrapped

    def to_card(self, array: Any) -> Any:
        if self.is_here(array):
            return array
        if sparse.issparse(array):
            return CardMatrix(sparse.csr_matrix(array).copy(), self)
        return CardArray(np.array(array, order="C"), self)

    def to_host(self, array: Any) -> Any:
        if isinstance(array, CardMatrix):
            return array._matrix.copy()
        return array._values.copy() if isinstance(array, CardArray) else array

    def is_here(self, array: Any) -> bool:
        return isinstance(array, CardArray | CardMatrix)

    def function(self, name: str) -> Callable:
        twin = self._twins[name]

        def launch(grid: tuple, block: tuple, arguments: tuple) -> None:
            check_arguments(self, name, arguments)
            self.launches.append(name)
            twin(grid, block, *map(self.unwrap, arguments))

        return launch

    def held_memory(self) -> int:
        return self.ledger.peak

    def release_memory(self) -> None:
        self.ledger.peak = self.ledger.used

    def free_memory(self) -> int:
        limit = self.ledger.limit
        return 2 * 2**30 if limit is None else limit - self.ledger.used


@functools.cache
def signature_of(name: str, of_arrays: bool) -> inspect.Signature | None:
    """Return what CuPy's function, or method of arrays, takes; None if not known."""
    if CUPY is None:
        return None
    found = getattr(CUPY.ndarray if of_arrays else CUPY, name)
    if type(found).__name__ == "ufunc":
        return None
    try:
        return inspect.signature(found)
    except (TypeError, ValueError):
        # Compiled methods have their signature in the first line, with types of C.
        text = re.match(r"\w+\.\w+\(self,? ?(.*?)\)(?: ->|\n|$)", found.__doc__ or "")
    if text is None:
        return None
    names = re.sub(r"\w+ (?=\w)", "", text[1])
    return inspect.signature(eval(f"lambda {names}: None"))


class _Namespace:
    """NumPy's functions for arrays on the card."""

    def __init__(self, card: HostCard):
        self._card = card
        self.ndarray = CardArray

    def __getattr__(self, name: str) -> Any:
        USED.add(name)
        found = getattr(np, name)
        if isinstance(found, type) or not callable(found):
            return found  # dtypes and numbers
        if CUPY is not None and not hasattr(CUPY, name):
            raise AttributeError(f"CuPy has no {name!r}.")
        return self._card.wrap_function(name, found)
