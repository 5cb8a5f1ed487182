"""Products of sparse samples with the weights of several problems at once.

The weights of all problems for one feature lie side by side, so that one pass over the
samples serves all problems with vector instructions.
"""

import numpy as np

from mercer.core.jit import jit

__all__ = ["sparse_combine", "sparse_scores"]


@jit
def sparse_scores(data, indices, indptr, first, stop, weights, out):
    """Set ``out[:, i] = X[i] @ weights`` for rows ``first`` to ``stop`` of X.

    ``weights`` has shape (n_features, n_problems), ``out`` (n_problems, n_rows).
    """
    k = weights.shape[1]
    sums = np.empty(k)
    for i in range(first, stop):
        for c in range(k):
            sums[c] = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            x, line = data[j], weights[indices[j]]
            for c in range(k):
                sums[c] += x * line[c]
        for c in range(k):
            out[c, i] = sums[c]


@jit
def sparse_combine(data, indices, indptr, first, stop, beta, out):
    """Add ``X[i] * beta[:, i]`` of rows ``first`` to ``stop`` to ``out``.

    ``beta`` has shape (n_problems, n_rows), ``out`` (n_features, n_problems).
    """
    k = beta.shape[0]
    own = np.empty(k)
    for i in range(first, stop):
        used = False
        for c in range(k):
            own[c] = beta[c, i]
            used = used or own[c] != 0.0
        if not used:
            continue
        for j in range(indptr[i], indptr[i + 1]):
            x, line = data[j], out[indices[j]]
            for c in range(k):
                line[c] += x * own[c]
