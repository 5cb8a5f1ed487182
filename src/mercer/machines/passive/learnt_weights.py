"""What a passive-aggressive learner has learnt: weights of features, or of samples.

``learn`` yields a new object after each chunk of samples, and does not change the
object itself.  The caller keeps the new object and settles it before it asks for the
next chunk; see :mod:`mercer.engines.cpu.held`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.engines.cpu.held import HeldRows, Moves, sample_keys
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.tiles import Tiles
from mercer.kernels.base import Kernel
from mercer.machines.base.held_samples import SampleIndex
from mercer.machines.passive.updates import (
    Rule,
    pass_of_one_task,
    pass_over_dense,
    pass_over_kernel,
    pass_over_sparse,
)

__all__ = ["FeaturePart", "SamplePart", "WeightedSamples"]

# Number of samples whose kernel values are computed at once.
CHUNK = 256
# If sparse samples have fewer values than this fraction of the features, only the
# weights of the features that they have are copied.
FEW = 0.25


class WeightedSamples(NamedTuple):
    """Samples to learn from, with the weights of samples and classes."""

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
        """The sums from which the average of the weights is computed."""
        self.settle()
        return self._u

    def settle(self) -> None:
        """Write the weights of some columns that still have to be written."""
        if self._late is None:
            return
        columns, w, u = self._late
        self._w[:, columns] = w
        self._u[:, columns] = u
        self._late = None

    def learn(
        self, samples: WeightedSamples, order: NDArray, rule: Rule, learns: NDArray
    ) -> Iterator[tuple[FeaturePart, int, NDArray]]:
        """Make one pass; yield the weights, the number of samples, and the losses."""
        X, d = samples.X, self.w.shape[1]
        if not (sparse.issparse(X) and X.nnz < FEW * d):
            after = self._copy(slice(None))
            yield after, len(order), after._pass(samples, order, rule, learns)
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
        losses = part._pass(samples._replace(X=few), order, rule, learns)
        after = FeaturePart(self.w, part.b, self.u, part.v, part.t)
        after._late = columns, part.w, part.u
        yield after, len(order), losses

    def _copy(self, columns: Any) -> FeaturePart:
        w, u = (np.array(x[:, columns], order="C") for x in (self.w, self.u))
        return FeaturePart(w, self.b.copy(), u, self.v.copy(), self.t)

    def _pass(
        self, samples: WeightedSamples, order: NDArray, rule: Rule, learns: NDArray
    ) -> NDArray:
        """Change the weights; return the sum of the losses of each task."""
        losses = np.zeros(len(self.w))
        X: Any = samples.X
        rest: Any = *samples[1:], order
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

    def latest(self) -> tuple[NDArray, NDArray]:
        """Return the weights that the last chunk has changed, and the intercepts."""
        return self._w if self._late is None else self._late[1], self.b

    def state(self) -> dict[str, Any]:
        """Return what :meth:`from_state` needs."""
        return {name: getattr(self, name) for name in self.NAMES}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FeaturePart:
        """Return the weights as they were."""
        part = cls.empty(*state["w"].shape)
        for name in cls.NAMES:
            if np.shape(state[name]) != np.shape(getattr(part, name)):
                raise ValueError(f"The array {name!r} does not match the weights.")
        w, b, u, v = (np.array(state[name]) for name in cls.NAMES[:4])
        return cls(w, b, u, v, float(state["t"]))


class SamplePart:
    """Coefficients of held samples, for a machine with a kernel."""

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
        self._index = SampleIndex(sample_keys(rows.X, np.zeros(n)))

    @classmethod
    def empty(cls, kernel: Kernel, X: Any, n_tasks: int) -> SamplePart:
        """Return a machine without samples, for samples of the kind of ``X``."""
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
        """Move samples to the places of those that have been removed."""
        self._rows.settle()

    def _fork(self) -> Self:
        """Return coefficients that can change while these stay as they are."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        for name in ("beta", "b", "u", "v", "age", "_index"):
            setattr(twin, name, getattr(self, name).copy())
        twin._rows = self._rows.fork()
        return twin

    def learn(
        self,
        samples: WeightedSamples,
        order: NDArray,
        rule: Rule,
        learns: NDArray,
        budget: int,
        oldest: bool,
    ) -> Iterator[tuple[SamplePart, int, NDArray]]:
        """Make one pass; yield the coefficients after each chunk.

        The number of samples and the losses of each task are yielded with them.
        """
        part = self
        for first in range(0, len(order), CHUNK):
            chosen = order[first : first + CHUNK]
            losses = np.zeros(len(self.b))
            part = part._fork()
            K, slots = part._take_in(samples.X[chosen])
            diag = part.kernel.diagonal(part.rows)
            part.t, _ = pass_over_kernel(
                K,
                diag[slots],
                samples.labels[chosen],
                samples.weight[chosen],
                samples.factor,
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

    def latest(self) -> tuple[NDArray, NDArray]:
        """Return the coefficients and the intercepts."""
        return self.beta, self.b

    def _take_in(self, X: Any) -> tuple[NDArray, NDArray[np.int64]]:
        """Hold samples; return their kernel values with all samples, and their places.

        Samples that have no coefficient after the chunk are removed again.
        """
        n, left = len(self.rows), Operand(X)
        slots, fresh = self._index.add(sample_keys(X, np.zeros(len(left))))
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
        """Remove samples without coefficients; nothing but ``settle`` may follow."""
        leaving = np.flatnonzero(self.age < 0)
        moves = Moves(len(self), leaving)
        self._index.remove(leaving, moves)
        self._rows.remove(moves)
        for values in (self.beta.T, self.u.T, self.age):
            moves.apply(values)
        self.beta = np.ascontiguousarray(self.beta[:, : moves.count])
        self.u = np.ascontiguousarray(self.u[:, : moves.count])
        self.age = self.age[: moves.count].copy()

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
                raise ValueError(f"The array {name!r} does not match the samples.")
            setattr(part, name, state[name])
        return part
