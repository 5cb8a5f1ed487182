"""Lloyd's iteration in threads, with bounds that avoid most distances.

The sums of the clusters are updated by the samples that change their cluster.  The
objective is computed from these sums, without a pass over the data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.kernels.pair import squared_norms
from mercer.machines.clusters.lloyd_steps import (
    assign,
    decide,
    gather,
    give_way,
    move_between,
    settle,
)
from mercer.runtime.threads import Threads

__all__ = ["Clustering", "Lloyd", "is_lower"]

# Number of samples in one piece of work for a thread.
ROWS = 1024
# Up to so many centres, inner products in a compiled loop take less time than a matrix
# product: the loop reads rows where they are, and leaves out most of the products.
FEW_CENTERS = 32
# Least number of samples in a part of a sum, and largest number of parts.
LEAST_SHARE, MOST_SHARES = 4096, 8


def is_lower(inertia: float, than: float, total: float) -> bool:
    """Return whether an objective is lower than another by more than rounding.

    ``total`` is the sum of squares from which objectives are subtracted.  Two starts
    that find the same clusters differ by rounding alone.  The first of them is kept, so
    that the last bits of the samples do not decide how clusters are numbered.
    """
    return inertia < than - 1e-12 * abs(total)


class Clustering(NamedTuple):
    """The result of one start."""

    labels: NDArray
    centers: NDArray
    inertia: float
    history: list[float]
    n_iter: int
    converged: bool


class Lloyd:
    """Samples with their weights, ready to be clustered from several starts."""

    def __init__(
        self,
        X: Any,
        weight: NDArray,
        threads: Threads,
        norms: NDArray | None = None,
    ):
        self.X: Any = X if sparse.issparse(X) else np.ascontiguousarray(X)
        self.weight = weight
        #: squared norms of the samples
        self.norms = squared_norms(X) if norms is None else norms
        self.threads = threads
        self._is_sparse = sparse.issparse(X)
        self.n, self.d = X.shape
        self.total = float(weight @ self.norms)
        # This bounds the relative error of an inner product of d terms, summed in
        # blocks.
        self._error = float(np.finfo(X.dtype).eps) * (4.0 + np.sqrt(self.d))

    def run(
        self,
        start: NDArray,
        max_iter: int,
        tol: float,
        report: Callable[[str, float], bool],
    ) -> Clustering:
        """Iterate until no sample changes its cluster, or the centres hardly move."""
        centers = np.array(start, dtype=np.float64)
        k = len(centers)
        state = _State(self.n, k, self.d)
        history: list[float] = []
        rows, strict, settled = np.arange(self.n), False, False
        gaps = np.zeros(k)
        for _ in range(max_iter):
            changed = self._assign(rows, centers, state, gaps)
            self._follow(changed, state)
            history.append(self._inertia(centers, state))
            new = self._means(centers, state)
            moved = np.linalg.norm(new - centers, axis=1)
            centers = new
            strict = not len(changed)
            settled = strict or bool((moved**2).sum() <= tol)
            if settled or report("inertia", history[-1]):
                break
            gaps = _half_gaps(centers)
            rows = state.doubtful(moved, gaps)
        if not strict:
            # The centres have moved since the last assignment; update the labels.
            gaps = _half_gaps(centers)
            rows = state.doubtful(moved, gaps)
            self._follow(self._assign(rows, centers, state, gaps), state)
        inertia, n_iter = self._inertia(centers, state), len(history)
        history.append(inertia)
        return Clustering(state.labels, centers, inertia, history, n_iter, settled)

    def labels_of(self, centers: NDArray) -> NDArray:
        """Return the nearest centre of each sample."""
        state = _State(self.n, len(centers), 0)
        centers = np.asarray(centers, dtype=np.float64)
        self._assign(np.arange(self.n), centers, state, np.zeros(len(centers)))
        return state.labels

    def inertia(self, labels: NDArray, centers: NDArray) -> float:
        """Return the weighted sum of squared distances between samples and centres."""
        state = _State(self.n, len(centers), self.d)
        state.labels[:] = labels
        self._follow(np.arange(self.n), state)
        return self._inertia(np.asarray(centers, dtype=np.float64), state)

    def _assign(
        self, rows: NDArray, centers: NDArray, state: _State, half_gaps: NDArray
    ) -> NDArray:
        """Assign some samples; return those that changed their cluster."""
        before = state.labels[rows]
        c_norm = np.einsum("ij,ij->i", centers, centers)
        factor = centers.astype(self.X.dtype)
        is_few = len(centers) <= FEW_CENTERS and not self._is_sparse

        def work(first: int) -> None:
            some = rows[first : first + ROWS]
            doubtful = np.empty(len(some), dtype=np.intp)
            known = state.labels, state.upper, state.lower, doubtful
            if is_few:
                count = settle(
                    self.X, some, self.norms, factor, c_norm, half_gaps, self._error,
                    *known,
                )  # fmt: skip
            else:
                dots = np.ascontiguousarray(self._part(some) @ factor.T)
                count = assign(dots, some, self.norms, c_norm, self._error, *known)
            if count:
                some = doubtful[:count]
                part = self._part(some)
                part = part.toarray() if self._is_sparse else part
                decide(part, some, centers, state.labels, state.upper, state.lower)

        self.threads.map(work, range(0, len(rows), ROWS))
        is_other = (state.labels[rows] != before) | (state.summed[rows] < 0)
        return rows[is_other]

    def _part(self, rows: NDArray) -> Any:
        """Return some rows; a view if they are contiguous."""
        if self._is_sparse:
            return self.X[rows]
        if rows[-1] - rows[0] == len(rows) - 1:
            return self.X[rows[0] : rows[-1] + 1]
        part = np.empty((len(rows), self.d), dtype=self.X.dtype)
        gather(self.X, rows, part)
        return part

    def _follow(self, rows: NDArray, state: _State) -> None:
        """Update the sums for samples that changed their cluster."""
        n_shares = int(np.clip(len(rows) // LEAST_SHARE, 1, MOST_SHARES))
        shares = np.array_split(rows, n_shares)

        def work(some: NDArray) -> tuple[NDArray, NDArray]:
            sums, counts = np.zeros_like(state.sums), np.zeros_like(state.counts)
            if self._is_sparse:
                self._move_sparse(some, state, sums, counts)
            else:
                move_between(
                    self.X, some, state.summed, state.labels, self.weight, sums, counts
                )
            return sums, counts

        for sums, counts in self.threads.map(work, shares):
            state.sums += sums
            state.counts += counts
        state.summed[rows] = state.labels[rows]

    def _move_sparse(
        self, rows: NDArray, state: _State, sums: NDArray, counts: NDArray
    ) -> None:
        part = self.X[rows].astype(np.float64)
        for labels, sign in ((state.summed[rows], -1.0), (state.labels[rows], 1.0)):
            used = np.flatnonzero(labels >= 0)
            entries = (sign * self.weight[rows[used]], (labels[used], used))
            which = sparse.coo_array(entries, shape=(len(sums), len(rows))).tocsr()
            sums += (which @ part).toarray()
            counts += np.asarray(which.sum(axis=1)).ravel()

    def _inertia(self, centers: NDArray, state: _State) -> float:
        cross = float(np.einsum("ij,ij->", centers, state.sums))
        own = float(state.counts @ np.einsum("ij,ij->i", centers, centers))
        return max(self.total - 2.0 * cross + own, 0.0)

    def _means(self, centers: NDArray, state: _State) -> NDArray:
        """Return the new centres; an empty cluster gets a far sample."""
        sums, counts = state.sums, state.counts
        tiny = 1e-12 * max(float(counts.max()), 0.0)
        empty = np.flatnonzero(counts <= tiny)
        if len(empty):
            sums, counts = sums.copy(), counts.copy()
            sums[empty], counts[empty] = 0.0, 0.0
            for c, i in zip(
                empty, self._farthest(centers, state, len(empty)), strict=False
            ):
                own, w = state.labels[i], self.weight[i]
                x = self.X[[i]].toarray()[0] if self._is_sparse else self.X[i]
                sums[own] -= w * x.astype(np.float64)
                counts[own] -= w
                sums[c], counts[c] = w * x.astype(np.float64), w
        full = counts > tiny
        means = centers.copy()
        means[full] = sums[full] / counts[full, None]
        return means

    def _farthest(self, centers: NDArray, state: _State, count: int) -> NDArray:
        """Return the samples farthest from their centres, except single members."""
        distance = np.empty(self.n)
        factor = centers.astype(self.X.dtype).T
        norms = np.einsum("ij,ij->i", centers, centers)
        for first in range(0, self.n, ROWS):
            rows = np.arange(first, min(first + ROWS, self.n))
            own = state.labels[rows]
            dots = (self._part(rows) @ factor)[np.arange(len(rows)), own]
            distance[rows] = self.norms[rows] - 2.0 * dots + norms[own]
        allowed = (self.weight > 0) & (state.counts[state.labels] > self.weight)
        distance[~allowed] = -np.inf
        order = np.argsort(-distance, kind="stable")[:count]
        return order[np.isfinite(distance[order])]


class _State:
    """Labels, bounds and sums of one run."""

    def __init__(self, n: int, k: int, d: int):
        self.labels = np.full(n, -1, dtype=np.int32)
        #: the labels for which the sums were computed
        self.summed = np.full(n, -1, dtype=np.int32)
        self.upper = np.zeros(n)
        self.lower = np.zeros(n)
        self.sums = np.zeros((k, d))
        self.counts = np.zeros(k)
        self._room = np.empty(n, dtype=np.intp)

    def doubtful(self, moved: NDArray, half_gap: NDArray) -> NDArray:
        """Return the samples whose nearest centre may have changed."""
        count = give_way(
            self.labels, self.upper, self.lower, moved, half_gap, self._room
        )
        return self._room[:count].copy()


def _half_gaps(centers: NDArray) -> NDArray:
    """Return half the distance of each centre to the nearest other, rounded down."""
    k = len(centers)
    gaps = np.full(k, np.inf)
    norms = np.einsum("ij,ij->i", centers, centers)
    for c in range(k):
        squared = norms + norms[c] - 2.0 * (centers @ centers[c])
        squared[c] = np.inf
        gaps[c] = squared.min() - 1e-13 * (norms.max() + norms[c])
    return 0.5 * np.sqrt(np.maximum(gaps, 0.0)) * (1.0 - 1e-12)
