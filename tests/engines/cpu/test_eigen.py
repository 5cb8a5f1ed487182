import numpy as np
import pytest

from mercer.engines.cpu import eigen

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


def matrix(rng, values):
    Q, _ = np.linalg.qr(rng.standard_normal((len(values), len(values))))
    return (Q * values) @ Q.T


def solve(A, k, *, dtype=DOUBLE, tol=0.0, max_iter=300, seed=0):
    random = np.random.RandomState(seed)
    product = lambda V: (A.astype(dtype) @ V.astype(dtype)).astype(float)  # noqa: E731
    return eigen.lanczos(product, len(A), k, dtype, tol, max_iter, random)


@pytest.mark.parametrize("k", [1, 3, 20])
@pytest.mark.parametrize("dtype", [DOUBLE, SINGLE])
def test_lanczos_certifies_what_it_finds(rng, k, dtype):
    values = 1.0 / np.arange(1, 151) ** 1.2
    A = matrix(rng, values)
    found = solve(A, k, dtype=dtype)
    assert found.converged
    residuals = np.linalg.norm(A @ found.vectors - found.vectors * found.values, axis=0)
    noise = 100 * float(np.finfo(dtype).eps)
    assert residuals == pytest.approx(found.residuals, abs=noise)
    assert (residuals <= noise).all()
    assert np.abs(found.values - values[:k]).max() <= noise
    assert found.vectors.T @ found.vectors == pytest.approx(np.eye(k), abs=1e-10)


def test_lanczos_restarts(rng):
    # So slowly falling that the basis has to be cut down.
    values = np.linspace(1.0, 0.5, 400)
    found = solve(matrix(rng, values), 2, tol=1e-8)
    assert found.converged
    assert found.n_iter > eigen.MOST_BLOCKS
    assert found.values == pytest.approx(values[:2], abs=1e-8)


def test_lanczos_with_repeated_and_negative_eigenvalues(rng):
    values = np.r_[5.0, 5.0, 5.0, 2.0, np.zeros(150), np.full(50, -9.0)]
    found = solve(matrix(rng, values), 4)
    assert found.values == pytest.approx([5, 5, 5, 2])
    assert found.residuals.max() < 1e-10


@pytest.mark.parametrize("n", [1, 2, 9])
def test_lanczos_of_tiny_and_zero_matrices(rng, n):
    A = matrix(rng, np.arange(n, 0.0, -1))
    assert solve(A, n).values == pytest.approx(np.arange(n, 0, -1))
    assert solve(np.zeros((n, n)), n).values == pytest.approx(np.zeros(n))


def test_lanczos_says_when_it_was_cut_short(rng):
    found = solve(matrix(rng, np.linspace(1, 0.9, 500)), 5, max_iter=3)
    assert not found.converged
    assert found.n_iter == 3
    assert found.residuals.max() > 1e-6


def test_other_solvers_agree(rng):
    values = 0.5 ** np.arange(60)
    A = matrix(rng, values)
    random = np.random.RandomState(0)
    times = lambda V: A @ V  # noqa: E731
    for found in (
        eigen.dense(A.copy(), 4),
        eigen.arpack(times, 60, 4, DOUBLE, 0.0, None, random),
        eigen.randomized(times, 60, 4, 7, random),
    ):
        assert found.values == pytest.approx(values[:4], abs=1e-8)
        assert np.abs(A @ found.vectors - found.vectors * values[:4]).max() < 1e-6


@pytest.mark.parametrize("n", [27, 34, 36, 40, 45])
@pytest.mark.parametrize("k", [1, 3])
def test_dense_with_repeated_eigenvalues(n, k):
    # LAPACK finds none of the n - 1 equal eigenvalues if it is asked for some of them.
    noise = 1e-17 * np.random.default_rng(n).normal(size=(n, n))
    A = np.eye(n) - 1 / n + (noise + noise.T) / 2
    found = eigen.dense(A.copy(), k)
    np.testing.assert_allclose(found.values, np.ones(k), rtol=1e-12)
    np.testing.assert_allclose(A @ found.vectors, found.vectors, atol=1e-12)


def test_randomized_goes_by_modulus(rng):
    A = matrix(rng, np.r_[1.0, 0.1, np.zeros(50), -5.0])
    found = eigen.randomized(lambda V: A @ V, 53, 2, 7, np.random.RandomState(0))
    assert found.values == pytest.approx([1, -5])


@pytest.mark.parametrize("distance", [1.0, 1e-1, 1e-3, 1e-6, 1e-9, 0.0])
def test_a_basis_is_orthonormal_however_dependent_its_vectors_are(rng, distance):
    Q = np.linalg.qr(rng.standard_normal((200, 5)))[0]
    V = rng.standard_normal((200, 1)) + distance * rng.standard_normal((200, 6))
    V[:, 3] = Q[:, 0] + distance * V[:, 3]
    found = eigen._orthonormal(1e3 * V, Q, np.random.RandomState(0))
    both = np.hstack([Q, found])
    assert both.T @ both == pytest.approx(np.eye(11), abs=1e-13)
