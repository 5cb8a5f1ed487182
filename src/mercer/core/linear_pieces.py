r"""Piecewise quadratic problems in the weights of features.

A linear machine has the dual problem

.. math::

    \min_\beta \; \tfrac12 \|X^T \beta\|^2 + p^T \beta + \tfrac12 \sum_v r_v \beta_v^2
    \quad\text{with}\quad lo \le \beta \le hi.

The ridge :math:`r_v = 1 / (2 C_v)` belongs to squared losses, which have no upper
bound; other losses have no ridge.  With the decision value :math:`z_v` of the sample of
variable v, the primal problem has the loss

.. math::

    \ell_v(z) = \max_{lo \le \beta \le hi}
        \{ -\beta (z + p_v) - \tfrac12 r_v \beta^2 \}.

A loss without ridge has kinks.  The proximal term :math:`(\beta - base_v)^2 / 2\sigma`
in the maximum smooths it.  The maximising :math:`\beta` is then a clipped linear
function of z (:func:`respond`), the sum of the losses along a line has a piecewise
linear slope (:func:`step_length`), and its curvature comes from the *free* variables,
those between their bounds.

The intercept is a *shift* of the decision values: ``value * u[group[v]]`` is added to
the score of variable v.  A penalised intercept is one more feature with a constant
value.  For an intercept without penalty the value is -1, u are the multipliers of the
groups, and the sums of :math:`\beta` in the groups are fixed.  For given weights the
best shifts of this kind are found exactly (:func:`settle_shifts`), and rounding errors
of the sums are taken off free variables (:func:`repair_sums`), so that the
coefficients always satisfy the constraints of the dual problem.
"""

import numpy as np

from mercer.core.jit import jit

__all__ = [
    "add_chosen",
    "dot_chosen",
    "gather_dense",
    "gather_sparse",
    "pick_products",
    "repair_sums",
    "respond",
    "settle_shifts",
    "step_length",
]

# A line search ends when the slope has fallen to this fraction.
SLOPE_LEFT = 0.02
MOST_TRIALS = 60
# A sum of coefficients is right if it is off by this fraction of their mass.
SUM_ERROR = 1e-13


@jit
def respond(score, u, value, p, lo, hi, ridge, base, inverse, row, group, beta, free):
    """Set the maximising ``beta`` and mark the free variables; return two sums.

    ``inverse`` is 1/sigma, or 0 if there is no proximal term. The sums are the loss
    without proximal term, and the part of the dual objective that is not the norm.
    """
    loss, rest = 0.0, 0.0
    has_shift = len(u) > 0
    for v in range(len(p)):
        g = score[row[v]] + p[v]
        if has_shift:
            g += value * u[group[v]]
        best = (base[v] * inverse - g) / (ridge[v] + inverse)
        b = min(max(best, lo[v]), hi[v])
        free[v] = lo[v] < best and best < hi[v]
        beta[v] = b
        rest += b * (p[v] + 0.5 * ridge[v] * b)
        if ridge[v] > 0.0:
            b = min(max(-g / ridge[v], lo[v]), hi[v])
        else:
            b = hi[v] if g < 0.0 else lo[v]
        loss -= b * (g + 0.5 * ridge[v] * b)
    return loss, rest


@jit
def _sum_at(z, centre, flat, lo, hi, first, last):
    """Return what the coefficients of a group add up to at the shift ``z``.

    Return also their mass, and the decrease of the sum per unit of z to the right and
    to the left.  There are no branches, so that LLVM can use vector instructions.
    """
    total, mass, right, left = 0.0, 0.0, 0.0, 0.0
    for v in range(len(centre)):
        b = (centre[v] - z) * flat[v]
        b = hi[v] if z <= first[v] else b
        b = lo[v] if z >= last[v] else b
        total += b
        mass += abs(b)
        right += flat[v] if (first[v] <= z) & (z < last[v]) else 0.0
        left += flat[v] if (first[v] < z) & (z <= last[v]) else 0.0
    return total, mass, right, left


@jit
def _next_kinks(z, first, last):
    """Return the nearest shifts below and above at which a coefficient leaves a bound.

    It leaves its upper bound at ``first``, and comes to its lower one at ``last``.
    """
    above, below = np.inf, -np.inf
    for v in range(len(first)):
        if z < first[v] and first[v] < above:
            above = first[v]
        if last[v] < z and below < last[v]:
            below = last[v]
    return below, above


@jit
def _settle(z, wanted, centre, flat, lo, hi, first, last):
    """Return the shift at which the coefficients of a group add up to ``wanted``."""
    low, high = -np.inf, np.inf
    for _ in range(MOST_TRIALS):
        total, mass, right, left = _sum_at(z, centre, flat, lo, hi, first, last)
        off = total - wanted
        if abs(off) <= SUM_ERROR * mass:
            # Where all shifts of an interval are equally good, its middle leaves the
            # next step room on both sides.
            if left == 0.0 or right == 0.0:
                below, above = _next_kinks(z, first, last)
                start = below if left == 0.0 else z
                end = above if right == 0.0 else z
                if -np.inf < start and end < np.inf:
                    z = 0.5 * (start + end)
            return z
        slope = right if off > 0.0 else left
        if slope > 0.0:
            new = z + off / slope
        else:
            below, above = _next_kinks(z, first, last)
            new = above if off > 0.0 else below
        if off > 0.0:
            low = z
        else:
            high = z
        if not (low < new and new < high):
            new = 0.5 * (low + high)
        if new == z or not abs(new) < np.inf:
            return z
        z = new
    return z


@jit
def settle_shifts(
    score, u, value, p, lo, hi, ridge, base, inverse, row, group, totals
):  # fmt: skip
    """Set the shifts ``u`` at which the coefficients of each group have their sum.

    These are the best shifts without penalty for the given decision values.  The sum
    falls with ``value * u`` and is piecewise linear: Newton's method inside a bracket
    finds it.
    """
    m = len(p)
    centre, flat, first, last = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    least, most = np.empty(m), np.empty(m)
    for g in range(len(u)):
        k = 0
        for v in range(m):
            if group[v] != g or lo[v] == hi[v]:
                continue
            width = ridge[v] + inverse
            middle = base[v] * inverse - score[row[v]] - p[v]
            centre[k], flat[k] = middle, 1.0 / width
            # The coefficient is hi up to ``first``, and lo from ``last`` on.
            first[k], last[k] = middle - hi[v] * width, middle - lo[v] * width
            least[k], most[k] = lo[v], hi[v]
            k += 1
        z = _settle(
            value * u[g], totals[g], centre[:k], flat[:k], least[:k], most[:k],
            first[:k], last[:k],
        )  # fmt: skip
        u[g] = z / value


@jit
def repair_sums(lo, hi, group, totals, beta, free):
    """Take what the sums of groups are off by from their free variables."""
    for g in range(len(totals)):
        for _ in range(3):
            total, count = 0.0, 0
            for v in range(len(beta)):
                if group[v] == g:
                    total += beta[v]
                    count += free[v] and lo[v] < beta[v] and beta[v] < hi[v]
            if total == totals[g] or count == 0:
                break
            part = (total - totals[g]) / count
            for v in range(len(beta)):
                if group[v] == g and free[v] and lo[v] < beta[v] and beta[v] < hi[v]:
                    beta[v] = min(max(beta[v] - part, lo[v]), hi[v])


@jit
def _slope(
    score, along, u, du, value, p, lo, hi, ridge, base, inverse, row, group, t
):  # fmt: skip
    """Return the slope of the smoothed losses at step ``t``, and their curvature."""
    slope, curvature = 0.0, 0.0
    has_shift = len(u) > 0
    for v in range(len(p)):
        r = row[v]
        h = along[r]
        g = score[r] + p[v]
        if has_shift:
            h += value * du[group[v]]
            g += value * u[group[v]]
        g += t * h
        weight = 1.0 / (ridge[v] + inverse)
        best = (base[v] * inverse - g) * weight
        b = min(max(best, lo[v]), hi[v])
        slope -= b * h
        if b == best:
            curvature += weight * h * h
    return slope, curvature


@jit
def step_length(
    score, along, u, du, value, p, lo, hi, ridge, base, inverse, row, group,
    constant, linear,
):  # fmt: skip
    """Return a step along a direction of descent at which the slope almost vanishes.

    The slope of the penalty at step t is ``constant + t * linear``.  Newton's method
    inside a bracket finds the zero of the total slope, which never falls.
    """
    slope, _ = _slope(
        score, along, u, du, value, p, lo, hi, ridge, base, inverse, row, group, 0.0
    )
    first = slope + constant
    if not first < 0.0:
        return 0.0
    t, low, high = 1.0, 0.0, np.inf
    for _ in range(MOST_TRIALS):
        slope, curvature = _slope(
            score, along, u, du, value, p, lo, hi, ridge, base, inverse, row, group, t
        )
        slope += constant + t * linear
        curvature += linear
        if abs(slope) <= -SLOPE_LEFT * first:
            return t
        if slope > 0.0:
            high = t
        else:
            low = t
        step = t - slope / curvature if curvature > 0.0 else np.inf
        if high == np.inf:
            t = min(max(step, 1.5 * t), 1e3 * t)
        elif low < step and step < high:
            t = step
        else:
            t = 0.5 * (low + high)
    return low if low > 0.0 else t


@jit
def gather_dense(X, rows, weight, value, place, out):
    """Fill ``out`` with weighted rows of X, and with their shift in column ``place``.

    ``out`` has a column for each feature and for each shift.
    """
    d = X.shape[1]
    for i in range(len(rows)):
        x, line, w = X[rows[i]], out[i], weight[i]
        for j in range(d):
            line[j] = w * x[j]
        for j in range(d, out.shape[1]):
            line[j] = 0.0
        if out.shape[1] > d:
            line[d + place[i]] = w * value


@jit
def gather_sparse(data, indices, indptr, rows, weight, value, place, d, out):
    """Do the same as :func:`gather_dense` for a CSR matrix with ``d`` columns."""
    for i in range(len(rows)):
        line, w = out[i], weight[i]
        for j in range(out.shape[1]):
            line[j] = 0.0
        for k in range(indptr[rows[i]], indptr[rows[i] + 1]):
            line[indices[k]] += w * data[k]
        if out.shape[1] > d:
            line[d + place[i]] = w * value


@jit
def pick_products(products, places, diagonal, out):
    """Fill the upper triangle of ``out`` with products of pairs of chosen samples.

    ``diagonal`` is added to the products of samples with themselves.
    """
    for i in range(len(places)):
        line, into = products[places[i]], out[i]
        for j in range(i, len(places)):
            into[j] = line[places[j]]
        into[i] += diagonal[i]


@jit
def dot_chosen(samples, places, x, out):
    """Add the products of chosen samples with a vector to ``out``."""
    for i in range(len(places)):
        line, total = samples[places[i]], 0.0
        for j in range(len(x)):
            total += line[j] * x[j]
        out[i] += total


@jit
def add_chosen(samples, places, factors, out):
    """Add multiples of chosen samples to ``out``."""
    for i in range(len(places)):
        line, factor = samples[places[i]], factors[i]
        for j in range(len(out)):
            out[j] += factor * line[j]
