"""The coordinates in which products and distances of rows are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.framing import centre_rows, column_range_and_sum
from mercer.core.strips import (
    GROUP,
    count_columns,
    fill_groups,
    fill_strips,
    multiply,
    width,
)

__all__ = [
    "DIFFERENCES",
    "Frame",
    "Framed",
    "MostlyZeros",
    "Run",
    "centred_frame",
    "frame_of_zeros",
    "order_by_zeros",
]

Run = Callable[[Callable[[slice], Any], Iterable[slice]], list]

# Where a group of rows has more columns in use than this, a matrix product is faster.
MOST_IN_USE = 0.6
# For fewer rows it is not worth while to look; with more columns a strip leaves the
# processor's cache.
LEAST_ROWS = 1025
MOST_COLUMNS = 2048
# Groups of rows that tell how much is zero.
SAMPLED_GROUPS = 256
# Rows that others are put in order by.
PIVOTS = 64


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates in which distances lose no digits, or no time.

    Distances do not change when the origin moves to the mean; the products that they
    are computed from shrink, and with them their rounding errors.  Columns that are
    constant over the anchoring rows are 0 there and drop out of the products.  Where
    most values are 0 already, the origin stays, so that they can be left out.
    Equal to itself only, so that it can be a key of what is kept.
    """

    center: NDArray | None  #: None where the origin stays
    active: NDArray | None  #: columns that take part; None for all
    dtype: np.dtype

    @property
    def keeps_zeros(self) -> bool:
        """Whether rows are to be kept as :class:`MostlyZeros`."""
        return self.center is None and self.active is not None

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
            run(lambda part: _norms(X, rows[part], norms[part]), _parts(len(rows)))
            zeros = MostlyZeros(X, rows, active, dtype, run)
            return Framed(zeros, norms.astype(dtype))
        matrix = np.empty((len(rows), len(active)), dtype=dtype)

        def fill(part: slice) -> None:
            centre_rows(X, rows[part], center, active, matrix[part], norms[part])

        run(fill, _parts(len(rows)))
        return Framed(matrix, norms.astype(dtype))


#: Stands for no frame at all: distances are to come from differences.
DIFFERENCES = Frame(None, None, np.dtype(np.float64))


class Framed(NamedTuple):
    """Rows in a frame: the matrix to multiply, and squared norms in its dtype."""

    matrix: Any
    norms: NDArray


class MostlyZeros:
    """Rows for products that leave zeros out (see :mod:`mercer.core.strips`)."""

    def __init__(
        self,
        X: NDArray,
        rows: NDArray,
        active: NDArray,
        dtype: np.dtype,
        run: Run,
        whole: tuple[MostlyZeros, int] | None = None,
    ):
        self._X = X
        self._rows = rows
        self._active = active
        self._run = run
        self._whole = whole  #: what this is a stretch of, and where it begins there
        self._groups: tuple | None = None
        self._strips: NDArray | None = None
        self.dtype = dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns that take part."""
        return len(self._rows), len(self._active)

    def __getitem__(self, index: Any) -> MostlyZeros:
        whole = None
        if isinstance(index, slice):
            first, _, step = index.indices(len(self._rows))
            before = self._whole or (self, 0)
            whole = (before[0], before[1] + first) if step == 1 else None
        return MostlyZeros(
            self._X, self._rows[index], self._active, self.dtype, self._run, whole
        )

    def times(self, other: MostlyZeros, out: NDArray) -> NDArray:
        """Fill ``out`` with the products with all rows of another."""
        if not out.size:
            return out
        whole, first = other._whole or (other, 0)
        edge = np.empty((GROUP, width(self.dtype)), dtype=self.dtype)
        strips = whole._in_strips()
        multiply(self._in_groups(), strips, first, first + other.shape[0], edge, out)
        return out

    def _in_groups(self) -> tuple[NDArray, NDArray, NDArray]:
        if self._groups is None:
            n, _ = self.shape
            start = np.empty(-(-n // GROUP) + 1, dtype=np.int64)
            count_columns(self._X, self._rows, self._active, start)
            values = np.empty((start[-1], GROUP), dtype=self.dtype)
            groups = values, np.empty(start[-1], dtype=np.uint16), start
            fill_groups(self._X, self._rows, self._active, groups)
            self._groups = groups
        return self._groups

    def _in_strips(self) -> NDArray:
        if self._strips is None:
            n, d = self.shape
            wide = width(self.dtype)
            strips = np.empty((-(-n // wide), d, wide), dtype=self.dtype)

            def fill(part: slice) -> None:
                fill_strips(self._X, self._rows, self._active, part.start, strips[part])

            self._run(fill, _parts(len(strips), 32))
            self._strips = strips
        return self._strips


def frame_of_zeros(
    X: Any, order: NDArray | None, dtype: np.dtype, run: Run
) -> Frame | None:
    """Return a frame that leaves out zeros, or None where there are too few."""
    if sparse.issparse(X) or not (LEAST_ROWS <= len(X) and X.shape[1] <= MOST_COLUMNS):
        return None
    first = np.linspace(0, len(X) - GROUP, SAMPLED_GROUPS).astype(np.intp)
    rows = (first[:, None] + np.arange(GROUP)).ravel()
    sample = X[rows if order is None else order[rows]] != 0
    in_use = sample.reshape(SAMPLED_GROUPS, GROUP, -1).any(axis=1)
    if in_use.mean() > MOST_IN_USE:
        return None
    parts = run(lambda part: X[part].any(axis=0), _parts(len(X)))
    active = np.flatnonzero(np.any(parts, axis=0))
    # The columns that are all zero do not count as a gain: anybody can drop them.
    if not len(active) or in_use[:, active].mean() > MOST_IN_USE:
        return None
    return Frame(None, active, dtype)


def order_by_zeros(X: NDArray, run: Run) -> NDArray[np.intp]:
    """Return an order in which rows that are zero in like places stand together.

    A group of such rows has fewer columns in use.  Each row goes to the pivot, of some
    rows of the data, from which it differs in the fewest places.
    """
    pivots = np.linspace(0, len(X) - 1, PIVOTS).astype(np.intp)
    pattern = (X[pivots] != 0).astype(np.float32)

    def nearest(part: slice) -> tuple[NDArray, NDArray]:
        own = (X[part] != 0).astype(np.float32)
        differs = pattern.sum(axis=1) - 2 * (own @ pattern.T)
        at = differs.argmin(axis=1)
        return at, differs[np.arange(len(at)), at] + own.sum(axis=1)

    parts = run(nearest, _parts(len(X)))
    at, distance = (np.concatenate(found) for found in zip(*parts, strict=True))
    return np.lexsort((distance, at))


def centred_frame(X: Any, dtype: np.dtype, run: Run) -> Frame:
    """Return the frame with the mean of the rows as its origin."""
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


def squared_norms(X: Any) -> NDArray:
    """Squared norms of the rows, in double precision."""
    if sparse.issparse(X):
        X = X.astype(np.float64, copy=False)
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def _norms(X: NDArray, rows: NDArray, norms: NDArray) -> None:
    norms[:] = squared_norms(X[rows])


def _parts(n: int, most: int = 2048) -> list[slice]:
    return [slice(first, min(first + most, n)) for first in range(0, n, most)]
