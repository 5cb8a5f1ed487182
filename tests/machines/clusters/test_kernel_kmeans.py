import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from mercer import KernelKMeans, KMeans, datasets, kernels


def n_errors(y, labels, k):
    """Count errors up to the names of the clusters."""
    table = np.zeros((k, k))
    np.add.at(table, (y, labels), 1)
    return int(len(y) - table[linear_sum_assignment(-table)].sum())


def objective(K, labels, weight=None):
    """The definition, by sums over pairs."""
    weight = np.ones(len(K)) if weight is None else weight
    value = (weight * np.diag(K)).sum()
    for c in np.unique(labels):
        w = np.where(labels == c, weight, 0)
        value -= w @ K @ w / w.sum()
    return value


@pytest.fixture
def X(rng):
    centers = rng.standard_normal((5, 3)) * 4
    return centers[rng.integers(5, size=300)] + rng.standard_normal((300, 3))


@pytest.mark.parametrize(("n", "seed"), [(200, 0), (300, 1), (600, 2)])
def test_rings_and_moons_at_the_gamma_it_chose(n, seed):
    rings = *datasets.make_rings(n, random_state=seed), 2
    moons = *datasets.make_moons(n, n_moons=3, noise=0.05, random_state=seed), 3
    for X, y, k in (rings, moons):
        model = KernelKMeans(k, gamma="tune", random_state=0).fit(X)
        assert n_errors(y, model.labels_, k) == 0
        gammas, criterion = model.tuning_
        assert model.gamma_ == gammas[np.argmin(criterion)]
        assert (model.predict(X) == model.labels_).all()
        assert n_errors(y, KMeans(k, n_init=5, random_state=0).fit(X).labels_, k) > 20


def test_tuning_looks_at_a_part_of_many_samples():
    X, y = datasets.make_rings(2500, random_state=0)
    model = KernelKMeans(2, gamma="tune", n_init=2, random_state=0).fit(X)
    assert n_errors(y, model.labels_, 2) == 0


def test_plain_objective_finds_rings_in_the_reports_range():
    X, y = datasets.make_rings(300, random_state=0)
    errors = [
        n_errors(y, KernelKMeans(2, gamma=g, random_state=0).fit(X).labels_, 2)
        for g in (0.1, 4.0, 7.0)
    ]
    assert errors[0] > 50
    assert errors[1:] == [0, 0]


def test_linear_kernel_is_k_means(X, rng):
    weight = rng.random(300)
    start = rng.integers(5, size=300)
    model = KernelKMeans(5, kernel="linear", init=start).fit(X, sample_weight=weight)
    means = [np.average(X[start == c], axis=0, weights=weight[start == c])
             for c in range(5)]  # fmt: skip
    plain = KMeans(5, init=np.array(means), tol=0).fit(X, sample_weight=weight)
    assert (model.labels_ == plain.labels_).all()
    assert model.inertia_ == pytest.approx(plain.inertia_)
    assert model.transform(X) == pytest.approx(plain.transform(X), abs=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "rbf * linear + rbf"])
@pytest.mark.parametrize("weighted", [False, True])
def test_objective_is_what_it_says_and_falls(X, rng, kernel, weighted):
    weight = rng.random(300) if weighted else None
    model = KernelKMeans(4, kernel=kernel, random_state=0).fit(X, sample_weight=weight)
    K = model.kernel_.block(X)
    assert model.inertia_ == pytest.approx(objective(K, model.labels_, weight))
    assert (np.diff(model.inertia_history_) < 0).all()
    assert model.inertia_ == pytest.approx(model.start_inertias_.min(), rel=1e-12)
    assert model.converged_
    assert (model.predict(X) == model.labels_).all()
    own = model.transform(X)[np.arange(300), model.labels_]
    weight = np.ones(300) if weight is None else weight
    assert (weight * own**2).sum() == pytest.approx(model.inertia_)


def test_normalized_objective_is_the_normalised_cut(X, rng):
    weight = rng.random(300)
    model = KernelKMeans(3, gamma=0.05, normalize=True, random_state=0)
    model.fit(X, sample_weight=weight)
    K = kernels.RBF(0.05).block(X)
    degrees = K @ weight
    scaled, mass = K / degrees[:, None] / degrees, weight * degrees
    assert model.inertia_ == pytest.approx(objective(scaled, model.labels_, mass))
    cut = 0.0
    for c in range(3):
        own = np.where(model.labels_ == c, weight, 0)
        cut += own @ K @ (weight - own) / (own @ K @ weight)
    total = (mass * np.diag(scaled)).sum()
    assert model.inertia_ == pytest.approx(total - 3 + cut)


def test_weights_are_repetitions(X, rng):
    times = rng.integers(1, 4, size=300)
    start = rng.integers(4, size=300)
    options = {"gamma": 0.1, "n_clusters": 4}
    model = KernelKMeans(init=start, **options).fit(X, sample_weight=times)
    repeated = KernelKMeans(init=np.repeat(start, times), **options)
    repeated.fit(np.repeat(X, times, axis=0))
    assert model.inertia_ == pytest.approx(repeated.inertia_)
    assert (np.repeat(model.labels_, times) == repeated.labels_).all()


@pytest.mark.parametrize("form", ["precomputed", "function", "float32", "sparse"])
def test_other_forms_of_the_same(X, form, rng):
    start = rng.integers(4, size=300)
    kernel = kernels.RBF(0.1)
    expected = KernelKMeans(4, kernel=kernel, init=start).fit(X)
    data, new, kind = X, X[:9] + 0.1, kernel
    if form == "precomputed":
        data, new, kind = kernel.block(X), kernel.block(new, X), form
    elif form == "function":
        kind = lambda x, z: np.exp(-0.1 * ((x - z) ** 2).sum())  # noqa: E731
    elif form == "float32":
        data, new = X.astype(np.float32), new.astype(np.float32)
    else:
        data, new = sparse.csr_array(X), sparse.csr_array(new)
    model = KernelKMeans(4, kernel=kind, init=start).fit(data)
    assert (model.labels_ == expected.labels_).all()
    assert model.inertia_ == pytest.approx(expected.inertia_, rel=1e-5)
    found = model.transform(new)
    assert found == pytest.approx(expected.transform(X[:9] + 0.1), abs=1e-4)


@pytest.mark.parametrize("init", ["auto", "k-means++", "random", "spectral"])
def test_starts(X, init):
    model = KernelKMeans(5, gamma=0.05, init=init, n_init=4, random_state=0).fit(X)
    assert len(model.start_inertias_) == (1 if init == "spectral" else 4)
    assert len(np.unique(model.labels_)) == 5


def test_budget_does_not_show(rng):
    X = rng.standard_normal((700, 3)).astype(np.float32)
    options = {"gamma": 0.5, "random_state": 0, "n_init": 3}
    small = KernelKMeans(4, cache_size=0.1, **options).fit(X)
    large = KernelKMeans(4, **options).fit(X)
    assert small.inertia_ == pytest.approx(large.inertia_, rel=1e-5)


def test_hostile_samples():
    same = np.ones((10, 2))
    with pytest.warns(ConvergenceWarning, match="cut short|distinct clusters|rounds"):
        KernelKMeans(3, random_state=0, max_iter=1, init="random", n_init=1).fit(
            np.random.default_rng(0).standard_normal((200, 2))
        )
    model = KernelKMeans(3, random_state=0).fit(same)
    assert model.inertia_ == pytest.approx(0, abs=1e-12)
    tuned = KernelKMeans(2, gamma="tune", random_state=0).fit(same)
    assert np.isfinite(tuned.gamma_)
    everyone = KernelKMeans(10, gamma=1.0, random_state=0).fit(np.eye(10))
    assert len(np.unique(everyone.labels_)) == 10


def test_errors(X):
    with pytest.raises(ValueError, match="'rbf' and 'laplacian', got kernel='linear'"):
        KernelKMeans(2, kernel="linear", gamma="tune").fit(X)
    with pytest.raises(ValueError, match="got normalize=False"):
        KernelKMeans(2, gamma="tune", normalize=False).fit(X)
    with pytest.raises(ValueError, match="whose sums over the samples are positive"):
        KernelKMeans(2, kernel="linear", normalize=True).fit(X)
    with pytest.raises(ValueError, match="init must have 300 whole numbers"):
        KernelKMeans(2, init=[0, 1]).fit(X)
    with pytest.raises(ValueError, match="they must be from 0 to 1"):
        KernelKMeans(2, init=np.arange(300)).fit(X)
    with pytest.raises(ValueError, match="should be >= n_clusters"):
        KernelKMeans(2).fit(X[:1])


def test_samples_of_a_given_matrix_know_their_norms(X):
    options = {"n_clusters": 3, "random_state": 0}
    expected = KernelKMeans(kernel="linear", **options).fit_transform(X)
    given = KernelKMeans(kernel="precomputed", **options)
    assert given.fit_transform(X @ X.T) == pytest.approx(expected, abs=1e-8)


def test_rounds_are_at_most_max_iter(X):
    model = KernelKMeans(5, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"in 1 rounds\. Raise max_iter"):
        assert model.fit(X).n_iter_ == 1
