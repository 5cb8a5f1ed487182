r"""Pair steps for :math:`\ell_p`-norm multiple kernel learning (Sun et al. 2010).

With :math:`s_k = \beta^T K_k \beta`, :math:`S = \|s\|_q` and :math:`1/p + 1/q = 1` the
dual is, with the box and sum constraints of the SVM,

.. math::

    \min_\beta \; c^T \beta + h(S), \qquad
    h(S) = \tfrac12 S \quad\text{or, with a penalty,}\quad h(S) = S^2 / 8\lambda .

Its gradient is that of an SVM with the kernel :math:`K = \sum_k d_k K_k`, where
:math:`d_k = 2h'(S)\,(s_k/S)^{q-1}`.  A step on a pair moves every :math:`s_k` along a
parabola, :math:`s_k(t) = s_k + 2t(f_{ki} - f_{kj}) + t^2 a_k`, so the best step
minimises a convex function of one variable.  With a penalty and :math:`q = 2` the
minimum is the root of a cubic; otherwise a bracketed Newton's method finds it.

``penalty`` is :math:`\lambda`, or 0 for no penalty.
"""

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = [
    "add_scaled",
    "cubic_root",
    "kernel_weights",
    "minimise_shared_pairs",
    "pair_step",
]

TINY = 1e-12
CHECK_EVERY = 64
# Largest number of Newton steps; a step that leaves the bracket becomes a bisection.
MOST_NEWTON = 60


@jit
def add_scaled(target: NDArray, values: NDArray, factor: float, anew: bool):
    """Add ``factor * values`` to ``target``, or overwrite ``target`` if ``anew``."""
    for i in range(target.shape[0]):
        to, by = target[i], values[i]
        w = to.dtype.type(factor)
        if anew:
            for c in range(len(to)):
                to[c] = w * by[c]
        else:
            for c in range(len(to)):
                to[c] += w * by[c]


@jit
def _dual_norm(s, q):
    """Return ``||max(s, 0)||_q``, safe from overflow for large q."""
    top = 0.0
    for k in range(len(s)):
        top = max(top, s[k])
    if top <= 0.0:
        return 0.0
    total = 0.0
    for k in range(len(s)):
        if s[k] > 0.0:
            r = s[k] / top
            total += r * r if q == 2.0 else r**q
    return top * total ** (1.0 / q)


@jit
def kernel_weights(s: NDArray, q: float, penalty: float, d: NDArray):
    """Fill ``d`` with the weights that belong to ``s``; return the dual norm of s.

    If all entries of ``s`` are 0, as at the start, all weights are equal.
    """
    S = _dual_norm(s, q)
    scale = 1.0 if penalty == 0.0 else S / (2.0 * penalty)
    for k in range(len(s)):
        if S <= 0.0:
            d[k] = (1.0 / len(s)) ** (1.0 - 1.0 / q)
        elif s[k] <= 0.0:
            d[k] = 0.0
        else:
            r = s[k] / S
            d[k] = scale * (r if q == 2.0 else r ** (q - 1.0))
    return S


@jit
def _slopes(t, c, s, b, a, q, penalty, moved):
    """Return the first two derivatives of the objective by the step ``t``.

    ``s``, ``b``, ``a`` are the coefficients of the parabolas ``s + 2 t b + t^2 a``.
    """
    for k in range(len(s)):
        moved[k] = s[k] + t * (2.0 * b[k] + t * a[k])
    S = _dual_norm(moved, q)
    if S <= 0.0:
        return c, 0.0
    first, second, square = 0.0, 0.0, 0.0
    for k in range(len(s)):
        if moved[k] > 0.0:
            r = moved[k] / S
            w = r if q == 2.0 else r ** (q - 1.0)
            ds = 2.0 * (b[k] + t * a[k])
            first += w * ds
            second += w * 2.0 * a[k]
            square += w / r * ds * ds
    second += (q - 1.0) / S * (square - first * first)
    if penalty == 0.0:
        return c + 0.5 * first, 0.5 * second
    rate = 0.25 / penalty
    return c + rate * S * first, rate * (first * first + S * second)


@jit
def cubic_root(c, s, b, a, penalty):
    """Return the root of the increasing function ``c + (sum_k s_k(t)^2)' / 8 lambda``.

    With x = t + shift the cubic is x^3 + 3 u x + 2 v, which has one real root.
    """
    c3, c2, c1, c0 = 0.0, 0.0, 0.0, 4.0 * penalty * c
    for k in range(len(s)):
        c3 += 2.0 * a[k] * a[k]
        c2 += 6.0 * a[k] * b[k]
        c1 += 4.0 * b[k] * b[k] + 2.0 * a[k] * s[k]
        c0 += 2.0 * b[k] * s[k]
    if c3 <= 0.0:
        return np.inf
    shift = c2 / (3.0 * c3)
    u = c1 / (3.0 * c3) - shift * shift
    v = shift * shift * shift + 0.5 * (c0 - c1 * shift) / c3
    root = np.sqrt(max(v * v + u * u * u, 0.0))
    # Cardano's formula has two summands. Compute the one without cancellation; the
    # other follows, because their product is -u.
    large = np.cbrt(-v - root) if v > 0.0 else np.cbrt(-v + root)
    if large == 0.0:
        return -shift
    return large - u / large - shift


@jit
def pair_step(
    c: float,
    s: NDArray,
    b: NDArray,
    a: NDArray,
    q: float,
    penalty: float,
    room: float,
    moved: NDArray,
):
    """Return the best step in [0, room], given that the slope at 0 is negative."""
    low, high = 0.0, np.inf
    guess = np.inf
    if q == 2.0 and penalty > 0.0:
        guess = cubic_root(c, s, b, a, penalty)
    if not 0.0 < guess < np.inf:
        slope, curve = _slopes(0.0, c, s, b, a, q, penalty, moved)
        guess = -slope / max(curve, TINY)
        if curve <= 0.0:
            # All s and b are 0, as at the start, so S = t^2 ||a||_q.
            size = max(_dual_norm(a, q), TINY)
            guess = (
                -c / size
                if penalty == 0.0
                else np.cbrt(-2.0 * penalty * c) / (size ** (2.0 / 3.0))
            )
    if not guess > 0.0:
        # The step does not decrease the objective: the matrix is indefinite, or only
        # rounding is left.
        return 0.0
    t = min(guess, room)
    for _ in range(MOST_NEWTON):
        slope, curve = _slopes(t, c, s, b, a, q, penalty, moved)
        if slope <= 0.0:
            if t >= room:
                return room
            low = t
        else:
            high = t
        new = t - slope / curve if curve > 0.0 else np.inf
        if not low < new < high:
            new = 2.0 * low if high == np.inf else 0.5 * (low + high)
        new = min(new, room)
        is_narrow = high < np.inf and high - low <= 1e-14 * high
        if is_narrow or abs(new - t) <= 1e-14 * t:
            return new
        t = new
    return t


@jit
def minimise_shared_pairs(
    K: NDArray,
    c: NDArray,
    lo: NDArray,
    hi: NDArray,
    row: NDArray,
    group: NDArray,
    beta: NDArray,
    F: NDArray,
    s: NDArray,
    q: float,
    penalty: float,
    tol: float,
    max_iter: int,
    stop: NDArray,
):
    """Take pair steps on ``beta``, ``F`` and ``s`` in place until the gap is ``tol``.

    ``K`` (kernels, rows, rows) are the matrices of the rows in use, ``F`` (kernels,
    rows) are their products with all of ``beta``, and ``s`` are the sums over all
    problems that share the weights.  Return the number of steps, the last violation,
    and whether the solver stalled because a step was too small to change ``beta``.
    """
    n_kernels, n = F.shape
    d, a, b, moved = (
        np.empty(n_kernels), np.empty(n_kernels), np.empty(n_kernels),
        np.empty(n_kernels),
    )  # fmt: skip
    f, Ki, diag = np.empty(n), np.empty(n), np.empty(n)
    n_iter, gap, i, j = 0, np.inf, np.int64(0), np.int64(-1)
    while True:
        kernel_weights(s, q, penalty, d)
        f[:] = 0.0
        diag[:] = 0.0
        for k in range(n_kernels):
            if d[k] != 0.0:
                w, Fk = d[k], F[k]
                for r in range(n):
                    f[r] += w * Fk[r]
                for r in range(n):
                    diag[r] += w * K[k, r, r]
        i, g, gap = _first_of_pair(c, lo, hi, row, group, beta, f)
        if gap <= tol or n_iter >= max_iter:
            return n_iter, gap, False
        if n_iter % CHECK_EVERY == 0 and stop[0] != 0:
            return n_iter, gap, False
        ri = row[i]
        Ki[:] = 0.0
        for k in range(n_kernels):
            if d[k] != 0.0:
                w, Kk = d[k], K[k, ri]
                for r in range(n):
                    Ki[r] += w * Kk[r]
        j = _second_of_pair(c, lo, row, group, beta, f, Ki, diag, i, g)
        if j < 0:
            return n_iter, gap, True
        rj = row[j]
        for k in range(n_kernels):
            a[k] = max(
                np.float64(K[k, ri, ri])
                + K[k, rj, rj]
                - 2.0 * np.float64(K[k, ri, rj]),
                0.0,
            )
            b[k] = F[k, ri] - F[k, rj]
        room_i, room_j = hi[i] - beta[i], beta[j] - lo[j]
        room = min(room_i, room_j)
        t = pair_step(c[i] - c[j], s, b, a, q, penalty, room, moved)
        new_i = hi[i] if t >= room_i else beta[i] + t
        new_j = lo[j] if t >= room_j else beta[j] - t
        if new_i == beta[i] and new_j == beta[j]:
            return n_iter, gap, True
        beta[i], beta[j] = new_i, new_j
        for k in range(n_kernels):
            s[k] += t * (2.0 * b[k] + t * a[k])
            Fk, from_i, from_j = F[k], K[k, ri], K[k, rj]
            for r in range(n):
                Fk[r] += t * (np.float64(from_i[r]) - np.float64(from_j[r]))
        n_iter += 1


@jit
def _first_of_pair(c, lo, hi, row, group, beta, f):
    """Return the variable with the least slope that may grow, its group and the gap."""
    i, g, gap = np.int64(0), np.int64(0), -np.inf
    first = 0
    while first < len(c):
        least, most, at = np.inf, -np.inf, np.int64(-1)
        v = first
        while v < len(c) and group[v] == group[first]:
            G = f[row[v]] + c[v]
            if beta[v] < hi[v] and G < least:
                least, at = G, v
            if beta[v] > lo[v] and G > most:
                most = G
            v += 1
        if at >= 0 and most - least > gap:
            gap, i, g = most - least, at, group[first]
        first = v
    return i, g, gap


@jit
def _second_of_pair(c, lo, row, group, beta, f, Ki, diag, i, g):
    """Return the variable of the group whose step gains most, or -1 if none gains."""
    ri = row[i]
    Gi = f[ri] + c[i]
    j, best = np.int64(-1), 0.0
    for v in np.arange(len(beta)):
        if group[v] == g and beta[v] > lo[v] and v != i:
            r = row[v]
            violation = f[r] + c[v] - Gi
            if violation > 0.0:
                bend = diag[ri] + diag[r] - 2.0 * Ki[r]
                gain = violation * violation / max(bend, TINY)
                if gain > best:
                    j, best = v, gain
    return j
