r"""The width of a kernel for clustering, chosen without labels.

For every candidate :math:`\gamma` the samples are clustered in feature space, weighted
by degree, and two numbers are compared that belong to the same operator
:math:`P = D^{-1/2} K D^{-1/2}`, :math:`D` the degrees:

* what the clustering leaves out, its normalised cut :math:`N`: the sum over the
  clusters of the share of their kernel mass that leads out of them;
* what one cluster more would have to leave out at the least,
  :math:`1 - \lambda_{k+1}(P)`.

The criterion is :math:`q(\gamma) = N / (k (1 - \lambda_{k+1}))`: small where k clusters
are cut cleanly and none of them falls apart by itself.  With a kernel too wide, all
cuts are bad and :math:`N` is large; too narrow, and clusters crumble:
:math:`\lambda_{k+1}` goes to 1.  The :math:`\gamma` with the smallest :math:`q` is
taken, among those whose smallest cluster has at least a fifth of an even share of the
samples, for one stray sample is always cut off cleanly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances

from mercer import eigen
from mercer.clusters.partition import FeatureSamples
from mercer.clusters.starts import from_embedding
from mercer.products import GivenProduct
from mercer.threads import Threads

__all__ = ["Tuning", "tune_gamma"]

# Samples that are looked at, drawn at random where there are more.
MOST_SAMPLES = 800
N_CANDIDATES = 24
# Share of samples, beside an even one, that the smallest cluster must have.
LEAST_SHARE = 0.2
# Below this, 1 - lambda is rounding.
LEAST_GAP = 1e-12
ROUNDS = 100


class Tuning(NamedTuple):
    """Candidates, and the criterion for each; inf where a cluster is too small."""

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
    """Return gammas from the width of the whole to that of the next neighbours."""
    n = len(distances)
    far = float(np.median(distances[np.triu_indices(n, 1)])) if n > 1 else 0.0
    if not far > 0:
        positive = distances[distances > 0]
        if not len(positive):
            return np.ones(1)
        far = float(np.median(positive))
    # About log n neighbours keep a random graph in one piece.
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
