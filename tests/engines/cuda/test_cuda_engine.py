"""Matrices and products on a card, whole and in parts: with NumPy as the card."""

import numpy as np
import pytest
from scipy import sparse

import naive
from card_twins import TWINS
from host_card import HostCard
from kernel_cases import assert_close, both_types, every_kernel, sample
from mercer import gram_matrix
from mercer.engines.cpu.engine import CpuEngine
from mercer.engines.cpu.small import Expansion
from mercer.engines.cpu.tiles import Weights
from mercer.engines.cuda import engine as engine_module
from mercer.engines.cuda import gram_product as products_module
from mercer.engines.cuda.engine import CudaEngine
from mercer.engines.engine import engine_of
from mercer.kernels import RBF, Laplacian


@pytest.fixture
def engine(any_card):
    return CudaEngine(any_card)


def small(limit):
    """An engine on a card with little memory, and no margin for others."""
    return CudaEngine(HostCard(limit, TWINS))


@every_kernel
@both_types
def test_matrix_follows_the_definition(case, dtype, engine):
    X, Z = sample(case, 11, 1, dtype), sample(case, 6, 2, dtype)
    K = engine.matrix(case.kernel, X, Z)
    assert isinstance(K, np.ndarray) and K.dtype == dtype
    assert_close(K, naive.block(case.formula, X, Z), dtype)
    own = engine.matrix(case.kernel, X)
    np.testing.assert_array_equal(own, own.T)
    assert_close(own, naive.block(case.formula, X, X), dtype)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_matrix_comes_in_parts_on_a_small_card(is_sparse):
    rng = np.random.default_rng(0)
    X, Z = (rng.normal(size=(n, 5)) * (rng.random((n, 5)) < 0.6) for n in (300, 200))
    kernel = RBF(gamma=0.2)
    expected, own = kernel.block(X, Z), kernel.block(X)
    if is_sparse:
        X, Z = sparse.csr_array(X), sparse.csr_array(Z)
    engine = small(300_000)
    np.testing.assert_allclose(engine.matrix(kernel, X, Z), expected, atol=1e-12)
    found = engine.matrix(kernel, X)  # 720,000 bytes
    np.testing.assert_allclose(found, own, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    assert engine.card.ledger.peak <= 300_000


def test_the_matrix_of_samples_that_do_not_fit_is_symmetric():
    X = np.random.default_rng(1).normal(size=(90, 200))  # 144,000 bytes
    engine = small(120_000)
    found = engine.matrix(RBF(gamma=0.003), X)
    np.testing.assert_allclose(found, RBF(gamma=0.003).block(X), atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    assert engine.card.ledger.peak <= 120_000


@every_kernel
@both_types
def test_apply_multiplies_without_the_matrix(case, dtype, engine, monkeypatch):
    monkeypatch.setattr(engine_module, "COLUMNS", 7)
    X, Z = sample(case, 23, 1, dtype), sample(case, 17, 2, dtype)
    V = np.random.default_rng(3).normal(size=(17, 3))
    kernel = case.kernel.bind(Z)
    found = engine.apply(kernel, X, Z, V)
    assert found.dtype == np.float64
    assert_close(found, naive.block(case.formula, X, Z) @ V, dtype)


def test_apply_takes_samples_in_parts_when_they_do_not_fit():
    rng = np.random.default_rng(4)
    X, Z = rng.normal(size=(700, 30)), rng.normal(size=(900, 30))
    V = rng.normal(size=(900, 2))
    engine = small(150_000)  # Z alone has 216,000 bytes
    kernel = RBF(gamma=0.02)
    found = engine.apply(kernel, X, Z, V)
    np.testing.assert_allclose(found, CpuEngine().apply(kernel, X, Z, V), rtol=1e-10)
    assert engine.card.ledger.peak <= 150_000


def test_apply_keeps_to_a_given_budget(card):
    engine = CudaEngine(card)
    rng = np.random.default_rng(5)
    X, V = rng.normal(size=(2000, 4)), rng.normal(size=(2000, 1))
    found = engine.apply(Laplacian(0.1), X, X, V, budget=400_000)
    assert card.ledger.peak <= 600_000  # samples, weights and results are beside it
    np.testing.assert_allclose(found, CpuEngine().apply(Laplacian(0.1), X, X, V))


def test_weights_of_classes_are_multiplied_class_by_class(engine):
    rng = np.random.default_rng(6)
    X, Z = rng.normal(size=(20, 3)), rng.normal(size=(12, 3))
    matrix = sparse.random_array((12, 5), density=0.4, rng=rng).tocsr()
    weights = Weights(matrix, [0, 4, 9, 12])
    kernel = RBF(gamma=0.5)
    found = engine.apply(kernel, X, Z, weights)
    np.testing.assert_allclose(found, kernel.block(X, Z) @ matrix.toarray())


def test_support_vectors_stay_on_the_card(card):
    engine = CudaEngine(card)
    rng = np.random.default_rng(7)
    Z, V = rng.normal(size=(50, 4)), rng.normal(size=(50, 2))
    expansion = Expansion(RBF(gamma=0.3), Z, Weights(sparse.csr_array(V), [0, 50]))
    X = rng.normal(size=(9, 4))
    first = engine.expand(expansion, X)
    held = card.ledger.used
    assert held >= Z.nbytes
    np.testing.assert_array_equal(engine.expand(expansion, X), first)
    assert card.ledger.used == held
    np.testing.assert_allclose(first, RBF(gamma=0.3).block(X, Z) @ V)
    del expansion
    assert card.ledger.used == 0


def test_nothing_stays_on_the_card_otherwise(card):
    engine = CudaEngine(card)
    X = np.random.default_rng(8).normal(size=(30, 4))
    engine.matrix(RBF(gamma=0.3), X)
    engine.apply(RBF(gamma=0.3), X, X, np.ones((30, 1)))
    assert card.ledger.used == 0


@pytest.mark.parametrize("budget", [10_000_000, 100_000, 20_000])
@both_types
def test_products_are_those_of_the_processor(budget, dtype, engine, monkeypatch):
    monkeypatch.setattr(products_module, "COLUMNS", 32)
    rng = np.random.default_rng(9)
    X, V = rng.normal(size=(150, 4)).astype(dtype), rng.normal(size=(150, 3))
    kernel = RBF(gamma=0.3)
    order = rng.permutation(150)
    ours = engine.product(kernel, X, order, budget / 2**20)
    theirs = CpuEngine().product(kernel, X, order, budget / 2**20)
    assert (ours.n, ours.dtype) == (theirs.n, theirs.dtype)
    assert ours.is_whole == (budget > 1_000_000)
    assert_close(ours.diag, theirs.diag)
    assert_close(ours.times(V), theirs.times(V), dtype)
    assert_close(ours.sums, theirs.sums, dtype)
    some = np.array([4, 0, 149])
    assert_close(ours.columns(some), theirs.columns(some), dtype)
    assert_close(ours.whole(), theirs.whole(), dtype)
    np.testing.assert_array_equal(ours.whole(), ours.whole().T)


def test_a_full_card_says_what_to_set():
    engine = small(1_000)
    with pytest.raises(MemoryError, match=r"no memory left.*Set cache_size"):
        engine.matrix(RBF(gamma=0.1), np.ones((100, 40)))


def test_the_device_chooses_the_engine(cuda):
    with engine_of(device="cuda:0") as engine:
        assert isinstance(engine, CudaEngine) and engine.card is cuda
    with engine_of() as engine:
        assert type(engine) is CpuEngine
    with pytest.raises(ValueError, match="Unknown device 'gpu'"):
        engine_of(device="gpu")


def test_gram_matrix_takes_a_device(cuda):
    X = np.random.default_rng(10).normal(size=(12, 3))
    found = gram_matrix(RBF(gamma=0.4), X, device="cuda")
    np.testing.assert_allclose(found, RBF(gamma=0.4).block(X), atol=1e-12)
    assert "gaussian_in_place_double" in cuda.launches
