r"""Spherical k-means: unit vectors along which samples are long.

.. math:: \max_{\|d_k\| = 1} \sum_i \max_k (d_k^\top x_i)^2

A sample belongs to the direction with the largest absolute inner product, and a
direction becomes the sum of its samples, each times its inner product, and of itself.
For given clusters that is one step of the power method for a positive matrix, which
cannot lower the objective; neither can the choice of clusters.  A direction without
samples begins again at a random sample.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit
from mercer.runtime.threads import Threads

__all__ = ["Directions", "spherical_kmeans"]

# Number of samples whose inner products are computed at a time.  It is the same for any
# number of threads, so that sums are rounded alike.
ROWS = 2048
# Samples are summed in this many parts, each by one thread.
PARTS = 8


class Directions(NamedTuple):
    """Unit vectors (k, d), and the objective before each round and at the end."""

    vectors: NDArray
    history: list[float]


def spherical_kmeans(
    X: NDArray,
    n_directions: int,
    n_iter: int,
    random: np.random.RandomState,
    threads: Threads,
    progress: Any = None,
) -> Directions:
    """Find directions of the samples ``X`` (n, d) from a random start."""
    start = random.standard_normal((n_directions, X.shape[1]))
    vectors = _unit(start).astype(X.dtype)
    history: list[float] = []
    for number in range(n_iter + 1):
        sums, counts, total = _sum_up(X, vectors, threads)
        history.append(total)
        if number == n_iter:
            break
        moved = _unit(sums + vectors)
        empty = np.flatnonzero(counts == 0)
        if len(empty):
            rows = random.choice(len(X), len(empty), replace=len(empty) > len(X))
            moved[empty] = _unit(X[rows].astype(np.float64))
        vectors = moved.astype(X.dtype)
        if progress is not None:
            progress(total)
    return Directions(vectors, history)


def _sum_up(
    X: NDArray, vectors: NDArray, threads: Threads
) -> tuple[NDArray, NDArray, float]:
    """Return the weighted sums of the clusters, their sizes, and the objective."""
    n, d = X.shape
    k = len(vectors)
    edges = np.linspace(0, n, PARTS + 1).astype(int)

    def work(part: int) -> tuple[NDArray, NDArray, float]:
        sums, counts, total = np.zeros((k, d)), np.zeros(k, dtype=np.int64), 0.0
        for first in range(edges[part], edges[part + 1], ROWS):
            rows = X[first : min(first + ROWS, edges[part + 1])]
            labels = np.empty(len(rows), dtype=np.intp)
            total += add_to_nearest(rows @ vectors.T, rows, sums, counts, labels)
        return sums, counts, total

    found = threads.map(work, range(PARTS))
    sums, counts, totals = zip(*found, strict=True)
    return sum(sums), sum(counts), sum(totals)  # type: ignore[return-value]


def _unit(vectors: NDArray) -> NDArray:
    """Return the vectors divided by their length."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)


@jit
def add_to_nearest(
    dots: NDArray, X: NDArray, sums: NDArray, counts: NDArray, labels: NDArray
):
    """Add every row of ``X``, times its inner product, to the direction nearest to it.

    ``dots`` (n, k) are the inner products.  The nearest direction has the largest
    absolute one, the first of equals.  Return the sum of the squares of these.
    """
    total = 0.0
    for i in range(len(X)):
        row = dots[i]
        most, label = row.dtype.type(-1.0), 0
        for k in range(len(row)):
            if abs(row[k]) > most:
                most, label = abs(row[k]), k
        labels[i] = label
        counts[label] += 1
        weight = np.float64(row[label])
        total += weight * weight
        x, target = X[i], sums[label]
        for j in range(len(x)):
            target[j] += weight * x[j]
    return total
