"""Small work done at once gives what the long way gives, and no more surprises."""

import copy
import pickle
import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM, kernels
from mercer.engines.cpu import class_pairs, engine, small
from mercer.kernels import Chi2, Linear
from mercer.machines.base import machine

MACHINES = [
    SVC(C=3.0),
    SVC(C=3.0, multiclass="ovr"),
    SVC(C=3.0, multiclass="ecoc", class_weight="balanced"),
    SVC(kernel="poly", probability=True, random_state=0),
    SVC(kernel=0.5 * kernels.RBF(0.2) + kernels.Linear()),
    NuSVC(nu=0.3),
    SVR(C=2.0),
    NuSVR(nu=0.4),
    OneClassSVM(nu=0.2),
    SVDD(C=0.1),
]


@pytest.fixture(scope="module")
def samples():
    return make_classification(
        150, 5, n_informative=4, n_classes=3, n_redundant=0, random_state=3
    )


def values(model, X):
    return getattr(model, "decision_function", model.predict)(X)


def is_called(monkeypatch, name):
    """Record the calls of a function that the engine knows by this name."""
    calls = []
    function = getattr(engine, name)
    monkeypatch.setattr(engine, name, lambda *args: calls.append(1) or function(*args))
    return calls


@pytest.mark.parametrize("estimator", MACHINES, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_short_way_gives_what_the_long_way_gives(
    estimator, dtype, samples, monkeypatch
):
    X, y = samples[0].astype(dtype), samples[1]
    long_way = is_called(monkeypatch, "solve_plan")
    short = clone(estimator).set_params(tol=1e-7).fit(X, y)
    assert not long_way
    monkeypatch.setattr(small, "MOST_SAMPLES", 0)
    monkeypatch.setattr(class_pairs, "MOST_SAMPLES", 0)
    monkeypatch.setattr(small, "MOST_WORK", 0)
    long = clone(estimator).set_params(tol=1e-7).fit(X.astype(np.float64), y)
    assert long_way
    assert short.converged_
    assert long.converged_
    assert short.is_convex_ is True
    np.testing.assert_allclose(short.objective_, long.objective_, rtol=1e-6)
    expected = values(long, X)
    monkeypatch.undo()
    atol = 1e-4 if dtype == np.float32 else 1e-5
    np.testing.assert_allclose(values(short, X), expected, atol=atol)


def test_sparse_samples(samples):
    X, y = samples
    X = np.where(np.abs(X) > 1, X, 0.0)
    dense, thin = SVC().fit(X, y), SVC().fit(sparse.csr_matrix(X), y)
    np.testing.assert_array_equal(dense.dual_coef_, thin.dual_coef_.toarray())
    for few in (X[:1], X[:7]):
        np.testing.assert_allclose(
            thin.decision_function(sparse.csr_matrix(few)),
            dense.decision_function(few),
            atol=1e-12,
        )


@pytest.mark.parametrize(
    "estimator",
    [
        SVC(kernel=lambda A, B: A @ B.T),
        SVC(solver="decompose"),
        SVC(cache_size=0.1),
    ],
    ids=["function", "solver", "memory"],
)
def test_what_is_not_small_goes_the_long_way(estimator, samples, monkeypatch):
    long_way = is_called(monkeypatch, "solve_plan")
    SVC().fit(*samples)
    assert not long_way
    estimator.fit(*samples)
    assert long_way


@pytest.mark.parametrize("machine", [SVC, SVR, OneClassSVM])
def test_indefinite_kernels_are_small_and_known_to_be(machine, samples, monkeypatch):
    X, y = samples
    long_way = is_called(monkeypatch, "solve_plan")
    estimator = machine(kernel="sigmoid", gamma=2.0, coef0=-1.0)
    short = estimator.fit(X, y)
    assert not long_way
    long = clone(estimator).set_params(solver="decompose").fit(X, y)
    assert long_way
    for model in (short, long):
        assert model.converged_
        assert model.is_convex_ is False
        assert np.isinf(model.dual_gap_).any()
        assert np.max(model.kkt_gap_) <= model.tol
    np.testing.assert_array_equal(np.isinf(short.dual_gap_), np.isinf(long.dual_gap_))


def test_many_steps_are_not_small(samples, monkeypatch):
    long_way = is_called(monkeypatch, "solve_plan")
    monkeypatch.setattr(small, "MOST_STEPS", 2)
    monkeypatch.setattr(class_pairs, "MOST_SAMPLES", 0)
    model = SVC().fit(*samples)
    assert long_way
    assert model.converged_


def test_the_limit_of_steps_is_the_users(samples):
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        model = SVC(max_iter=3, multiclass="ovr").fit(*samples)
    assert not model.converged_
    assert model.n_iter_.max() == 3


def test_overflow_is_reported(samples):
    X, y = samples
    with pytest.raises(ValueError, match="not finite"):
        SVC(kernel="poly", degree=9, gamma=1.0).fit(1e40 * X, y)


def test_a_callback_ends_a_small_fit(samples):
    class Ends:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context, **_): ...
        def on_fit_task_end(self, estimator, context, **_):
            return context.task_name == "solve"

    with pytest.warns(ConvergenceWarning, match="A callback asked for an early end"):
        model = SVC().set_callbacks(Ends()).fit(*samples)
    assert not model.converged_
    assert np.isfinite(model.dual_coef_).all()


class TestExpansion:
    """What prediction derives once follows the model and leaves no trace in it."""

    def test_it_is_derived_once_for_each_fit(self, samples, monkeypatch):
        made = []
        kind = machine.Expansion
        monkeypatch.setattr(
            machine, "Expansion", lambda *args: made.append(1) or kind(*args)
        )
        X, y = samples
        model = SVC().fit(X, y)
        for _ in range(3):
            model.predict(X[:2])
        model.predict(X)
        assert len(made) == 1
        first = model.decision_function(X[:4])
        model.set_params(C=50.0).fit(X[::2], y[::2])
        again = SVC(C=50.0).fit(X[::2], y[::2])
        np.testing.assert_array_equal(
            model.decision_function(X[:4]), again.decision_function(X[:4])
        )
        assert (first != model.decision_function(X[:4])).any()

    def test_replaced_coefficients_count(self, samples):
        X, y = samples
        model = SVR().fit(X, y)
        before = model.predict(X[:3])
        model.dual_coef_ = 2.0 * model.dual_coef_
        doubled = 2.0 * (before - model.intercept_) + model.intercept_
        np.testing.assert_allclose(model.predict(X[:3]), doubled)

    def test_coefficients_are_not_changed_behind_its_back(self, samples):
        model = SVR().fit(*samples)
        model.predict(samples[0][:1])
        with pytest.raises(ValueError, match="read-only"):
            model.dual_coef_[0, 0] = 7.0

    def test_copies_and_files_do_without_it(self, samples):
        X, y = samples
        model = SVC().fit(X, y)
        plain = pickle.dumps(model)
        expected = model.decision_function(X[:3])
        assert len(pickle.dumps(model)) == len(plain)
        for other in (pickle.loads(plain), copy.deepcopy(model)):
            np.testing.assert_array_equal(other.decision_function(X[:3]), expected)

    def test_several_threads_predict_with_one_model(self, samples):
        X, y = samples
        model = SVC(multiclass="ovr").fit(X, y)
        expected = SVC(multiclass="ovr").fit(X, y).decision_function(X[:6])
        found = []
        start = threading.Barrier(4)

        def predict():
            start.wait()
            found.extend(model.decision_function(X[:6]) for _ in range(20))

        threads = [threading.Thread(target=predict) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 80
        for values in found:
            np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "chi2"])
def test_both_pairs_give_the_same_machine(samples, kernel, make, dtype, monkeypatch):
    X, y = samples
    X, y = make(np.abs(X[:120]).astype(dtype)), y[:120]
    monkeypatch.setattr(small, "SUMS_OVER_COLUMNS", ())
    model = SVC(kernel=kernel, gamma=0.1).fit(X, y)
    expected = model.decision_function(X[:4])
    assert small.is_tiny(X, X.shape[0])
    monkeypatch.setattr(small, "MOST_DIFFERENCES", 0)
    other = SVC(kernel=kernel, gamma=0.1).fit(X, y)
    np.testing.assert_allclose(other.objective_, model.objective_, rtol=1e-5)
    found = clone(model).fit(X, y).decision_function(X[:4])
    np.testing.assert_allclose(found, expected, atol=2e-3)
    # The same machine with the other pair: only rounding differs.
    again = pickle.loads(pickle.dumps(model)).decision_function(X[:4])
    np.testing.assert_allclose(again, expected, rtol=1e-5, atol=1e-5)


def test_many_sums_are_added_up_in_parts(samples, monkeypatch):
    X, y = samples
    model = SVC().fit(X, y)
    expected = model.decision_function(X)
    monkeypatch.setattr(small, "SUMS_AT_ONCE", 13)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-12)


def test_prediction_keeps_to_its_memory(samples, monkeypatch):
    X, y = samples
    model = SVC(cache_size=0.05).fit(X, y)
    expected = model.decision_function(X[:1])
    calls = is_called_on(monkeypatch, engine.CpuEngine, "expand")
    np.testing.assert_allclose(model.decision_function(X)[:1], expected, atol=1e-6)
    assert calls


def is_called_on(monkeypatch, owner, name):
    """Record the calls of a method."""
    calls = []
    method = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *args: calls.append(1) or method(*args))
    return calls


def test_sums_over_columns_are_left_to_compiled_code(samples, monkeypatch):
    X, y = np.abs(samples[0][:40]), samples[1][:40]
    asked = []
    plain = small.Pair
    monkeypatch.setattr(small, "Pair", lambda *a: asked.append(1) or plain(*a))
    SVC(kernel=Chi2() + Linear()).fit(X, y).predict(X[:2])
    assert not asked
    SVC(kernel=Linear()).fit(X, y)
    assert asked
