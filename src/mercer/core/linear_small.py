r"""Newton's method for small linear machines, in one compiled call.

It is the method of :mod:`mercer.engines.cpu.linear.newton`, for dense samples with few
features and intercepts that are penalised or not there.  A round on a hundred samples
takes some microseconds, less than one call from Python.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit
from mercer.core.linear_pieces import respond, step_length

__all__ = ["Machines", "solve_small_machines"]

# The smoothed problem is solved well enough when this fraction of the gap is its own,
# and sigma grows by so much between two smoothed problems, up to the largest one in
# units of the largest coefficient.
INNER_PART = 0.5
GROWTH = 3.0
LARGEST_SIGMA = 1e5
# Rounding errors of a pivot, as a fraction of its entry of the matrix.
ROUNDING = 1e-15


class Machines(NamedTuple):
    """What is found, a row or a number for each problem."""

    weights: NDArray[np.float64]  #: shape (k, d)
    shifts: NDArray[np.float64]  #: shape (k, n_shifts)
    beta: NDArray[np.float64]  #: coefficients, shape (k, m)
    primal: NDArray[np.float64]  #: primal objective, shape (k,)
    gap: NDArray[np.float64]  #: primal minus dual objective, shape (k,)
    rounds: NDArray[np.int64]
    solved: NDArray[np.bool_]

    @classmethod
    def not_solved(cls, k: int, d: int, n_shifts: int, m: int) -> Self:
        """Return room for k problems, with weights of 0."""
        return cls(
            np.zeros((k, d)),
            np.zeros((k, n_shifts)),
            np.zeros((k, m)),
            np.full(k, np.inf),
            np.full(k, np.inf),
            np.zeros(k, dtype=np.int64),
            np.zeros(k, dtype=np.bool_),
        )

    def part(self, some: slice) -> Self:
        """Return the rows of some of the problems, to be filled."""
        return type(self)(
            self.weights[some],
            self.shifts[some],
            self.beta[some],
            self.primal[some],
            self.gap[some],
            self.rounds[some],
            self.solved[some],
        )


@jit
def solve_small_machines(
    X: NDArray,
    p: NDArray,
    lo: NDArray,
    hi: NDArray,
    ridge: NDArray,
    row: NDArray,
    group: NDArray,
    value: float,
    bounds: NDArray,
    inverses: NDArray,
    tol: float,
    max_iter: int,
    stop: NDArray,
    found: Machines,
):
    """Solve problems from weights of 0 to gaps of ``tol`` times the primal objective.

    ``bounds`` is the largest coefficient of each problem, and ``inverses`` the first
    1/sigma, 0 for squared losses.  A problem that is not solved is not marked.
    """
    for k in range(len(p)):
        least = 1.0 / (LARGEST_SIGMA * bounds[k])
        _solve(
            X, p[k], lo[k], hi[k], ridge[k], row, group, value, least, inverses[k],
            tol, max_iter, stop, k, found,
        )  # fmt: skip


@jit
def _solve(
    X, p, lo, hi, ridge, row, group, value, least, inverse, tol, max_iter, stop, k,
    found,
):  # fmt: skip
    n, d = X.shape
    w, u, beta = found.weights[k], found.shifts[k], found.beta[k]
    e = len(u)
    base, free = np.zeros(len(p)), np.zeros(len(p), dtype=np.bool_)
    score, along, by_row = np.zeros(n), np.empty(n), np.empty(n)
    gradient, direction = np.empty(d + e), np.empty(d + e)
    H = np.empty((d + e, d + e))
    is_fresh = True
    for number in range(1, max_iter + 1):
        loss, rest = respond(
            score, u, value, p, lo, hi, ridge, base, inverse, row, group, beta, free
        )
        primal, dual, own = _measure(
            X, beta, row, value, w, u, loss, rest, by_row, gradient
        )
        gap = primal - dual
        if not gap < np.inf or stop[0]:
            return
        found.primal[k], found.gap[k], found.rounds[k] = primal, gap, number
        if gap <= tol * primal:
            if is_fresh:
                found.solved[k] = True
                return
            # Confirm it on decision values that are computed afresh.
            _scores(X, w, score)
            is_fresh = True
            continue
        if inverse > 0.0 and own <= INNER_PART * max(gap, 0.0):
            base[:] = beta
            inverse = max(inverse / GROWTH, min(least, inverse))
            continue
        _curvature(X, row, value, free, ridge, inverse, e, H)
        if not _solve_definite(H, gradient, direction):
            return
        dw, du = direction[:d], direction[d:]
        _scores(X, dw, along)
        constant, linear = 0.0, 0.0
        for j in range(d):
            constant += w[j] * dw[j]
            linear += dw[j] * dw[j]
        for j in range(e):
            constant += u[j] * du[j]
            linear += du[j] * du[j]
        t = step_length(
            score, along, u, du, value, p, lo, hi, ridge, base, inverse, row, group,
            constant, linear,
        )  # fmt: skip
        if t == 0.0:
            # Only rounding errors are left of the gradient.
            if inverse == 0.0:
                return
            is_same = True
            for v in range(len(base)):
                is_same = is_same and base[v] == beta[v]
            if is_same:
                return
            base[:] = beta
            inverse = max(inverse / GROWTH, min(least, inverse))
            continue
        for j in range(d):
            w[j] += t * dw[j]
        for j in range(e):
            u[j] += t * du[j]
        for i in range(n):
            score[i] += t * along[i]
        is_fresh = False


@jit
def _scores(X, w, out):
    """Fill ``out`` with the products of all samples with the weights."""
    for i in range(len(X)):
        x, total = X[i], 0.0
        for j in range(len(w)):
            total += x[j] * w[j]
        out[i] = total


@jit
def _measure(X, beta, row, value, w, u, loss, rest, by_row, gradient):
    """Return primal and dual objective; fill the gradient, and return half its square.

    The gradient is by weights, then by shifts.
    """
    n, d = X.shape
    e = len(u)
    by_row[:] = 0.0
    total = 0.0
    for v in range(len(beta)):
        by_row[row[v]] += beta[v]
        total += beta[v]
    gradient[:d] = 0.0
    for i in range(n):
        b, x = by_row[i], X[i]
        if b != 0.0:
            for j in range(d):
                gradient[j] += b * x[j]
    primal, norm, own = loss, 0.0, 0.0
    for j in range(d):
        combined = gradient[j]
        norm += combined * combined
        primal += 0.5 * w[j] * w[j]
        gradient[j] = w[j] - combined
    for j in range(e):
        norm += (value * total) ** 2
        primal += 0.5 * u[j] * u[j]
        gradient[d + j] = u[j] - value * total
    for j in range(d + e):
        own += 0.5 * gradient[j] * gradient[j]
    return primal, -0.5 * norm - rest, own


@jit
def _curvature(X, row, value, free, ridge, inverse, e, H):
    """Fill the lower triangle of the second derivative by weights and shifts."""
    d = X.shape[1]
    for a in range(d + e):
        H[a, :a] = 0.0
        H[a, a] = 1.0
    for v in range(len(free)):
        if free[v]:
            weight = 1.0 / (ridge[v] + inverse)
            x = X[row[v]]
            for a in range(d):
                factor, line = weight * x[a], H[a]
                for b in range(a + 1):
                    line[b] += factor * x[b]
            for a in range(e):
                line, factor = H[d + a], weight * value
                for b in range(d):
                    line[b] += factor * x[b]
                line[d + a] += factor * value


@jit
def _solve_definite(H, gradient, direction):
    """Solve ``H direction = -gradient`` by Cholesky's method, in place.

    Where features depend on each other, rounding errors can leave nothing of a pivot;
    it is then as large as they are.  Return False if the matrix is not finite.
    """
    size = len(H)
    for a in range(size):
        line = H[a]
        least = ROUNDING * line[a]
        for b in range(a + 1):
            other, total = H[b], line[b]
            for c in range(b):
                total -= line[c] * other[c]
            if a == b:
                total = max(total, least)
                if not total < np.inf:
                    return False
                line[a] = np.sqrt(total)
            else:
                line[b] = total / other[b]
    for a in range(size):
        total = -gradient[a]
        for c in range(a):
            total -= H[a, c] * direction[c]
        direction[a] = total / H[a, a]
    for back in range(size):
        a = size - 1 - back
        direction[a] /= H[a, a]
        for c in range(a):
            direction[c] -= H[a, c] * direction[a]
    return True
