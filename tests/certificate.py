"""Certificates of a fitted SVC, from scratch in float64 and with nothing of Mercer."""

from itertools import combinations

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels


def kernel_matrix(X, Z, name, **params):
    X, Z = (np.asarray(A, dtype=np.float64) for A in (X, Z))
    return pairwise_kernels(X, Z, metric=name, **params)


def pairs(model):
    """Yield (first class, second class, sign) for each problem of a fitted SVC."""
    n = len(model.classes_)
    if n == 2:
        yield 0, 1, -1.0
    else:
        for a, b in combinations(range(n), 2):
            yield a, b, 1.0


def pair_solution(model, labels, a, b, sign):
    """Return rows, y (±1) and signed coefficients of the problem of two classes."""
    rows = np.flatnonzero((labels == a) | (labels == b))
    y = np.where(labels[rows] == a, sign, -sign)
    coefficient = np.zeros(len(labels))
    of = labels[model.support_]
    dual = np.asarray(model.dual_coef_)
    if len(model.classes_) == 2:
        coefficient[model.support_] = dual[0]
    else:
        coefficient[model.support_[of == a]] = dual[b - 1, of == a]
        coefficient[model.support_[of == b]] = dual[a, of == b]
    return rows, y, coefficient[rows]


def certify(model, K_of, y, bound):
    """Return (objective, KKT gap) summed and maximised over the pairs.

    ``K_of(rows, columns)`` gives kernel values, ``bound`` the C of each sample.
    """
    labels = np.searchsorted(model.classes_, y)
    objective, gap = 0.0, -np.inf
    for a, b, sign in pairs(model):
        rows, t, beta = pair_solution(model, labels, a, b, sign)
        used = beta != 0
        f = K_of(rows, rows[used]) @ beta[used]
        objective += 0.5 * beta @ f - t @ beta
        G = f - t
        alpha, C = t * beta, bound[rows]
        assert (alpha >= -1e-12 * C).all() and (alpha <= C * (1 + 1e-12)).all()
        assert abs(beta.sum()) <= 1e-9 * max(1.0, np.abs(beta).sum())
        low, high = np.minimum(0, t * C), np.maximum(0, t * C)
        up, down = beta < high, beta > low
        if up.any() and down.any():
            gap = max(gap, G[down].max() - G[up].min())
    return objective, gap
