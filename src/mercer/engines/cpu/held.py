r"""Samples that come and go, and their Gram matrix: what online learning keeps.

:class:`HeldRows` are rows together with what kernels derive from them (norms, centred
copies, chosen columns), so that a new sample costs its own row of the matrix and no
pass over the others.  :class:`HeldGram` has the square of kernel values besides, which
grows by rows and columns.  A row that leaves gives its place to the last one.

**Nothing that fails halfway may spoil what is held.**  Learning therefore works on a
fork.  A fork shares the large arrays with its original and writes only beyond the rows
that the original holds; smaller arrays are copied.  A fork that is thrown away has
changed nothing, and a fork that its owner keeps replaces the original by one
assignment.  Rows that leave would overwrite rows of the original, so they are moved by
``settle`` after that assignment.  ``settle`` copies from places that it never writes
to, so that it can be interrupted and repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.tiles import close_gaps, mirror, ranges
from mercer.engines.cpu.pair import SINGLE_ERROR, Frame, Framed, Operand
from mercer.engines.cpu.tiles import Tiles
from mercer.kernels.base import Kernel
from mercer.kernels.pair import columns_key

__all__ = ["HeldGram", "HeldRows", "Moves", "sample_keys"]

# Buffers grow by this factor, so that growing costs little per row.
GROWTH = 1.5
LEAST_ROOM = 32
# Kernel values are computed for this part of the rows at once, so that a strip of them
# is small beside the matrix.
STRIPS = 32


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
    """Yield a key for each sample that depends on its values and its class."""
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
    first rows as its origin: a frame that is chosen for the rows held now might not
    suit later ones.
    """

    def __init__(self, X: Any, center: NDArray | None = None, precise: Any = None):
        super().__init__(X.copy())
        self._buffers: dict[Any, list[NDArray]] = {}
        self._children: dict[Any, tuple[Any, HeldRows]] = {}
        #: whether distances need double precision; shared with parts of the columns
        self._precise = [False] if precise is None else precise
        #: rows that have left, but still have to be moved
        self._moves: Moves | None = None
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
        X, center = state["X"], state["center"]
        n_columns = 0 if sparse.issparse(X) else X.shape[1]
        if center.shape != (n_columns,) or not np.isfinite(center).all():
            raise ValueError("The centre of the held samples does not fit them.")
        return cls(X, center, [bool(state["precise"])])

    def fork(self, precise: list[bool] | None = None) -> HeldRows:
        """Return rows that can change while these stay as they are."""
        self.settle()
        twin = HeldRows.__new__(HeldRows)
        vars(twin).update(vars(self))
        twin._precise = list(self._precise) if precise is None else precise
        twin._kept = dict(self._kept)
        twin._buffers = dict(self._buffers)
        twin._children = {
            key: (columns, child.fork(twin._precise))
            for key, (columns, child) in self._children.items()
        }
        return twin

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
        """Change to double precision if new rows are too far from the origin."""
        key: Any
        for key, frame in list(self._kept.items()):
            if isinstance(frame, Frame) and frame.dtype != np.float64:
                framed = self._kept.get(("framed", frame))
                if framed is not None and not _is_fine(framed, key[1]):
                    self._precise[0] = True
                    self._forget(("framed", frame))
                    del self._kept[key]

    def remove(self, moves: Moves) -> None:
        """Let rows go; the others take their places in :meth:`settle`."""
        if sparse.issparse(self.X):
            index = np.arange(moves.count)
            index[moves.target] = moves.source
            self._X = self._X[index]
            self._kept.clear()
            return
        for _, child in self._children.values():
            child.remove(moves)
        self._buffers.setdefault("X", [self._X])
        for key, value in self._kept.items():
            if isinstance(value, Framed):
                self._buffers.setdefault(key, [value.matrix, value.norms])
            elif isinstance(value, np.ndarray):
                self._buffers.setdefault(key, [value])
        for key, buffers in self._buffers.items():
            parts = [b[: moves.count] for b in buffers]
            if key == "X":
                self._X = parts[0]
            else:
                self._kept[key] = Framed(*parts) if len(parts) == 2 else parts[0]
        self._moves = moves

    def settle(self) -> None:
        """Move rows to the places of those that have left."""
        if self._moves is None:
            return
        for _, child in self._children.values():
            child.settle()
        for buffers in self._buffers.values():
            for buffer in buffers:
                self._moves.apply(buffer)
        self._moves = None


def _is_fine(framed: Framed, gamma: float) -> bool:
    """Tell whether single precision is good enough for distances in a frame."""
    largest = framed.norms.max(initial=0.0)
    return bool(4.0 * np.finfo(np.float32).eps * gamma * largest <= SINGLE_ERROR)


class Square:
    """Room for a square matrix, which a fork and its original share."""

    def __init__(self, values: NDArray | None = None):
        self.values = values


class HeldGram:
    """Held rows and the square of their kernel values, ``matrix[:n, :n]``.

    ``most`` is the side of the largest matrix that memory allows.  Where an old and a
    new matrix would not fit into that memory together, the old one is let go first and
    the values are computed again.
    """

    def __init__(self, kernel: Kernel, rows: HeldRows, most: int):
        self._tiles = Tiles(kernel)
        self.kernel = kernel
        self._rows = rows
        self.most = most
        self.diag = kernel.diagonal(rows)
        self._square = Square()
        #: how many rows there were, and which have left but still have to be moved
        self._leaving: tuple[int, Moves] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> HeldRows:
        """The rows, all in their places."""
        self.settle()
        return self._rows

    @property
    def matrix(self) -> NDArray:
        """The kernel values, with room for more rows."""
        self.settle()
        if self._square.values is None:
            self._compute(self._size_for(len(self)))
        return self._square.values  # type: ignore[return-value]

    @property
    def strip(self) -> int:
        """The number of samples whose kernel values are computed at once.

        A composed kernel needs room for the values of each of its parts.
        """
        n_parts = sum(1 for _ in self.kernel.leaves())
        return max(1, self.most // (STRIPS * n_parts))

    def fork(self) -> HeldGram:
        """Return a matrix that can change while this one stays as it is."""
        self.settle()
        twin = HeldGram.__new__(HeldGram)
        vars(twin).update(vars(self))
        twin._rows = self._rows.fork()
        return twin

    def drop(self) -> None:
        """Let the values go until they are asked for."""
        self.settle()
        self._square.values = None

    def has_room_for(self, n_values: int) -> bool:
        """Tell whether this number of further values fits into the matrix's memory."""
        return len(self.matrix) ** 2 + n_values <= self.most**2

    def extend(self, X: Any) -> bool:
        """Add rows; tell whether the values of the others were computed again."""
        total = len(self) + X.shape[0]
        is_new = self._make_room(total)
        strip = self.strip
        for first in range(0, X.shape[0], strip):
            whole = X.shape[0] <= strip
            self._append(Operand(X if whole else X[first : first + strip]))
        return is_new

    def _size_for(self, n: int) -> int:
        """Return how many rows a new matrix should have room for."""
        return max(n, min(max(int(GROWTH * n), LEAST_ROOM), self.most))

    def _make_room(self, total: int) -> bool:
        n, old = len(self), self.matrix
        if total <= len(old):
            return False
        size = max(total, self._size_for(len(old)))
        if len(old) ** 2 + size**2 <= self.most**2 or n == 0:
            matrix = np.empty((size, size), dtype=old.dtype)
            matrix[:n, :n] = old[:n, :n]
            self._square.values = matrix
            return False
        del old
        self.drop()
        self._compute(max(total, self.most))
        return True

    def _compute(self, size: int) -> None:
        """Compute all values, in a new matrix."""
        n = len(self)
        matrix = np.empty((size, size), dtype=self._rows.dtype)
        for rows in ranges(0, n, self.strip, even=False):
            a, left = rows.start, self._rows.rows(rows)
            values = self._tiles.alone(left, self._rows.rows(slice(0, rows.stop)))
            matrix[rows, :a] = values[:, :a]
            matrix[:a, rows] = values[:, :a].T
            mirror(values[:, a:], matrix, a, a)
        matrix[range(n), range(n)] = self.diag
        self._square.values = matrix

    def _append(self, left: Operand) -> None:
        n, matrix = len(self), self.matrix
        total = n + len(left)
        if n:
            values = self._tiles.alone(left, self._rows)
            matrix[n:total, :n] = values
            matrix[:n, n:total] = values.T
        self.diag = np.concatenate([self.diag, self.kernel.diagonal(left)])
        self._rows.append(left)
        if len(left) > 1:
            last = self._rows.rows(slice(n, total))
            mirror(self._tiles.alone(left, last), matrix, n, n)
        matrix[range(n, total), range(n, total)] = self.diag[n:]

    def remove(self, moves: Moves) -> None:
        """Let rows go; the others take their places in :meth:`settle`."""
        n = len(self)
        self._rows.remove(moves)
        diag = self.diag.copy()
        moves.apply(diag)
        self.diag = diag[: moves.count]
        self._leaving = n, moves

    def settle(self) -> None:
        """Move rows and columns to the places of those that have left."""
        if self._leaving is None:
            return
        n, moves = self._leaving
        self._rows.settle()
        if self._square.values is not None:
            close_gaps(self._square.values, moves.target, moves.source, n)
        self._leaving = None

    def state(self) -> dict[str, Any]:
        """Return what :meth:`from_state` needs, which includes the lower triangle.

        Values that are computed again, in tiles of another shape, may be rounded
        differently.
        """
        n, matrix = len(self), self.matrix
        values = np.empty(n * (n + 1) // 2, dtype=matrix.dtype)
        for i in range(n):
            values[i * (i + 1) // 2 :][: i + 1] = matrix[i, : i + 1]
        return {
            "rows": self.rows.state(),
            "values": values,
            "diag": self.diag.copy(),
            "most": self.most,
            "size": len(matrix),
        }

    @classmethod
    def from_state(cls, kernel: Kernel, state: dict[str, Any]) -> HeldGram:
        """Return the matrix as it was."""
        gram = cls(kernel, HeldRows.from_state(state["rows"]), int(state["most"]))
        n, values, diag = len(gram), state["values"], state["diag"]
        if values.shape != (n * (n + 1) // 2,) or diag.shape != (n,):
            raise ValueError(
                f"The kernel values of {n} held samples have shapes {values.shape} and "
                f"{diag.shape}: they do not fit together."
            )
        gram.diag = diag.copy()
        # The room is as before, so that the matrix grows when it would have grown.
        size = min(int(state.get("size", n)), 2 * n + LEAST_ROOM)
        matrix = np.empty((max(n, size),) * 2, dtype=values.dtype)
        for i in range(n):
            row = values[i * (i + 1) // 2 :][: i + 1]
            matrix[i, : i + 1] = row
            matrix[:i, i] = row[:-1]
        gram._square.values = matrix
        return gram
