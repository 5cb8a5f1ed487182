"""Initial labels for kernel k-means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from mercer.engines.cpu import eigen
from mercer.machines.clusters.lloyd import Lloyd, is_lower
from mercer.machines.clusters.partition import MOST_ROWS, FeatureSamples
from mercer.runtime.threads import Threads

__all__ = ["far_apart", "from_embedding", "make_starts", "spectral"]

# Number of starts of the clustering of eigenvectors.
EMBEDDED_STARTS = 10


def far_apart(
    samples: FeatureSamples, k: int, random: np.random.RandomState
) -> NDArray:
    """Draw samples far from each other (k-means++); return the nearest for each sample.

    Each time a few candidates are drawn with probabilities proportional to their
    squared distances from the samples drawn so far, and the candidate that leaves the
    smallest sum of squared distances is taken.
    """
    n_trials = 2 + int(np.log(k))
    chance = samples.weight / samples.weight.sum()
    first = random.choice(samples.n, size=1, p=chance)
    column = samples.columns(first)[:, 0]
    nearest = np.maximum(samples.diag + samples.diag[first[0]] - 2.0 * column, 0.0)
    nearest[first[0]] = 0.0
    labels = np.zeros(samples.n, dtype=np.int32)
    for c in range(1, k):
        potential = samples.weight * nearest
        total = potential.sum()
        p = potential / total if total > 0 else chance
        trials = random.choice(samples.n, size=n_trials, p=p)
        squared = samples.diag[:, None] + samples.diag[trials]
        squared -= 2.0 * samples.columns(trials)
        squared[trials, np.arange(n_trials)] = 0.0
        squared = np.minimum(np.maximum(squared, 0.0), nearest[:, None])
        best = int((samples.weight @ squared).argmin())
        labels[squared[:, best] < nearest] = c
        labels[trials[best]] = c
        nearest = squared[:, best]
    return labels


def spectral(
    samples: FeatureSamples, k: int, random: np.random.RandomState, threads: Threads
) -> NDArray:
    r"""Cluster the leading eigenvectors of :math:`\sqrt{w_i} K_{ij} \sqrt{w_j}`.

    The eigenvectors solve the relaxed problem, in which the indicators of clusters may
    be any orthonormal vectors.  Their rows, scaled to norm 1, are close to each other
    for samples of the same cluster.  If clusters are well separated, the leading
    eigenvalues are almost equal and iterative methods do not tell them apart.  The
    decomposition is therefore exact.  If there are many samples, some of them are drawn
    at random and decomposed, and the others are assigned to the nearest mean found.
    """
    rows = np.flatnonzero(samples.weight > 0)
    if len(rows) > MOST_ROWS:
        rows = np.sort(random.choice(rows, MOST_ROWS, replace=False))
    if len(rows) <= k:
        return np.arange(samples.n, dtype=np.int32) % k
    # Degrees are taken among the drawn samples: degrees among all samples would
    # favour regions from which more were drawn.
    seen = samples.seen_from(rows)
    weight = seen.weight
    root = np.sqrt(weight)
    square = seen.square()
    square *= root[:, None]
    square *= root
    square += square.T.copy()
    square /= 2
    vectors = eigen.dense(square, k).vectors
    del square
    labels = from_embedding(vectors, weight, k, random, threads)
    indicators = np.zeros((len(rows), k))
    indicators[np.arange(len(rows)), labels] = weight
    mass = np.maximum(indicators.sum(axis=0), np.finfo(np.float64).tiny)
    S = seen.times(indicators / mass)
    norms = np.einsum("ij,ij->j", indicators, S[rows]) / mass
    found = (norms - 2.0 * S).argmin(axis=1).astype(np.int32)
    found[rows] = labels
    return found


def from_embedding(
    vectors: NDArray,
    weight: NDArray,
    k: int,
    random: np.random.RandomState,
    threads: Threads,
) -> NDArray:
    """Cluster the rows of eigenvectors by their directions."""
    norms = linalg.norm(vectors, axis=1)
    rows = vectors / np.where(norms > 0, norms, 1.0)[:, None]
    plain = Lloyd(rows, (weight > 0).astype(np.float64), threads)
    best = None
    for _ in range(EMBEDDED_STARTS):
        start = _directions(rows, weight, k, random)
        found = plain.run(start, 100, 0.0, lambda what, value: False)
        if best is None or is_lower(found.inertia, best.inertia, plain.total):
            best = found
    return best.labels  # type: ignore[union-attr]


def _directions(
    rows: NDArray, weight: NDArray, k: int, random: np.random.RandomState
) -> NDArray:
    """Return rows as orthogonal to each other as possible, starting at a random one."""
    allowed = np.flatnonzero(weight > 0)
    chosen = [int(random.choice(allowed))]
    overlap = np.zeros(len(allowed))
    for _ in range(1, k):
        overlap += np.abs(rows[allowed] @ rows[chosen[-1]])
        chosen.append(int(allowed[overlap.argmin()]))
    return rows[chosen]


def make_starts(
    init: Any,
    n_init: int,
    samples: FeatureSamples,
    k: int,
    random: np.random.RandomState,
    threads: Threads,
) -> list[NDArray]:
    """Return the labels of all starts."""
    if not isinstance(init, str):
        return [_given(init, samples.n, k)]
    if init == "random":
        return [random.randint(k, size=samples.n) for _ in range(n_init)]
    starts = []
    if init in ("spectral", "auto"):
        starts.append(spectral(samples, k, random, threads))
    if init in ("k-means++", "auto"):
        n_more = n_init - len(starts)
        starts += [far_apart(samples, k, random) for _ in range(n_more)]
    return starts


def _given(init: Any, n: int, k: int) -> NDArray:
    labels = np.asarray(init)
    if labels.shape != (n,) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"init must have {n} whole numbers, the initial labels; got "
            f"{labels.dtype} of shape {labels.shape}."
        )
    if labels.min() < 0 or labels.max() >= k:
        raise ValueError(
            f"init has labels from {labels.min()} to {labels.max()}; with "
            f"n_clusters={k} they must be from 0 to {k - 1}."
        )
    return labels
