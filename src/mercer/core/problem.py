r"""The one dual problem, its certificate, and its builders.

Every machine of the library is the signed quadratic programme

.. math::

    \min_\beta \; \tfrac12 \beta^T K \beta + p^T \beta
    \quad\text{with}\quad lo \le \beta \le hi,

and inside each group the sum of :math:`\beta` stays what it is at the start
(:func:`is_feasible`).  Labels never multiply :math:`K`: in the classifier
:math:`\beta_i = y_i \alpha_i`.

With the gradient :math:`G = K\beta + p` and one multiplier :math:`m_g` per group,

* the *KKT gap* is :math:`\max_g \{\max_{\beta_j > lo_j} G_j - \min_{\beta_i < hi_i}
  G_i\}`: the largest violation by a pair that may still move, LIBSVM's stopping
  quantity;
* the *dual gap* is :math:`\sum_t \max\{(G_t - m)(\beta_t - lo_t),
  (G_t - m)(\beta_t - hi_t)\}`: primal minus dual objective at bias :math:`-m`. If the
  problem is convex, the gap bounds the distance of the objective from the optimum. The
  problem is convex if :math:`c^T K c \ge 0` for all c whose sum in every group is 0.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = [
    "Certificate",
    "DualProblem",
    "Layout",
    "Solution",
    "c_svc",
    "certify",
    "certify_one",
    "cut_pieces",
    "epsilon_svr",
    "holds_bounds_and_sums",
    "is_feasible",
    "layout",
    "nu_svc",
    "nu_svr",
    "one_class",
    "svdd",
]


# The largest length of a piece of a layout: the pair search first finds the piece that
# holds the maximum, and then the maximum inside this piece.
PIECE = 128
# Rounding errors of steps may move coefficients over a bound, or change the sum of a
# group, by at most this fraction of their size.
LARGEST_DRIFT = 1e-8


class DualProblem(NamedTuple):
    """One dual problem over the rows of a Gram matrix (or of a part of one)."""

    p: NDArray[np.float64]  #: linear term, shape (m,)
    lo: NDArray[np.float64]  #: lower bounds, shape (m,)
    hi: NDArray[np.float64]  #: upper bounds, shape (m,)
    start: NDArray[np.float64]  #: feasible start, fixes the sums, shape (m,)
    row: NDArray[np.intp]  #: Gram row of each variable, shape (m,)
    group: NDArray[np.intp]  #: group of each variable, sorted, shape (m,)


class Solution(NamedTuple):
    """The result of every solver."""

    beta: NDArray[np.float64]  #: shape (m,)
    f: NDArray[np.float64]  #: K beta by Gram row, shape (n_rows,)
    bias: float
    objective: float  #: value of the dual, ½βᵀKβ + pᵀβ
    kkt_gap: float  #: largest violation by a pair
    dual_gap: float  #: primal minus dual
    n_iter: int
    converged: bool
    multipliers: tuple[float, ...] = ()  #: one for each group
    error: float = 0.0  #: estimate of the rounding errors in the gap
    is_single: bool = False  #: whether f comes from values in single precision


class Certificate(NamedTuple):
    """How close to optimal coefficients are, computed from ``beta`` and ``f`` only."""

    bias: float
    objective: float
    kkt_gap: float
    dual_gap: float
    multipliers: tuple[float, ...]  #: one for each group; the bias is minus their mean


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
    if columns is None:
        columns = np.array([[0, problem.row.max() + 1]], dtype=np.int64)
    length = columns[:, 1] - columns[:, 0]
    span = np.empty((len(columns), 3), dtype=np.int64)
    span[:, 0] = np.cumsum(length) - length
    span[:, 1] = length
    span[:, 2] = columns[:, 0]
    return Layout(*cut_pieces(problem.row, problem.group, span))


@jit
def cut_pieces(row: NDArray, group: NDArray, span: NDArray):
    """Cut variables into pieces of consecutive rows of one stretch and one group."""
    m = len(row)
    piece = np.empty((m, 4), dtype=np.int64)
    group_start = np.empty(m + 1, dtype=np.int64)
    n_pieces, n_groups, s = 0, 0, 0
    for v in range(m):
        r = row[v]
        goes_on = (
            v > 0
            and r == row[v - 1] + 1
            and r < span[s, 0] + span[s, 1]
            and group[v] == group[v - 1]
            and piece[n_pieces - 1, 1] < PIECE
        )
        if goes_on:
            piece[n_pieces - 1, 1] += 1
            continue
        if v == 0 or group[v] != group[v - 1]:
            group_start[n_groups] = n_pieces
            n_groups += 1
            s = 0
        while r < span[s, 0]:
            s -= 1
        while r >= span[s, 0] + span[s, 1]:
            s += 1
        piece[n_pieces, 0] = v
        piece[n_pieces, 1] = 1
        piece[n_pieces, 2] = r
        piece[n_pieces, 3] = r - span[s, 0] + span[s, 2]
        n_pieces += 1
    group_start[n_groups] = n_pieces
    return piece[:n_pieces].copy(), span, group_start[: n_groups + 1].copy()


def certify(problem: DualProblem, beta: NDArray, f: NDArray) -> Certificate:
    """Return bias, objective and both gaps of ``beta``, given ``f = K beta`` by row."""
    p, lo, hi, _, row, group = problem
    multipliers = np.zeros(group[-1] + 1)
    found = certify_one(p, lo, hi, row, group, beta, f, multipliers)
    objective, kkt_gap, dual_gap = (float(v) for v in found)
    found_multipliers = tuple(multipliers.tolist())
    bias = -sum(found_multipliers) / len(found_multipliers)
    return Certificate(bias, objective, kkt_gap, dual_gap, found_multipliers)


@jit
def certify_one(p, lo, hi, row, group, beta, f, multipliers):
    """Return the objective and both gaps, and write the multiplier of each group."""
    objective, kkt_gap, dual_gap, nothing = 0.0, 0.0, 0.0, 0.0
    first = 0
    while first < len(p):
        stop = first
        least, most, total, n_free = np.inf, -np.inf, 0.0, 0
        while stop < len(p) and group[stop] == group[first]:
            G, b = f[row[stop]] + p[stop], beta[stop]
            nothing += 0.0 * G  # becomes NaN if G is not finite
            objective += 0.5 * b * (G + p[stop])
            if b < hi[stop]:
                least = min(least, G)
            if b > lo[stop]:
                most = max(most, G)
                if b < hi[stop]:
                    total += G
                    n_free += 1
            stop += 1
        # If no variable is free, take the middle of the interval that bounds allow.
        m = 0.0
        if n_free:
            m = total / n_free
        elif np.isfinite(least) and np.isfinite(most):
            m = 0.5 * (least + most)
        elif np.isfinite(least) or np.isfinite(most):
            m = least if np.isfinite(least) else most
        kkt_gap = max(kkt_gap, most - least)
        for v in range(first, stop):
            slack = f[row[v]] + p[v] - m
            dual_gap += max(slack * (beta[v] - lo[v]), slack * (beta[v] - hi[v]))
        multipliers[group[first]] = m
        first = stop
    if nothing != 0.0:
        kkt_gap = np.nan
    return objective, kkt_gap, dual_gap


def is_feasible(problem: DualProblem, beta: NDArray) -> bool:
    """Tell whether bounds hold and the sum of every group is that of the start.

    A gap is meaningless otherwise, because it compares ``beta`` with other points of
    the box that have the same sums.
    """
    _, lo, hi, start, _, group = problem
    return bool(holds_bounds_and_sums(lo, hi, start, group, beta))


@jit
def holds_bounds_and_sums(lo, hi, start, group, beta):
    """Tell whether ``beta`` is within its bounds and has the sums of the start."""
    largest = 0.0
    for b in beta:
        largest = max(largest, abs(b))
    change, mass, holds = 0.0, 0.0, largest < np.inf
    for v in range(len(beta)):
        if v > 0 and group[v] != group[v - 1]:
            change, mass = 0.0, 0.0
        outside = max(lo[v] - beta[v], beta[v] - hi[v])
        # The comparison is written so that NaN does not pass.
        holds = holds and outside <= LARGEST_DRIFT * largest
        change += beta[v] - start[v]
        mass += abs(beta[v]) + abs(start[v])
        if v + 1 == len(beta) or group[v + 1] != group[v]:
            holds = holds and abs(change) <= LARGEST_DRIFT * mass
    return holds


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


def _fill(total: float, room: NDArray) -> NDArray:
    """Distribute ``total`` from the left, to each variable as much as it can take."""
    before = np.cumsum(room) - room
    return np.clip(total - before, 0.0, room)


def nu_svc(y: NDArray, weight: NDArray, nu: float) -> DualProblem:
    r""":math:`\nu`-SVC: :math:`p = 0`, box between 0 and :math:`w_i y_i`.

    Each side is a group with the mass :math:`\nu \sum_i w_i / 2`. If ``nu`` is too
    large for the smaller side, all variables of that side are at their bounds.
    """
    sides = np.asarray(y) < 0
    row = np.argsort(sides, kind="stable")
    sign = np.where(sides[row], -1.0, 1.0)
    room = np.asarray(weight, dtype=np.float64)[row]
    half = 0.5 * nu * room.sum()
    start = np.concatenate([_fill(half, room[sign > 0]), _fill(half, room[sign < 0])])
    return DualProblem(
        p=np.zeros(len(row)),
        lo=np.where(sign < 0, -room, 0.0),
        hi=np.where(sign > 0, room, 0.0),
        start=sign * start,
        row=row,
        group=sides[row].astype(np.intp),
    )


def epsilon_svr(z: NDArray, C: NDArray, epsilon: float) -> DualProblem:
    r""":math:`\varepsilon`-SVR: two variables a sample, above and below the tube."""
    z = np.asarray(z, dtype=np.float64)
    m = len(z)
    return DualProblem(
        p=np.concatenate([epsilon - z, -epsilon - z]),
        lo=np.concatenate([np.zeros(m), -C]),
        hi=np.concatenate([C, np.zeros(m)]),
        start=np.zeros(2 * m),
        row=np.tile(np.arange(m), 2),
        group=np.zeros(2 * m, dtype=np.intp),
    )


def nu_svr(z: NDArray, C: NDArray, nu: float) -> DualProblem:
    r""":math:`\nu`-SVR: the width of the tube follows from the mass of each half.

    The mass of each half is :math:`\nu \sum_i C_i / 2`.
    """
    z = np.asarray(z, dtype=np.float64)
    m = len(z)
    start = _fill(0.5 * nu * C.sum(), C)
    problem = epsilon_svr(z, C, 0.0)
    return problem._replace(
        start=np.concatenate([start, -start]),
        group=np.repeat(np.array([0, 1], dtype=np.intp), m),
    )


def one_class(weight: NDArray, nu: float) -> DualProblem:
    r"""One-class: :math:`p = 0`, box from 0 to :math:`w_i`.

    The mass is :math:`\nu \sum_i w_i`.
    """
    m = len(weight)
    return DualProblem(
        p=np.zeros(m),
        lo=np.zeros(m),
        hi=np.array(weight, dtype=np.float64),
        start=_fill(nu * weight.sum(), weight),
        row=np.arange(m),
        group=np.zeros(m, dtype=np.intp),
    )


def svdd(diag: NDArray, C: NDArray) -> DualProblem:
    r"""Smallest ball: :math:`p = -\frac12 \mathrm{diag} K`, box from 0 to :math:`C_i`.

    The mass is 1.
    """
    return one_class(C, 0.0)._replace(p=-0.5 * diag, start=_fill(1.0, C))
