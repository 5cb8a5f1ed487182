"""What is learnt from chunks of samples before a fit begins.

A chunk is a tuple: validated samples, their targets (or None) and their weights.  Its
summary is small, and the summaries of all chunks are enough to bind a kernel and to
state problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["ColumnSummary", "Summary", "summarise"]


class Summary(NamedTuple):
    """What is known about one chunk."""

    n_samples: int
    n_features: int
    dtype: np.dtype
    is_sparse: bool
    mean: NDArray[np.float64]  #: of each column
    spread: NDArray[np.float64]  #: sum of squared differences from the mean
    low: NDArray[np.float64]  #: least value of each column
    labels: NDArray  #: the different targets, if they are classes
    counts: NDArray[np.intp]
    has_weight: NDArray[np.bool_]  #: which labels have samples with positive weights
    any_weight: bool


def summarise(chunk: tuple, has_classes: bool) -> Summary:
    """Return the summary of a chunk."""
    X, y, weight = chunk
    n, d = X.shape
    mean, spread, low = np.zeros(d), np.zeros(d), np.full(d, np.inf)
    if n:
        if sparse.issparse(X):
            values = X.astype(np.float64)
            mean = np.asarray(values.mean(axis=0)).ravel()
            squares = np.asarray(values.multiply(values).mean(axis=0)).ravel()
            spread = n * np.maximum(squares - mean**2, 0.0)
            low = values.min(axis=0).toarray().ravel()
        else:
            mean = X.mean(axis=0, dtype=np.float64)
            spread = n * X.var(axis=0, dtype=np.float64)
            low = X.min(axis=0).astype(np.float64)
    labels, counts = np.empty(0), np.empty(0, dtype=np.intp)
    has_weight = np.empty(0, dtype=bool)
    if has_classes and n:
        labels, which, counts = np.unique(y, return_inverse=True, return_counts=True)
        has_weight = np.bincount(which, weight > 0, len(labels)) > 0
    return Summary(
        n,
        d,
        X.dtype,
        sparse.issparse(X),
        mean,
        spread,
        low,
        labels,
        counts,
        has_weight,
        bool((weight > 0).any()),
    )


class ColumnSummary:
    """Stands for all samples where a kernel asks for its parameters.

    Kernels look at the shape, the variance and the least value, of all columns or of
    some.
    """

    def __init__(
        self,
        n_samples: int,
        mean: NDArray[np.float64],
        spread: NDArray[np.float64],
        low: NDArray[np.float64],
    ):
        self.shape = (n_samples, len(mean))
        self._mean, self._spread, self._low = mean, spread, low

    @classmethod
    def of(cls, summaries: Sequence[Summary]) -> ColumnSummary:
        """Join the summaries of all chunks."""
        n = sum(one.n_samples for one in summaries)
        mean = sum(one.n_samples * one.mean for one in summaries) / n
        spread = sum(
            one.spread + one.n_samples * (one.mean - mean) ** 2 for one in summaries
        )
        low = np.min([one.low for one in summaries], axis=0)
        return cls(n, np.asarray(mean), np.asarray(spread), low)

    def __getitem__(self, index: tuple[slice, Any]) -> ColumnSummary:
        _, columns = index
        parts = (self._mean[columns], self._spread[columns], self._low[columns])
        return ColumnSummary(self.shape[0], *parts)

    def var(self, dtype: Any = None) -> float:
        """Return the variance of all values."""
        del dtype
        between = self.shape[0] * (self._mean - self._mean.mean()) ** 2
        return float((self._spread + between).sum() / (self.shape[0] * self.shape[1]))

    def min(self) -> float:
        """Return the least value."""
        return float(self._low.min())
