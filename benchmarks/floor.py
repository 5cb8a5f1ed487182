"""A lower bound on the time of a fit: that of its matrix products alone."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from benchmarks.objective import Duals

__all__ = ["floor_seconds", "needed_values", "sgemm_rate"]

SIZE = 2048
TRIES = 5


def needed_values(duals: Duals, y: NDArray[np.int64], is_whole: bool) -> int:
    """Return the number of kernel values that a fit must compute.

    If the whole matrix is in memory, this is one triangle. If rows are computed, it is
    for each support vector the columns of its own class and of the classes against
    which it has a coefficient.
    """
    if is_whole:
        return len(y) * (len(y) + 1) // 2
    counts = np.bincount(y)
    firsts, seconds = np.triu_indices(len(counts), 1)
    labels = y[duals.support]
    is_first = labels[:, None] == firsts
    other = np.where(is_first, counts[seconds], counts[firsts])
    return int(counts[labels].sum() + other[duals.coef != 0].sum())


def sgemm_rate(d: int) -> float:
    """Return the operations per second of a large matrix product of depth ``d``."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((SIZE, d), dtype=np.float32)
    B = rng.standard_normal((SIZE, d), dtype=np.float32)
    best = np.inf
    for _ in range(TRIES):
        started = time.perf_counter()
        A @ B.T
        best = min(best, time.perf_counter() - started)
    return 2.0 * SIZE * SIZE * d / best


def floor_seconds(n_values: int, d: int, rate: float) -> float:
    """Return the time of ``n_values`` inner products of length ``d`` at this rate."""
    return 2.0 * d * n_values / rate
