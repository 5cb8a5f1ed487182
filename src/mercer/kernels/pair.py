"""The two sides of a kernel block, and what kernels ask of them.

A kernel says what a block is in terms of a :class:`Pair`: inner products, distances and
functions of them.  This module defines what each of these is, with NumPy and SciPy in
double precision.  It is also the quickest way for a few samples.  Engines have pairs of
their own, which compute the same on tiles, with compiled code or on other devices.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import reduce
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

__all__ = [
    "Pair",
    "Samples",
    "as_matrix",
    "columns_key",
    "dense_if_small",
    "squared_norms",
]

# Sparse matrices with at most this many entries, zeros included, are made dense.
SMALL = 2**20
# Stands for a sum of 0 in a denominator.
TINY = np.finfo(np.float64).tiny


class Samples:
    """One side of a block: a matrix of samples, dense in C order or CSR."""

    def __init__(self, X: Any):
        self._X = X
        self._kept: dict[Hashable, Any] = {}

    @property
    def X(self) -> Any:
        """The rows themselves."""
        return self._X

    @property
    def host(self) -> Samples:
        """The same rows in the main memory, as NumPy or SciPy keeps them."""
        return self

    @property
    def dtype(self) -> np.dtype:
        """The floating-point type of the rows."""
        return self.X.dtype

    def __len__(self) -> int:
        return self.X.shape[0]

    def rows(self, index: slice | NDArray) -> Samples:
        """Return some rows."""
        return Samples(self.X[index])

    def columns(self, columns: Any) -> Samples:
        """Return some columns."""
        key = ("columns", columns_key(columns))
        return self.keep(key, lambda own: Samples(contiguous(own.X[:, columns])))

    def keep(self, key: Hashable, make: Callable[[Any], Any]) -> Any:
        """Return ``make(self.host)``, a value for each row, computed at most once.

        ``make`` computes with NumPy; the result is where the pair computes.
        """
        if key not in self._kept:
            self._kept[key] = make(self)
        return self._kept[key]


class Pair:
    """Two sides of a block, and the results that the kernels of a block share.

    What a method returns may be kept for other kernels of the block, and must not be
    changed.  :meth:`elementwise` and :meth:`power` write over values that nobody else
    needs; :meth:`own` returns values that may be changed.
    """

    #: the module of array functions, such as ``xp.tanh``, for the arrays of this pair
    xp: Any = np

    def __init__(self, left: Samples, right: Samples):
        self.left = left
        self.right = right
        self._memo: dict[Hashable, Any] = {}

    @property
    def dtype(self) -> np.dtype:
        """The floating-point type of the block."""
        return np.result_type(self.left.dtype, self.right.dtype)

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return ``make()``, computed once for this block."""
        if key not in self._memo:
            self._memo[key] = make()
        return self._memo[key]

    def on(self, columns: Any) -> Pair:
        """Return the pair restricted to some columns."""
        key = ("on", columns_key(columns))
        return self.once(key, lambda: self._restricted(columns))

    def _restricted(self, columns: Any) -> Pair:
        return Pair(self.left.columns(columns), self.right.columns(columns))

    def from_host(self, values: NDArray) -> NDArray:
        """Return a NumPy array as an array of :attr:`xp`."""
        return values

    def own(self, values: NDArray) -> NDArray:
        """Return ``values`` for the caller to change."""
        return values.copy()

    def elementwise(self, function: Callable, *values: Any) -> NDArray:
        """Return ``function(*values)`` for a function of ``xp`` such as ``xp.add``.

        The first of the values is a block; the others are blocks, rows, columns or
        numbers.
        """
        return function(*values)

    def power(
        self, values: NDArray, exponent: int, scale: float = 1.0, shift: float = 0.0
    ) -> NDArray:
        """Return ``(scale * values + shift) ** exponent``, a whole number >= 0."""
        base = scale * values + shift
        # Few multiplications take less time than the power of a real number.
        if exponent == 0:
            return np.ones_like(base)
        return reduce(np.multiply, repeat(base, exponent))

    def exponential(self, values: NDArray, gamma: float) -> NDArray:
        """Return ``exp(-gamma * values)`` for values >= 0."""
        found = -gamma * values
        return np.exp(found, out=found)

    def gaussian(self, gamma: float) -> NDArray:
        """Return ``exp(-gamma * squared distance)``."""
        return self.exponential(self.squared_distances(gamma), gamma)

    def dots(self) -> NDArray:
        """Return the inner products of rows, shape (m, n)."""

        def make() -> NDArray:
            X, Z = (side.X.astype(np.float64, copy=False) for side in self._sides())
            return _dense(X @ Z.T)

        return self.once("dots", make)

    def squared_distances(self, gamma: float = 1.0) -> NDArray:
        """Return the squared Euclidean distances of rows, shape (m, n).

        ``gamma`` is the factor by which a kernel multiplies them in its exponent: it
        says how exact they must be.
        """
        del gamma
        return self._distances("sqeuclidean")

    def manhattan(self) -> NDArray:
        """Return the sums of ``|x_k - z_k|``, shape (m, n)."""
        return self._distances("cityblock")

    def minima(self) -> NDArray:
        """Return the sums of ``min(x_k, z_k)``, shape (m, n)."""
        return self._sums("minima", np.minimum)

    def chi2(self) -> NDArray:
        """Return the sums of ``(x_k - z_k)**2 / (x_k + z_k)``, where 0 / 0 is 0."""

        def quotients(x: NDArray, z: NDArray) -> NDArray:
            terms, total = x - z, x + z
            terms *= terms
            terms /= np.maximum(total, TINY, out=total)
            return terms

        return self._sums("chi2", quotients)

    def _sides(self) -> tuple[Samples, Samples]:
        return self.left, self.right

    def _distances(self, metric: str) -> NDArray:
        """Return distances of rows, from the differences of their entries."""
        return self.once(metric, lambda: cdist(*self._dense_sides(), metric))

    def _sums(self, key: str, terms: Callable[[NDArray, NDArray], NDArray]) -> NDArray:
        """Return the sums of terms of two entries, column by column."""

        def make() -> NDArray:
            X, Z = self._dense_sides()
            sums = np.zeros((len(X), len(Z)))
            for x, z in zip(X.T, Z.T, strict=True):
                sums += terms(x[:, None], z)
            return sums

        return self.once(key, make)

    def _dense_sides(self) -> Iterator[NDArray[np.float64]]:
        """Yield both sides with their zeros: each may stand beside a value."""
        for side in self._sides():
            yield side.keep(
                "dense", lambda own: _dense(own.X).astype(np.float64, copy=False)
            )


def as_matrix(X: Any) -> Any:
    """Return a dense C-ordered or a CSR matrix, in single or double precision."""
    if isinstance(X, Samples):
        return X.X
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    if X.ndim != 2 or X.dtype.kind == "c":
        found = f"shape {X.shape} of {X.dtype}"
        raise ValueError(
            f"A kernel takes real numbers, with a row for each sample; got {found}."
        )
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    return contiguous(X)


def dense_if_small(X: Any) -> Any:
    """Return a small sparse matrix as a dense one, and anything else as it is.

    Products of sparse rows are summed in another order.  That changes the last digits
    of kernel values, which may decide which of many solutions within the tolerance is
    found.  A dense and a sparse copy of small data should have the same solution.
    """
    if sparse.issparse(X) and X.shape[0] * X.shape[1] <= SMALL:
        return X.toarray()
    return X


def columns_key(columns: Any) -> Hashable:
    """Return a key that is equal for equal choices of columns only."""
    if isinstance(columns, slice):
        return (columns.start, columns.stop, columns.step)
    if isinstance(columns, range):
        return ("range", columns.start, columns.stop, columns.step)
    index = np.asarray(columns)
    return (index.dtype.str, index.tobytes())


def squared_norms(X: Any) -> NDArray:
    """Return the squared norms of the rows, in double precision."""
    if sparse.issparse(X):
        X = X.astype(np.float64, copy=False)
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def contiguous(X: Any) -> Any:
    """Return a matrix in CSR or in C order."""
    return X.tocsr() if sparse.issparse(X) else np.ascontiguousarray(X)


def _dense(X: Any) -> NDArray:
    return X.toarray() if sparse.issparse(X) else X
