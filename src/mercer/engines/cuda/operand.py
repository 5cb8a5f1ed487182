"""Samples on a card, and the coordinates in which their distances are computed.

A :class:`CardOperand` is a matrix of samples that is copied to the card when it is
first needed, together with what kernels derive from its rows. It has the meaning of
:class:`mercer.engines.cpu.pair.Operand`, with whole arrays in the place of tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.engines.cpu.pair import DOUBLE_ERROR, SINGLE_ERROR
from mercer.engines.cuda.card import Card
from mercer.kernels.pair import (
    Samples,
    as_matrix,
    columns_key,
    contiguous,
    squared_norms,
)

__all__ = ["DIFFERENCES", "CardFrame", "CardOperand", "FramedRows"]

# Bytes of a part of the rows that are brought into double precision at once.
PART_BYTES = 64 * 2**20


@dataclass(frozen=True, eq=False)
class CardFrame:
    """An origin near the samples: distances stay, and products lose fewer digits.

    A frame is equal to itself only, so that it can be a key of what is kept.
    """

    center: Any  #: a row on the card; None where the origin stays
    dtype: np.dtype


#: Means that there is no frame: distances are computed from differences.
DIFFERENCES = CardFrame(None, np.dtype(np.float64))


class FramedRows(NamedTuple):
    """Rows in a frame, and their squared norms in double precision."""

    matrix: Any
    norms: Any

    def taken(self, index: Any) -> FramedRows:
        """Return some of the rows."""
        return FramedRows(self.matrix[index], self.norms[index])


class CardOperand(Samples):
    """One side of a block on a card: dense rows in C order, or CSR.

    Parameters
    ----------
    card : Card
    X : array or CSR matrix
        In the main memory or on the card.
    order : array of int, default=None
        The rows are meant in this order.
    """

    def __init__(self, card: Card, X: Any, order: NDArray[np.intp] | None = None):
        is_here = card.is_here(X)
        super().__init__(X if is_here else as_matrix(X))
        self.card = card
        self._order = order
        self._there: Any = None  #: the rows on the card, in order
        self._host: Samples | None = None
        self._parent: CardOperand | None = None
        self._index: Any = None

    @property
    def X(self) -> Any:
        """The rows on the card."""
        if self._there is None:
            self._there = self._rows_on_card()
        return self._there

    def _rows_on_card(self) -> Any:
        if self._parent is not None:
            return self._parent.X[self._index_on_card()]
        X, order = self._X, self._order
        if order is None:
            return self.card.to_card(X)
        if sparse.issparse(X):
            return self.card.to_card(X[order])
        # The card puts rows in order faster than the processor does.
        return self.card.xp.take(self.card.to_card(X), self.card.to_card(order), axis=0)

    @property
    def host(self) -> Samples:
        """The rows in the main memory, for what kernels derive with NumPy."""
        if self._host is None:
            if self._parent is not None:
                index = self._index
                if not isinstance(index, slice):
                    index = self.card.to_host(index)
                self._host = self._parent.host.rows(index)
            else:
                X = self.card.to_host(self._X)
                self._host = Samples(X if self._order is None else X[self._order])
        return self._host

    @property
    def dtype(self) -> np.dtype:
        """The floating-point type of the rows."""
        return self._parent.dtype if self._parent is not None else self._X.dtype

    @property
    def n_features(self) -> int:
        """The number of columns."""
        if self._parent is not None:
            return self._parent.n_features
        return self._X.shape[1]

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are a CSR matrix."""
        if self._parent is not None:
            return self._parent.is_sparse
        return sparse.issparse(self._X) or self.card.sparse.issparse(self._X)

    def __len__(self) -> int:
        if self._parent is None:
            return self._X.shape[0]
        if isinstance(self._index, slice):
            return len(range(*self._index.indices(len(self._parent))))
        return self._index.shape[0]

    def _index_on_card(self) -> Any:
        if isinstance(self._index, slice):
            return self._index
        return self.card.to_card(self._index)

    def rows(self, index: slice | Any) -> CardOperand:
        """Return the operand of some rows: a slice, or an index on either side."""
        part = object.__new__(CardOperand)
        Samples.__init__(part, None)
        part.card = self.card
        part._order = part._there = part._host = None
        part._parent, part._index = self, index
        return part

    def astype(self, dtype: Any) -> CardOperand:
        """Return the rows in another precision."""
        if np.dtype(dtype) == self.dtype:
            return self
        if self._there is not None:
            return CardOperand(self.card, self._there.astype(dtype))
        if self._parent is not None:
            return self._parent.astype(dtype).rows(self._index)
        return CardOperand(self.card, self._X.astype(dtype), self._order)

    def columns(self, columns: Any) -> CardOperand:
        """Return the operand of some columns."""
        if self._parent is not None:
            return self._parent.columns(columns).rows(self._index)
        key = ("columns", columns_key(columns))
        if key not in self._kept:
            self._kept[key] = CardOperand(self.card, self._chosen(columns))
        return self._kept[key]

    def _chosen(self, columns: Any) -> Any:
        if self.is_sparse:
            return contiguous(self.host.X[:, columns])
        if not isinstance(columns, slice):
            columns = self.card.to_card(np.asarray(columns))
        return self.card.xp.ascontiguousarray(self.X[:, columns])

    def keep(self, key: Hashable, make: Callable[[Samples], Any]) -> Any:
        """Return the quantity ``key`` of each row, made at most once per operand.

        ``make`` works on the rows in the main memory: kernels derive such quantities
        with NumPy, and they are one number for each row. The result is on the card.
        """
        if self._parent is not None:
            return self._parent.keep(key, make)[self._index_on_card()]
        if key not in self._kept:
            self._kept[key] = self.card.to_card(np.asarray(make(self.host)))
        return self._kept[key]

    def frame(self, gamma: float, dtype: np.dtype) -> CardFrame:
        """Return the frame for these rows on the right (for a part, that of the whole).

        ``gamma`` is the weight of a squared distance in a kernel's exponent: it tells
        whether single-precision distances are good enough for values of ``dtype``.
        """
        if self._parent is not None:
            return self._parent.frame(gamma, dtype)
        key = ("frame", gamma, dtype)
        if key not in self._kept:
            self._kept[key] = self._find_frame(gamma, dtype)
        return self._kept[key]

    def _find_frame(self, gamma: float, dtype: np.dtype) -> CardFrame:
        double = np.dtype(np.float64)
        tried = [(double, DOUBLE_ERROR)]
        if dtype != double:
            tried.insert(0, (dtype, SINGLE_ERROR))
        for precision, error in tried:
            frame = self._centred_frame(precision)
            if self._may_lose(frame, gamma) <= error:  # False if a norm overflows
                return frame
        return DIFFERENCES

    def _may_lose(self, frame: CardFrame, gamma: float) -> float:
        """Return the error of a kernel value that rounding of products may cause."""
        norms = self.framed(frame).norms
        largest = float(norms.max()) if len(self) else 0.0
        return 4.0 * float(np.finfo(frame.dtype).eps) * gamma * largest

    def _centred_frame(self, dtype: np.dtype) -> CardFrame:
        key = ("centred frame", dtype)
        if key not in self._kept:
            center = None
            if not self.is_sparse and len(self):
                xp, X = self.card.xp, self.X
                low, high = X.min(axis=0), X.max(axis=0)
                center = X.mean(axis=0, dtype=np.float64)
                # A constant column becomes exactly 0.
                center = xp.where(low == high, low, center).astype(dtype)
            self._kept[key] = CardFrame(center, dtype)
        return self._kept[key]

    def framed(self, frame: CardFrame) -> FramedRows:
        """Return the rows in a frame."""
        key = ("framed", frame)
        if key not in self._kept:
            if self._parent is not None:
                whole = self._parent.framed(frame)
                self._kept[key] = whole.taken(self._index_on_card())
            else:
                self._kept[key] = self._put_into(frame)
        return self._kept[key]

    def _put_into(self, frame: CardFrame) -> FramedRows:
        dtype = np.result_type(self.dtype, frame.dtype)
        X = self.X
        if X.dtype != dtype:
            X = X.astype(dtype)
        if self.is_sparse and frame.center is None:
            norms = self.keep("squared norms", lambda own: squared_norms(own.X))
            return FramedRows(X, norms)
        if frame.center is not None:
            # Sparse rows beside dense ones become dense: their zeros move.
            X = (X.toarray() if self.is_sparse else X) - frame.center
        norms = self.card.xp.empty(len(self), dtype=np.float64)
        step = max(1, PART_BYTES // (8 * max(1, self.n_features)))
        for first in range(0, len(self), step):
            part = X[first : first + step].astype(np.float64)
            norms[first : first + step] = (part * part).sum(axis=1)
        return FramedRows(X, norms)
