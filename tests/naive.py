"""Loops-only oracle: kernels, problems, gaps, and the dual by a generic optimiser.

Nothing here is fast, and nothing is shared with the package but the tuple that holds
a problem.  For a few dozen samples at most.  ``K`` is the Gram matrix by row.
"""

import math

import numpy as np
from scipy.optimize import LinearConstraint, minimize

from mercer.core.problem import DualProblem


def linear(x, z):
    return sum(float(a) * float(b) for a, b in zip(x, z, strict=True))


def polynomial(x, z, gamma=1.0, coef0=1.0, degree=3):
    return (gamma * linear(x, z) + coef0) ** degree


def rbf(x, z, gamma=1.0):
    distance = sum((float(a) - float(b)) ** 2 for a, b in zip(x, z, strict=True))
    return math.exp(-gamma * distance)


def laplacian(x, z, gamma=1.0):
    distance = sum(abs(float(a) - float(b)) for a, b in zip(x, z, strict=True))
    return math.exp(-gamma * distance)


def sigmoid(x, z, gamma=1.0, coef0=0.0):
    return math.tanh(gamma * linear(x, z) + coef0)


def cosine(x, z):
    length = math.sqrt(linear(x, x) * linear(z, z))
    return linear(x, z) / length if length > 0.0 else 0.0


def additive_chi2(x, z):
    total = 0.0
    for a, b in zip(x, z, strict=True):
        if a + b != 0.0:
            total -= (float(a) - float(b)) ** 2 / (float(a) + float(b))
    return total


def chi2(x, z, gamma=1.0):
    return math.exp(gamma * additive_chi2(x, z))


def intersection(x, z):
    return sum(min(float(a), float(b)) for a, b in zip(x, z, strict=True))


def block(kernel, X, Z, **parameters):
    """Return the matrix of ``kernel`` between the rows of ``X`` and of ``Z``."""
    K = np.empty((len(X), len(Z)))
    for i, x in enumerate(X):
        for j, z in enumerate(Z):
            K[i, j] = kernel(x, z, **parameters)
    return K


def c_svc(y, C):
    """Sample ``i`` has ``p = -y``, and ``beta`` between 0 and ``C y``."""
    m = len(y)
    p, lo, hi = np.empty(m), np.empty(m), np.empty(m)
    for i in range(m):
        p[i] = -y[i]
        lo[i], hi[i] = (0.0, C[i]) if y[i] > 0 else (-C[i], 0.0)
    return DualProblem(p, lo, hi, np.zeros(m), np.arange(m), np.zeros(m, dtype=np.intp))


def nu_svc(y, nu):
    """Each class is a group of mass ``nu n / 2``, filled from the left."""
    row = [i for i in range(len(y)) if y[i] < 0] + [
        i for i in range(len(y)) if y[i] > 0
    ]
    m = len(row)
    lo, hi, start = np.zeros(m), np.zeros(m), np.zeros(m)
    group = np.zeros(m, dtype=np.intp)
    left = {-1: nu * m / 2, 1: nu * m / 2}
    for t, i in enumerate(row):
        sign = int(y[i])
        group[t] = sign > 0
        lo[t], hi[t] = min(0, sign), max(0, sign)
        mass = min(1.0, left[sign])
        start[t] = sign * mass
        left[sign] -= mass
    return DualProblem(np.zeros(m), lo, hi, start, np.array(row), group)


def epsilon_svr(z, C, epsilon):
    """Every row twice: once to push up, once to push down."""
    n = len(z)
    p, lo, hi = np.empty(2 * n), np.empty(2 * n), np.empty(2 * n)
    for i in range(n):
        p[i], lo[i], hi[i] = epsilon - z[i], 0.0, C
        p[n + i], lo[n + i], hi[n + i] = -epsilon - z[i], -C, 0.0
    row = np.array([*range(n), *range(n)])
    return DualProblem(p, lo, hi, np.zeros(2 * n), row, np.zeros(2 * n, dtype=np.intp))


def product(problem, K, beta):
    """Return ``K beta`` by Gram row."""
    f = np.zeros(len(K))
    for r in range(len(K)):
        for t in range(len(beta)):
            f[r] += float(K[r, problem.row[t]]) * beta[t]
    return f


def gradient(problem, K, beta):
    f = product(problem, K, beta)
    return np.array([f[problem.row[t]] + problem.p[t] for t in range(len(beta))])


def faults(problem, K, beta, f):
    """Return how far a candidate leaves the box, its group sums and ``K beta``."""
    outside, off = 0.0, {}
    for t in range(len(beta)):
        outside = max(outside, problem.lo[t] - beta[t], beta[t] - problem.hi[t])
        g = int(problem.group[t])
        off[g] = off.get(g, 0.0) + beta[t] - problem.start[t]
    drift = max(abs(v) for v in off.values())
    return outside, drift, float(np.abs(f - product(problem, K, beta)).max())


def objective(problem, K, beta):
    G = gradient(problem, K, beta)
    return 0.5 * sum(beta[t] * (G[t] + problem.p[t]) for t in range(len(beta)))


def kkt_gap(problem, K, beta):
    """Look at every pair of one group that may move."""
    G = gradient(problem, K, beta)
    gap = 0.0
    for i in range(len(beta)):
        for j in range(len(beta)):
            may_move = beta[i] < problem.hi[i] and beta[j] > problem.lo[j]
            if may_move and problem.group[i] == problem.group[j]:
                gap = max(gap, G[j] - G[i])
    return gap


def dual_gap(problem, K, beta, multiplier):
    """Return what the box lets each variable gain; ``multiplier`` maps the groups."""
    G = gradient(problem, K, beta)
    total = 0.0
    for t in range(len(beta)):
        slack = G[t] - multiplier[int(problem.group[t])]
        end = problem.lo[t] if slack > 0.0 else problem.hi[t]
        total += slack * (beta[t] - end)
    return total


def decision(K, beta, bias):
    """Return decision values; ``K`` is (n_points, n_training)."""
    values = np.empty(len(K))
    for i in range(len(K)):
        values[i] = bias + sum(float(K[i, j]) * beta[j] for j in range(len(beta)))
    return values


def c_svc_primal(K, y, C, beta, bias):
    """Return half the squared norm plus the weighted hinge losses."""
    f = decision(K, beta, 0.0)
    total = 0.5 * sum(beta[i] * f[i] for i in range(len(y)))
    for i in range(len(y)):
        total += C[i] * max(0.0, 1.0 - y[i] * (f[i] + bias))
    return total


def solve(problem, K):
    """Minimise the dual by SLSQP, in units that make a small box of order one."""
    scale = min(1.0, float((problem.hi - problem.lo).max()))
    Q = K[np.ix_(problem.row, problem.row)].astype(float)
    sums = np.array([problem.group == g for g in np.unique(problem.group)], dtype=float)
    target = sums @ problem.start / scale
    found = minimize(
        lambda u: 0.5 * scale * u @ Q @ u + problem.p @ u,
        problem.start / scale,
        jac=lambda u: scale * Q @ u + problem.p,
        bounds=list(zip(problem.lo / scale, problem.hi / scale, strict=True)),
        constraints=LinearConstraint(sums, target, target),
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-15},
    )
    return np.clip(found.x * scale, problem.lo, problem.hi)
