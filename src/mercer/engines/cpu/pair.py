"""The two sides of a tile, and what kernels ask of them, as compiled code.

An :class:`Operand` is a matrix together with what kernels derive from its rows (norms,
centred copies, chosen columns), kept for as long as the operand lives and sliced along
with it.  A :class:`TilePair` is two operands and the intermediate results of one tile,
so that a composed kernel computes each product or distance once.

Products and distances are computed in a :class:`Frame`: the coordinates in which they
lose the fewest digits, or take the least time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.tiles import (
    additive_chi2,
    centre_rows,
    column_range_and_sum,
    dot_rows,
    exponential,
    gaussian,
    intersection,
    manhattan,
    powers,
    ranges,
    squared_differences,
    squared_distances,
    squared_norms_of_rows,
)
from mercer.engines.cpu.zeros import (
    LEAST_ROWS,
    PART,
    MostlyZeros,
    Run,
    columns_in_use,
    order_by_zeros,
)
from mercer.kernels.pair import (
    Pair,
    Samples,
    as_matrix,
    columns_key,
    contiguous,
    squared_norms,
)
from mercer.runtime.threads import memory_of_thread

__all__ = [
    "SINGLE_ERROR",
    "Frame",
    "Framed",
    "Operand",
    "Scratch",
    "TilePair",
    "as_operand",
    "columns_key",
    "release_scratch",
    "scratch_of_thread",
]


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates in which distances lose few digits or take little time.

    Distances do not change when the origin moves to the mean; the products that they
    are computed from shrink, and with them their rounding errors.  Columns that are
    constant over the anchoring rows are 0 there and drop out of the products.  Where
    most values are 0 already, the origin stays, so that they can be left out.
    A frame is equal to itself only, so that it can be a key of what is kept.
    """

    center: NDArray | None  #: None where the origin stays
    active: NDArray | None  #: columns that take part; None for all
    dtype: np.dtype

    def put(self, X: Any, order: NDArray | None, run: Run) -> Framed:
        """Return the rows of ``X``, in another order if given, in this frame."""
        dtype = np.result_type(X.dtype, self.dtype)
        center, active = self.center, self.active
        if active is None:
            matrix = (X if order is None else X[order]).astype(dtype, copy=False)
            return Framed(matrix, squared_norms(matrix).astype(dtype))
        if sparse.issparse(X):
            X, order = (X if order is None else X[order]).toarray(), None
        rows = np.arange(X.shape[0]) if order is None else order
        norms = np.empty(len(rows))
        if center is None:
            run(
                lambda part: squared_norms_of_rows(X, rows[part], norms[part]),
                ranges(0, len(rows), PART, even=False),
            )
            zeros = MostlyZeros(X, rows, active, dtype, run)
            return Framed(zeros, norms.astype(dtype))
        matrix = np.empty((len(rows), len(active)), dtype=dtype)

        def fill(part: slice) -> None:
            centre_rows(X, rows[part], center, active, matrix[part], norms[part])

        run(fill, ranges(0, len(rows), PART, even=False))
        return Framed(matrix, norms.astype(dtype))


#: Means that there is no frame: distances are computed from differences.
DIFFERENCES = Frame(None, None, np.dtype(np.float64))


class Framed(NamedTuple):
    """Rows in a frame: the matrix to multiply, and squared norms in its dtype."""

    matrix: Any
    norms: NDArray


def centred_frame(X: Any, dtype: np.dtype, run: Run) -> Frame:
    """Return the frame with the mean of the rows as its origin."""
    if sparse.issparse(X) or not len(X):
        return Frame(None, None, dtype)
    parts = run(
        lambda part: column_range_and_sum(X[part]), ranges(0, len(X), PART, even=False)
    )
    lows, highs, totals = zip(*parts, strict=True)
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    center = np.sum(totals, axis=0) / len(X)
    varies = low != high
    # Exactly the constant, so that the column is exactly 0 in the frame.
    center[~varies] = low[~varies]
    return Frame(center.astype(dtype), np.flatnonzero(varies), dtype)


def _run_in_turn(function: Callable[[slice], Any], parts: Iterable[slice]) -> list:
    return [function(part) for part in parts]


# A single-precision distance is trusted while the error it may cause in a kernel value
# stays below this.
SINGLE_ERROR = 2e-5
# A double-precision distance that is computed from products is trusted while the error
# stays below this.
DOUBLE_ERROR = 1e-9


class Operand(Samples):
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
        super().__init__(X)
        self._order = order
        self._run = run
        self._parent = parent
        self._index = index

    @property
    def X(self) -> Any:
        """The rows themselves."""
        if self._X is None:
            self._X = self._parent.X[self._index]  # type: ignore[union-attr]
        elif self._order is not None:
            self._X = self._X[self._order]
            self._order = None
        return self._X

    def run_alone(self) -> None:
        """Derive what is missing in the calling thread from now on."""
        self._run = _run_in_turn

    def raw_rows(self, index: NDArray) -> Any:
        """Return some rows, without putting all of them in order."""
        if self._order is not None:
            return self._X[self._order[index]]
        return self.X[index]

    def astype(self, dtype: Any) -> Operand:
        """Return the rows in another precision."""
        X, order = self.stored()
        return Operand(X.astype(dtype), order=order, run=self._run)

    @property
    def dtype(self) -> np.dtype:
        """The floating-point type of the rows."""
        return self._X.dtype if self._X is not None else self._parent.dtype  # type: ignore[union-attr]

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return self._parent.n_features if self._X is None else self._X.shape[1]  # type: ignore[union-attr]

    def __len__(self) -> int:
        if self._X is None:
            if isinstance(self._index, slice):
                return len(range(*self._index.indices(len(self._parent))))  # type: ignore[arg-type]
            return len(self._index)
        return self._X.shape[0]

    def rows(self, index: slice | NDArray) -> Operand:
        """Return the operand of some rows; what is kept here is sliced for it."""
        return Operand(None, parent=self, index=index)

    def keep(self, key: Hashable, make: Callable[[Operand], Any]) -> Any:
        """Return the quantity ``key``, made at most once per operand."""
        known = self._known(key)
        if known is None:
            known = self._kept[key] = make(self)
        return known

    def _known(self, key: Hashable) -> Any:
        """Return what is kept here, or a slice of what the parent has kept, or None."""
        known = self._kept.get(key)
        if known is None and self._parent is not None:
            known = self._parent._known(key)
            if known is not None:
                known = self._kept[key] = _take(known, self._index)
        return known

    def columns(self, columns: Any) -> Operand:
        """Return the operand of some columns."""
        key = ("columns", columns_key(columns))
        return self.keep(key, lambda own: Operand(contiguous(own.X[:, columns])))

    def frame(self, gamma: float, dtype: np.dtype) -> Frame:
        """Return the frame for these rows on the right (for a part, that of the whole).

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
        # The comparison is also False if a norm overflows.
        if self._may_lose(frame, gamma, np.float64) <= DOUBLE_ERROR:
            return frame
        return DIFFERENCES

    def _may_lose(self, frame: Frame, gamma: float, dtype: type) -> float:
        """Return the error of a kernel value that rounding of products may cause."""
        largest = self.framed(frame).norms.max(initial=0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            return 4.0 * np.finfo(dtype).eps * gamma * largest

    def frame_of_zeros(self, dtype: np.dtype) -> Frame | None:
        """Return the frame of these rows in which zeros are left out, if it pays."""
        root = self._root()
        if len(root) < LEAST_ROWS or sparse.issparse(root.stored()[0]):
            return None
        return root.keep(("zeros", dtype), lambda own: [own._find_zeros(dtype)])[0]

    def _find_zeros(self, dtype: np.dtype) -> Frame | None:
        active = columns_in_use(*self.stored(), self._run)
        return None if active is None else Frame(None, active, dtype)

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
            lambda own: centred_frame(own.stored()[0], dtype, own._run),
        )

    def framed(self, frame: Frame) -> Framed:
        """Return the rows in a frame."""
        return self.keep(
            ("framed", frame), lambda own: frame.put(*own.stored(), own._run)
        )

    def _root(self) -> Operand:
        """Return the operand of which this one is a part."""
        return self if self._parent is None else self._parent._root()

    def stored(self) -> tuple[Any, NDArray | None]:
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


def scratch_of_thread() -> Scratch:
    """Return the scratch memory of the calling thread; its last tile is gone."""
    memory = memory_of_thread()
    scratch = memory.get(Scratch)
    if scratch is None:
        scratch = memory[Scratch] = Scratch()
    return scratch.reset()


def release_scratch() -> None:
    """Free the scratch memory of the calling thread."""
    memory_of_thread().pop(Scratch, None)


class TilePair(Pair):
    """Two operands and the intermediate results of their tile."""

    left: Operand
    right: Operand

    def __init__(
        self,
        left: Operand,
        right: Operand,
        *,
        shared: bool = True,
        scratch: Scratch | None = None,
        kept: dict[Hashable, NDArray] | None = None,
        path: tuple[Hashable, ...] = (),
    ):
        """Prepare a tile.

        ``shared`` says whether several kernels may ask for the same values; if not,
        values are changed in place, and the pair serves one evaluation.  In ``kept``,
        if given, products and distances outlive the pair: they depend on the samples
        only, not on parameters of kernels.  ``path`` are the columns that were chosen.
        """
        super().__init__(left, right)
        self._scratch = Scratch() if scratch is None else scratch
        self._shared = shared
        self._kept = kept
        self._path = path
        #: the last result of a function; nobody else has asked for it
        self._free: NDArray | None = None

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        known = super().once(key, make)
        self._free = None
        return known

    def _part(self, key: Hashable, make: Callable[[], NDArray]) -> NDArray:
        """Return products or distances, computed once."""
        if self._kept is None:
            return self.once(key, make)
        place = (self._path, key)
        if place not in self._kept:
            self._kept[place] = make().copy()
        return self._kept[place]

    def _restricted(self, columns: Any) -> TilePair:
        return TilePair(
            self.left.columns(columns),
            self.right.columns(columns),
            shared=self._shared,
            scratch=self._scratch,
            kept=self._kept,
            path=(*self._path, columns_key(columns)),
        )

    def n_bytes(self, *results: NDArray) -> int:
        """Return the memory that the tile has taken, with that of its results."""
        owners = {id(buffer): buffer for buffer in self._scratch.buffers()}
        for array in (*self._arrays(), *results):
            while isinstance(array.base, np.ndarray):
                array = array.base
            owners[id(array)] = array
        return sum(array.nbytes for array in owners.values())

    def _arrays(self) -> Iterator[NDArray]:
        for value in self._memo.values():
            if isinstance(value, TilePair):
                yield from value._arrays()
            elif isinstance(value, np.ndarray):
                yield value

    def _empty(self, dtype: np.dtype) -> NDArray:
        """Return an array for a tile, not yet filled."""
        return self._scratch.empty((len(self.left), len(self.right)), dtype)

    def _target(self, values: NDArray) -> NDArray:
        """Return where to write a function of ``values``: over them, or elsewhere."""
        if self._shared and values is not self._free:
            return self._empty(values.dtype)
        return values

    def own(self, values: NDArray) -> NDArray:
        target = self._target(values)
        if target is not values:
            np.copyto(target, values)
        return target

    def elementwise(self, function: Callable, *values: Any) -> NDArray:
        self._free = function(*values, out=self._target(values[0]))
        return self._free

    def power(
        self, values: NDArray, exponent: int, scale: float = 1.0, shift: float = 0.0
    ) -> NDArray:
        target = self._target(values)
        powers(values, float(scale), float(shift), exponent, target)
        self._free = target
        return target

    def exponential(self, values: NDArray, gamma: float) -> NDArray:
        found = exponential(self.own(values), gamma)
        return found.astype(self.dtype, copy=False)

    def gaussian(self, gamma: float) -> NDArray:
        frame = self.right.frame(gamma, self.dtype)
        if self._shared or frame is DIFFERENCES:
            return self.exponential(self.squared_distances(gamma), gamma)
        found = gaussian(*self._framed_dots(frame), gamma)
        return found.astype(self.dtype, copy=False)

    def dots(self) -> NDArray:
        def make() -> NDArray:
            frame = self.right.frame_of_zeros(self.dtype)
            if frame is None:
                return self._product(self.left.X, self.right.X)
            x, z = self.left.framed(frame), self.right.framed(frame)
            return self._product(x.matrix, z.matrix)

        return self._part("dots", make)

    def squared_distances(self, gamma: float = 1.0) -> NDArray:
        frame = self.right.frame(gamma, self.dtype)

        def make() -> NDArray:
            if frame is DIFFERENCES:
                return self._densely(squared_differences, frame.dtype)
            dots, x_norm, z_norm = self._framed_dots(frame)
            squared_distances(dots, x_norm, z_norm)
            return dots

        return self._part(("squared distances", frame), make)

    def manhattan(self) -> NDArray:
        return self._part("manhattan", lambda: self._densely(manhattan))

    def minima(self) -> NDArray:
        return self._part("minima", lambda: self._densely(intersection))

    def chi2(self) -> NDArray:
        return self._part("chi2", lambda: self._densely(additive_chi2))

    def _product(self, X: Any, Z: Any) -> NDArray:
        dtype = np.result_type(X.dtype, Z.dtype)
        if isinstance(X, MostlyZeros):
            return X.times(Z, self._empty(dtype))
        if sparse.issparse(X) or sparse.issparse(Z):
            return dot_rows(X, Z, dtype)
        return np.matmul(X, Z.T, out=self._empty(dtype))

    def _framed_dots(self, frame: Frame) -> tuple[NDArray, NDArray, NDArray]:
        """Return products in a frame, and the squared norms of both sides in it."""
        x, z = self.left.framed(frame), self.right.framed(frame)
        dots = self._product(x.matrix, z.matrix)
        return (
            dots,
            x.norms.astype(dots.dtype, copy=False),
            z.norms.astype(dots.dtype, copy=False),
        )

    def _densely(self, fill: Callable, dtype: np.dtype | None = None) -> NDArray:
        """Run a compiled function of two dense tiles."""
        dtype = self.dtype if dtype is None else dtype
        X, Z = (
            np.ascontiguousarray(
                side.X.toarray() if sparse.issparse(side.X) else side.X, dtype=dtype
            )
            for side in (self.left, self.right)
        )
        out = self._empty(dtype)
        fill(X, Z, out)
        return out


def as_operand(X: Any) -> Operand:
    """Wrap a matrix, keeping single and double precision and CSR."""
    return X if isinstance(X, Operand) else Operand(as_matrix(X))


def _take(kept: Any, index: Any) -> Any:
    if isinstance(kept, Operand):
        return kept.rows(index)
    if isinstance(kept, Framed):
        return Framed(kept.matrix[index], kept.norms[index])
    return kept[index]
