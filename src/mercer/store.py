r"""Samples that come and go, and their Gram matrix: what online learning keeps.

:class:`HeldRows` are rows together with what kernels derive from them (norms, centred
copies, chosen columns), so that a new sample costs its own row of the matrix and no
pass over the others.  :class:`HeldGram` has the square of kernel values besides, which
grows by rows and columns.  A row that leaves gives its place to the last one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.rows import mirror
from mercer.gram import Tiles, symmetric_matrix
from mercer.kernels.base import Kernel
from mercer.kernels.frame import Frame, Framed
from mercer.kernels.operand import SINGLE_ERROR, Operand, columns_key
from mercer.threads import Threads, one_blas_thread

__all__ = ["HeldGram", "HeldRows", "Moves", "sample_keys", "tile_with"]

# Beyond what is needed, so that growing costs little per row.
GROWTH = 1.5
LEAST_ROOM = 32
# Up to so many rows BLAS gets one thread.
FEW_ROWS = 16


class Moves:
    """How the rows that stay close the gaps of those that leave."""

    def __init__(self, n: int, leaving: NDArray):
        gone = np.zeros(n, dtype=bool)
        gone[leaving] = True
        self.count = n - int(gone.sum())  #: rows that stay
        self.target = np.flatnonzero(gone[: self.count])
        self.source = self.count + np.flatnonzero(~gone[self.count :])

    def apply(self, values: NDArray) -> None:
        """Move entries of the first axis."""
        values[self.target] = values[self.source]


def with_room(buffer: NDArray, n: int, needed: int) -> NDArray:
    """Return a buffer with room for ``needed`` rows that begins with the first n."""
    if needed <= len(buffer):
        return buffer
    size = max(needed, int(GROWTH * len(buffer)), LEAST_ROOM)
    grown = np.zeros((size, *buffer.shape[1:]), dtype=buffer.dtype)
    grown[:n] = buffer[:n]
    return grown


def sample_keys(X: Any, labels: NDArray) -> Iterator[bytes]:
    """Tell samples apart by what is in them and by their class."""
    if sparse.issparse(X):
        for label, a, b in zip(labels, X.indptr, X.indptr[1:], strict=False):
            nonzero = X.data[a:b] != 0
            index = np.ascontiguousarray(X.indices[a:b][nonzero], dtype=np.int64)
            yield _digest(label, index, X.data[a:b][nonzero])
        return
    for label, row in zip(labels, X, strict=True):
        yield _digest(label, row + row.dtype.type(0))  # 0 and -0 are one number


def _digest(label: Any, *parts: NDArray) -> bytes:
    found = hashlib.blake2b(int(label).to_bytes(8, "little"), digest_size=16)
    for part in parts:
        found.update(part.data)
    return found.digest()


class HeldRows(Operand):
    """Rows as the right side of kernel blocks, to which others can be added.

    Dense rows are held in a frame that all columns take part in, with the mean of the
    first rows as its origin: a frame that suits only what is held now would not do for
    what is to come.
    """

    def __init__(self, X: Any, center: NDArray | None = None, precise: Any = None):
        super().__init__(X.copy())
        self._buffers: dict[Any, list[NDArray]] = {}
        self._children: dict[Any, tuple[Any, HeldRows]] = {}
        #: whether distances need double precision; shared with parts of the columns
        self._precise = [False] if precise is None else precise
        if sparse.issparse(X):
            self.center = np.zeros(0)
            return
        self.center = X.mean(axis=0, dtype=np.float64) if center is None else center
        for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
            self._kept["zeros", dtype] = [None]

    def state(self) -> dict[str, Any]:
        """Return what :meth:`from_state` needs."""
        X = self.X if sparse.issparse(self.X) else np.array(self.X)
        return {"X": X, "center": self.center, "precise": self._precise[0]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> HeldRows:
        """Return the rows as they were."""
        return cls(state["X"], state["center"], [bool(state["precise"])])

    def columns(self, columns: Any) -> Operand:
        if sparse.issparse(self.X):
            return super().columns(columns)
        key = columns_key(columns)
        if key not in self._children:
            part = np.ascontiguousarray(self.X[:, columns])
            child = HeldRows(part, self.center[columns], self._precise)
            self._children[key] = (columns, child)
        return self._children[key][1]

    def _known(self, key: Any) -> Any:
        # A part of the rows asks here for chosen columns.
        if isinstance(key, tuple) and key[0] == "columns":
            for columns, child in self._children.values():
                if key == ("columns", columns_key(columns)):
                    return child
        return super()._known(key)

    def _find_frame(self, gamma: float, dtype: np.dtype) -> Frame:
        if sparse.issparse(self.X):
            return super()._find_frame(gamma, dtype)
        if dtype != np.float64 and not self._precise[0]:
            frame = Frame(self.center.astype(dtype), np.arange(self.X.shape[1]), dtype)
            if _is_fine(self.framed(frame), gamma):
                return frame
            self._precise[0] = True
        return Frame(self.center, np.arange(self.X.shape[1]), np.dtype(np.float64))

    def append(self, left: Operand) -> None:
        """Add the rows of ``left``, on which kernels have been evaluated or not."""
        n, total = len(self), len(self) + len(left)
        if sparse.issparse(self.X):
            self._X = sparse.csr_array(sparse.vstack([self._X, left.X]))
            self._kept.clear()
            return
        self._X = self._extended("X", [self._X], [left.X], n, total)[0]
        for columns, child in self._children.values():
            child.append(left.columns(columns))
        key: Any
        for key, value in list(self._kept.items()):
            if isinstance(value, Framed):
                mine = left.framed(key[1])
                parts = self._extended(key, list(value), list(mine), n, total)
                self._kept[key] = Framed(*parts)
            elif isinstance(value, np.ndarray):
                mine = left._known(key)
                if mine is None:
                    self._forget(key)
                else:
                    (self._kept[key],) = self._extended(key, [value], [mine], n, total)
        self._check_precision()

    def _extended(self, key, values, more, n, total) -> list[NDArray]:
        buffers = self._buffers.get(key) or [v[:n] for v in values]
        buffers = [with_room(b, n, total) for b in buffers]
        for buffer, part in zip(buffers, more, strict=True):
            buffer[n:total] = part
        self._buffers[key] = buffers
        return [b[:total] for b in buffers]

    def _forget(self, key: Any) -> None:
        self._kept.pop(key, None)
        self._buffers.pop(key, None)

    def _check_precision(self) -> None:
        """Go over to double precision where new rows are too far from the origin."""
        key: Any
        for key, frame in list(self._kept.items()):
            if isinstance(frame, Frame) and frame.dtype != np.float64:
                framed = self._kept.get(("framed", frame))
                if framed is not None and not _is_fine(framed, key[1]):
                    self._precise[0] = True
                    self._forget(("framed", frame))
                    del self._kept[key]

    def remove(self, moves: Moves) -> None:
        """Let rows go."""
        if sparse.issparse(self.X):
            index = np.arange(moves.count)
            index[moves.target] = moves.source
            self._X = self._X[index]
            self._kept.clear()
            return
        self._buffers.setdefault("X", [self._X])
        for _, child in self._children.values():
            child.remove(moves)
        for key, value in self._kept.items():
            if isinstance(value, Framed):
                self._buffers.setdefault(key, [value.matrix, value.norms])
            elif isinstance(value, np.ndarray):
                self._buffers.setdefault(key, [value])
        for key, buffers in self._buffers.items():
            for buffer in buffers:
                moves.apply(buffer)
            parts = [b[: moves.count] for b in buffers]
            if key == "X":
                self._X = parts[0]
            else:
                self._kept[key] = Framed(*parts) if len(parts) == 2 else parts[0]


def _is_fine(framed: Framed, gamma: float) -> bool:
    """Tell whether single precision is good enough for distances in a frame."""
    largest = framed.norms.max(initial=0.0)
    return bool(4.0 * np.finfo(np.float32).eps * gamma * largest <= SINGLE_ERROR)


def tile_with(tile_of: Tiles, left: Operand, right: Operand) -> NDArray:
    """Return a tile of kernel values; for a few rows threads are not worth while."""
    with one_blas_thread() if len(left) <= FEW_ROWS else nullcontext():
        return tile_of(left, right)


class HeldGram:
    """Held rows and the square of their kernel values, ``matrix[:n, :n]``."""

    def __init__(
        self, kernel: Kernel, rows: HeldRows, most: int, n_jobs: int | None = None
    ):
        self._tile_of = Tiles(kernel)
        self.kernel = kernel
        self.rows = rows
        self.most = most  #: rows to which it may grow ahead of need
        self.diag = kernel.diagonal(rows)
        with Threads(n_jobs) as threads:
            self.matrix = symmetric_matrix(kernel, rows, threads)
        np.fill_diagonal(self.matrix, self.diag)

    def __len__(self) -> int:
        return len(self.rows)

    def extend(self, X: Any) -> None:
        """Add rows."""
        n, left = len(self), Operand(X)
        total = n + len(left)
        if total > len(self.matrix):
            size = max(int(GROWTH * len(self.matrix)), LEAST_ROOM)
            size = max(total, min(size, self.most))
            matrix = np.zeros((size, size), dtype=self.matrix.dtype)
            matrix[:n, :n] = self.matrix[:n, :n]
            self.matrix = matrix
        if n:
            values = tile_with(self._tile_of, left, self.rows)
            self.matrix[n:total, :n] = values
            self.matrix[:n, n:total] = values.T
        self.diag = np.concatenate([self.diag, self.kernel.diagonal(left)])
        self.rows.append(left)
        self._fill(left, n)

    def _fill(self, left: Operand, n: int) -> None:
        """Compute the square of the last rows among themselves."""
        total = n + len(left)
        if len(left) > 1:
            last = self.rows.rows(slice(n, total))
            values = tile_with(self._tile_of, left, last)
            mirror(values, self.matrix, n, n)
        self.matrix[range(n, total), range(n, total)] = self.diag[n:]

    def remove(self, moves: Moves) -> None:
        """Let rows go."""
        n, target, source = len(self), moves.target, moves.source
        self.rows.remove(moves)
        moves.apply(self.diag)
        self.diag = self.diag[: moves.count]
        if len(target):
            self.matrix[target, :n] = self.matrix[source, :n]
            self.matrix[:n, target] = self.matrix[:n, source]

    def state(self) -> dict[str, Any]:
        """Return what :meth:`from_state` needs: the lower triangle, not to lose a bit.

        Products of another shape would not round alike.
        """
        n = len(self)
        lower = [self.matrix[i, : i + 1] for i in range(n)]
        values = np.concatenate(lower) if n else self.matrix[:0, 0]
        return {
            "rows": self.rows.state(),
            "values": values,
            "diag": self.diag,
            "most": self.most,
        }

    @classmethod
    def from_state(cls, kernel: Kernel, state: dict[str, Any]) -> HeldGram:
        """Return the matrix as it was."""
        gram = cls.__new__(cls)
        gram._tile_of = Tiles(kernel)
        gram.kernel = kernel
        gram.rows = HeldRows.from_state(state["rows"])
        gram.diag = state["diag"]
        gram.most = int(state["most"])
        n = len(gram.rows)
        values = state["values"]
        if values.shape != (n * (n + 1) // 2,) or gram.diag.shape != (n,):
            raise ValueError(
                f"The kernel values of {n} held samples have shapes {values.shape} and "
                f"{gram.diag.shape}: they do not fit together."
            )
        gram.matrix = np.zeros((n, n), dtype=values.dtype)
        gram.matrix[np.tril_indices(n)] = values
        upper = np.triu_indices(n, 1)
        gram.matrix[upper] = gram.matrix.T[upper]
        return gram
