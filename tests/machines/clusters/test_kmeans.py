import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans as Peer
from sklearn.exceptions import ConvergenceWarning

from mercer import KMeans, datasets
from mercer.machines.clusters import kmeans


@pytest.fixture
def X(rng):
    centers = rng.standard_normal((12, 6)) * 3
    return centers[rng.integers(12, size=1500)] + rng.standard_normal((1500, 6))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("k", [1, 2, 12, 40])
def test_as_scikit_learn_from_the_same_start(X, rng, dtype, k):
    X = X.astype(dtype)
    start = X[rng.choice(len(X), k, replace=False)]
    weight = rng.random(len(X))
    model = KMeans(k, init=start, tol=0).fit(X, sample_weight=weight)
    peer = Peer(k, init=start, n_init=1, tol=0).fit(X, sample_weight=weight)
    assert (model.labels_ == peer.labels_).all()
    assert model.inertia_ == pytest.approx(peer.inertia_, rel=1e-5)
    assert np.abs(model.cluster_centers_ - peer.cluster_centers_).max() < 1e-5
    assert (model.predict(X + 0.3) == peer.predict(X + dtype(0.3))).all()
    assert np.abs(model.transform(X) - peer.transform(X)).max() < 1e-3
    assert model.score(X) == pytest.approx(peer.score(X), rel=1e-5)


def test_seed_gives_scikit_learns_start(X):
    model = KMeans(12, random_state=3).fit(X)
    peer = Peer(12, random_state=3).fit(X)
    assert model.inertia_ <= 1.001 * peer.inertia_
    assert model.n_iter_ == peer.n_iter_


def naive_lloyd(X, centers, rounds):
    """Yield the objective of each round, by all distances in double precision."""
    for _ in range(rounds):
        squared = ((X[:, None] - centers) ** 2).sum(axis=2)
        labels = squared.argmin(axis=1)
        yield squared.min(axis=1).sum()
        centers = np.array([X[labels == c].mean(axis=0) for c in range(len(centers))])


def test_pruned_rounds_are_those_of_all_distances(X):
    start = X[:12].copy()
    model = KMeans(12, init=start, tol=0).fit(X.astype(np.float32) + 100)
    # The origin far away: products would lose digits.
    model = KMeans(12, init=start + 100, tol=0).fit(X + 100)
    history = model.inertia_history_
    expected = list(naive_lloyd(X, start, model.n_iter_))
    assert history[:-1] == pytest.approx(expected, rel=1e-9)
    assert (np.diff(history) <= 1e-9 * history[0]).all()
    assert history[-1] == model.inertia_


def test_sparse_is_as_dense(rng):
    X = rng.random((400, 9)) * (rng.random((400, 9)) < 0.3)
    dense = KMeans(5, init=X[:5], tol=0).fit(X)
    model = KMeans(5, init=X[:5], tol=0).fit(sparse.csr_array(X))
    assert (model.labels_ == dense.labels_).all()
    assert model.inertia_ == pytest.approx(dense.inertia_)
    assert model.cluster_centers_ == pytest.approx(dense.cluster_centers_)


def test_weights_are_repetitions(X, rng):
    times = rng.integers(0, 4, size=len(X))
    start = X[:4]
    model = KMeans(4, init=start, tol=0).fit(X, sample_weight=times)
    repeated = KMeans(4, init=start, tol=0).fit(np.repeat(X, times, axis=0))
    assert model.cluster_centers_ == pytest.approx(repeated.cluster_centers_)
    assert model.inertia_ == pytest.approx(repeated.inertia_)


def test_empty_clusters_are_repaired(X):
    start = np.vstack([X[:3], np.full((3, 6), 1e3) + np.arange(3)[:, None]])
    model = KMeans(6, init=start).fit(X)
    assert len(np.unique(model.labels_)) == 6
    peer = Peer(6, init=start, n_init=1).fit(X)
    assert model.inertia_ <= 1.1 * peer.inertia_


def test_duplicates_leave_clusters_empty():
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], 20, axis=0)
    with pytest.warns(ConvergenceWarning, match="Number of distinct clusters"):
        model = KMeans(4, random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(0, abs=1e-12)
    assert np.isfinite(model.cluster_centers_).all()


@pytest.mark.parametrize("init", ["random", lambda X, k, random_state: X[:k]])
def test_other_starts(X, init):
    model = KMeans(12, init=init, random_state=0).fit(X)
    best = KMeans(12, n_init=10, random_state=0).fit(X)
    assert best.inertia_ <= model.inertia_ * 1.3
    assert len(np.unique(model.labels_)) == 12


def test_input_is_left_alone(X):
    X.flags.writeable = False
    before = X.copy()
    KMeans(3).fit(np.asfortranarray(X))
    KMeans(3).fit(X)
    assert (X == before).all()
    own = before.copy()
    KMeans(3, copy_x=False).fit(own)
    assert own == pytest.approx(before)


def test_same_for_any_number_of_threads(X):
    one, two = (KMeans(7, random_state=0, n_jobs=n).fit(X) for n in (1, 2))
    assert (one.cluster_centers_ == two.cluster_centers_).all()


def test_rings_are_too_much():
    X, y = datasets.make_rings(300, random_state=0)
    labels = KMeans(2, n_init=5, random_state=0).fit(X).labels_
    wrong = min((labels == y).sum(), (labels != y).sum())
    assert wrong > 50


def test_errors(X):
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=8"):
        KMeans().fit(X[:3])
    with pytest.raises(ValueError, match=r"it must be \(2, 6\)"):
        KMeans(2, init=X[:3]).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KMeans(2, random_state=0).fit(X)


@pytest.mark.parametrize("factor, dtype", [(1e200, np.float64), (1e25, np.float32)])
def test_too_large_values_are_named(X, factor, dtype):
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="Scale X"):
        KMeans(2).fit((X * factor).astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_and_many_samples_are_predicted_alike(dtype, monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 5)).astype(dtype) + dtype(100)
    model = KMeans(7, random_state=0).fit(X)
    few = model.predict(X)
    monkeypatch.setattr(kmeans, "BRIEF_TO_PREDICT", 0)
    np.testing.assert_array_equal(model.predict(X), few)
    np.testing.assert_array_equal(model.labels_, few)
    assert few.dtype == np.int32
