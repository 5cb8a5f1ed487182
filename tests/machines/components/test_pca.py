import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA as Peer

from mercer import PCA

NAMES = (
    "components_", "explained_variance_", "explained_variance_ratio_",
    "singular_values_", "mean_", "noise_variance_", "n_components_",
)  # fmt: skip


@pytest.fixture
def X(rng):
    return rng.standard_normal((80, 6)) * [5, 3, 2, 1, 0.5, 0.1] + 10


@pytest.mark.parametrize("solver", ["auto", "svd", "eigh"])
@pytest.mark.parametrize("n_components", [None, 2, 0.9])
@pytest.mark.parametrize("whiten", [False, True])
def test_as_scikit_learn(X, solver, n_components, whiten):
    model = PCA(n_components, solver=solver, whiten=whiten).fit(X)
    peer = Peer(n_components, svd_solver="full", whiten=whiten).fit(X)
    for name in NAMES:
        assert getattr(model, name) == pytest.approx(getattr(peer, name)), name
    Y = model.transform(X[:9])
    assert Y == pytest.approx(peer.transform(X[:9]))
    assert model.inverse_transform(Y) == pytest.approx(peer.inverse_transform(Y))


@pytest.mark.parametrize("shape", [(5, 30), (300, 3)])
def test_wide_and_tall(rng, shape):
    X = rng.standard_normal(shape)
    model, peer = PCA().fit(X), Peer(svd_solver="full").fit(X)
    assert model.explained_variance_ == pytest.approx(peer.explained_variance_)
    restored = model.inverse_transform(model.transform(X))
    assert restored == pytest.approx(X)


def test_sparse_is_as_dense(rng):
    X = rng.standard_normal((60, 7)) * (rng.random((60, 7)) < 0.3)
    model, dense = PCA(3).fit(sparse.csr_array(X)), PCA(3).fit(X)
    assert model.components_ == pytest.approx(dense.components_)
    assert model.transform(sparse.csr_array(X)) == pytest.approx(dense.transform(X))
    with pytest.raises(TypeError, match="solver='eigh'"):
        PCA(solver="svd").fit(sparse.csr_array(X))


def test_single_precision_stays(X):
    model = PCA(2).fit(X.astype(np.float32))
    assert model.components_.dtype == np.float32
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert model.explained_variance_ == pytest.approx(
        PCA(2).fit(X).explained_variance_, rel=1e-5
    )


def test_constant_data():
    model = PCA(2, whiten=True).fit(np.ones((5, 3)))
    assert (model.explained_variance_ratio_ == 0).all()
    assert (model.transform(np.ones((2, 3))) == 0).all()


def test_errors(X):
    with pytest.raises(ValueError, match="n_components=7 must be between 0 and"):
        PCA(7).fit(X)
    with pytest.raises(ValueError, match=r"shape \(n_samples, 2\), got \(4, 3\)"):
        PCA(2).fit(X).inverse_transform(np.ones((4, 3)))


@pytest.mark.parametrize("factor, dtype", [(1e200, np.float64), (1e25, np.float32)])
@pytest.mark.parametrize("solver", ["svd", "eigh"])
def test_too_large_values_are_refused(X, solver, factor, dtype):
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="too large"):
        PCA(2, solver=solver).fit((X * factor).astype(dtype))
