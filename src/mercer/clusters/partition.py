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

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.products import GivenProduct, GramProduct

__all__ = ["FeatureSamples", "Partition"]

# Largest number of columns that one pass over the matrix multiplies.
MOST_COLUMNS = 128


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
    ):
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

    def seen_from(self, rows: NDArray) -> tuple[NDArray, NDArray]:
        """Return columns and weights, with degrees computed from these samples only."""
        columns = self._product.columns(rows).astype(np.float64)
        weight = self._given_weight[rows]
        if not self._by_degree:
            return columns, weight
        degrees = columns @ weight
        degrees[degrees <= 0] = 1.0
        columns /= degrees[:, None]
        columns /= degrees[rows]
        return columns, weight * degrees[rows]

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
        at_once = max(1, MOST_COLUMNS // k)
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

    def _step(self, run: _Run, S: NDArray, k: int) -> None:
        D, objective = self.distances(run.labels, S)
        slack = 1e-12 * abs(self.total)
        if run.history and objective > run.history[-1] - slack:
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


class _Run:
    """The state of one start."""

    def __init__(self, labels: NDArray):
        self.labels = self.before = labels
        self.history: list[float] = []
        self.done = False
