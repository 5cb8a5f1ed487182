"""Dual coordinate descent in lanes against one problem at a time."""

import numpy as np
import pytest
from scipy import sparse

from mercer.core.linear_descent import descend


def solve(X, sides, width, bound, dtype=np.float64, index=np.int32):
    """Return weights and coefficients of problems that share their samples."""
    n, d = X.shape
    k = sides.shape[1]
    terms = np.zeros((n, 5, width))
    terms[:, 0, :k] = -sides
    terms[:, 1, :k] = np.where(sides > 0, 0.0, -bound)
    terms[:, 2, :k] = np.where(sides > 0, bound, 0.0)
    terms[:, 3, :k] = 0.5 if np.isinf(bound) else 0.0
    w, u = np.zeros((d, width)), np.zeros(width)
    norms = np.asarray((X * X).sum(axis=1)).ravel() + 1.0
    descend(
        X.data.astype(dtype),
        X.indices.astype(index),
        X.indptr.astype(index),
        norms,
        w,
        u,
        1.0,
        terms,
        np.arange(n),
        1e-10,
        5000,
        np.array([1], dtype=np.uint64),
        np.zeros(1, dtype=np.bool_),
    )
    return w[:, :k], u[:k], terms[:, 4, :k]


@pytest.fixture(scope="module")
def problem():
    X = sparse.random_array((40, 60), density=0.1, rng=np.random.default_rng(0))
    X = sparse.csr_array(X.astype(np.float32).astype(np.float64))
    sides = np.where(np.random.default_rng(1).random((40, 8)) < 0.4, 1.0, -1.0)
    return X, sides


@pytest.mark.parametrize("bound", [1.0, np.inf])
@pytest.mark.parametrize("k", [2, 4, 7, 8])
def test_lanes_solve_what_one_lane_solves(problem, k, bound):
    X, sides = problem
    width = 4 if k <= 4 else 8
    w, u, beta = solve(X, sides[:, :k], width, bound)
    for c in range(k):
        alone = solve(X, sides[:, c : c + 1], 1, bound)
        np.testing.assert_allclose(w[:, c], alone[0][:, 0], atol=1e-7)
        np.testing.assert_allclose(u[c], alone[1][0], atol=1e-7)
    np.testing.assert_allclose(w, X.T @ beta, atol=1e-12)
    np.testing.assert_allclose(u, beta.sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("width", [4, 8])
def test_types_of_data_and_indices_do_not_matter(problem, width, index):
    X, sides = problem
    plain = solve(X, sides[:, :3], width, 1.0)
    other = solve(X, sides[:, :3], width, 1.0, np.float32, index)
    for one, two in zip(plain, other, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_sample_of_zeros_goes_to_its_bound():
    X = sparse.csr_array(np.array([[0.0, 0.0], [1.0, 0.0]]))
    sides = np.array([[1.0], [-1.0]])
    n, d = X.shape
    terms = np.zeros((n, 5, 1))
    terms[:, 0] = -sides
    terms[:, 1] = np.where(sides > 0, 0.0, -2.0)
    terms[:, 2] = np.where(sides > 0, 2.0, 0.0)
    descend(
        X.data,
        X.indices,
        X.indptr,
        np.array([0.0, 1.0]),
        np.zeros((d, 1)),
        np.zeros(1),
        0.0,
        terms,
        np.arange(n),
        1e-10,
        50,
        np.array([1], dtype=np.uint64),
        np.zeros(1, dtype=np.bool_),
    )
    np.testing.assert_allclose(terms[:, 4, 0], [2.0, -1.0])
