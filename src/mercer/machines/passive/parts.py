"""What a passive-aggressive learner has learnt: weights of features, or of samples.

``learn`` yields what has been learnt after each chunk of samples, and leaves the object
itself as it is.  The caller keeps what was yielded and then settles it before it asks
for the next chunk; see :mod:`mercer.engines.cpu.held`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.passive import (
    Rule,
    pass_of_one_task,
    pass_over_dense,
    pass_over_kernel,
    pass_over_sparse,
)
from mercer.engines.cpu.held import HeldRows, Moves, sample_keys
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.tiles import Tiles, Weights, apply, coefficient_matrix
from mercer.kernels.base import Kernel
from mercer.runtime.threads import Threads

__all__ = ["FeaturePart", "Lessons", "SamplePart"]

# Samples whose kernel values are computed at once.
CHUNK = 256
# Sparse samples with fewer values than this part of the features are learnt from with a
# copy of the weights of their own features only.
FEW = 0.25


class Lessons(NamedTuple):
    """Samples to learn from."""

    X: Any
    labels: NDArray[np.int64]
    weight: NDArray
    factor: NDArray  #: weights of the classes


class FeaturePart:
    """Weights of the features, for the linear machine."""

    NAMES = ("w", "b", "u", "v", "t")

    def __init__(self, w: NDArray, b: NDArray, u: NDArray, v: NDArray, t: float):
        self._w = w
        self.b = b
        self._u = u
        self.v = v
        self.t = t
        #: weights of some columns that still have to be written: columns, w and u
        self._late: tuple[NDArray, NDArray, NDArray] | None = None

    @classmethod
    def empty(cls, n_tasks: int, n_features: int) -> FeaturePart:
        """Return weights that are all zero."""
        w, b = np.zeros((n_tasks, n_features)), np.zeros(n_tasks)
        return cls(w, b, np.zeros_like(w), np.zeros_like(b), 0.0)

    @property
    def w(self) -> NDArray:
        """The weights, a row for each task."""
        self.settle()
        return self._w

    @property
    def u(self) -> NDArray:
        """What the average of the weights needs besides."""
        self.settle()
        return self._u

    def settle(self) -> None:
        """Write the weights of the features that samples had."""
        if self._late is None:
            return
        columns, w, u = self._late
        self._w[:, columns] = w
        self._u[:, columns] = u
        self._late = None

    def learn(
        self, lessons: Lessons, order: NDArray, rule: Rule, learns: NDArray
    ) -> Iterator[tuple[FeaturePart, int, NDArray]]:
        """Go once over samples; yield the weights, how many samples, and the losses."""
        X, d = lessons.X, self.w.shape[1]
        if not (sparse.issparse(X) and X.nnz < FEW * d):
            after = self._copy(slice(None))
            yield after, len(order), after._pass(lessons, order, rule, learns)
            return
        is_used = np.zeros(d, dtype=bool)
        is_used[X.indices] = True
        columns = np.flatnonzero(is_used)
        place = np.empty(d, dtype=X.indices.dtype)
        place[columns] = np.arange(len(columns))
        few = sparse.csr_array(
            (X.data, place[X.indices], X.indptr), shape=(X.shape[0], len(columns))
        )
        part = self._copy(columns)
        losses = part._pass(lessons._replace(X=few), order, rule, learns)
        after = FeaturePart(self.w, part.b, self.u, part.v, part.t)
        after._late = columns, part.w, part.u
        yield after, len(order), losses

    def _copy(self, columns: Any) -> FeaturePart:
        w, u = (np.array(x[:, columns], order="C") for x in (self.w, self.u))
        return FeaturePart(w, self.b.copy(), u, self.v.copy(), self.t)

    def _pass(
        self, lessons: Lessons, order: NDArray, rule: Rule, learns: NDArray
    ) -> NDArray:
        """Change the weights; return the losses of each task, added up."""
        losses = np.zeros(len(self.w))
        X: Any = lessons.X
        rest: Any = *lessons[1:], order
        weights = self.w, self.b, self.u, self.v, self.t, losses
        state: Any = (rule, learns, *weights)
        if not sparse.issparse(X):
            self.t = pass_over_dense(X, *rest, *state)
            return losses
        unsigned = X.indices.view(f"u{X.indices.itemsize}")
        data = X.data, unsigned, X.indptr, *rest
        if len(self.w) == 1:
            state = (rule, *weights)
            self.t = pass_of_one_task(*data, *state)
        else:
            self.t = pass_over_sparse(*data, *state)
        return losses

    def is_finite(self) -> bool:
        """Tell whether no weight has become too large."""
        changed = self._w if self._late is None else self._late[1]
        return bool(np.isfinite(changed).all() and np.isfinite(self.b).all())

    def state(self) -> dict[str, Any]:
        """Return what :meth:`from_state` needs."""
        return {name: getattr(self, name) for name in self.NAMES}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FeaturePart:
        """Return the weights as they were."""
        part = cls.empty(*state["w"].shape)
        for name in cls.NAMES:
            if np.shape(state[name]) != np.shape(getattr(part, name)):
                raise ValueError(f"The array {name!r} does not fit to the weights.")
        w, b, u, v = (np.array(state[name]) for name in cls.NAMES[:4])
        return cls(w, b, u, v, float(state["t"]))


class SamplePart:
    """Coefficients of held samples, for a kernel; their number may have a limit."""

    def __init__(self, kernel: Kernel, rows: HeldRows, n_tasks: int):
        self.kernel = kernel
        self._rows = rows
        n = len(rows)
        self.beta = np.zeros((n_tasks, n))
        self.b = np.zeros(n_tasks)
        self.u = np.zeros((n_tasks, n))
        self.v = np.zeros(n_tasks)
        self.t = 0.0
        self.age = np.full(n, -1.0)
        self._tiles = Tiles(kernel)
        self._read_keys()

    def _read_keys(self) -> None:
        n = len(self.rows)
        self._keys = list(sample_keys(self.rows.X, np.zeros(n)))
        self._slot = {key: slot for slot, key in enumerate(self._keys)}

    @classmethod
    def empty(cls, kernel: Kernel, X: Any, n_tasks: int) -> SamplePart:
        """Return a machine without samples, for such as ``X``."""
        center = None if sparse.issparse(X) else X.mean(axis=0, dtype=np.float64)
        part = cls(kernel, HeldRows(X[:1], center), n_tasks)
        part._sweep()
        part.settle()
        return part

    @property
    def rows(self) -> HeldRows:
        """The held samples, all in their places."""
        self.settle()
        return self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def settle(self) -> None:
        """Put the samples that stay in the places of those that have left."""
        self._rows.settle()

    def _fork(self) -> Self:
        """Return coefficients that can change while these stay as they are."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        for name in ("beta", "b", "u", "v", "age", "_keys", "_slot"):
            setattr(twin, name, getattr(self, name).copy())
        twin._rows = self._rows.fork()
        return twin

    def learn(
        self,
        lessons: Lessons,
        order: NDArray,
        rule: Rule,
        learns: NDArray,
        budget: int,
        oldest: bool,
    ) -> Iterator[tuple[SamplePart, int, NDArray]]:
        """Go once over samples; yield the coefficients after each chunk.

        With them come the number of samples and the losses of each task.
        """
        part = self
        for first in range(0, len(order), CHUNK):
            chosen = order[first : first + CHUNK]
            losses = np.zeros(len(self.b))
            part = part._fork()
            K, slots = part._take_in(lessons.X[chosen])
            diag = part.kernel.diagonal(part.rows)
            part.t, _ = pass_over_kernel(
                K,
                diag[slots],
                lessons.labels[chosen],
                lessons.weight[chosen],
                lessons.factor,
                slots,
                rule,
                learns,
                part.beta,
                part.b,
                part.u,
                part.v,
                part.t,
                losses,
                part.age,
                np.sqrt(np.maximum(diag, 0.0)),
                int((part.age >= 0).sum()),
                budget,
                oldest,
            )
            part._sweep()
            yield part, len(chosen), losses

    def is_finite(self) -> bool:
        """Tell whether no coefficient has become too large."""
        return bool(np.isfinite(self.beta).all() and np.isfinite(self.b).all())

    def _take_in(self, X: Any) -> tuple[NDArray, NDArray[np.int64]]:
        """Hold samples for now; return kernel values with all, and where they are."""
        n, left = len(self.rows), Operand(X)
        slots = np.empty(len(left), dtype=np.int64)
        fresh: list[int] = []
        for r, key in enumerate(sample_keys(X, np.zeros(len(left)))):
            if key not in self._slot:
                self._slot[key] = n + len(fresh)
                self._keys.append(key)
                fresh.append(r)
            slots[r] = self._slot[key]
        K = np.empty((len(left), n + len(fresh)), dtype=self.rows.dtype)
        if n:
            K[:, :n] = self._tiles.alone(left, self.rows)
        if fresh:
            self.rows.append(left if len(fresh) == len(left) else Operand(X[fresh]))
            own = self.rows.rows(slice(n, n + len(fresh)))
            K[:, n:] = self._tiles.alone(left, own)
            more = np.zeros((len(self.b), len(fresh)))
            self.beta = np.hstack([self.beta, more])
            self.u = np.hstack([self.u, more])
            self.age = np.concatenate([self.age, np.full(len(fresh), -1.0)])
        return K, slots

    def _sweep(self) -> None:
        """Let go of samples without coefficients, as the last thing before settling."""
        moves = Moves(len(self), np.flatnonzero(self.age < 0))
        for slot in np.flatnonzero(self.age < 0):
            del self._slot[self._keys[slot]]
        for target, source in zip(moves.target, moves.source, strict=True):
            self._keys[target] = self._keys[source]
            self._slot[self._keys[target]] = int(target)
        del self._keys[moves.count :]
        self._rows.remove(moves)
        for values in (self.beta.T, self.u.T, self.age):
            moves.apply(values)
        self.beta = np.ascontiguousarray(self.beta[:, : moves.count])
        self.u = np.ascontiguousarray(self.u[:, : moves.count])
        self.age = self.age[: moves.count].copy()

    def products(self, X: Any, beta: NDArray, n_jobs: int | None) -> NDArray:
        """Return the kernel values of samples with the held ones, times ``beta``."""
        n = len(self.rows)
        weights = coefficient_matrix(n, [(np.arange(n), row) for row in beta])
        with Threads(n_jobs) as threads:
            whole = Weights(weights, [0, n])
            return apply(self.kernel, Operand(X), self.rows, whole, threads)

    def state(self) -> dict[str, Any]:
        """Return what :meth:`from_state` needs."""
        names = ("beta", "b", "u", "v", "t", "age")
        return {
            "rows": self.rows.state(),
            **{name: np.copy(getattr(self, name))[()] for name in names},
        }

    @classmethod
    def from_state(cls, kernel: Kernel, state: dict[str, Any]) -> SamplePart:
        """Return the coefficients as they were."""
        part = cls(kernel, HeldRows.from_state(state["rows"]), len(state["b"]))
        for name in ("beta", "b", "u", "v", "t", "age"):
            if np.shape(state[name]) != np.shape(getattr(part, name)):
                raise ValueError(f"The array {name!r} does not fit to the samples.")
            setattr(part, name, state[name])
        return part
