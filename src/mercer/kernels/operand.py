"""The two sides of a kernel block, and what kernels share between them.

An :class:`Operand` is a matrix together with what kernels derive from its rows (norms,
centred copies, chosen columns), kept for as long as the operand lives and sliced along
with it.  A :class:`Pair` is two operands and the intermediate results of one block, so
that a composed kernel computes each product or distance once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.exponential import squared_differences, squared_distances
from mercer.core.sparse_dot import dot_rows
from mercer.kernels.frame import (
    DIFFERENCES,
    Frame,
    Framed,
    MostlyZeros,
    Run,
    centred_frame,
    frame_of_zeros,
    order_by_zeros,
)

__all__ = ["Operand", "Pair", "columns_key"]


def _run_in_turn(function: Callable[[slice], Any], parts: Iterable[slice]) -> list:
    return [function(part) for part in parts]


# A single-precision distance is trusted while the error it may cause in a kernel value
# stays below this.
SINGLE_ERROR = 2e-5
# ... and so is one in double precision that comes from products.
DOUBLE_ERROR = 1e-9


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

    def astype(self, dtype: Any) -> Operand:
        """Return the rows in another precision."""
        X, order = self._stored()
        return Operand(X.astype(dtype), order=order, run=self._run)

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
        root = self._root()
        return root.keep(
            ("frame", gamma, dtype), lambda own: own._find_frame(gamma, dtype)
        )

    def _find_frame(self, gamma: float, dtype: np.dtype) -> Frame:
        double = np.dtype(np.float64)
        if dtype != double:
            for find in (self._own_frame, self._centred_frame):
                frame = find(dtype)
                if self._may_lose(frame, gamma, np.float32) <= SINGLE_ERROR:
                    return frame
        frame = self._own_frame(double)
        # Not so where a norm overflows.
        if self._may_lose(frame, gamma, np.float64) <= DOUBLE_ERROR:
            return frame
        return DIFFERENCES

    def _may_lose(self, frame: Frame, gamma: float, dtype: type) -> float:
        """Return what rounding of products may do to a kernel value."""
        largest = self.framed(frame).norms.max(initial=0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            return 4.0 * np.finfo(dtype).eps * gamma * largest

    def frame_of_zeros(self, dtype: np.dtype) -> Frame | None:
        """Return the frame of these rows in which zeros are left out, if it pays."""
        root = self._root()
        found = root.keep(
            ("zeros", dtype),
            lambda own: [frame_of_zeros(*own._stored(), dtype, own._run)],
        )
        return found[0]

    def good_order(self) -> NDArray[np.intp] | None:
        """Return an order of the rows in which products take less time, if any."""
        if self.frame_of_zeros(self.dtype) is None:
            return None
        return order_by_zeros(self.X, self._run)

    def _own_frame(self, dtype: np.dtype) -> Frame:
        return self.frame_of_zeros(dtype) or self._centred_frame(dtype)

    def _centred_frame(self, dtype: np.dtype) -> Frame:
        return self.keep(
            ("centred frame", dtype),
            lambda own: centred_frame(own._stored()[0], dtype, own._run),
        )

    def framed(self, frame: Frame) -> Framed:
        """Return the rows in a frame."""
        return self.keep(
            ("framed", frame), lambda own: frame.put(*own._stored(), own._run)
        )

    def _root(self) -> Operand:
        """Return the operand of which this one is a part."""
        return self if self._parent is None else self._parent._root()

    def _stored(self) -> tuple[Any, NDArray | None]:
        """Return a matrix and the order in which its rows are meant."""
        return (self.X, None) if self._order is None else (self._X, self._order)


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

    def buffers(self) -> list[NDArray]:
        """Return the memory of all arrays."""
        return self._buffers


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

    def n_bytes(self, *results: NDArray) -> int:
        """Return the memory that the block has taken, with that of its results."""
        owners = {id(buffer): buffer for buffer in self.scratch.buffers()}
        for array in (*self._arrays(), *results):
            while isinstance(array.base, np.ndarray):
                array = array.base
            owners[id(array)] = array
        return sum(array.nbytes for array in owners.values())

    def _arrays(self) -> Iterator[NDArray]:
        for value in self._memo.values():
            if isinstance(value, Pair):
                yield from value._arrays()
            elif isinstance(value, np.ndarray):
                yield value

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

        def make() -> NDArray:
            frame = self.right.frame_of_zeros(self.dtype)
            if frame is None:
                return self._product(self.left.X, self.right.X)
            x, z = self.left.framed(frame), self.right.framed(frame)
            return self._product(x.matrix, z.matrix)

        return self.once("dots", make)

    def _product(self, X: Any, Z: Any) -> NDArray:
        dtype = np.result_type(X.dtype, Z.dtype)
        if isinstance(X, MostlyZeros):
            return X.times(Z, self.empty(dtype))
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
        frame = self.right.frame(gamma, self.dtype)

        def make() -> NDArray:
            if frame is DIFFERENCES:
                return self.densely(squared_differences, frame.dtype)
            dots, x_norm, z_norm = self.framed_dots(gamma)
            squared_distances(dots, x_norm, z_norm)
            return dots

        return self.once(("squared distances", frame), make)

    def needs_differences(self, gamma: float) -> bool:
        """Whether products lose too many digits of the distances."""
        return self.right.frame(gamma, self.dtype) is DIFFERENCES

    def densely(self, fill: Callable, dtype: np.dtype | None = None) -> NDArray:
        """Run a compiled function of two dense tiles."""
        dtype = self.dtype if dtype is None else dtype
        X, Z = (
            np.ascontiguousarray(
                side.X.toarray() if sparse.issparse(side.X) else side.X, dtype=dtype
            )
            for side in (self.left, self.right)
        )
        out = self.empty(dtype)
        fill(X, Z, out)
        return out


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
