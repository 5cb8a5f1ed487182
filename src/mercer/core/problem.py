r"""The one dual problem, its certificate, and its builders.

Every machine of the library is the signed quadratic programme

.. math::

    \min_\beta \; \tfrac12 \beta^T K \beta + p^T \beta
    \quad\text{with}\quad lo \le \beta \le hi,

and inside each group the sum of :math:`\beta` stays what it is at the start.  Labels
never multiply :math:`K`: in the classifier :math:`\beta_i = y_i \alpha_i`.

With the gradient :math:`G = K\beta + p` and one multiplier :math:`m_g` per group,

* the *KKT gap* is :math:`\max_g \{\max_{\beta_j > lo_j} G_j - \min_{\beta_i < hi_i}
  G_i\}`: the largest violation by a pair that may still move, LIBSVM's stopping
  quantity;
* the *dual gap* is :math:`\sum_t \max\{(G_t - m)(\beta_t - lo_t),
  (G_t - m)(\beta_t - hi_t)\}`: primal minus dual objective at bias :math:`-m`.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Certificate",
    "DualProblem",
    "Layout",
    "Solution",
    "c_svc",
    "certify",
    "layout",
]


# The longest piece of a layout: the pair search first finds the piece that holds its
# maximum, then looks inside.
PIECE = 256


class DualProblem(NamedTuple):
    """One dual problem over the rows of a Gram matrix (or of a part of one)."""

    p: NDArray[np.float64]  #: linear term, shape (m,)
    lo: NDArray[np.float64]  #: lower bounds, shape (m,)
    hi: NDArray[np.float64]  #: upper bounds, shape (m,)
    start: NDArray[np.float64]  #: feasible start, fixes the sums, shape (m,)
    row: NDArray[np.intp]  #: Gram row of each variable, shape (m,)
    group: NDArray[np.intp]  #: group of each variable, sorted, shape (m,)


class Solution(NamedTuple):
    """What every solver returns."""

    beta: NDArray[np.float64]  #: shape (m,)
    f: NDArray[np.float64]  #: K beta by Gram row, shape (n_rows,)
    bias: float
    objective: float  #: value of the dual, ½βᵀKβ + pᵀβ
    kkt_gap: float  #: largest violation by a pair
    dual_gap: float  #: primal minus dual
    n_iter: int
    converged: bool


class Certificate(NamedTuple):
    """How exact a candidate is; computed from scratch out of ``beta`` and ``f``."""

    bias: float
    objective: float
    kkt_gap: float
    dual_gap: float


class Layout(NamedTuple):
    """Where the variables of a problem lie in its Gram matrix, as contiguous runs.

    The compiled loops walk runs instead of index arrays, so that they read rows of
    the Gram matrix at unit stride.
    """

    piece: NDArray[np.int64]  #: (first variable, length, first row, first column)
    span: NDArray[np.int64]  #: (first row, length, first column)
    group_start: NDArray[np.int64]  #: first piece of each group, then the end


def layout(problem: DualProblem, columns: NDArray[np.int64] | None = None) -> Layout:
    """Describe ``problem`` as runs.

    ``columns`` lists the stretches ``(first, stop)`` of Gram columns that hold the
    problem's rows, in order; by default one stretch that begins at column 0.
    """
    n_rows = int(problem.row.max()) + 1
    if columns is None:
        columns = np.array([[0, n_rows]], dtype=np.int64)
    length = columns[:, 1] - columns[:, 0]
    first_row = np.concatenate([[0], np.cumsum(length)[:-1]])
    span = np.column_stack([first_row, length, columns[:, 0]]).astype(np.int64)

    m = len(problem.row)
    which = np.searchsorted(first_row, problem.row, side="right") - 1
    cut = np.flatnonzero(
        (np.diff(problem.row) != 1)
        | (np.diff(problem.group) != 0)
        | (np.diff(which) != 0)
    )
    cut = np.concatenate([[0], cut + 1, [m]])
    first = np.concatenate([np.arange(a, b, PIECE) for a, b in pairwise(cut)])
    stop = np.append(first[1:], m)
    column = problem.row[first] - first_row[which[first]] + columns[which[first], 0]
    piece = np.column_stack([first, stop - first, problem.row[first], column])
    starts = np.flatnonzero(np.diff(problem.group[first], prepend=-1))
    group_start = np.concatenate([starts, [len(first)]])
    return Layout(
        np.ascontiguousarray(piece, dtype=np.int64),
        np.ascontiguousarray(span),
        group_start.astype(np.int64),
    )


def certify(problem: DualProblem, beta: NDArray, f: NDArray) -> Certificate:
    """Return bias, objective and both gaps of ``beta``, given ``f = K beta`` by row."""
    p, lo, hi, _, row, group = problem
    gradient = f[row] + p
    objective = 0.5 * float(beta @ (gradient + p))
    kkt_gap, dual_gap, multipliers = 0.0, 0.0, []
    for g in np.unique(group):
        mine = group == g
        G, b, low, high = gradient[mine], beta[mine], lo[mine], hi[mine]
        up, down = b < high, b > low
        least = G[up].min() if up.any() else np.inf
        most = G[down].max() if down.any() else -np.inf
        free = up & down
        if free.any():
            m = float(G[free].mean())
        else:
            ends = [v for v in (least, most) if np.isfinite(v)]
            m = float(np.mean(ends)) if ends else 0.0
        kkt_gap = float(np.maximum(kkt_gap, most - least))  # a NaN stays one
        slack = G - m
        dual_gap += float(np.maximum(slack * (b - low), slack * (b - high)).sum())
        multipliers.append(m)
    bias = -float(np.mean(multipliers))
    return Certificate(bias, objective, kkt_gap, dual_gap)


def c_svc(y: NDArray, C: NDArray) -> DualProblem:
    r"""C-SVC: :math:`p = -y`, box between 0 and :math:`C_i y_i`, start at 0.

    ``y`` holds ±1 and ``C`` the upper bound of each sample's :math:`\alpha`.
    """
    y = np.asarray(y, dtype=np.float64)
    bound = y * C
    m = len(y)
    return DualProblem(
        p=-y,
        lo=np.minimum(0.0, bound),
        hi=np.maximum(0.0, bound),
        start=np.zeros(m),
        row=np.arange(m),
        group=np.zeros(m, dtype=np.intp),
    )
