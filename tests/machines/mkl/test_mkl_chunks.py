"""Chunks lead where all samples at once lead, and are certified on all of them."""

import numpy as np
import pytest

import mercer.machines.mkl.chunks as chunks
from mercer import MKLClassifier, MKLRegressor
from mercer.kernels import RBF, Linear

KERNELS = [RBF(gamma=0.3), RBF(gamma=0.05).on([0, 1]), Linear()]


@pytest.fixture
def blobs():
    """Four classes that hardly overlap: most samples are no support vectors."""
    rng = np.random.default_rng(3)
    y = np.sort(rng.integers(0, 4, 400))
    centres = np.array([[0, 0], [3, 0], [0, 3], [3, 3.0]])
    X = np.hstack([centres[y], np.zeros((400, 2))]) + 0.8 * rng.normal(size=(400, 4))
    return X, y


@pytest.fixture
def sizes(monkeypatch):
    """Let chunks begin with few samples, and tell how many each has."""
    monkeypatch.setattr(chunks, "CHUNKS_FROM", 100)
    seen = []

    class Noted(chunks.Chunk):
        def __init__(self, whole, store, rows, memory):
            seen.append(len(rows))
            super().__init__(whole, store, rows, memory)

    monkeypatch.setattr(chunks, "Chunk", Noted)
    return seen


def both(make, X, y, monkeypatch):
    by_chunks = make().fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr(chunks, "CHUNKS_FROM", 10**9)
        return by_chunks, make().fit(X, y)


def assert_same(found, expected, tol):
    assert found.converged_
    assert expected.converged_
    size = np.max(np.abs(expected.objective_))
    assert np.all(found.dual_gap_ <= tol * np.abs(found.objective_) * 1.01)
    np.testing.assert_allclose(
        found.objective_, expected.objective_, rtol=0, atol=2 * tol * size
    )
    most = np.max(expected.weights_)
    # The weights are as near as the square root of what the objectives differ by.
    np.testing.assert_allclose(found.weights_, expected.weights_, atol=3e-4 * most)


@pytest.mark.parametrize(
    "settings",
    [
        dict(method="group-lasso", p=2),
        dict(method="group-lasso", p=1),
        dict(method="group-lasso", p=1.5, penalty=3.0),
        dict(method="group-lasso", multiclass="ovo"),
        dict(method="group-lasso", multiclass="ovo", weights="per-task"),
        dict(method="smo", p=2),
        dict(method="smo", p=1.1),
        dict(method="smo", p=4, multiclass="ovo", weights="per-task"),
        dict(method="simple"),
        dict(method="uniform"),
        dict(method="alignment"),
    ],
    ids=str,
)
def test_classifiers_agree(settings, blobs, sizes, monkeypatch):
    def make():
        return MKLClassifier(KERNELS, tol=1e-9, **settings)

    found, expected = both(make, *blobs, monkeypatch)
    assert sizes
    assert max(sizes) < len(blobs[0])
    assert_same(found, expected, 1e-9)
    values = found.decision_function(blobs[0])
    np.testing.assert_allclose(values, expected.decision_function(blobs[0]), atol=2e-4)


def test_certificate_is_that_of_all_samples(blobs, sizes):
    """The gap, from scratch: hinge losses of all samples, and the dual value."""
    X, y = blobs
    y = np.where(y == 0, 1, -1)
    model = MKLClassifier(KERNELS, method="group-lasso", p=2, tol=1e-4, normalize=None)
    model.fit(X, y)
    assert sizes
    K = [np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(-1))]
    K += [np.exp(-0.05 * ((X[:, None, :2] - X[:, :2]) ** 2).sum(-1)), X @ X.T]
    beta = np.zeros(len(X))
    beta[model.support_] = model.dual_coef_[0]
    assert abs(beta.sum()) < 1e-9
    assert np.abs(beta).max() <= 1.0 + 1e-12
    s = np.array([beta @ k @ beta for k in K])
    f = sum(d * (k @ beta) for d, k in zip(model.weights_, K, strict=True))
    loss = np.maximum(0, 1 - y * (f + model.intercept_[0])).sum()
    primal = 0.5 * model.weights_ @ s + loss
    dual = y @ beta - 0.5 * np.linalg.norm(s)
    np.testing.assert_allclose(-model.objective_, dual, rtol=1e-6)
    assert 0 <= primal - dual <= 1e-4 * primal
    np.testing.assert_allclose(model.dual_gap_, primal - dual, atol=2e-5 * primal)


def test_regression_agrees(blobs, sizes, monkeypatch):
    X, _ = blobs
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1]

    def make():
        return MKLRegressor(KERNELS, method="group-lasso", epsilon=0.2, tol=1e-9)

    found, expected = both(make, X, y, monkeypatch)
    assert sizes
    assert_same(found, expected, 1e-9)


def test_where_nearly_all_are_support_vectors_all_come_along(sizes, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 2, 300)

    def make():
        return MKLClassifier(KERNELS, method="group-lasso", tol=1e-9)

    found, expected = both(make, X, y, monkeypatch)
    assert max(sizes) <= 0.6 * len(X)
    assert_same(found, expected, 1e-9)


@pytest.mark.parametrize("penalty", [None, 3.0])
def test_a_kernel_without_use_for_the_first_chunk_comes_back(sizes, penalty):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    X = np.zeros((400, 2))
    X[:, 0] = y + rng.normal(size=400)
    # One sample in four, and none of those that the first chunk takes.
    X[1::4, 1] = y[1::4] - 0.5
    kernels = [RBF(gamma=0.5).on([0]), Linear().on([1])]
    options = dict(method="group-lasso", penalty=penalty)
    model = MKLClassifier(kernels, **options).fit(X, y)
    assert sizes
    assert model.converged_
    assert model.weights_[1] > 0.3


def test_limit_on_rounds_holds(blobs, sizes):
    model = MKLClassifier(KERNELS, method="group-lasso", max_iter=3, tol=1e-9)
    with pytest.warns(Warning, match="max_iter=3"):
        model.fit(*blobs)
    assert model.n_iter_ == 3
    assert len(model.history_["objective"]) == 3
    assert model.dual_gap_ > 0
