import numpy as np
import pytest
from scipy import sparse

from mercer import gram_matrix
from mercer.engines.cpu import products
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.products import (
    STRIP_ROWS,
    GivenProduct,
    GramProduct,
    centred_times,
)
from mercer.engines.cpu.tiles import USUAL
from mercer.kernels import RBF, Custom, Linear
from mercer.runtime.threads import Threads

N = 2 * STRIP_ROWS + 37  # strips of unequal height


@pytest.fixture
def X(rng):
    return rng.standard_normal((N, 5))


@pytest.mark.parametrize("budget", [0, 4 * STRIP_ROWS * N + 10, 10**9])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_whatever_is_kept(X, rng, budget, dtype):
    kernel = RBF(0.3)
    V = rng.standard_normal((N, 4))
    with Threads(2) as threads:
        product = GramProduct(kernel, Operand(X.astype(dtype)), budget, threads)
        found = product.times(V)
        K = kernel.block(X)
        assert product.is_whole == (budget >= N * N * product.dtype.itemsize)
        tolerance = 1e-10 if dtype == np.float64 else 2e-4
        assert np.abs(found - K @ V).max() < tolerance
        assert np.abs(product.whole() - K).max() < 1e-5
        assert (product.whole() == product.whole().T).all()
        index = np.array([3, 300, 3])
        assert np.abs(product.columns(index) - K[:, index]).max() < 1e-5


def test_what_is_kept_does_not_show_in_the_last_bit(rng, monkeypatch):
    # Tiles of one size: a budget that is too small for these may show.
    monkeypatch.setattr(products, "plan_tiles", lambda *_, **__: USUAL)
    X, V = rng.standard_normal((2100, 5)), rng.standard_normal((2100, 4))
    with Threads(2) as threads:
        found = [
            GramProduct(RBF(0.3), Operand(X), budget, threads).times(V)
            for budget in (0, 8 * STRIP_ROWS * 2100 + 10, 10**9)
        ]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_memory_stays_in_the_budget(X):
    with Threads(1) as threads:
        budget = 8 * STRIP_ROWS * N + 10
        product = GramProduct(Linear(), Operand(X), budget, threads)
        kept = sum(strip.nbytes for strip in product._kept.values())
        assert 0 < kept <= budget


def test_number_of_threads_does_not_show(X, rng):
    V = rng.standard_normal((N, 3)).astype(np.float32)
    found = []
    for n_jobs in (1, 2):
        with Threads(n_jobs) as threads:
            operand = Operand(X.astype(np.float32))
            found.append(GramProduct(RBF(1.0), operand, 10**9, threads).times(V))
    assert (found[0] == found[1]).all()


@pytest.mark.parametrize("kind", ["sparse", "function"])
def test_sparse_samples_and_functions(X, rng, kind):
    V = rng.standard_normal((N, 2))
    kernel, samples = Linear(), X * (X > 0.5)
    operand = Operand(sparse.csr_array(samples) if kind == "sparse" else samples)
    if kind == "function":
        kernel = Custom(lambda A, B: A @ B.T)
    with Threads(2) as threads:
        found = GramProduct(kernel, operand, 10**9, threads).times(V)
    assert found == pytest.approx(samples @ (samples.T @ V), abs=1e-9)


def test_given_matrix(X, rng):
    K = gram_matrix(RBF(0.5), X)
    V = rng.standard_normal((N, 3))
    H = np.eye(N) - 1 / N
    with Threads(2) as threads:
        product = GivenProduct(K, threads)
        assert product.times(V) == pytest.approx(K @ V)
        assert centred_times(product, V) == pytest.approx(H @ K @ H @ V)
        assert (product.columns([5, 1]) == K[:, [5, 1]]).all()
        product.whole()[0, 0] = 7
        assert K[0, 0] == 1


def test_samples_that_are_mostly_zeros(rng):
    # From so many rows on they are kept in strips, which threads must not wait for.
    X = np.zeros((1200, 40), dtype=np.float32)
    X[:, 5:8] = rng.standard_normal((1200, 3))
    index = rng.integers(1200, size=700)
    with Threads(2) as threads:
        operand = Operand(X, run=threads.map)
        product = GramProduct(RBF(0.4), operand, 10**9, threads)
        found = product.columns(index)
        expected = RBF(0.4).block(X[:, 5:8], X[index][:, 5:8])
    assert np.abs(found - expected).max() < 1e-5
