"""Passes in lanes against one problem at a time, and against loops."""

import numpy as np
import pytest
from scipy import sparse

import naive
from mercer.core.linear_lanes import (
    Rows,
    combine,
    compress,
    count_values,
    descend,
    score,
    square,
)


def rows_of(X, dtype=np.float64):
    """Return a sparse or a dense matrix as rows."""
    if sparse.issparse(X):
        ends = X.indptr.astype(np.int64)
        return Rows(X.data.astype(dtype), X.indices.astype(np.int32), ends, False)
    n, d = X.shape
    starts = d * np.arange(n + 1, dtype=np.int64)
    columns = np.arange(d, dtype=np.int32)
    return Rows(X.astype(dtype).reshape(-1), columns, starts, True)


def solve(X, sides, width, bound, dtype=np.float64):
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
        rows_of(X, dtype),
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


@pytest.mark.parametrize("width", [4, 8])
def test_single_precision_holds_the_same_samples(problem, width):
    X, sides = problem
    plain = solve(X, sides[:, :3], width, 1.0)
    other = solve(X, sides[:, :3], width, 1.0, np.float32)
    for one, two in zip(plain, other, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("width", [1, 4, 8])
def test_dense_samples_have_the_same_solutions(problem, width):
    X, sides = problem
    k = min(width, 3)
    plain = solve(X, sides[:, :k], width, 1.0)
    full = solve(X.toarray(), sides[:, :k], width, 1.0)
    for one, two in zip(plain, full, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-7)


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize(("k", "width"), [(1, 1), (3, 4), (4, 4), (5, 8), (8, 8)])
def test_products_are_those_of_loops(problem, k, width, is_full, rng):
    X = problem[0].toarray() if is_full else problem[0]
    n, d = X.shape
    rows, dense = rows_of(X), problem[0].toarray()
    weights = rng.standard_normal((d, width))
    out = np.full((k, n), np.nan)
    score(rows, 3, n, weights, out)
    assert np.isnan(out[:, :3]).all()
    np.testing.assert_allclose(
        out[:, 3:], naive.block(naive.linear, weights.T[:k], dense[3:]), atol=1e-12
    )
    beta = rng.standard_normal((k, n)) * (rng.random((k, n)) < 0.3)
    sums = np.zeros((d, width))
    combine(rows, 3, n, beta, sums)
    np.testing.assert_allclose(
        sums[:, :k], naive.block(naive.linear, dense[3:].T, beta[:, 3:]), atol=1e-12
    )
    assert not sums[:, k:].any()
    lengths = np.zeros(n)
    square(rows, 0, n, lengths)
    np.testing.assert_allclose(lengths, (dense**2).sum(axis=1), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compressed_samples_are_those_of_csr(problem, dtype):
    dense = problem[0].toarray().astype(dtype)
    n, expected = len(dense), sparse.csr_array(dense)
    indptr = np.zeros(n + 1, dtype=np.int64)
    count_values(dense, 0, n, indptr[1:])
    np.cumsum(indptr, out=indptr)
    data = np.empty(indptr[-1], dtype=dtype)
    indices = np.empty(indptr[-1], dtype=np.int32)
    for first, end in ((0, 7), (7, n)):
        compress(dense, first, end, indptr, data, indices)
    np.testing.assert_array_equal(indptr, expected.indptr)
    np.testing.assert_array_equal(indices, expected.indices)
    np.testing.assert_array_equal(data, expected.data)


def test_a_sample_of_zeros_goes_to_its_bound():
    X = sparse.csr_array(np.array([[0.0, 0.0], [1.0, 0.0]]))
    sides = np.array([[1.0], [-1.0]])
    n, d = X.shape
    terms = np.zeros((n, 5, 1))
    terms[:, 0] = -sides
    terms[:, 1] = np.where(sides > 0, 0.0, -2.0)
    terms[:, 2] = np.where(sides > 0, 2.0, 0.0)
    descend(
        rows_of(X),
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


def test_samples_without_weight_do_not_keep_epochs_going(problem):
    X, sides = problem
    n, d = X.shape
    bound = np.where(np.arange(n) % 4 == 0, 0.0, 1.0)
    terms = np.zeros((n, 5, 1))
    terms[:, 0, 0] = -sides[:, 0]
    terms[:, 1, 0] = np.minimum(0.0, bound * sides[:, 0])
    terms[:, 2, 0] = np.maximum(0.0, bound * sides[:, 0])
    n_epochs, worst = descend(
        rows_of(X),
        np.asarray((X * X).sum(axis=1)).ravel() + 1.0,
        np.zeros((d, 1)),
        np.zeros(1),
        1.0,
        terms,
        np.arange(n),
        1e-4,
        5000,
        np.array([1], dtype=np.uint64),
        np.zeros(1, dtype=np.bool_),
    )
    assert n_epochs < 5000
    assert worst <= 1e-4
