"""The samples at which k-means starts: far from each other, drawn by k-means++.

Each new centre is the best of a few samples that are drawn with probabilities
proportional to their squared distances from the nearest centre so far.  The random
numbers are used in the order in which scikit-learn uses them, and distances and sums
are rounded as there, so that the same seed gives the same centres.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import kmeans_plusplus

from mercer.core.tiles import ranges
from mercer.machines.clusters.lloyd import Lloyd
from mercer.machines.clusters.lloyd_steps import squared_distances

__all__ = ["draw_far_apart"]

# Number of samples whose distances a thread computes at a time.
PART = 1024


def draw_far_apart(
    samples: Lloyd, k: int, random: np.random.RandomState
) -> NDArray[np.floating]:
    """Return ``k`` samples to start from, shape (k, n_features)."""
    X, weight = samples.X, samples.weight
    if sparse.issparse(X):
        return kmeans_plusplus(
            X,
            k,
            sample_weight=weight,
            x_squared_norms=samples.norms.astype(X.dtype),
            random_state=random,
        )[0]
    n_trials = 2 + int(np.log(k))
    weight = weight.astype(X.dtype)
    chosen = [int(random.choice(samples.n, p=weight / weight.sum()))]
    nearest = _distances(samples, np.array(chosen))[0]
    potential = nearest @ weight
    for _ in range(1, k):
        wanted = random.uniform(size=n_trials) * potential
        trials = np.searchsorted(np.cumsum(weight * nearest), wanted)
        trials = np.minimum(trials, samples.n - 1)
        distances = _distances(samples, trials)
        np.minimum(nearest, distances, out=distances)
        potentials = (distances @ weight.reshape(-1, 1)).ravel()
        best = int(potentials.argmin())
        nearest, potential = distances[best], potentials[best]
        chosen.append(int(trials[best]))
    return X[chosen]


def _distances(samples: Lloyd, trials: NDArray[np.intp]) -> NDArray:
    """Return the squared distances of all samples from a few, one row for each."""
    X = samples.X
    points, norms = X[trials].astype(np.float64), samples.norms[trials]
    distances = np.empty((len(trials), samples.n), dtype=X.dtype)

    def work(rows: slice) -> None:
        own = X[rows], samples.norms[rows]
        squared_distances(*own, points, norms, distances[:, rows])

    samples.threads.map(work, ranges(0, samples.n, PART, even=False))
    return distances
