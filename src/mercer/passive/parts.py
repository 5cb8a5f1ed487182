"""What a passive-aggressive learner has learnt: weights of features, or of samples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.coefficients import Weights, coefficient_matrix
from mercer.core.passive import (
    Rule,
    pass_of_one_task,
    pass_over_dense,
    pass_over_kernel,
    pass_over_sparse,
)
from mercer.gram import Tiles, apply
from mercer.kernels.base import Kernel
from mercer.kernels.operand import Operand
from mercer.store import HeldRows, Moves, sample_keys, tile_with
from mercer.threads import Threads

__all__ = ["FeaturePart", "Lessons", "SamplePart"]

# Samples whose kernel values are computed at once.
CHUNK = 256


class Lessons(NamedTuple):
    """Samples to learn from."""

    X: Any
    labels: NDArray[np.int64]
    weight: NDArray
    factor: NDArray  #: weights of the classes


class FeaturePart:
    """Weights of the features, for the linear machine."""

    def __init__(self, n_tasks: int, n_features: int):
        self.w = np.zeros((n_tasks, n_features))
        self.b = np.zeros(n_tasks)
        self.u = np.zeros((n_tasks, n_features))
        self.v = np.zeros(n_tasks)
        self.t = 0.0

    def learn(
        self, lessons: Lessons, order: NDArray, rule: Rule, learns: NDArray
    ) -> NDArray:
        """Go once over samples; return the losses of each task, added up."""
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

    def state(self) -> dict[str, Any]:
        """Return what :meth:`from_state` needs."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FeaturePart:
        """Return the weights as they were."""
        part = cls(*state["w"].shape)
        for name, value in vars(part).items():
            if np.shape(state[name]) != np.shape(value):
                raise ValueError(f"The array {name!r} does not fit to the weights.")
        part.__dict__.update(state)
        return part


class SamplePart:
    """Coefficients of held samples, for a kernel; their number may have a limit."""

    def __init__(self, kernel: Kernel, rows: HeldRows, n_tasks: int):
        self.kernel = kernel
        self.rows = rows
        n = len(rows)
        self.beta = np.zeros((n_tasks, n))
        self.b = np.zeros(n_tasks)
        self.u = np.zeros((n_tasks, n))
        self.v = np.zeros(n_tasks)
        self.t = 0.0
        self.age = np.full(n, -1.0)
        self._tile_of = Tiles(kernel)
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
        return part

    def learn(
        self,
        lessons: Lessons,
        order: NDArray,
        rule: Rule,
        learns: NDArray,
        budget: int,
        oldest: bool,
    ) -> NDArray:
        """Go once over samples, chunk by chunk; return the losses of each task."""
        losses = np.zeros(len(self.b))
        for first in range(0, len(order), CHUNK):
            part = order[first : first + CHUNK]
            X = lessons.X[part]
            K, slots = self._take_in(X)
            diag = self.kernel.diagonal(self.rows)
            self.t, _ = pass_over_kernel(
                K,
                diag[slots],
                lessons.labels[part],
                lessons.weight[part],
                lessons.factor,
                slots,
                rule,
                learns,
                self.beta,
                self.b,
                self.u,
                self.v,
                self.t,
                losses,
                self.age,
                np.sqrt(np.maximum(diag, 0.0)),
                int((self.age >= 0).sum()),
                budget,
                oldest,
            )
            self._sweep()
        return losses

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
            K[:, :n] = tile_with(self._tile_of, left, self.rows)
        if fresh:
            self.rows.append(left if len(fresh) == len(left) else Operand(X[fresh]))
            own = self.rows.rows(slice(n, n + len(fresh)))
            K[:, n:] = tile_with(self._tile_of, left, own)
            more = np.zeros((len(self.b), len(fresh)))
            self.beta = np.hstack([self.beta, more])
            self.u = np.hstack([self.u, more])
            self.age = np.concatenate([self.age, np.full(len(fresh), -1.0)])
        return K, slots

    def _sweep(self) -> None:
        """Let go of samples without coefficients."""
        moves = Moves(len(self.rows), np.flatnonzero(self.age < 0))
        for slot in np.flatnonzero(self.age < 0):
            del self._slot[self._keys[slot]]
        for target, source in zip(moves.target, moves.source, strict=True):
            self._keys[target] = self._keys[source]
            self._slot[self._keys[target]] = int(target)
        del self._keys[moves.count :]
        self.rows.remove(moves)
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
        return {"rows": self.rows.state(), **{n: getattr(self, n) for n in names}}

    @classmethod
    def from_state(cls, kernel: Kernel, state: dict[str, Any]) -> SamplePart:
        """Return the coefficients as they were."""
        part = cls(kernel, HeldRows.from_state(state["rows"]), len(state["b"]))
        for name in ("beta", "b", "u", "v", "t", "age"):
            if np.shape(state[name]) != np.shape(getattr(part, name)):
                raise ValueError(f"The array {name!r} does not fit to the samples.")
            setattr(part, name, state[name])
        return part
