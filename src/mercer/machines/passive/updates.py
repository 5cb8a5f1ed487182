r"""Passive-aggressive steps, on weights of features and on coefficients of samples.

With the hinge loss :math:`\ell = \max\{0, 1 - y f(x)\}`, a sample with a positive loss
(even if it is classified correctly) moves the weights by :math:`\tau y x`, where

.. math::

    \tau = \ell / \|x\|^2, \qquad \min\{C, \ell / \|x\|^2\}, \qquad
    \ell / (\|x\|^2 + 1/2C),

for PA, PA-I and PA-II.  In the multi-class form the loss is
:math:`\max\{0, 1 - (f_y - \max_{r \ne y} f_r)\}`, the weights of class y and of the
best other class r move by :math:`\pm\tau x`, and :math:`\|x\|^2` becomes
:math:`2\|x\|^2`.

The intercept moves by :math:`\tau y` and is not part of the norm, as in scikit-learn.
Averages are computed as :math:`\bar w = w - u / t` with
:math:`u = \sum_s (s - 1) \Delta_s`, where :math:`\Delta_s` is step s, so that a sample
without a loss needs no work.

Reference: Crammer, Dekel, Keshet, Shalev-Shwartz & Singer, "Online passive-aggressive
algorithms", JMLR 7, 2006.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = [
    "PA",
    "PA1",
    "PA2",
    "Rule",
    "pass_of_one_task",
    "pass_over_dense",
    "pass_over_kernel",
    "pass_over_sparse",
]

PA, PA1, PA2 = 0, 1, 2


class Rule(NamedTuple):
    """How a loss becomes a step."""

    variant: int
    C: float
    share: float  #: factor of a step for the intercept; 0 for no intercept
    together: bool  #: whether classes are updated jointly, or each on its own
    averages: bool


@jit
def _size(loss, norm, rule):
    """Return the step for a loss; 0 if the norm of the sample is 0."""
    if not loss > 0.0:
        return 0.0
    if rule.variant == PA2:
        return loss / (norm + 0.5 / rule.C)
    if norm == 0.0:
        return 0.0
    if rule.variant == PA1:
        return min(rule.C, loss / norm)
    return loss / norm


@jit
def _steps(f, label, norm, weight, factor, rule, learns, step, losses):
    """Fill ``step`` (n_tasks,) with signed steps; return whether any of them is not 0.

    With two classes there is one task, whose positive class is the second.  ``factor``
    are the weights of the classes.  In a task of one class against the rest only the
    samples of that class are weighted, as in scikit-learn.  The loss of each task is
    added to ``losses``.
    """
    n_tasks = len(f)
    step[:] = 0.0
    if norm == np.inf:  # the sample is too large: the caller checks the losses
        losses[:] = np.inf
    if rule.together and n_tasks > 1:
        rival = 0 if label != 0 else 1
        for t in range(n_tasks):
            if t != label and f[t] > f[rival]:
                rival = t
        loss = max(0.0, 1.0 - (f[label] - f[rival]))
        size = weight * factor[label] * _size(loss, 2.0 * norm, rule)
        for t in range(n_tasks):
            losses[t] += loss
        step[label] = size
        step[rival] = -size
        return size != 0.0
    moves = False
    for t in range(n_tasks):
        if learns[t]:
            positive = label == t if n_tasks > 1 else label == 1
            sign = 1.0 if positive else -1.0
            loss = max(0.0, 1.0 - sign * f[t])
            losses[t] += loss
            step[t] = sign * weight * _size(loss, norm, rule)
            if positive or n_tasks == 1:
                step[t] *= factor[label]
            moves = moves or step[t] != 0.0
    return moves


@jit
def pass_over_dense(
    X: NDArray,
    labels: NDArray,
    weight: NDArray,
    factor: NDArray,
    order: NDArray,
    rule: Rule,
    learns: NDArray,
    w: NDArray,
    b: NDArray,
    u: NDArray,
    v: NDArray,
    t0: float,
    losses: NDArray,
):
    """Make one pass over samples, updating ``w`` (n_tasks, d), ``b``, ``u`` and ``v``.

    ``u`` and ``v`` are for the averages of ``w`` and ``b``; ``t0`` is the number of
    samples seen before.  Return the number of samples seen after the pass.
    """
    n_tasks = len(w)
    f, step = np.empty(n_tasks), np.empty(n_tasks)
    for k in order:
        x = X[k]
        for t in range(n_tasks):
            row = w[t]
            total = 0.0
            for c in range(len(row)):
                total += row[c] * np.float64(x[c])
            f[t] = total + b[t]
        norm = 0.0
        for c in range(len(x)):
            norm += np.float64(x[c]) * np.float64(x[c])
        moves = _steps(
            f, labels[k], norm, weight[k], factor, rule, learns, step, losses
        )
        if moves:
            for t in range(n_tasks):
                s = step[t]
                if s != 0.0:
                    row = w[t]
                    for c in range(len(row)):
                        row[c] += s * np.float64(x[c])
                    b[t] += s * rule.share
                    if rule.averages:
                        row = u[t]
                        for c in range(len(row)):
                            row[c] += t0 * s * np.float64(x[c])
                        v[t] += t0 * s * rule.share
        if norm > 0.0 or rule.variant == PA2:  # otherwise the sample cannot move w
            t0 += 1.0
    return t0


@jit
def pass_over_sparse(
    data: NDArray,
    indices: NDArray,
    indptr: NDArray,
    labels: NDArray,
    weight: NDArray,
    factor: NDArray,
    order: NDArray,
    rule: Rule,
    learns: NDArray,
    w: NDArray,
    b: NDArray,
    u: NDArray,
    v: NDArray,
    t0: float,
    losses: NDArray,
):
    """Make the pass of :func:`pass_over_dense` over the rows of a CSR matrix.

    ``indices`` are unsigned, which saves the test for negative indices.
    """
    n_tasks = len(w)
    f, step = np.empty(n_tasks), np.empty(n_tasks)
    for k in order:
        x = data[indptr[k] : indptr[k + 1]]
        at = indices[indptr[k] : indptr[k + 1]]
        norm = 0.0
        for c in range(len(x)):
            norm += np.float64(x[c]) * np.float64(x[c])
        for t in range(n_tasks):
            row = w[t]
            total = 0.0
            for c in range(len(x)):
                total += row[at[c]] * np.float64(x[c])
            f[t] = total + b[t]
        moves = _steps(
            f, labels[k], norm, weight[k], factor, rule, learns, step, losses
        )
        if moves:
            for t in range(n_tasks):
                s = step[t]
                if s != 0.0:
                    row = w[t]
                    for c in range(len(x)):
                        row[at[c]] += s * np.float64(x[c])
                    b[t] += s * rule.share
                    if rule.averages:
                        row = u[t]
                        for c in range(len(x)):
                            row[at[c]] += t0 * s * np.float64(x[c])
                        v[t] += t0 * s * rule.share
        if norm > 0.0 or rule.variant == PA2:  # otherwise the sample cannot move w
            t0 += 1.0
    return t0


@jit
def pass_of_one_task(
    data: NDArray,
    indices: NDArray,
    indptr: NDArray,
    labels: NDArray,
    weight: NDArray,
    factor: NDArray,
    order: NDArray,
    rule: Rule,
    w: NDArray,
    b: NDArray,
    u: NDArray,
    v: NDArray,
    t0: float,
    losses: NDArray,
):
    """Make the pass of :func:`pass_over_sparse` for a single task.

    Rows with few values are so short that a loop over one task would cost time.
    """
    row, late = w[0], u[0]
    bias, lost = b[0], 0.0
    for k in order:
        x = data[indptr[k] : indptr[k + 1]]
        at = indices[indptr[k] : indptr[k + 1]]
        f = norm = 0.0
        for c in range(len(x)):
            # This never happens. It keeps the compiler from turning the loop into
            # gather instructions, which take longer than plain loads.
            if at[c] >= len(row):
                break
            f += row[at[c]] * np.float64(x[c])
        sign = 1.0 if labels[k] == 1 else -1.0
        loss = max(0.0, 1.0 - sign * (f + bias))
        lost += loss
        # Without a loss it only matters whether the norm is 0, and the first value that
        # is not 0 tells.
        for c in range(len(x) if loss > 0.0 else min(len(x), 1)):
            norm += np.float64(x[c]) * np.float64(x[c])
        if norm == 0.0:
            for c in range(len(x)):
                norm += np.float64(x[c]) * np.float64(x[c])
        if norm == np.inf:  # the sample is too large: the caller checks the losses
            lost = np.inf
        s = sign * weight[k] * _size(loss, norm, rule) * factor[labels[k]]
        if s != 0.0:
            for c in range(len(x)):
                row[at[c]] += s * np.float64(x[c])
            bias += s * rule.share
            if rule.averages:
                for c in range(len(x)):
                    late[at[c]] += t0 * s * np.float64(x[c])
                v[0] += t0 * s * rule.share
        if norm > 0.0 or rule.variant == PA2:  # otherwise the sample cannot move w
            t0 += 1.0
    b[0] = bias
    losses[0] += lost
    return t0


@jit
def pass_over_kernel(
    K: NDArray,
    diag: NDArray,
    labels: NDArray,
    weight: NDArray,
    factor: NDArray,
    slots: NDArray,
    rule: Rule,
    learns: NDArray,
    beta: NDArray,
    b: NDArray,
    u: NDArray,
    v: NDArray,
    t0: float,
    losses: NDArray,
    age: NDArray,
    size: NDArray,
    n_held: int,
    budget: int,
    oldest: bool,
):
    """Make one pass over a chunk of samples, updating coefficients of stored samples.

    ``K`` (m, n) are the kernel values between the m samples of the chunk and n samples:
    first the stored samples, then new ones.  ``slots`` (m,) is the column of each
    sample of the chunk.  ``beta`` and ``u`` have shape (n_tasks, n).  ``age`` (n,) is
    the time when a sample was stored, -1 for samples that are not stored, and ``size``
    (n,) is the square root of the diagonal.  When more than ``budget`` samples are
    stored, one is removed: the oldest, or the one with the least ``|beta|`` times
    ``size``.  Return the number of samples seen and the number of samples stored.
    """
    n_tasks, n = beta.shape
    f, step = np.empty(n_tasks), np.empty(n_tasks)
    for k in range(len(slots)):
        row = K[k]
        for t in range(n_tasks):
            mine = beta[t]
            total = 0.0
            for s in range(n):
                total += mine[s] * np.float64(row[s])
            f[t] = total + b[t]
        moves = _steps(
            f, labels[k], diag[k], weight[k], factor, rule, learns, step, losses
        )
        if moves:
            own = slots[k]
            if age[own] < 0.0:
                age[own] = t0
                n_held += 1
            for t in range(n_tasks):
                beta[t, own] += step[t]
                u[t, own] += t0 * step[t]
                b[t] += step[t] * rule.share
                v[t] += t0 * step[t] * rule.share
            if n_held > budget:
                out = _leaver(beta, age, size, own, oldest)
                beta[:, out] = 0.0
                u[:, out] = 0.0
                age[out] = -1.0
                n_held -= 1
        if diag[k] > 0.0 or rule.variant == PA2:
            t0 += 1.0
    return t0, n_held


@jit
def _leaver(beta, age, size, own, oldest):
    """Return which stored sample to remove; never ``own``, the one just stored."""
    best, out = np.inf, own
    for s in range(len(age)):
        if age[s] >= 0.0 and s != own:
            score = age[s]
            if not oldest:
                score = 0.0
                for t in range(len(beta)):
                    score += abs(beta[t, s])
                score *= size[s]
            if score < best:
                best = score
                out = s
    return out
