r"""From decision values to probabilities.

Platt's sigmoid :math:`1 / (1 + e^{A f + B})` is fitted to decision values of samples
that the machine has not seen.  The probabilities of several tasks are then combined
into probabilities of the classes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils import check_random_state

from mercer.multiclass.codes import (
    one_vs_one,
    one_vs_rest,
)

__all__ = [
    "Sigmoids",
    "class_probabilities",
    "deal_out",
    "fit_sigmoid",
]

N_FOLDS = 5
# Probabilities of single tasks keep this distance from 0 and 1.
LEAST = 1e-7
MAX_NEWTON = 100
# Values in the linear systems that are solved together.
CHUNK_VALUES = 4_000_000


def deal_out(y: NDArray[np.intp], random_state: Any, n_folds: int = N_FOLDS) -> NDArray:
    """Return a fold for each sample; all folds have equal shares of each class."""
    shuffled = check_random_state(random_state).permutation(len(y))
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    fold = np.empty(len(y), dtype=np.intp)
    fold[by_class] = np.arange(len(y)) % n_folds
    return fold


class Sigmoid(NamedTuple):
    """The probability of the positive side is 1 / (1 + exp(A f + B))."""

    A: float
    B: float


def fit_sigmoid(decisions: NDArray, is_positive: NDArray, weight: NDArray) -> Sigmoid:
    r"""Fit Platt's sigmoid by Newton's method with backtracking.

    The targets are not 0 and 1 but :math:`1/(N_- + 2)` and
    :math:`(N_+ + 1)/(N_+ + 2)`, with the (weighted) counts of both sides, so that the
    fit is finite even where the sides do not overlap.

    References
    ----------
    Lin, Lin & Weng, "A note on Platt's probabilistic outputs for support vector
    machines", Machine Learning 68, 2007.
    """
    n_positive = float(weight[is_positive].sum())
    n_negative = float(weight[~is_positive].sum())
    target = np.where(
        is_positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2)
    )
    # Newton's method does not depend on the scale of f, but its safeguards do.
    scale = float(np.abs(decisions).max(initial=0.0))
    scale = scale if scale > 1e-290 else 1.0  # otherwise A would overflow
    f = decisions / scale

    def loss(A: float, B: float) -> float:
        z = A * f + B
        # log(1 + e^z) - (1 - t) z, without overflow
        return float(weight @ (np.logaddexp(0.0, z) - (1.0 - target) * z))

    A, B = 0.0, float(np.log((n_negative + 1) / (n_positive + 1)))
    value = loss(A, B)
    for _ in range(MAX_NEWTON):
        q = expit(A * f + B)  # probability of the negative side
        residual = weight * (q - (1.0 - target))
        gradient = np.array([residual @ f, residual.sum()])
        if np.abs(gradient).max() < 1e-9 * max(1.0, n_positive + n_negative):
            break
        curvature = weight * q * (1.0 - q)
        hessian = np.array(
            [[curvature @ (f * f), curvature @ f], [curvature @ f, curvature.sum()]]
        )
        hessian[np.diag_indices(2)] += 1e-12
        step = -np.linalg.solve(hessian, gradient)
        slope = float(gradient @ step)
        size = 1.0
        while size >= 1e-10:
            new = loss(A + size * step[0], B + size * step[1])
            if new < value + 1e-4 * size * slope:
                break
            size *= 0.5
        else:
            break
        A, B, value = A + size * step[0], B + size * step[1], new
    return Sigmoid(float(A / scale), float(B))


class Sigmoids(NamedTuple):
    """The sigmoids of all tasks."""

    A: NDArray
    B: NDArray

    def __call__(self, decisions: NDArray) -> NDArray:
        """Return probabilities of the positive sides, shape (n, n_tasks)."""
        p = expit(-(self.A * decisions + self.B))
        return np.clip(p, LEAST, 1.0 - LEAST)


def class_probabilities(p: NDArray, code: NDArray) -> NDArray:
    """Turn probabilities of the positive sides of tasks into those of the classes."""
    n_classes, n_tasks = code.shape
    if n_tasks == 1:
        return np.hstack([p, 1.0 - p] if code[0, 0] > 0 else [1.0 - p, p])
    if np.array_equal(code, one_vs_one(n_classes)):
        return couple(p, n_classes)
    if np.array_equal(code, one_vs_rest(n_classes)):
        return normalise(p)
    return weigh_evidence(p, code)


def normalise(p: NDArray) -> NDArray:
    """Scale rows of probabilities so that each sums to 1, for one-vs-rest."""
    return p / p.sum(axis=1, keepdims=True)


def couple(p: NDArray, n_classes: int) -> NDArray:
    r"""Turn probabilities of pairs of classes into probabilities of classes.

    With :math:`r_{ij}` the probability of i against j, the result minimises
    :math:`\sum_{i<j} (r_{ji} p_i - r_{ij} p_j)^2` where :math:`\sum_i p_i = 1`: one
    linear system per sample.

    References
    ----------
    Wu, Lin & Weng, "Probability estimates for multi-class classification by pairwise
    coupling", JMLR 5, 2004 (their second method).
    """
    first, second = np.triu_indices(n_classes, 1)
    diagonal = np.arange(n_classes)
    result = np.empty((len(p), n_classes))
    step = max(1, CHUNK_VALUES // (n_classes + 1) ** 2)
    for begin in range(0, len(p), step):
        part = p[begin : begin + step]
        r = np.zeros((len(part), n_classes, n_classes))
        r[:, first, second] = part
        r[:, second, first] = 1.0 - part
        system = np.zeros((len(part), n_classes + 1, n_classes + 1))
        system[:, :-1, :-1] = -r * r.transpose(0, 2, 1)
        system[:, diagonal, diagonal] = (r * r).sum(axis=1)
        system[:, :-1, -1] = system[:, -1, :-1] = 1.0
        right = np.zeros((n_classes + 1, 1))
        right[-1] = 1.0
        result[begin : begin + step] = np.linalg.solve(system, right)[:, :-1, 0]
    return normalise(np.maximum(result, 0.0))


def weigh_evidence(p: NDArray, code: NDArray) -> NDArray:
    r"""Turn probabilities of the sides of any code into probabilities of classes.

    :math:`P_c \propto \prod_t p_t(c)^{2/\delta}`, where :math:`p_t(c)` is the
    probability of the side that class c is on, and :math:`\delta` is the average
    number of columns in which two classes are on opposite sides. The exponent is there
    because columns of a code are far from independent: they repeat the same evidence.
    In one-vs-rest, where they do not, :math:`\delta = 2`.
    """
    log_p = np.log(p) @ (code.T > 0) + np.log1p(-p) @ (code.T < 0)
    opposite = np.count_nonzero(code[:, None] * code[None] < 0, axis=2)
    delta = opposite[np.triu_indices(len(code), 1)].mean()
    return softmax(2.0 / delta * log_p, axis=1)
