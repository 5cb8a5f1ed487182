"""The coefficients of support vectors, sparse: in most tasks most have none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["Weights", "coefficient_matrix", "from_pair_layout", "to_pair_layout"]


class Weights(NamedTuple):
    """Coefficients of support vectors, which lie in stretches (the classes).

    Most tasks leave most stretches out, if tasks are pairs of classes; so the products
    go stretch by stretch, with the tasks that it takes part in.
    """

    matrix: sparse.csr_array  #: support vectors by tasks
    starts: Sequence[int]  #: where each stretch begins, then the end

    def dense_parts(
        self, rows: slice, dtype: np.dtype
    ) -> list[tuple[slice, NDArray, NDArray]]:
        """Return, within some rows, stretches, their tasks, and the coefficients."""
        parts = []
        for begin, end in pairwise(self.starts):
            first, stop = max(begin, rows.start), min(end, rows.stop)
            if first < stop:
                own = self.matrix[first:stop]
                used = np.unique(own.indices)
                weight = own[:, used].toarray().astype(dtype)
                parts.append(
                    (slice(first - rows.start, stop - rows.start), used, weight)
                )
        return parts


def coefficient_matrix(
    n: int, columns: Sequence[tuple[NDArray, NDArray]]
) -> sparse.csr_array:
    """Return a matrix of n rows; a column is given by rows and values, which add up."""
    rows = [r[v != 0] for r, v in columns]
    values = [v[v != 0] for _, v in columns]
    column = np.repeat(np.arange(len(columns)), [len(r) for r in rows])
    entries = (np.concatenate(values), (np.concatenate(rows), column))
    return sparse.coo_array(entries, shape=(n, len(columns))).tocsr()


def to_pair_layout(
    weights: sparse.csr_array, labels: NDArray, n_classes: int
) -> NDArray:
    """Lay coefficients (n_SV, n_pairs) out in one row per other class, as scikit-learn.

    A support vector of class c has at most n_classes - 1 coefficients, one for each
    other class; row r belongs to class r if r < c, else to class r + 1.
    """
    if n_classes == 2:
        return weights.toarray().T.copy()
    first, second = np.triu_indices(n_classes, 1)
    entry = weights.tocoo()
    vector, pair = entry.coords
    is_first = labels[vector] == first[pair]
    rows = np.zeros((n_classes - 1, len(labels)))
    rows[np.where(is_first, second[pair] - 1, first[pair]), vector] = entry.data
    return rows


def from_pair_layout(rows: NDArray, labels: NDArray) -> sparse.csr_array:
    """Undo :func:`to_pair_layout`."""
    n_classes = len(rows) + 1
    if n_classes == 2:
        return sparse.csr_array(rows.T)
    row, vector = np.nonzero(rows)
    label = labels[vector]
    other = np.where(row < label, row, row + 1)
    first, second = np.minimum(label, other), np.maximum(label, other)
    # Pairs are numbered (0, 1), (0, 2), ..., (1, 2), ...
    pair = first * (2 * n_classes - first - 1) // 2 + second - first - 1
    shape = (rows.shape[1], n_classes * (n_classes - 1) // 2)
    return sparse.coo_array((rows[row, vector], (vector, pair)), shape=shape).tocsr()
