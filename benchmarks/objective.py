r"""Compute the objective and the KKT gap of a solution, in the same way for all peers.

A machine for the classes ``a < b`` minimises :math:`\tfrac12 \beta^T K \beta - y^T
\beta` with :math:`0 \le y_i \beta_i \le C` and :math:`\sum \beta_i = 0`, where
:math:`y = +1` on ``a``.  The objective is summed over the pairs of classes; the KKT gap
is the largest of :math:`\max_{\beta_j > lo} G_j - \min_{\beta_i < hi} G_i` with
:math:`G = K \beta - y`.  Everything is computed in double precision, and kernel values
are computed in chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import Setting

__all__ = ["Certificate", "Duals", "by_pair", "certify", "kernel_block"]

CHUNK = 2048
# A coefficient closer than this to a bound, as a fraction of C, counts as being at the
# bound, because some peers compute in single precision.
AT_BOUND = 1e-6


class Duals(NamedTuple):
    """A solution in the common layout; pairs are (0, 1), (0, 2), ..., (1, 2), ..."""

    support: NDArray[np.int64]  #: rows of the training set, shape (n_sv,)
    coef: NDArray[np.float64]  #: positive for the first class, shape (n_sv, n_pairs)


class Certificate(NamedTuple):
    """The quality of a solution."""

    objective: float  #: sum over all pairs
    kkt_gap: float  #: largest gap of the pairs for which it was computed
    infeasibility: float  #: largest violation of a constraint, in units of C
    n_gap_pairs: int  #: number of pairs whose gap was computed


def by_pair(
    dual_coef: NDArray, labels: NDArray[np.int64], order: Sequence[int]
) -> NDArray[np.float64]:
    """Convert LIBSVM's layout, shape (n_classes - 1, n_sv), to (n_sv, n_pairs).

    ``order`` lists the classes in the order of the library: the earlier of two classes
    is the positive one.  If the class of a support vector is at position ``c``, its
    coefficient against the class at position ``p`` is in row ``p`` if ``p < c`` and in
    row ``p - 1`` otherwise.
    """
    pairs = list(combinations(range(len(order)), 2))
    coef = np.zeros((len(labels), len(pairs)))
    for t, pair in enumerate(pairs):
        first, second = sorted(pair, key=list(order).index)
        sign = 1.0 if first < second else -1.0
        for own, other in ((first, second), (second, first)):
            place, own_place = list(order).index(other), list(order).index(own)
            row = place if place < own_place else place - 1
            mine = labels == own
            coef[mine, t] = sign * dual_coef[row, mine]
    return coef


def certify(
    X: NDArray,
    y: NDArray[np.int64],
    duals: Duals,
    setting: Setting,
    gap_pairs: Sequence[tuple[int, int]] | None = None,
) -> Certificate:
    """Return the objective of all pairs and the gap of ``gap_pairs``, None for all."""
    objective = kkt_gap = infeasibility = 0.0
    n_gap_pairs = 0
    wanted = None if gap_pairs is None else {tuple(pair) for pair in gap_pairs}
    for t, (a, b) in enumerate(combinations(range(int(y.max()) + 1), 2)):
        used = np.flatnonzero(duals.coef[:, t])
        support, beta = duals.support[used], duals.coef[used, t]
        alpha = np.where(y[support] == a, beta, -beta)
        faults = (-alpha.min(initial=0.0), alpha.max(initial=0.0) - setting.C,
                  abs(beta.sum()))  # fmt: skip
        infeasibility = max(infeasibility, max(faults) / setting.C)
        has_gap = wanted is None or (a, b) in wanted
        rows = np.flatnonzero((y == a) | (y == b)) if has_gap else np.sort(support)
        f = _product(X, rows, support, beta, setting)
        own = np.searchsorted(rows, support)
        objective += 0.5 * float(beta @ f[own]) - float(alpha.sum())
        if has_gap:
            whole = np.zeros(len(rows))
            whole[own] = beta
            sign = np.where(y[rows] == a, 1.0, -1.0)
            kkt_gap = max(kkt_gap, _gap(whole, f, sign, setting.C))
            n_gap_pairs += 1
    return Certificate(objective, kkt_gap, infeasibility, n_gap_pairs)


def _gap(beta: NDArray, f: NDArray, sign: NDArray, C: float) -> float:
    gradient = f - sign
    alpha = sign * beta / C
    is_low, is_high = alpha <= AT_BOUND, alpha >= 1.0 - AT_BOUND
    may_rise = np.where(sign > 0, ~is_high, ~is_low)
    may_fall = np.where(sign > 0, ~is_low, ~is_high)
    if not (may_rise.any() and may_fall.any()):
        return 0.0
    return float(gradient[may_fall].max() - gradient[may_rise].min())


def _product(
    X: NDArray, rows: NDArray, support: NDArray, beta: NDArray, setting: Setting
) -> NDArray[np.float64]:
    """Return ``K[rows, support] @ beta``, shape (n_rows,)."""
    f = np.zeros(len(rows))
    for second in range(0, len(support), CHUNK):
        right = X[support[second : second + CHUNK]].astype(np.float64)
        weight = beta[second : second + CHUNK]
        for first in range(0, len(rows), CHUNK):
            left = X[rows[first : first + CHUNK]].astype(np.float64)
            f[first : first + CHUNK] += kernel_block(left, right, setting) @ weight
    return f


def kernel_block(A: NDArray, B: NDArray, setting: Setting) -> NDArray[np.float64]:
    """Return the kernel values between the rows of ``A`` and the rows of ``B``."""
    K = A @ B.T
    if setting.kernel == "rbf":
        K *= -2.0
        K += np.einsum("ij,ij->i", A, A)[:, None]
        K += np.einsum("ij,ij->i", B, B)
        np.maximum(K, 0.0, out=K)
        K *= -setting.gamma
        np.exp(K, out=K)
    elif setting.kernel == "poly":
        K *= setting.gamma
        K += setting.coef0
        K **= setting.degree
    return K
