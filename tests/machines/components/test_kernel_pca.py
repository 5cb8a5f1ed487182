import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import KernelPCA as Peer
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from mercer import PCA, KernelPCA, datasets, kernels

SETTINGS = [
    {"kernel": "linear"},
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "poly", "degree": 2},
    {"kernel": "cosine"},
]


@pytest.fixture
def X(rng):
    return rng.standard_normal((520, 4))


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("solver", ["dense", "lanczos", "arpack", "randomized"])
def test_as_scikit_learn(X, settings, solver):
    options = {"random_state": 0, **settings}
    model = KernelPCA(3, eigen_solver=solver, iterated_power=30, **options).fit(X)
    peer = Peer(3, eigen_solver="dense", **options).fit(X)
    assert model.eigenvalues_ == pytest.approx(peer.eigenvalues_, rel=1e-8)
    assert model.transform(X[:20] + 0.1) == pytest.approx(
        peer.transform(X[:20] + 0.1), abs=1e-5
    )
    assert (model.residuals_ <= 1e-5 * model.eigenvalues_[0]).all()


@pytest.mark.parametrize("cache_size", [0.01, 1.0, "auto"])
def test_budget_does_not_show(X, cache_size):
    options = {"kernel": "rbf", "gamma": 0.1, "random_state": 0}
    model = KernelPCA(2, cache_size=cache_size, **options).fit(X.astype(np.float32))
    exact = KernelPCA(2, eigen_solver="dense", **options).fit(X)
    assert model.eigenvalues_ == pytest.approx(exact.eigenvalues_, rel=1e-5)
    assert model.eigenvectors_.dtype == np.float32


def test_free_memory_does_not_show_in_the_last_bit(rng):
    # "auto" depends on the memory that is free, and is another one in every run. Only a
    # budget that leaves too little for work arrays may show.
    X = rng.standard_normal((1500, 4))
    models = [
        KernelPCA(2, kernel="rbf", cache_size=cache_size).fit(X)
        for cache_size in (1000.0, 2000.0, "auto")
    ]
    for other in models[1:]:
        assert np.array_equal(other.eigenvalues_, models[0].eigenvalues_)
        assert np.array_equal(other.eigenvectors_, models[0].eigenvectors_)
        assert np.array_equal(other.residuals_, models[0].residuals_)
        assert np.array_equal(other.transform(X[:9]), models[0].transform(X[:9]))


@pytest.mark.parametrize("solver", ["dense", "lanczos"])
def test_a_fit_without_a_seed_is_repeatable(X, solver):
    one, two = (KernelPCA(2, kernel="rbf", eigen_solver=solver) for _ in range(2))
    assert np.array_equal(one.fit_transform(X), two.fit_transform(X))


def test_certificate_is_true(X):
    model = KernelPCA(4, kernel="rbf", gamma=0.2, random_state=0).fit(X)
    n = len(X)
    H = np.eye(n) - 1 / n
    A = H @ kernels.RBF(0.2).block(X) @ H
    left = A @ model.eigenvectors_ - model.eigenvectors_ * model.eigenvalues_
    assert np.linalg.norm(left, axis=0) == pytest.approx(model.residuals_, abs=1e-9)
    assert model.explained_variance_ratio_ == pytest.approx(
        model.eigenvalues_ / np.trace(A)
    )
    exact = np.linalg.eigvalsh(A)[::-1][:4]
    assert (np.abs(exact - model.eigenvalues_) <= model.residuals_ + 1e-9).all()


def test_linear_kernel_is_pca(X):
    model, plain = KernelPCA(2).fit(X), PCA(2).fit(X)
    assert np.abs(model.transform(X)) == pytest.approx(np.abs(plain.transform(X)))
    assert model.explained_variance_ == pytest.approx(plain.explained_variance_)
    assert model.explained_variance_ratio_ == pytest.approx(
        plain.explained_variance_ratio_
    )


def test_kernels_of_ours_in_every_form(X):
    kernel = kernels.RBF(0.2) + 0.5 * kernels.Linear().on([0, 1])
    as_object = KernelPCA(3, kernel=kernel, random_state=0).fit(X)
    as_text = KernelPCA(
        3, kernel="rbf(gamma=0.2) + 0.5 * linear@[0, 1]", random_state=0
    ).fit(X)
    given = KernelPCA(3, kernel="precomputed", random_state=0).fit(kernel.block(X))
    new = X[:5] * 0.9
    expected = as_object.transform(new)
    assert as_text.transform(new) == pytest.approx(expected)
    assert given.transform(kernel.block(new, X)) == pytest.approx(expected, abs=1e-8)
    with pytest.raises(ValueError, match="looks at single columns of the samples"):
        KernelPCA(2, kernel=kernel, fit_inverse_transform=True).fit(X)


def test_sparse_samples(X):
    S = sparse.csr_array(X * (X > 0))
    model = KernelPCA(2, kernel="rbf", random_state=0).fit(S)
    dense = KernelPCA(2, kernel="rbf", random_state=0).fit(S.toarray())
    assert model.transform(S[:9]) == pytest.approx(dense.transform(S[:9].toarray()))
    assert model.transform(S[:9].toarray()) == pytest.approx(model.transform(S[:9]))


def test_pre_images_of_sparse_samples(X):
    S = sparse.csr_array(X[:300] * (X[:300] > 0))
    options = {"kernel": "rbf", "gamma": 0.5, "fit_inverse_transform": True}
    for preimage in ("ridge", "fixed-point"):
        model = KernelPCA(3, preimage=preimage, **options).fit(S)
        dense = KernelPCA(3, preimage=preimage, **options).fit(S.toarray())
        Y = dense.transform(S[:9].toarray())
        found = model.inverse_transform(Y)
        assert found == pytest.approx(dense.inverse_transform(Y), abs=1e-6)
    assert model.denoise(S[:9]) == pytest.approx(
        dense.denoise(S[:9].toarray()), abs=1e-6
    )


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
def test_tags_say_whether_sparse_samples_are_taken(X, kernel, inverse):
    model = KernelPCA(2, kernel=kernel, fit_inverse_transform=inverse)
    S = sparse.csr_array(X[:30] @ X[:30].T)
    if model.__sklearn_tags__().input_tags.sparse:
        model.fit(S)
    else:
        with pytest.raises((TypeError, ValueError), match="precomputed"):
            model.fit(S)
    assert model.__sklearn_tags__().input_tags.sparse == (kernel != "precomputed")


@pytest.fixture
def noisy_ring(rng):
    clean, _ = datasets.make_rings(300, radii=(1.0,), noise=0, random_state=0)
    return clean, clean + 0.1 * rng.standard_normal(clean.shape)


def test_denoising_by_fixed_points(noisy_ring):
    _, noisy = noisy_ring
    model = KernelPCA(4, kernel="rbf", gamma=1.0, preimage="fixed-point").fit(noisy)
    found = model.denoise(noisy)
    # The ring comes out a little small, but thin.
    assert np.hypot(*found.T).std() < 0.4 * np.hypot(*noisy.T).std()
    again = model.inverse_transform(model.transform(noisy))
    assert np.hypot(*again.T).std() < 0.4 * np.hypot(*noisy.T).std()


def test_fixed_point_is_one(noisy_ring):
    _, noisy = noisy_ring
    model = KernelPCA(5, kernel="rbf", gamma=1.0).fit(noisy)
    z = model.denoise(noisy[:20])
    # The image of z is no farther from the projection than that of the sample.
    K = kernels.RBF(1.0)
    g = model.transform(noisy[:20]) @ model._weights.T + 1 / len(noisy)
    near = np.einsum("ij,ij->i", g, K.block(z, noisy))
    assert (near >= np.einsum("ij,ij->i", g, K.block(noisy[:20], noisy)) - 1e-9).all()
    mass = g * K.block(z, noisy)
    assert (mass @ noisy) / mass.sum(axis=1)[:, None] == pytest.approx(z, abs=1e-4)


def test_ridge_pre_images_as_scikit_learn(X):
    options = {"kernel": "rbf", "gamma": 0.3, "fit_inverse_transform": True}
    model = KernelPCA(5, alpha=0.1, eigen_solver="dense", **options).fit(X)
    peer = Peer(5, alpha=0.1, eigen_solver="dense", **options).fit(X)
    found = model.inverse_transform(model.transform(X[:9]))
    expected = peer.inverse_transform(peer.transform(X[:9]))
    assert found == pytest.approx(expected, abs=1e-6)


def test_errors(X):
    with pytest.raises(ValueError, match="iteration for the Gaussian kernel"):
        KernelPCA(2, preimage="fixed-point").fit(X)
    with pytest.raises(NotFittedError, match="fit_inverse_transform=True"):
        KernelPCA(2).fit(X).inverse_transform(np.ones((1, 2)))
    with pytest.raises(ValueError, match="denoise needs the Gaussian kernel"):
        KernelPCA(2).fit(X).denoise(X)
    with pytest.raises(ValueError, match="square matrix"):
        KernelPCA(kernel="precomputed").fit(X)
    with pytest.raises(ValueError, match="Unknown kernel 'rfb'"):
        KernelPCA(kernel="rfb").fit(X)
    with pytest.raises(ValueError, match="not finite"):
        KernelPCA(2, kernel="poly", degree=9).fit(X * 1e60)


def test_cut_short_is_said(X):
    with pytest.warns(ConvergenceWarning, match="after 2 passes"):
        model = KernelPCA(
            5, kernel="rbf", gamma=5.0, eigen_solver="lanczos", max_iter=2
        ).fit(X)
    assert not model.converged_


def test_converged_is_silent(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KernelPCA(5, kernel="rbf", gamma=1.0).fit(X.astype(np.float32))
    assert model.converged_


def test_same_for_any_number_of_threads(X):
    one, two = (
        KernelPCA(3, kernel="rbf", random_state=0, n_jobs=n).fit(X) for n in (1, 2)
    )
    assert (one.eigenvectors_ == two.eigenvectors_).all()


def test_samples_that_are_mostly_zeros_come_back_in_their_order(rng):
    # Put in another order while the matrix is computed, and by class before that.
    X = rng.random((2500, 30)).astype(np.float32)
    X[rng.random(X.shape) < 0.85] = 0
    X = X[np.argsort(X[:, 0] > 0)]
    mine = KernelPCA(3, kernel="rbf", gamma=0.8, random_state=0).fit(X)
    other = Peer(3, kernel="rbf", gamma=0.8, eigen_solver="arpack").fit(X.astype(float))
    np.testing.assert_allclose(mine.eigenvalues_, other.eigenvalues_, rtol=1e-4)
    found, expected = mine.transform(X), other.transform(X.astype(float))
    np.testing.assert_allclose(found, expected, atol=5e-3)
    np.testing.assert_allclose(mine.fit_transform(X), expected, atol=5e-3)
    residual = mine.residuals_.max() / mine.eigenvalues_[0]
    assert residual < 1e-5


@pytest.mark.parametrize("preimage", ["ridge", "fixed-point"])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_pre_images_need_all_coordinates(X, preimage, width):
    model = KernelPCA(
        3, kernel="rbf", preimage=preimage, fit_inverse_transform=preimage == "ridge"
    ).fit(X[:50])
    with pytest.raises(ValueError, match=r"shape \(n_samples, 3\), got"):
        model.inverse_transform(np.zeros((5, width)))


@pytest.mark.parametrize("n_components", [None, 40])
def test_arpack_where_all_are_wanted(X, n_components):
    options = {"n_components": n_components, "kernel": "rbf", "gamma": 0.3}
    model = KernelPCA(eigen_solver="arpack", **options).fit(X[:40])
    peer = Peer(eigen_solver="dense", **options).fit(X[:40])
    assert model.eigenvalues_ == pytest.approx(peer.eigenvalues_, abs=1e-10)
    assert (model.residuals_ <= 1e-10).all()


def test_new_samples_that_the_kernel_is_not_for(X):
    model = KernelPCA(2, kernel="chi2").fit(np.abs(X[:50]))
    with pytest.raises(ValueError, match="Chi2 is for histograms"):
        model.transform(X)


def test_eigenvalues_that_overflow_are_refused():
    X = 1e4 * np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
    with pytest.raises(ValueError, match=r"eigenvalues are not finite: .* Scale X"):
        KernelPCA(1, kernel="poly", degree=5, gamma=1.0).fit(X)
