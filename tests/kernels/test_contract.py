"""What every kernel keeps, alone and in compositions."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import naive
from kernel_cases import (
    CASES,
    assert_close,
    both_types,
    every_kernel,
    product_of_rows,
    sample,
)
from mercer.core import tiles
from mercer.engines.cpu.pair import TilePair as Pair
from mercer.engines.cpu.pair import as_operand
from mercer.kernels import (
    RBF,
    AdditiveChi2,
    Custom,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from mercer.kernels.base import Definiteness

# What these kernels promise, where it is not that all matrices are positive.
PROMISES = {
    "sigmoid": Definiteness.INDEFINITE,
    "custom": Definiteness.UNKNOWN,
    "pairwise": Definiteness.UNKNOWN,
    "additive chi2": Definiteness.CONDITIONAL,
    "both chi2": Definiteness.CONDITIONAL,
}


@every_kernel
@both_types
def test_block_follows_the_definition(case, dtype):
    X, Z = sample(case, 11, 1, dtype), sample(case, 6, 2, dtype)
    block = case.kernel.block(X, Z)
    assert block.dtype == dtype and block.shape == (11, 6)
    assert_close(block, naive.block(case.formula, X, Z), dtype)


@every_kernel
@both_types
def test_block_is_symmetric_and_has_the_diagonal(case, dtype):
    X = sample(case, 12, 3, dtype)
    K = case.kernel.block(X)
    assert_close(K, K.T, dtype)
    diag = case.kernel.diag(X)
    assert diag.dtype == np.float64
    # The diagonal is computed by other means than the block.
    assert_close(np.diagonal(K), diag, dtype)


@every_kernel
@both_types
@pytest.mark.parametrize("is_warm", [False, True])
def test_parts_agree_with_the_whole(case, dtype, is_warm):
    left, right = (as_operand(sample(case, n, n, dtype)) for n in (13, 10))
    kernel = case.kernel.bind(right.X)
    whole = kernel.evaluate(Pair(left, right))
    diag = kernel.diagonal(left)
    if not is_warm:
        left, right = as_operand(left.X.copy()), as_operand(right.X.copy())
    some = np.array([7, 0, 12, 7])
    for rows in (slice(4, 9), some, slice(0, 0)):
        for columns in (slice(0, 5), np.array([9, 2]), slice(None)):
            pair = Pair(left.rows(rows), right.rows(columns))
            assert (len(pair.left), len(pair.right)) == whole[rows][:, columns].shape
            assert_close(kernel.evaluate(pair), whole[rows][:, columns], dtype)
        assert_close(kernel.diagonal(left.rows(rows)), diag[rows], dtype)
    part = left.rows(some).rows(slice(1, 3))
    assert len(part) == 2
    assert_close(kernel.evaluate(Pair(part, right)), whole[some][1:3], dtype)


@every_kernel
def test_block_is_positive_semidefinite_or_is_said_not_to_be(case):
    values = np.linalg.eigvalsh(case.kernel.block(sample(case, 25, 5)))
    if case.is_psd:
        assert values.min() >= -1e-14 * values.max()
    else:
        assert values.min() < -0.1 * values.max()


@every_kernel
def test_mixed_types_give_double_precision(case):
    single, double = sample(case, 7, 6, np.float32), sample(case, 5, 7)
    for X, Z in ((single, double), (double, single)):
        block = case.kernel.block(X, Z)
        assert block.dtype == np.float64
        assert_close(block, naive.block(case.formula, X, Z))


@every_kernel
@both_types
@pytest.mark.parametrize("is_gathered", [False, True])
def test_sparse_equals_dense(case, dtype, is_gathered, monkeypatch):
    advantage = 0 if is_gathered else 10**6
    monkeypatch.setattr(tiles, "DENSE_ADVANTAGE", advantage)
    X, Z = sample(case, 8, 8, dtype), sample(case, 9, 9, dtype)
    expected = case.kernel.block(X, Z)
    for kind in (sparse.csr_matrix, sparse.csc_array):
        block = case.kernel.block(kind(X), kind(Z))
        assert isinstance(block, np.ndarray) and block.dtype == dtype
        assert_close(block, expected, dtype)
        assert_close(case.kernel.diag(kind(X)), case.kernel.diag(X), dtype)
    assert_close(case.kernel.block(sparse.csr_array(X), Z), expected, dtype)
    assert_close(case.kernel.block(X, sparse.csr_array(Z)), expected, dtype)
    part = as_operand(sparse.csr_array(X)).rows(np.array([5, 1]))
    assert_close(case.kernel.block(part, sparse.csr_array(Z)), expected[[5, 1]], dtype)


@pytest.mark.parametrize("density", [0.005, 0.2])
@both_types
def test_sparse_products_choose_their_way(density, dtype):
    rng = np.random.default_rng(10)
    X, Z = (
        sparse.random_array((n, 500), density=density, rng=rng, dtype=dtype).tocsr()
        for n in (20, 30)
    )
    expected = X.toarray().astype(np.float64) @ Z.toarray().T.astype(np.float64)
    assert_close(Linear().block(X, Z), expected, dtype)
    # Entries may be stored twice; their sum counts.
    halves, columns = np.repeat(X.data / 2, 2), np.repeat(X.indices, 2)
    double = sparse.csr_array((halves, columns, 2 * X.indptr), shape=X.shape)
    assert_close(Linear().block(double, Z), expected, dtype)
    assert_close(Linear().diag(double), (X.toarray() ** 2).sum(axis=1), dtype)


@every_kernel
def test_the_result_belongs_to_the_caller(case):
    X = as_operand(sample(case, 6, 11))
    kernel = case.kernel.bind(X.X)
    pair = Pair(X, X)
    first = kernel.evaluate(pair)
    kept = first.copy()
    first[:] = np.nan
    np.testing.assert_array_equal(kernel.evaluate(pair), kept)
    if sum(1 for _ in kernel.leaves()) == 1:
        alone = kernel.evaluate(Pair(X, X, shared=False))
        assert_close(alone, kept)


@every_kernel
def test_input_layouts(case):
    X = sample(case, 7, 12)
    expected = case.kernel.block(X)
    X.flags.writeable = False
    np.testing.assert_array_equal(case.kernel.block(X), expected)
    np.testing.assert_array_equal(case.kernel.block(np.asfortranarray(X)), expected)
    np.testing.assert_array_equal(case.kernel.block(X.tolist()), expected)
    assert_close(case.kernel.block(np.repeat(X, 2, axis=0)[::2]), expected)
    whole_numbers = np.ceil(np.abs(X)).astype(np.int32)
    for other in (whole_numbers, X.astype(np.float16)):
        block = case.kernel.block(other)
        assert block.dtype == np.float64
        np.testing.assert_array_equal(
            block, case.kernel.block(other.astype(np.float64))
        )


@every_kernel
def test_no_rows(case):
    X = sample(case, 4, 13)
    assert case.kernel.block(X, X[:0]).shape == (4, 0)
    assert case.kernel.block(X[:0], X).shape == (0, 4)
    assert case.kernel.diag(X[:0]).shape == (0,)


@every_kernel
def test_copies_are_equal(case):
    X = sample(case, 5, 14)
    for copy in (clone(case.kernel), pickle.loads(pickle.dumps(case.kernel))):
        assert copy is not case.kernel
        assert copy.key() == case.kernel.key()
        np.testing.assert_array_equal(copy.block(X), case.kernel.block(X))
    bound = case.kernel.bind(X)
    assert bound.bind(X).key() == bound.key()


@pytest.mark.parametrize("name", CASES)
def test_what_a_kernel_promises_of_its_matrices_holds(name):
    case = CASES[name]
    promise = PROMISES.get(name, Definiteness.POSITIVE)
    assert case.kernel.definiteness == promise
    X = sample(case, 60, 5)
    K = case.kernel.block(X)
    if promise == Definiteness.CONDITIONAL:
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    least = np.linalg.eigvalsh(K)[0]
    is_definite = least >= -1e-10 * np.abs(K).max()
    assert is_definite == (promise != Definiteness.INDEFINITE)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Polynomial(2, 0.1, -1.0), Definiteness.INDEFINITE),
        (Polynomial(1, 0.1, -1.0), Definiteness.CONDITIONAL),
        (Polynomial(0, 0.1, -1.0), Definiteness.POSITIVE),
        (Polynomial(2, "scale", 0.0), Definiteness.POSITIVE),
        (RBF() + Sigmoid(), Definiteness.INDEFINITE),
        (0 * Sigmoid() + RBF(), Definiteness.POSITIVE),
        (2 * AdditiveChi2(), Definiteness.CONDITIONAL),
        (RBF() * AdditiveChi2(), Definiteness.INDEFINITE),
        (RBF() * Custom(product_of_rows), Definiteness.UNKNOWN),
        (Sigmoid() * Custom(product_of_rows), Definiteness.INDEFINITE),
        (AdditiveChi2() ** 1, Definiteness.CONDITIONAL),
        (AdditiveChi2() ** 2, Definiteness.INDEFINITE),
        (Sigmoid().on([0, 1]).normalized(), Definiteness.INDEFINITE),
        (Custom(product_of_rows).on([0]), Definiteness.UNKNOWN),
        (Precomputed(), Definiteness.UNKNOWN),
    ],
)
def test_promises_of_compositions(kernel, expected):
    assert kernel.definiteness == expected
