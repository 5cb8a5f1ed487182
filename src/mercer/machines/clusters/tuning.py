r"""Choose gamma of a kernel for clustering, without labels.

For every candidate :math:`\gamma` the samples are clustered in feature space, weighted
by degree, and two numbers that belong to the same operator
:math:`P = D^{-1/2} K D^{-1/2}` are compared, where :math:`D` are the degrees:

* the normalised cut :math:`N` of the clustering: the sum over the clusters of the share
  of their kernel mass that leads to other clusters;
* a lower bound on the cut that one more cluster would add,
  :math:`1 - \lambda_{k+1}(P)`.

The criterion is :math:`q(\gamma) = N / (k (1 - \lambda_{k+1}))`.  It is small if the k
clusters are well separated and none of them falls apart.  If the kernel is too wide,
all cuts are bad and :math:`N` is large.  If it is too narrow, clusters fall apart and
:math:`\lambda_{k+1}` approaches 1.  The :math:`\gamma` with the smallest :math:`q` is
taken.  Candidates whose smallest cluster has less than a fifth of an even share of the
samples are left out, because a single outlier is always well separated.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances

from mercer.engines.cpu import eigen
from mercer.engines.cpu.products import GivenProduct
from mercer.machines.clusters.partition import FeatureSamples
from mercer.machines.clusters.starts import from_embedding
from mercer.runtime.threads import Threads

__all__ = ["Tuning", "tune_gamma"]

# Largest number of samples used; if there are more, some are drawn at random.
MOST_SAMPLES = 800
N_CANDIDATES = 24
# Least size of the smallest cluster, as a fraction of an even share of the samples.
LEAST_SHARE = 0.2
# Smaller values of 1 - lambda are only rounding errors.
LEAST_GAP = 1e-12
ROUNDS = 100


class Tuning(NamedTuple):
    """Candidates and the criterion of each, inf if one of its clusters is too small."""

    gammas: NDArray
    criterion: NDArray

    @property
    def best(self) -> float:
        """The candidate with the smallest criterion."""
        return float(self.gammas[int(np.argmin(self.criterion))])


def tune_gamma(
    X: Any,
    weight: NDArray,
    metric: str,
    k: int,
    random: np.random.RandomState,
    threads: Threads,
) -> Tuning:
    r"""Choose :math:`\gamma` of :math:`e^{-\gamma \, d(x, z)}` for k clusters."""
    allowed = np.flatnonzero(weight > 0)
    if len(allowed) > MOST_SAMPLES:
        allowed = np.sort(random.choice(allowed, MOST_SAMPLES, replace=False))
    chosen = X[allowed].astype(np.float64)
    if metric == "manhattan":
        distances = manhattan_distances(chosen)
    else:
        distances = euclidean_distances(chosen, squared=True)
    gammas = _candidates(distances)
    if len(allowed) <= k + 1 or len(gammas) == 1:
        return Tuning(gammas[:1], np.full(1, np.nan))
    criterion = []
    for gamma in gammas:
        K = -gamma * distances
        np.exp(K, out=K)
        criterion.append(_criterion(K, weight[allowed], k, random, threads))
    return Tuning(gammas, np.array(criterion))


def _candidates(distances: NDArray) -> NDArray:
    """Return gammas from the scale of all distances down to that of near neighbours."""
    n = len(distances)
    far = float(np.median(distances[np.triu_indices(n, 1)])) if n > 1 else 0.0
    if not far > 0:
        positive = distances[distances > 0]
        if not len(positive):
            return np.ones(1)
        far = float(np.median(positive))
    # A random graph is connected if each sample has about log n neighbours.
    place = min(n - 1, 1 + int(np.log(n)))
    near = float(np.median(np.partition(distances, place, axis=1)[:, place]))
    low = 0.25 / far
    high = 2.0 / near if near > 0 else 1e4 * low
    return np.geomspace(low, max(high, 4.0 * low), N_CANDIDATES)


def _criterion(
    K: NDArray,
    weight: NDArray,
    k: int,
    random: np.random.RandomState,
    threads: Threads,
) -> float:
    samples = FeatureSamples(GivenProduct(K, threads), weight, by_degree=True)
    root = np.sqrt(samples.weight) * samples.scale
    scaled = K * root[:, None]
    scaled *= root
    found = eigen.dense(scaled, k + 1)
    del scaled
    start = from_embedding(found.vectors[:, :k], samples.weight, k, random, threads)
    (part,) = samples.iterate([start], k, ROUNDS, lambda what, value: False)
    sizes = np.bincount(part.labels, minlength=k)
    if sizes.min() * k < LEAST_SHARE * len(K):
        return np.inf
    cut = max(k - (samples.total - part.inertia), 0.0)
    return cut / (k * max(1.0 - found.values[k], LEAST_GAP))
