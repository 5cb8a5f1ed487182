"""The two sides of a kernel block, and what kernels share between them.

An :class:`Operand` is a matrix together with what kernels derive from its rows (norms,
centred copies, chosen columns), kept for as long as the operand lives and sliced along
with it.  A :class:`Pair` is two operands and the intermediate results of one block, so
that a composed kernel computes each product or distance once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.exponential import squared_distances
from mercer.core.framing import centre_rows, column_range_and_sum
from mercer.core.sparse_dot import dot_rows

__all__ = ["Frame", "Operand", "Pair", "columns_key"]

Run = Callable[[Callable[[slice], Any], Iterable[slice]], list]


def _run_in_turn(function: Callable[[slice], Any], parts: Iterable[slice]) -> list:
    return [function(part) for part in parts]


# A single-precision distance is trusted while the error it may cause in a kernel value
# stays below this.
SINGLE_ERROR = 2e-5


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates in which distances lose no digits.

    Distances do not change when the origin moves to the mean; the products that they
    are computed from shrink, and with them their rounding errors.  Columns that are
    constant over the anchoring rows are 0 there and drop out of the products.
    Equal to itself only, so that it can be a key of what is kept.
    """

    center: NDArray | None  #: None where the origin stays, as for sparse data
    active: NDArray | None  #: columns that vary; None for all
    dtype: np.dtype


class Framed(NamedTuple):
    """Rows in a frame: the matrix to multiply, and squared norms in its dtype."""

    matrix: Any
    norms: NDArray


class Operand:
    """A matrix (dense C-order, or CSR) and the row-wise quantities derived from it."""

    def __init__(
        self,
        X: Any,
        *,
        order: NDArray[np.intp] | None = None,
        run: Run = _run_in_turn,
        parent: Operand | None = None,
        index: Any = None,
    ):
        """Wrap rows of ``X``, in another ``order`` if given.

        ``run(function, items)`` applies a function to parts of the data, perhaps in
        several threads.
        """
        self._X = X
        self._order = order
        self._run = run
        self._parent = parent
        self._index = index
        self._kept: dict[Hashable, Any] = {}

    @property
    def X(self) -> Any:
        """The rows themselves."""
        if self._X is None:
            self._X = self._parent.X[self._index]  # type: ignore[union-attr]
        elif self._order is not None:
            self._X = self._X[self._order]
            self._order = None
        return self._X

    def raw_rows(self, index: NDArray) -> Any:
        """Return some rows, without putting all of them in order."""
        if self._order is not None:
            return self._X[self._order[index]]
        return self.X[index]

    @property
    def dtype(self) -> np.dtype:
        """The floating-point type of the rows."""
        return self._X.dtype if self._X is not None else self._parent.dtype  # type: ignore[union-attr]

    def __len__(self) -> int:
        if self._X is None:
            if isinstance(self._index, slice):
                return len(range(*self._index.indices(len(self._parent))))  # type: ignore[arg-type]
            return len(self._index)
        return self._X.shape[0]

    def rows(self, index: slice | NDArray) -> Operand:
        """Return the operand of some rows; what is kept here is sliced, not redone."""
        return Operand(None, parent=self, index=index)

    def keep(self, key: Hashable, make: Callable[[Operand], Any]) -> Any:
        """Return the quantity ``key``, made at most once per operand."""
        known = self._known(key)
        if known is None:
            known = self._kept[key] = make(self)
        return known

    def _known(self, key: Hashable) -> Any:
        """Return what is kept here, or a slice of what the whole has kept, or None."""
        known = self._kept.get(key)
        if known is None and self._parent is not None:
            known = self._parent._known(key)
            if known is not None:
                known = self._kept[key] = _take(known, self._index)
        return known

    def columns(self, columns: Any) -> Operand:
        """Return the operand of some columns."""
        key = ("columns", columns_key(columns))
        return self.keep(key, lambda own: Operand(_contiguous(own.X[:, columns])))

    def frame(self, gamma: float, dtype: np.dtype) -> Frame:
        """Return the frame that these rows anchor (that of the whole, for a part).

        ``gamma`` is the weight of a squared distance in a kernel's exponent: it tells
        whether single-precision distances are good enough for values of ``dtype``.
        """
        root = self
        while root._parent is not None:
            root = root._parent
        double = np.dtype(np.float64)
        if dtype == double:
            return root._own_frame(double)
        frame = root._own_frame(dtype)
        largest = root.keep(
            "largest norm", lambda own: own.framed(frame).norms.max(initial=0.0)
        )
        # Also where the norm overflows.
        if not 4.0 * np.finfo(np.float32).eps * gamma * largest <= SINGLE_ERROR:
            return root._own_frame(double)
        return frame

    def _own_frame(self, dtype: np.dtype) -> Frame:
        def make(own: Operand) -> Frame:
            return _make_frame(own._X if own._X is not None else own.X, dtype, own._run)

        return self.keep(("frame", dtype), make)

    def framed(self, frame: Frame) -> Framed:
        """Return the rows in a frame."""

        def make(own: Operand) -> Framed:
            if own._order is None:
                return _framed(own.X, None, frame, own._run)
            return _framed(own._X, own._order, frame, own._run)

        return self.keep(("framed", frame), make)


class Scratch:
    """Arrays of one thread, used again tile after tile.

    Fresh memory for each tile would cost as much as filling it: the system clears pages
    on first use.
    """

    def __init__(self) -> None:
        self._buffers: list[NDArray[np.uint8]] = []
        self._n_used = 0

    def reset(self) -> Scratch:
        """Take all arrays back."""
        self._n_used = 0
        return self

    def empty(self, shape: tuple[int, int], dtype: Any) -> NDArray:
        """Hand out an array, not yet filled."""
        n_bytes = shape[0] * shape[1] * np.dtype(dtype).itemsize
        if self._n_used == len(self._buffers):
            self._buffers.append(np.empty(n_bytes, dtype=np.uint8))
        elif len(self._buffers[self._n_used]) < n_bytes:
            self._buffers[self._n_used] = np.empty(n_bytes, dtype=np.uint8)
        buffer = self._buffers[self._n_used]
        self._n_used += 1
        return buffer[:n_bytes].view(dtype).reshape(shape)


class Pair:
    """Two operands and the intermediate results of their block."""

    def __init__(
        self,
        left: Operand,
        right: Operand,
        *,
        shared: bool = True,
        scratch: Scratch | None = None,
    ):
        self.left = left
        self.right = right
        self.scratch = Scratch() if scratch is None else scratch
        #: Whether several kernels may ask for the same thing.  If not, the one that
        #: asks may change what it gets, and the pair serves one evaluation.
        self.shared = shared
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
        return self.once(
            ("on", columns_key(columns)),
            lambda: Pair(
                self.left.columns(columns),
                self.right.columns(columns),
                shared=self.shared,
                scratch=self.scratch,
            ),
        )

    def empty(self, dtype: np.dtype | None = None) -> NDArray:
        """Return an array for a block, not yet filled."""
        shape = (len(self.left), len(self.right))
        return self.scratch.empty(shape, self.dtype if dtype is None else dtype)

    def spare(self, values: NDArray) -> NDArray:
        """Return where to write what comes of ``values``: over them, or anew."""
        return self.empty(values.dtype) if self.shared else values

    def own(self, values: NDArray) -> NDArray:
        """Return ``values`` for the caller to change: themselves, or a copy."""
        if not self.shared:
            return values
        copy = self.empty(values.dtype)
        np.copyto(copy, values)
        return copy

    def dots(self) -> NDArray:
        """Inner products, shape (m, n): not to be changed if shared."""
        return self.once("dots", lambda: self._product(self.left.X, self.right.X))

    def _product(self, X: Any, Z: Any) -> NDArray:
        dtype = np.result_type(X.dtype, Z.dtype)
        if sparse.issparse(X) or sparse.issparse(Z):
            return dot_rows(X, Z, dtype)
        return np.matmul(X, Z.T, out=self.empty(dtype))

    def framed_dots(self, gamma: float) -> tuple[NDArray, NDArray, NDArray]:
        """Products and squared norms in the frame that ``gamma`` asks for.

        They are the caller's own, to change as it likes.
        """
        frame = self.right.frame(gamma, self.dtype)
        x, z = self.left.framed(frame), self.right.framed(frame)
        dots = self._product(x.matrix, z.matrix)
        return (
            dots,
            x.norms.astype(dots.dtype, copy=False),
            z.norms.astype(dots.dtype, copy=False),
        )

    def squared_distances(self, gamma: float) -> NDArray:
        """Squared Euclidean distances, shape (m, n): not to be changed if shared."""

        def make() -> NDArray:
            dots, x_norm, z_norm = self.framed_dots(gamma)
            squared_distances(dots, x_norm, z_norm)
            return dots

        frame = self.right.frame(gamma, self.dtype)
        return self.once(("squared distances", frame), make)


def squared_norms(X: Any) -> NDArray:
    """Squared norms of the rows, in double precision."""
    if sparse.issparse(X):
        X = X.astype(np.float64, copy=False)
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def _take(kept: Any, index: Any) -> Any:
    if isinstance(kept, Operand):
        return kept.rows(index)
    if isinstance(kept, Framed):
        return Framed(kept.matrix[index], kept.norms[index])
    return kept[index]


def columns_key(columns: Any) -> Hashable:
    """Return what tells a choice of columns from others."""
    if isinstance(columns, slice):
        return (columns.start, columns.stop, columns.step)
    index = np.asarray(columns)
    return (index.dtype.str, index.tobytes())


def _contiguous(X: Any) -> Any:
    return X.tocsr() if sparse.issparse(X) else np.ascontiguousarray(X)


def _make_frame(X: Any, dtype: np.dtype, run: Run) -> Frame:
    if sparse.issparse(X) or not len(X):
        return Frame(None, None, dtype)
    parts = run(lambda part: column_range_and_sum(X[part]), _parts(len(X)))
    lows, highs, totals = zip(*parts, strict=True)
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    center = np.sum(totals, axis=0) / len(X)
    varies = low != high
    # Exactly the constant, so that the column is exactly 0 in the frame.
    center[~varies] = low[~varies]
    return Frame(center.astype(dtype), np.flatnonzero(varies), dtype)


def _framed(X: Any, order: NDArray | None, frame: Frame, run: Run) -> Framed:
    dtype = np.result_type(X.dtype, frame.dtype)
    center, active = frame.center, frame.active
    if center is None or active is None:
        matrix = (X if order is None else X[order]).astype(dtype, copy=False)
        return Framed(matrix, squared_norms(matrix).astype(dtype))
    n = X.shape[0]
    rows = np.arange(n) if order is None else order
    matrix = np.empty((n, len(active)), dtype=dtype)
    norms = np.empty(n)

    def fill(part: slice) -> None:
        source, at = X, rows[part]
        if sparse.issparse(X):
            source, at = X[at].toarray(), np.arange(len(at))
        centre_rows(source, at, center, active, matrix[part], norms[part])

    run(fill, _parts(n))
    return Framed(matrix, norms.astype(dtype))


def _parts(n: int) -> list[slice]:
    return [slice(first, min(first + 2048, n)) for first in range(0, n, 2048)]
