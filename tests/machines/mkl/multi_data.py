"""Data and an exact reference for multiple kernel learning."""

import numpy as np
from scipy.optimize import minimize

from mercer.kernels import RBF, Linear, Polynomial


def blend(n=90, seed=0):
    """Return samples of which some columns matter, with classes and values."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    score = X[:, 0] + X[:, 1] ** 2 - 1 + 0.3 * rng.normal(size=n)
    three = np.digitize(score, [-0.4, 0.7])
    return X, np.where(score > 0, 1, -1), three, np.sin(X[:, 0]) + 0.3 * X[:, 1]


KERNELS = [
    RBF(gamma=0.1),
    RBF(gamma=1.0),
    Linear(),
    RBF(gamma=0.5).on([0, 1]),
    Polynomial(degree=2, gamma=0.3, coef0=1.0).on([4, 5]),
]


def matrices(X, kernels=KERNELS):
    """Return base Gram matrices, each with a mean of 1 on the diagonal."""
    found = [kernel.bind(X).block(X) for kernel in kernels]
    return [K / np.diag(K).mean() for K in found]


def generic_dual(K, y, C, p, penalty=None):
    """Minimise the dual of a small classification problem with SciPy's SLSQP."""
    q = p / (p - 1) if p > 1 else np.inf
    K = np.stack(K)

    def parts(beta):
        f = K @ beta
        s = np.maximum(f @ beta, 1e-300)
        return f, s, s.max() * ((s / s.max()) ** q).sum() ** (1 / q)

    def value(beta):
        size = parts(beta)[2]
        return -y @ beta + (size**2 / (8 * penalty) if penalty else 0.5 * size)

    def slope(beta):
        f, s, size = parts(beta)
        d = (s / size) ** (q - 1)
        return -y + (size / (2 * penalty) if penalty else 1.0) * (d @ f)

    bounds = [(min(0, C * t), max(0, C * t)) for t in y]
    start = 0.01 * C * np.where(y > 0, 1 / (y > 0).sum(), -1 / (y < 0).sum())
    found = minimize(
        value, start, jac=slope, bounds=bounds, method="SLSQP",
        constraints={"type": "eq", "fun": np.sum, "jac": np.ones_like},
        options={"maxiter": 2000, "ftol": 1e-14},
    )  # fmt: skip
    _, s, size = parts(found.x)
    scale = size / (2 * penalty) if penalty else 1.0
    return found.fun, scale * (s / size) ** (q - 1)
