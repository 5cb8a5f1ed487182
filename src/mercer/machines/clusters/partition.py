r"""Lloyd's iteration in feature space, for several starts at once.

With weights :math:`w`, :math:`W_c = \sum_{i \in c} w_i` and
:math:`S_{ic} = \sum_{j \in c} w_j K_{ij}`, the squared distance of a sample from the
mean of a cluster is

.. math:: D_{ic} = K_{ii} - 2 S_{ic} / W_c + T_c / W_c^2, \quad
    T_c = \sum_{i \in c} w_i S_{ic},

so that a round needs one product of the Gram matrix with the indicators of the
clusters.  One pass over the matrix serves all starts together.

With the degrees :math:`d_i = \sum_j w_j K_{ij}`, the kernel :math:`K_{ij} / d_i d_j`
and the weights :math:`w_i d_i` make the objective the normalised cut of the graph with
weights :math:`w_i w_j K_{ij}` (Dhillon, Guan & Kulis, 2004), up to a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.tiles import ranges
from mercer.engines.cpu.products import GivenProduct, GramProduct
from mercer.machines.clusters.lloyd import is_lower

__all__ = ["MOST_ROWS", "FeatureSamples", "Partition", "work_bytes"]

# Largest number of samples whose square matrix is decomposed.
MOST_ROWS = 800
# Largest number of columns in a pass over the matrix.
MOST_COLUMNS = 128
# Bytes per sample that a column takes on its way: as indicators, scaled, in the
# precision of the matrix, twice, as a product, and scaled again, with its distances.
COLUMN_BYTES = 72
# Bytes per value of the square of samples that are decomposed: it and one copy.
SQUARE_BYTES = 16


def work_bytes(n: int, k: int, budget: int) -> int:
    """Return the part of a budget that iterations take, half of it at most.

    It is enough for one start at least, and for the square of the samples that are
    decomposed. The columns of these can be computed again, and get less.
    """
    rows = min(n, MOST_ROWS)
    most = MOST_COLUMNS * n * COLUMN_BYTES * 4 // 3
    most = max(most, min(2 * n * rows * 16, budget // 8))
    least = max(k * n * COLUMN_BYTES * 4 // 3, rows * rows * SQUARE_BYTES)
    return max(least, min(most, budget // 2))


class Partition(NamedTuple):
    """The result of one start."""

    labels: NDArray
    inertia: float
    history: list[float]
    converged: bool


class FeatureSamples:
    """Images of weighted samples in feature space, given by their Gram matrix.

    Each image is multiplied by its ``scale``, which is 1, or 1 divided by its degree.
    """

    def __init__(
        self,
        product: GramProduct | GivenProduct,
        weight: NDArray,
        by_degree: bool,
        work: int | None = None,
    ):
        """Prepare to work on arrays of ``work`` bytes, or on as many as pay."""
        #: columns that a pass over the matrix takes
        self.most_columns = MOST_COLUMNS
        self._work = work
        if work is not None:
            # Products take a quarter.
            room = work * 3 // 4 // (product.n * COLUMN_BYTES)
            self.most_columns = max(1, min(room, MOST_COLUMNS))
        self._product = product
        self._given_weight = weight
        self._by_degree = by_degree
        self.n = product.n
        self.degrees = np.ones(self.n)
        if by_degree:
            self.degrees = product.times(weight[:, None]).ravel()
            if not (self.degrees[weight > 0] > 0).all():
                raise ValueError(
                    "normalize=True needs a kernel whose sums over the samples are "
                    "positive, such as 'rbf'; this kernel has sums <= 0. Use "
                    "normalize=False."
                )
            self.degrees[self.degrees <= 0] = 1.0
        self.scale = 1.0 / self.degrees
        self.weight = weight * self.degrees
        self.diag = product.diag * self.scale**2
        self.total = float(self.weight @ self.diag)

    def times(self, V: NDArray) -> NDArray:
        """Return the product of the scaled Gram matrix with ``V``."""
        return self.scale[:, None] * self._product.times(self.scale[:, None] * V)

    def columns(self, index: NDArray) -> NDArray:
        """Return columns of the scaled Gram matrix, in double precision."""
        found = self._product.columns(index).astype(np.float64)
        return found * self.scale[:, None] * self.scale[index]

    def seen_from(self, rows: NDArray) -> Seen:
        """Return the samples as if some of them were all, with degrees among these."""
        at_once = len(rows)
        if self._work is not None:
            # As they are computed, in double precision, and those before.
            per_column = self.n * (self._product.dtype.itemsize + 16)
            at_once = max(1, min(at_once, self._work // 2 // per_column))
        weight = self._given_weight[rows]
        return Seen(self._product, rows, weight, self._by_degree, at_once)

    def indicators(self, labels: NDArray, k: int) -> NDArray:
        """Return a matrix (n, k) with each sample's weight in its cluster's column."""
        found = np.zeros((self.n, k))
        found[np.arange(self.n), labels] = self.weight
        return found

    def distances(self, labels: NDArray, S: NDArray) -> tuple[NDArray, float]:
        """Return squared distances from the means, and the objective."""
        k = S.shape[1]
        mass = np.bincount(labels, weights=self.weight, minlength=k)
        own = S[np.arange(self.n), labels]
        inner = np.bincount(labels, weights=self.weight * own, minlength=k)
        safe = np.where(mass > 0, mass, 1.0)
        D = self.diag[:, None] - 2.0 * S / safe + inner / safe**2
        D[:, mass <= 0] = np.inf
        return D, self.total - float((inner / safe).sum())

    def iterate(
        self,
        starts: list[NDArray],
        k: int,
        max_iter: int,
        report: Callable[[str, float], bool],
    ) -> list[Partition]:
        """Iterate all starts until no sample changes its cluster."""
        runs = [_Run(self._repaired(labels, None, k)) for labels in starts]
        at_once = max(1, self.most_columns // k)
        for _ in range(max_iter):
            active = [run for run in runs if not run.done]
            if not active:
                break
            for first in range(0, len(active), at_once):
                some = active[first : first + at_once]
                V = np.hstack([self.indicators(run.labels, k) for run in some])
                S = self.times(V)
                for r, run in enumerate(some):
                    self._step(run, S[:, r * k : (r + 1) * k], k)
            if report("inertia", min(run.history[-1] for run in runs)):
                break
        self._last(runs, k)
        return [Partition(r.labels, r.history[-1], r.history, r.done) for r in runs]

    def best(self, found: list[Partition]) -> Partition:
        """Return the partition with the least objective; the first one of several."""
        best = found[0]
        for part in found[1:]:
            if is_lower(part.inertia, best.inertia, self.total):
                best = part
        return best

    def _step(self, run: _Run, S: NDArray, k: int) -> None:
        D, objective = self.distances(run.labels, S)
        if run.history and not is_lower(objective, run.history[-1], self.total):
            # The objective does not decrease: only rounding is left, or the kernel is
            # not positive definite.
            if objective > run.history[-1]:
                run.labels = run.before
            run.done = True
            return
        run.history.append(objective)
        new = self._repaired(D.argmin(axis=1), D, k)
        if (new == run.labels).all():
            run.done = True
        run.before, run.labels = run.labels, new

    def _last(self, runs: list[_Run], k: int) -> None:
        """Compute the objective of runs that were stopped early."""
        for run in runs:
            if not run.done:
                S = self.times(self.indicators(run.labels, k))
                objective = self.distances(run.labels, S)[1]
                if objective <= run.history[-1]:
                    run.history.append(objective)
                else:
                    run.labels = run.before

    def _repaired(self, labels: NDArray, D: NDArray | None, k: int) -> NDArray:
        """Give each empty cluster the sample that is farthest from its mean."""
        labels = np.array(labels, dtype=np.int32)
        mass = np.bincount(labels, weights=self.weight, minlength=k)
        for c in np.flatnonzero(mass <= 0):
            far = self.diag if D is None else D[np.arange(self.n), labels]
            members = np.bincount(labels[self.weight > 0], minlength=k)
            allowed = (self.weight > 0) & (members[labels] > 1)
            if not allowed.any():
                break
            i = int(np.where(allowed, far * self.weight, -np.inf).argmax())
            labels[i] = c
            if D is not None:
                D[i, c] = -np.inf  # the sample is not moved again
        return labels


class Seen:
    """Columns of the Gram matrix, scaled by degrees among the samples of the columns.

    They are computed once if there is room for all of them, otherwise each time.
    """

    def __init__(
        self,
        product: GramProduct | GivenProduct,
        rows: NDArray,
        weight: NDArray,
        by_degree: bool,
        at_once: int,
    ):
        self._product = product
        self._rows = rows
        self._parts = ranges(0, len(rows), at_once, even=False)
        self._kept: NDArray | None = None
        self._degrees: NDArray | None = None
        self.weight = weight  #: degrees of the samples of the columns
        if len(self._parts) == 1:
            self._kept = self._computed(self._parts[0])
        if by_degree:
            degrees = self._sum(lambda columns, part: columns @ weight[part])
            degrees[degrees <= 0] = 1.0
            self._degrees = degrees
            self.weight = weight * degrees[rows]
            if self._kept is not None:
                self._scale(self._kept, self._parts[0])

    def square(self) -> NDArray:
        """Return the matrix of these samples alone."""
        square = np.empty((len(self._rows), len(self._rows)))
        for columns, part in self._columns():
            square[:, part] = columns[self._rows]
        return square

    def times(self, V: NDArray) -> NDArray:
        """Return the product of the columns with ``V``."""
        return self._sum(lambda columns, part: columns @ V[part])

    def _sum(self, product: Callable[[NDArray, slice], NDArray]) -> NDArray:
        found = [product(columns, part) for columns, part in self._columns()]
        return np.sum(found, axis=0) if len(found) > 1 else found[0]

    def _columns(self) -> Iterator[tuple[NDArray, slice]]:
        for part in self._parts:
            if self._kept is not None:
                yield self._kept, part
                continue
            columns = self._computed(part)
            if self._degrees is not None:
                self._scale(columns, part)
            yield columns, part

    def _computed(self, part: slice) -> NDArray:
        return self._product.columns(self._rows[part]).astype(np.float64)

    def _scale(self, columns: NDArray, part: slice) -> None:
        degrees: Any = self._degrees
        columns /= degrees[:, None]
        columns /= degrees[self._rows[part]]


class _Run:
    """The state of one start."""

    def __init__(self, labels: NDArray):
        self.labels = self.before = labels
        self.history: list[float] = []
        self.done = False
