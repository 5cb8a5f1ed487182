"""Rows that are mostly zeros: whether to leave the zeros out, and their products."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.core.strips import (
    GROUP,
    count_columns,
    fill_groups,
    fill_strips,
    multiply,
    width,
)
from mercer.core.tiles import ranges

__all__ = [
    "LEAST_ROWS",
    "PART",
    "MostlyZeros",
    "Run",
    "columns_in_use",
    "order_by_zeros",
]

#: applies a function to parts of the data, perhaps in several threads
Run = Callable[[Callable[[slice], Any], Iterable[slice]], list]

# Where a group of rows has more columns in use than this, a matrix product is faster.
MOST_IN_USE = 0.6
# For fewer rows it is not worth looking; with more columns, a strip does not fit into
# the processor's cache.
LEAST_ROWS = 1025
MOST_COLUMNS = 2048
# Number of groups of rows in which zeros are counted.
SAMPLED_GROUPS = 256
# Number of rows that the others are sorted by.
PIVOTS = 64
# Number of rows that one thread brings into a frame at a time.
PART = 512


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
        self._whole = whole  #: the rows that these are a part of, and where they begin
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
        strips = whole.strips()
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

    def strips(self) -> NDArray:
        """Return the rows in strips, for the right-hand side of products."""
        if self._strips is None:
            n, d = self.shape
            wide = width(self.dtype)
            strips = np.empty((-(-n // wide), d, wide), dtype=self.dtype)

            def fill(part: slice) -> None:
                fill_strips(self._X, self._rows, self._active, part.start, strips[part])

            self._run(fill, ranges(0, len(strips), PART // wide, even=False))
            self._strips = strips
        return self._strips


def columns_in_use(X: NDArray, order: NDArray | None, run: Run) -> NDArray | None:
    """Return the columns that are not all zero if it pays to leave zeros out.

    Otherwise return None: few values are zero, or a strip would be too large.
    """
    if X.shape[1] > MOST_COLUMNS:
        return None
    first = np.linspace(0, len(X) - GROUP, SAMPLED_GROUPS).astype(np.intp)
    rows = (first[:, None] + np.arange(GROUP)).ravel()
    sample = X[rows if order is None else order[rows]] != 0
    in_use = sample.reshape(SAMPLED_GROUPS, GROUP, -1).any(axis=1)
    if in_use.mean() > MOST_IN_USE:
        return None
    parts = run(lambda part: X[part].any(axis=0), ranges(0, len(X), PART, even=False))
    active = np.flatnonzero(np.any(parts, axis=0))
    # Columns that are all zero do not count as a gain: they can be dropped anyway.
    if not len(active) or in_use[:, active].mean() > MOST_IN_USE:
        return None
    return active


def order_by_zeros(X: NDArray, run: Run) -> NDArray[np.intp]:
    """Return an order in which rows with zeros in similar places stand together.

    A group of such rows has fewer columns in use.  Some rows of the data are pivots,
    and each row goes to the pivot from which it differs in the fewest places.
    """
    pivots = np.linspace(0, len(X) - 1, PIVOTS).astype(np.intp)
    pattern = (X[pivots] != 0).astype(np.float32)

    def nearest(part: slice) -> tuple[NDArray, NDArray]:
        own = (X[part] != 0).astype(np.float32)
        differs = pattern.sum(axis=1) - 2 * (own @ pattern.T)
        at = differs.argmin(axis=1)
        return at, differs[np.arange(len(at)), at] + own.sum(axis=1)

    parts = run(nearest, ranges(0, len(X), PART, even=False))
    at, distance = (np.concatenate(found) for found in zip(*parts, strict=True))
    return np.lexsort((distance, at))
