"""Gram matrices of histogram kernels, computed by Mercer and in the usual ways."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["GRAMS", "largest_error"]

GAMMA = 1.0
CHECKED_ROWS = 16

Gram = Callable[[NDArray], NDArray]


def _mercer_chi2() -> Gram:
    from mercer import gram_matrix, kernels

    return lambda X: gram_matrix(kernels.Chi2(GAMMA), X)


def _mercer_intersection() -> Gram:
    from mercer import gram_matrix, kernels

    return lambda X: gram_matrix(kernels.Intersection(), X)


def _sklearn_chi2() -> Gram:
    from sklearn.metrics.pairwise import chi2_kernel

    return lambda X: chi2_kernel(X, gamma=GAMMA)


def _numpy_intersection() -> Gram:
    def compute(X: NDArray) -> NDArray:
        K = np.empty((len(X), len(X)), dtype=X.dtype)
        for i in range(len(X)):
            K[i] = np.minimum(X[i], X).sum(1)
        return K

    return compute


# For each kernel and peer, a function that imports the library and returns the function
# to time.
GRAMS: dict[tuple[str, str], Callable[[], Gram]] = {
    ("chi2", "mercer"): _mercer_chi2,
    ("chi2", "scikit-learn"): _sklearn_chi2,
    ("intersection", "mercer"): _mercer_intersection,
    ("intersection", "numpy"): _numpy_intersection,
}


def largest_error(kernel: str, X: NDArray, K: NDArray) -> float:
    """Return the largest error of some rows of ``K``, relative to the largest value."""
    rows = np.unique(np.linspace(0, len(X) - 1, CHECKED_ROWS).astype(int))
    exact = np.array([_row(kernel, X[i].astype(float), X) for i in rows])
    return float(np.abs(K[rows] - exact).max() / np.abs(exact).max())


def _row(kernel: str, x: NDArray, X: NDArray) -> NDArray[np.float64]:
    if kernel == "intersection":
        return np.minimum(x, X).sum(axis=1)
    total = x + X
    squares = (x - X) ** 2
    ratio = np.divide(squares, total, out=np.zeros_like(squares), where=total > 0)
    return np.exp(-GAMMA * ratio.sum(axis=1))
