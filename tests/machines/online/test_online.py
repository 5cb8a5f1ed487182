"""OnlineSVC beside the batch machine: optima, members, budgets, forgetting."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from mercer import SVC, OnlineSVC
from mercer.kernels import RBF, Linear

GAMMA = 0.5


def blobs(rng, n=240, n_classes=3, d=4):
    y = rng.integers(0, n_classes, n)
    centers = np.random.default_rng(5).normal(size=(n_classes, d))
    return centers[y] + 0.8 * rng.normal(size=(n, d)), y


def batch(X, y, **more):
    options = {"C": 2.0, "gamma": GAMMA, "tol": 1e-7, "multiclass": "ovr"} | more
    return SVC(**options).fit(X, y)


def online(**more):
    return OnlineSVC(**({"C": 2.0, "gamma": GAMMA, "tol": 1e-7} | more))


def assert_same_machine(model, other, X, atol=1e-5):
    np.testing.assert_allclose(model.objective_, other.objective_, rtol=1e-6)
    assert model.kkt_gap_.max() <= model.tol
    np.testing.assert_allclose(
        model.decision_function(X), other.decision_function(X), atol=atol
    )


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", ["lasvm", "smo"])
def test_finished_is_the_batch_machine(method, n_classes, multiclass, rng):
    X, y = blobs(rng, n_classes=n_classes)
    model = online(method=method, multiclass=multiclass)
    model.partial_fit(X, y, classes=range(n_classes)).finish(X, y)
    assert_same_machine(model, batch(X, y, multiclass=multiclass), X)


@pytest.mark.parametrize("selection", ["stream", "random", "active", "gradient"])
def test_finish_is_the_optimum_over_what_is_held(selection, rng):
    X, y = blobs(rng)
    model = online(selection=selection, random_state=0)
    for part in np.array_split(np.arange(len(y)), 7):
        model.partial_fit(X[part], y[part], classes=[0, 1, 2])
    held, labels = model.samples_, model.labels_
    model.finish()
    assert_same_machine(model, batch(held, labels), X)
    assert len(model.samples_) <= len(held)


def test_after_each_call_smo_is_optimal(rng):
    X, y = blobs(rng, 60)
    model = online(method="smo", tol=1e-6).partial_fit(X[:20], y[:20], [0, 1, 2])
    for k in range(20, 60, 8):
        model.partial_fit(X[k : k + 8], y[k : k + 8])
        assert model.kkt_gap_.max() <= 1e-6
        assert len(model.samples_) == k + 8
    assert_same_machine(model, batch(X, y), X)


def test_start_from_a_batch_and_go_on(rng):
    X, y = blobs(rng)
    model = online().fit(X[:150], y[:150])
    assert_same_machine(model, batch(X[:150], y[:150]), X)
    model.partial_fit(X[150:], y[150:]).finish(X, y)
    assert_same_machine(model, batch(X, y), X)
    assert model.n_seen_ == 240


def test_weight_of_the_batch_part(rng):
    X, y = blobs(rng)
    weight = np.repeat([0.25, 1.0], [150, 90])
    model = online(method="smo", batch_weight=0.25).fit(X[:150], y[:150])
    model.partial_fit(X[150:], y[150:])
    expected = SVC(C=2.0, gamma=GAMMA, tol=1e-7, multiclass="ovr")
    assert_same_machine(model, expected.fit(X, y, sample_weight=weight), X)


def test_class_and_sample_weights(rng):
    X, y = blobs(rng)
    weight = rng.uniform(0.0, 2.0, len(y))
    weight[:5] = 0.0
    factors = {0: 2.0, 1: 0.5, 2: 1.0}
    model = online(class_weight=factors, method="smo")
    model.partial_fit(X, y, classes=[0, 1, 2], sample_weight=weight)
    expected = SVC(
        C=2.0, gamma=GAMMA, tol=1e-7, multiclass="ovr", class_weight=factors
    ).fit(X, y, sample_weight=weight)
    assert_same_machine(model, expected, X)


@pytest.mark.parametrize("method", ["lasvm", "smo"])
def test_samples_one_by_one_and_in_groups_learn_alike(method, rng):
    X, y = blobs(rng, 80)
    whole = online(method=method, tol=1e-3).partial_fit(X, y, classes=[0, 1, 2])
    single = online(method=method, tol=1e-3)
    for k in range(len(y)):
        single.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1, 2])
    # Places, and so what comes first of equals, differ once samples have been let go.
    atol = 1e-8 if method == "lasvm" else 5e-3
    np.testing.assert_allclose(
        single.decision_function(X), whole.decision_function(X), atol=atol
    )


def test_a_sample_that_is_held_is_skipped(rng):
    X, y = blobs(rng)
    model = online(method="smo").partial_fit(X, y, classes=[0, 1, 2])
    before = model.objective_
    model.partial_fit(X, y)
    assert len(model.samples_) == len(y)
    np.testing.assert_allclose(model.objective_, before, rtol=1e-9)


def test_a_sample_that_comes_again_can_add_up(rng):
    X, y = blobs(rng, 80)
    twice = np.tile(np.arange(80), 2)
    model = online(method="smo", duplicates="add")
    model.partial_fit(X[twice], y[twice], classes=[0, 1, 2])
    assert len(model.samples_) == 80
    assert_same_machine(model, batch(X[twice], y[twice]), X)
    model = online().fit(X[twice], y[twice])
    assert_same_machine(model, batch(X[twice], y[twice]), X)


@pytest.mark.parametrize("place", [0, -1, "sample"])
def test_forget(place, rng):
    X, y = blobs(rng, 100)
    model = online(method="smo").partial_fit(X, y, classes=[0, 1, 2])
    leaving = model.support_[0] if place == 0 else 99
    sample = model.samples_[leaving].copy()
    assert model.forget(sample if place == "sample" else int(leaving)) == 1
    stays = ~(X == sample).all(axis=1)
    assert stays.sum() == 99
    assert_same_machine(model, batch(X[stays], y[stays]), X)
    assert model.forget(sample) == 0


def test_forget_in_lasvm_keeps_a_machine_of_the_others(rng):
    X, y = blobs(rng)
    model = online(tol=1e-4).partial_fit(X, y, classes=[0, 1, 2])
    for _ in range(10):
        model.forget(int(model.support_[0]))
        assert np.abs(model.dual_coef_.sum(axis=1)).max() < 1e-9
    held, labels = model.samples_, model.labels_
    np.testing.assert_allclose(
        model.finish().objective_, batch(held, labels).objective_, rtol=1e-6
    )
    with pytest.raises(ValueError, match="there are"):
        model.forget(10_000)


@pytest.mark.parametrize("method", ["lasvm", "smo"])
def test_budget_holds(method, rng):
    X, y = blobs(rng, 400)
    model = online(method=method, budget=80, tol=1e-3)
    for k in range(0, 400, 50):
        model.partial_fit(X[k : k + 50], y[k : k + 50], classes=[0, 1, 2])
        assert len(model.samples_) <= 80
        assert np.abs(model.dual_coef_.sum(axis=1)).max() < 1e-9
        assert np.abs(model.dual_coef_).max() <= 2.0
    assert model.score(X, y) > batch(X, y).score(X, y) - 0.12
    fitted = online(method=method, budget=80, tol=1e-3).fit(X, y)
    assert len(fitted.samples_) <= 80 and fitted.score(X, y) > 0.75


def test_memory_bounds_what_is_held(rng):
    X, y = blobs(rng, 600)
    model = online(method="smo", cache_size=0.5, tol=1e-2)
    model.partial_fit(X, y, classes=[0, 1, 2])
    assert model._held.gram.matrix.nbytes <= 0.5 * 2**20
    assert len(model.samples_) < 256
    with pytest.raises(MemoryError, match="Raise budget"):
        online(budget=10).partial_fit(X, y, classes=[0, 1, 2]).finish(X, y)


def test_selection_learns_from_a_part(rng):
    X, y = blobs(rng, 500, n_classes=2)
    full = online(tol=1e-3).partial_fit(X, y, classes=[0, 1])
    for selection in ("random", "active", "gradient"):
        model = online(selection=selection, fraction=0.3, random_state=0, tol=1e-3)
        model.partial_fit(X, y, classes=[0, 1])
        assert len(model.samples_) <= 150
        assert model.score(X, y) > full.score(X, y) - 0.15
    with pytest.raises(ValueError, match="needs a selection"):
        online(fraction=0.5).partial_fit(X, y, classes=[0, 1])


def test_classes_may_come_later(rng):
    X, y = blobs(rng)
    order = np.argsort(y, kind="stable")
    model = online(tol=1e-3)
    for part in np.array_split(order, 10):
        model.partial_fit(X[part], y[part], classes=[0, 1, 2])
    assert model.finish(X, y).score(X, y) == pytest.approx(
        batch(X, y).score(X, y), abs=0.01
    )
    only = online().partial_fit(X[y == 1], y[y == 1], classes=[0, 1, 2])
    assert (only.predict(X) == 1).all()
    with pytest.raises(ValueError, match="unknown classes"):
        model.partial_fit(X[:1], [7])
    with pytest.raises(ValueError, match="not the same"):
        model.partial_fit(X[:1], [0], classes=[0, 1])


def test_a_failed_first_call_leaves_nothing_behind(rng):
    X, y = blobs(rng)
    model = online()
    with pytest.raises(ValueError, match="unknown classes"):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="greater than one"):
        model.partial_fit(X[y == 1], y[y == 1], classes=[1])
    model.partial_fit(X, y, classes=[0, 1, 2]).predict(X)


def test_sparse_samples_are_the_same_machine(rng):
    X, y = blobs(rng)
    X[np.abs(X) < 0.5] = 0.0
    dense = online(tol=1e-3).partial_fit(X, y, classes=[0, 1, 2])
    thin = online(tol=1e-3).partial_fit(sparse.csr_array(X), y, classes=[0, 1, 2])
    np.testing.assert_allclose(
        thin.decision_function(sparse.csr_array(X)),
        dense.decision_function(X),
        atol=1e-6,
    )
    thin.partial_fit(X[:3], y[:3])
    assert thin.forget(X[:1]) <= 1
    with pytest.raises(ValueError, match="trained on dense"):
        dense.partial_fit(sparse.csr_array(X), y)


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.3).on([0, 1]) + Linear(), "poly"])
def test_kernels(kernel, rng):
    X, y = blobs(rng)
    model = online(kernel=kernel).fit(X, y)
    assert_same_machine(model, batch(X, y, kernel=kernel), X, atol=1e-4)
    if isinstance(kernel, Linear):
        expected = X @ model.coef_.T + model.intercept_
        np.testing.assert_allclose(model.decision_function(X), expected)


def test_precomputed_kernels_are_refused():
    with pytest.raises(ValueError, match="precomputed"):
        OnlineSVC(kernel="precomputed").partial_fit(np.eye(2), [0, 1], classes=[0, 1])


def test_single_precision_stays_single(rng):
    X, y = blobs(rng)
    model = online(tol=1e-3).partial_fit(X.astype(np.float32), y, classes=[0, 1, 2])
    assert model.samples_.dtype == np.float32
    model.partial_fit(X[:5], y[:5]).finish()
    assert model.samples_.dtype == np.float32


def test_prediction_changes_nothing(rng):
    X, y = blobs(rng)
    model = online(tol=1e-3).partial_fit(X, y, classes=[0, 1, 2])
    before = model.__getstate__()
    first = model.decision_function(X)
    model.predict(X[:3])
    assert (model.decision_function(X) == first).all()
    after = model.__getstate__()
    np.testing.assert_equal(after, before)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_fit_counts_samples_that_are_the_same(kernel, n_classes, rng):
    # Few distinct samples: of many that are the same only some are support vectors.
    X = rng.integers(0, 2, (300, 2)).astype(float)
    y = np.where(
        rng.random(300) < 0.3 + 0.3 * X[:, 0], 1, rng.integers(n_classes, size=300)
    )
    model = online(kernel=kernel).fit(X, y)
    assert_same_machine(model, batch(X, y, kernel=kernel), X)
    assert len(model.samples_) <= 4 * n_classes


@pytest.mark.parametrize("method", ["lasvm", "smo"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_too_large_samples_leave_the_model_as_it_is(method, kernel, rng):
    X, y = blobs(rng)
    model = online(method=method, kernel=kernel)
    with pytest.raises(ValueError, match=r"too large.*Nothing was learnt"):
        model.partial_fit(X[:3] * 1e200, y[:3], classes=range(3))
    model.partial_fit(X[:100], y[:100], classes=range(3))
    before = model.decision_function(X)
    for call in (model.partial_fit, model.finish):
        with pytest.raises(ValueError, match="Nothing was learnt from these samples"):
            call(X[:3] * 1e200, y[:3])
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert model.n_seen_ == 100
    assert model.partial_fit(X[100:], y[100:]).n_seen_ == len(y)


def test_fit_that_takes_no_step_holds_nothing(rng, recwarn):
    X, y = blobs(rng)
    model = online(max_iter=0).fit(X, y)
    assert len(model.samples_) == 0
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]


def repeated(seed, n_classes=2):
    """A small problem with samples that stand there several times, and weights."""
    rng = np.random.default_rng(seed)
    X, y = blobs(rng, int(rng.integers(20, 60)), n_classes, d=2)
    index = rng.integers(0, len(y), 2 * len(y))
    index[:n_classes] = [np.flatnonzero(y == c)[0] for c in range(n_classes)]
    if seed % 3 == 0:  # few places, of both classes
        X = np.round(X)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], len(index)) if seed % 2 else None
    if weight is not None:
        weight[:n_classes] = 1.0
    return X[index], y[index], weight


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("duplicates", ["skip", "add"])
@pytest.mark.parametrize("method", ["lasvm", "smo"])
def test_finish_over_data_is_the_batch_machine_of_these(method, duplicates, n_classes):
    for seed in range(12):
        X, y, weight = repeated(seed, n_classes)
        model = online(method=method, duplicates=duplicates)
        # What was held before, and with what weight, does not matter.
        model.partial_fit(X[:-5], y[:-5], classes=range(n_classes))
        model.partial_fit(X[:9] + 0.5, y[:9])
        model.finish(X, y, sample_weight=weight)
        expected = SVC(C=2.0, gamma=GAMMA, tol=1e-7, multiclass="ovr")
        assert_same_machine(model, expected.fit(X, y, sample_weight=weight), X)
        used = X if weight is None else X[weight > 0]
        assert set(map(tuple, model.samples_)) <= set(map(tuple, used))


@pytest.mark.parametrize("method", ["lasvm", "smo"])
def test_finish_over_data_takes_the_parameters_of_now(method, rng):
    X, y = blobs(rng, 90)
    model = online(method=method).fit(X, y)
    for change in ({"C": 10.0}, {"class_weight": {0: 3.0, 1: 0.2, 2: 1.0}},
                   {"C": 0.1}, {"class_weight": "balanced"}):  # fmt: skip
        model.set_params(**change).finish(X, y)
        options = {name: getattr(model, name) for name in ("C", "class_weight")}
        assert_same_machine(model, batch(X, y, **options), X)


@pytest.mark.parametrize("method", ["lasvm", "smo"])
def test_the_intercept_without_free_support_vectors_is_that_of_the_batch(method):
    # The first two samples are support vectors at their bounds, and would allow any
    # intercept in [-1/2, 1/2]. The third is not a support vector, but allows no less
    # than 0.
    X, y = np.array([[-1.0], [1.0], [2.0]]), np.array([0, 1, 1])
    expected = batch(X, y, C=0.25, kernel="linear")
    assert expected.intercept_[0] == pytest.approx(0.25)
    for first in (slice(0, 2), slice(0, 3)):
        model = online(C=0.25, kernel="linear", method=method)
        model.partial_fit(X[first], y[first], classes=[0, 1]).finish(X, y)
        np.testing.assert_allclose(model.intercept_, expected.intercept_)
    model = online(C=0.25, kernel="linear", method=method).fit(X, y)
    np.testing.assert_allclose(model.intercept_, expected.intercept_)


@pytest.mark.filterwarnings("ignore:SVC did not converge")
def test_finish_over_data_after_holding_nothing(rng):
    X, y = blobs(rng, 60)
    model = online(max_iter=0).fit(X, y).set_params(max_iter=-1)
    assert_same_machine(model.finish(X, y), batch(X, y), X)


@pytest.mark.parametrize("method", ["lasvm", "smo"])
def test_a_tiny_budget_keeps_every_class(method, rng):
    X, y = blobs(rng, 200)
    order = np.argsort(y, kind="stable")
    model = online(method=method, budget=4, tol=1e-2)
    for k in order:
        model.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1, 2])
    assert set(model.labels_) == {0, 1, 2} and len(model.samples_) <= 4


def test_a_class_that_has_to_go_is_named(rng):
    X, y = blobs(rng, 60)
    names = np.array(["apple", "pear", "plum"])[y]
    order = np.argsort(y, kind="stable")
    with pytest.warns(
        UserWarning, match=r"class 'apple'.*only 2 samples.*Raise budget"
    ):
        online(budget=2, tol=1e-2).partial_fit(
            X[order], names[order], classes=["apple", "pear", "plum"]
        )


def peak_megabytes(call):
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return (tracemalloc.get_traced_memory()[1] - before) / 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kernel", ["rbf", RBF(0.5) + RBF(0.1) * Linear()], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["lasvm", "smo"])
def test_learning_keeps_within_its_memory(method, dtype, kernel, rng):
    X = rng.normal(size=(1100, 2)).astype(dtype)
    y = rng.integers(0, 2, len(X))

    def options(cache_size):
        return OnlineSVC(
            0.1, kernel, gamma=0.5, method=method, tol=1e-2, cache_size=cache_size
        )

    def learn(model):
        for k in range(0, len(y), 50):
            model.partial_fit(X[k : k + 50], y[k : k + 50], classes=[0, 1])
        model.forget(0)
        model.finish(model.samples_[::2], model.labels_[::2])

    learn(options(0.5))  # modules are loaded and functions compiled
    model = options(3)
    assert peak_megabytes(lambda: learn(model)) < 3.0
    # ... and it uses what it may: 3 MB are 627 numbers in double precision, squared.
    assert len(model._held.gram.matrix) > (750 if dtype == np.float32 else 500)


@pytest.mark.filterwarnings("ignore:OnlineSVC did not converge")
def test_a_second_fit_does_not_need_twice_the_memory(rng):
    X, y = rng.normal(size=(600, 2)), rng.integers(0, 2, 600)
    model = online(method="smo", tol=1e-2, cache_size=4).fit(X[:100], y[:100])
    peaks = []

    def fit_twice():
        for _ in range(2):
            tracemalloc.reset_peak()
            model.fit(X, y)
            peaks.append(tracemalloc.get_traced_memory()[1])

    peak_megabytes(fit_twice)
    held = model._held.gram.matrix.nbytes
    assert held > 2 * 2**20 and peaks[1] < peaks[0] + held / 2
