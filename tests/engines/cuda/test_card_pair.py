"""Kernel values on a card are those of their definition: with NumPy as the card."""

import numpy as np
import pytest
from scipy import sparse

import naive
from card_twins import TWINS
from host_card import HostCard
from kernel_cases import assert_close, both_types, every_kernel, sample
from mercer.engines.cuda import operand as operand_module
from mercer.engines.cuda import pair as pair_module
from mercer.engines.cuda.operand import DIFFERENCES, CardOperand
from mercer.engines.cuda.pair import (
    CardPair,
    kernel_block,
    kernel_diagonal,
    parts,
    whole_gram,
)
from mercer.kernels import RBF, Laplacian, Linear, Polynomial, Sigmoid
from mercer.kernels.base import Definiteness, Kernel, resolve_gamma


@pytest.fixture
def card(any_card):
    return any_card


@pytest.fixture
def operand(card):
    return lambda X, order=None: CardOperand(card, X, order)


class RationalQuadratic(Kernel):
    """The kernel that CONTRIBUTING.md writes."""

    definiteness = Definiteness.POSITIVE

    def __init__(self, gamma="scale"):
        self.gamma = gamma

    def bind(self, X):
        return RationalQuadratic(resolve_gamma(self.gamma, X))

    def evaluate(self, pair):
        return 1 / (1 + self.gamma * pair.squared_distances(self.gamma))

    def diagonal(self, operand):
        return np.ones(len(operand))


@every_kernel
@both_types
def test_block_follows_the_definition(case, dtype, card, operand):
    X, Z = sample(case, 11, 1, dtype), sample(case, 6, 2, dtype)
    block = kernel_block(case.kernel.bind(Z), operand(X), operand(Z))
    assert card.is_here(block) and block.dtype == dtype
    assert_close(card.to_host(block), naive.block(case.formula, X, Z), dtype)


@every_kernel
@both_types
def test_sparse_rows_have_the_same_values(case, dtype, card, operand, monkeypatch):
    monkeypatch.setattr(pair_module, "DENSE_BYTES", 3 * 9 * 8)  # several parts
    X, Z = sample(case, 11, 1, dtype), sample(case, 6, 2, dtype)
    expected = naive.block(case.formula, X, Z)
    kernel = case.kernel.bind(sparse.csr_matrix(Z))
    for left, right in (
        (sparse.csr_matrix(X), sparse.csr_array(Z)),
        (sparse.csr_array(X), Z),
        (X, sparse.csr_matrix(Z)),
    ):
        block = kernel_block(kernel, operand(left), operand(right))
        assert_close(card.to_host(block), expected, dtype)
    part = operand(sparse.csr_matrix(X)).rows(np.array([5, 1]))
    assert_close(
        card.to_host(kernel_block(kernel, part, operand(sparse.csr_matrix(Z)))),
        expected[[5, 1]],
        dtype,
    )


@every_kernel
def test_parts_and_orders_agree_with_the_whole(case, card, operand):
    X, Z = sample(case, 13, 13), sample(case, 10, 10)
    order = np.random.default_rng(0).permutation(10)
    left, right = operand(X), operand(Z, order)
    kernel = case.kernel.bind(Z)
    whole = naive.block(case.formula, X, Z[order])
    diag = kernel_diagonal(kernel, right)
    assert_close(diag, [case.formula(z, z) for z in Z[order]])
    some = np.array([7, 0, 12, 7])
    for rows in (slice(4, 9), some, slice(0, 0), card.to_card(some)):
        index = rows if isinstance(rows, slice) else card.to_host(rows)
        for columns in (slice(0, 5), np.array([9, 2]), slice(None)):
            found = kernel_block(kernel, left.rows(rows), right.rows(columns))
            assert_close(card.to_host(found), whole[index][:, columns])
    part = left.rows(some).rows(slice(1, 3))
    assert len(part) == 2
    assert_close(card.to_host(kernel_block(kernel, part, right)), whole[some][1:3])
    assert_close(kernel_diagonal(kernel, right.rows(np.array([3, 1]))), diag[[3, 1]])


@every_kernel
@both_types
def test_whole_matrices_are_symmetric(case, dtype, card, operand, monkeypatch):
    monkeypatch.setattr(pair_module, "PART_BYTES", 5 * 12 * 8)
    X = sample(case, 12, 3, dtype)
    kernel = case.kernel.bind(X)
    K = card.to_host(whole_gram(kernel, operand(X)))
    assert K.dtype == dtype
    np.testing.assert_array_equal(K, K.T)
    assert_close(K, naive.block(case.formula, X, X), dtype)
    np.testing.assert_array_equal(np.diagonal(K), kernel.diag(X).astype(dtype))


@every_kernel
def test_mixed_types_give_double_precision(case, card, operand):
    single, double = sample(case, 7, 6, np.float32), sample(case, 5, 7)
    for X, Z in ((single, double), (double, single)):
        block = kernel_block(case.kernel.bind(Z), operand(X), operand(Z))
        assert block.dtype == np.float64
        assert_close(card.to_host(block), naive.block(case.formula, X, Z))


@every_kernel
def test_the_result_belongs_to_the_caller(case, card, operand):
    X = operand(sample(case, 6, 11))
    kernel = case.kernel.bind(X.host.X)
    pair = CardPair(X, X)
    first = kernel.evaluate(pair)
    kept = card.to_host(first)
    first[:] = np.nan
    np.testing.assert_array_equal(card.to_host(kernel.evaluate(pair)), kept)


def test_a_kernel_of_users_runs_unchanged(card, operand):
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(9, 4)), rng.normal(size=(7, 4))
    kernel = RationalQuadratic(0.4)
    expected = kernel.block(X, Z)
    for own in (kernel, kernel + Linear(), (2 * kernel * RBF(0.3)).normalized()):
        bound = own.bind(Z)
        found = card.to_host(kernel_block(bound, operand(X), operand(Z)))
        np.testing.assert_allclose(found, own.block(X, Z), rtol=1e-12)
    assert expected.shape == (9, 7)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_distances_keep_their_digits_far_from_the_origin(offset, card, operand):
    rng = np.random.default_rng(2)
    X = (rng.normal(size=(40, 5)) + offset).astype(np.float32)
    kernel = RBF(gamma=0.5)
    found = card.to_host(kernel_block(kernel, operand(X), operand(X)))
    assert_close(found, kernel.block(X.astype(np.float64)), np.float32)


def test_two_distant_clusters_are_computed_from_differences(card, operand):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20, 3))
    X[10:] += 1e8
    kernel = RBF(gamma=1.0)
    there = operand(X)
    assert there.frame(1.0, np.dtype(np.float64)) is DIFFERENCES
    found = card.to_host(kernel_block(kernel, there, there))
    np.testing.assert_allclose(found, kernel.block(X), atol=1e-12)


def test_huge_values_do_not_overflow_to_wrong_kernels(card, operand):
    X = np.array([[1e200, 0.0], [1e200, 1.0], [0.0, 0.0]])
    with np.errstate(over="ignore"):
        found = kernel_block(RBF(gamma=1.0), operand(X), operand(X))
    expected = [[1, np.exp(-1), 0], [np.exp(-1), 1, 0], [0, 0, 1]]
    np.testing.assert_allclose(card.to_host(found), expected)


def test_norms_are_summed_in_parts(card, operand, monkeypatch):
    monkeypatch.setattr(operand_module, "PART_BYTES", 100)
    X = np.random.default_rng(4).normal(size=(23, 4)).astype(np.float32)
    found = card.to_host(kernel_block(RBF(gamma=0.3), operand(X), operand(X)))
    assert_close(found, RBF(gamma=0.3).block(X.astype(np.float64)), np.float32)


def test_constant_columns_are_exactly_zero_in_a_frame(card, operand):
    X = np.random.default_rng(5).normal(size=(30, 2)).astype(np.float32)
    X[:, 1] = 0.1
    there = operand(X)
    frame = there.frame(1.0, np.dtype(np.float32))
    assert not card.to_host(there.framed(frame).matrix)[:, 1].any()


@pytest.mark.parametrize(
    "kernel", [RBF(0.5), Polynomial(3, 0.1, 1.0), Sigmoid(0.1), Laplacian(0.2)]
)
def test_a_block_takes_little_more_than_itself(kernel):
    card = HostCard(twins=TWINS)
    X = np.random.default_rng(6).normal(size=(300, 4))
    there = CardOperand(card, X)
    kernel_block(kernel, there.rows(slice(0, 2)), there)  # what is kept of the rows
    card.ledger.peak = before = card.ledger.used
    kernel_block(kernel, there, there)
    assert card.ledger.peak - before <= 2.2 * 300 * 300 * 8


def test_precision_can_change_before_and_after_the_copy(card, operand):
    X = np.random.default_rng(7).normal(size=(6, 3))
    order = np.array([3, 1, 0, 2, 5, 4])
    for is_there in (False, True):
        double = operand(X, order)
        if is_there:
            assert double.X.shape == (6, 3)
        single = double.astype(np.float32)
        assert single.dtype == np.float32
        np.testing.assert_array_equal(
            card.to_host(single.X), X[order].astype(np.float32)
        )
        np.testing.assert_array_equal(single.host.X, X[order].astype(np.float32))


def test_parts_cover_all_rows():
    assert list(parts(5, 10, 25)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert list(parts(2, 100, 1)) == [slice(0, 1), slice(1, 2)]
    assert list(parts(0, 8, 100)) == []
