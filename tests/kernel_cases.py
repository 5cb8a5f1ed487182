"""Every kind of kernel with its definition for two vectors, and samples for it."""

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse

import naive
from mercer.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Cosine,
    Custom,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Pairwise,
    Polynomial,
    Sigmoid,
)

D = 9
RELATIVE = {np.float32: 1e-5, np.float64: 1e-12}


class Case(NamedTuple):
    """A kernel and its definition for two vectors."""

    kernel: Kernel
    formula: object
    is_psd: bool = True
    is_signed: bool = True  #: whether the data may be negative


def on(formula, columns):
    return lambda x, z: formula(x[columns], z[columns])


def normalized(formula):
    return lambda x, z: formula(x, z) / math.sqrt(formula(x, x) * formula(z, z))


def product_of_two(x, z):
    both = x @ z.T
    return both.toarray() if sparse.issparse(both) else both


def product_of_rows(X, Z):
    return X @ Z.T


linear, cosine = naive.linear, naive.cosine
rbf, wide = partial(naive.rbf, gamma=0.3), partial(naive.rbf, gamma=0.1)
polynomial = partial(naive.polynomial, degree=5, gamma=0.1, coef0=1.0)

CASES = {
    "linear": Case(Linear(), linear),
    "polynomial": Case(Polynomial(5, 0.1, 1.0), polynomial),
    "degree 1": Case(
        Polynomial(1, 0.5), partial(naive.polynomial, degree=1, gamma=0.5, coef0=0.0)
    ),
    "degree 0": Case(Polynomial(0, 0.5, 2.0), lambda x, z: 1.0),
    "sigmoid": Case(
        Sigmoid(0.2, -0.1), partial(naive.sigmoid, gamma=0.2, coef0=-0.1), is_psd=False
    ),
    "cosine": Case(Cosine(), cosine),
    "rbf": Case(RBF(gamma=0.3), rbf),
    "sigma": Case(RBF(sigma=2), partial(naive.rbf, gamma=1 / 8)),
    "laplacian": Case(Laplacian(0.2), partial(naive.laplacian, gamma=0.2)),
    "additive chi2": Case(AdditiveChi2(), naive.additive_chi2, False, False),
    "chi2": Case(Chi2(0.4), partial(naive.chi2, gamma=0.4), is_signed=False),
    "intersection": Case(Intersection(), naive.intersection, is_signed=False),
    "custom": Case(Custom(product_of_rows), linear),
    "pairwise": Case(Pairwise(product_of_two), linear),
    "sum": Case(RBF(gamma=0.3) + Linear(), lambda x, z: rbf(x, z) + linear(x, z)),
    "product": Case(RBF(gamma=0.3) * Cosine(), lambda x, z: rbf(x, z) * cosine(x, z)),
    "scaled": Case(0.25 * Linear(), lambda x, z: 0.25 * linear(x, z)),
    "scaled by 0": Case(RBF(gamma=0.3) * 0, lambda x, z: 0.0),
    "power": Case(Linear() ** 3, lambda x, z: linear(x, z) ** 3),
    "power 1": Case(RBF(gamma=0.3) ** 1, rbf),
    "normalized": Case(Polynomial(5, 0.1, 1.0).normalized(), normalized(polynomial)),
    "slice": Case(RBF(gamma=0.3).on(slice(2, 5)), on(rbf, slice(2, 5))),
    "columns": Case(Linear().on([5, 0, 3]), on(linear, [5, 0, 3])),
    "column": Case(Laplacian(1.0).on([4]), on(naive.laplacian, [4])),
    "on on": Case(RBF(gamma=0.3).on([2, 0]).on([8, 1, 4]), on(rbf, [4, 8])),
    "two widths": Case(
        RBF(gamma=0.3) + 2.0 * RBF(gamma=0.1),
        lambda x, z: rbf(x, z) + 2.0 * wide(x, z),
    ),
    "same twice": Case(
        RBF(gamma=0.3) * (RBF(gamma=0.3) + Linear()),
        lambda x, z: rbf(x, z) * (rbf(x, z) + linear(x, z)),
    ),
    "both chi2": Case(
        AdditiveChi2() + Chi2(0.4),
        lambda x, z: naive.additive_chi2(x, z) + naive.chi2(x, z, gamma=0.4),
        is_psd=False,
        is_signed=False,
    ),
    "dots shared": Case(
        Linear() + Polynomial(5, 0.1, 1.0) + Cosine(),
        lambda x, z: linear(x, z) + polynomial(x, z) + cosine(x, z),
    ),
    "nested": Case(
        (0.5 * RBF(gamma=0.3).on(slice(0, 4)) * (Linear().on([1, 7]) ** 2)).normalized()
        + (Linear() + RBF(gamma=0.3)).on(slice(0, 4)),
        lambda x, z: (
            normalized(
                lambda a, b: rbf(a[:4], b[:4]) * linear(a[[1, 7]], b[[1, 7]]) ** 2
            )(x, z)
            + linear(x[:4], z[:4])
            + rbf(x[:4], z[:4])
        ),
    ),
}

every_kernel = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def sample(case, n, seed, dtype=np.float64):
    """Rows with some zeros and no empty row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0.3, 1.0, (n, D))
    X[rng.random(X.shape) < 0.3] = 0.0
    X[:, :2] += 0.1
    return (X if case.is_signed else np.abs(X)).astype(dtype)


def assert_close(actual, expected, dtype=np.float64):
    scale = np.abs(expected).max() if np.size(expected) else 1.0
    np.testing.assert_allclose(actual, expected, rtol=0, atol=RELATIVE[dtype] * scale)
