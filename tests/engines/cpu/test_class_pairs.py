"""Many small problems of two classes give what each gives the long way."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs

from certificate import certify, kernel_matrix
from mercer import SVC, NuSVC
from mercer.engines.cpu import class_pairs, engine, small

MACHINES = [
    SVC(C=3.0, tol=1e-6),
    SVC(kernel="linear", tol=1e-6),
    SVC(kernel="poly", degree=2, coef0=1.0, gamma=0.05, tol=1e-6),
    SVC(C=2.0, tol=1e-6, class_weight="balanced", probability=True, random_state=0),
    NuSVC(nu=0.08, tol=1e-6),
]


@pytest.fixture
def samples():
    X, y = make_blobs(
        [30, 3, 41, 18, 25, 60], n_features=5, cluster_std=3.0, random_state=2
    )
    return X, np.array(list("dacfbe"))[y]


@pytest.fixture(autouse=True)
def not_at_once(monkeypatch):
    """So few samples would be solved in one piece otherwise."""
    monkeypatch.setattr(small, "MOST_SAMPLES", 0)


@pytest.fixture
def calls(monkeypatch):
    """Record which way the engine goes."""
    ways = []

    def record(name):
        function = getattr(engine, name)

        def recorded(*args):
            found = function(*args)
            ways.append((name, found is not None))
            return found

        monkeypatch.setattr(engine, name, recorded)

    for name in ("solve_small_pairs", "solve_plan"):
        record(name)
    return ways


@pytest.mark.parametrize("estimator", MACHINES, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pairs_give_what_the_long_way_gives(
    estimator, dtype, samples, calls, monkeypatch
):
    X, y = samples[0].astype(dtype), samples[1]
    short = clone(estimator).fit(X, y)
    assert calls == [("solve_small_pairs", True)]
    assert short.converged_
    assert short.is_convex_ is True
    monkeypatch.setattr(class_pairs, "MOST_SAMPLES", 0)
    long = clone(estimator).fit(X.astype(np.float64), y)
    assert calls[1:] in ([("solve_plan", True)], [])  # [] is the way through weights
    np.testing.assert_allclose(short.objective_, long.objective_, rtol=1e-6)
    np.testing.assert_array_equal(short.classes_, long.classes_)
    np.testing.assert_allclose(
        short.decision_function(X), long.decision_function(X), atol=1e-3
    )
    if short.probability:
        np.testing.assert_allclose(
            short.predict_proba(X), long.predict_proba(X), atol=1e-3
        )


def test_the_certificate_holds(samples):
    X, y = samples
    model = SVC(C=3.0, gamma=0.05).fit(X, y)
    K = kernel_matrix(X, X, "rbf", gamma=0.05)
    objective, gap = certify(
        model, lambda a, b: K[np.ix_(a, b)], y, np.full(len(y), 3.0)
    )
    assert gap <= model.tol
    assert objective == pytest.approx(model.objective_.sum(), rel=1e-9)
    assert (model.dual_gap_ >= 0).all()


def test_threads_do_not_change_a_bit(samples):
    X, y = samples
    one, three = (SVC(C=3.0, n_jobs=n).fit(X, y) for n in (1, 3))
    np.testing.assert_array_equal(one.dual_coef_, three.dual_coef_)
    np.testing.assert_array_equal(one.intercept_, three.intercept_)


def test_sparse_samples(samples):
    X, y = samples
    X = np.where(np.abs(X) > 2, X, 0.0)
    dense, thin = SVC().fit(X, y), SVC().fit(sparse.csr_matrix(X), y)
    np.testing.assert_array_equal(dense.dual_coef_, thin.dual_coef_.toarray())


def test_too_little_memory_leads_the_long_way(samples, calls):
    X, y = samples
    model = SVC(cache_size=0.02).fit(X, y)
    assert calls == [("solve_small_pairs", False), ("solve_plan", True)]
    assert model.converged_


def test_steps_are_limited_for_each_problem(samples):
    X, y = samples
    with pytest.warns(UserWarning, match="did not converge"):
        model = SVC(C=100.0, max_iter=4).fit(X, y)
    assert model.n_iter_.max() == 4
    assert not model.converged_


def test_what_rounding_errors_hinder_goes_the_long_way(samples, calls, monkeypatch):
    X, y = samples
    solve = class_pairs._Work.solve

    def solve_badly(self, run):
        solve(self, run)
        self.results.certificate[run, 1] = 2.0  # the KKT gap

    monkeypatch.setattr(class_pairs._Work, "solve", solve_badly)
    model = SVC().fit(X, y)
    assert calls == [("solve_small_pairs", False), ("solve_plan", True)]
    assert model.converged_


def test_values_that_overflow_are_refused(samples):
    X, y = samples
    with pytest.raises(ValueError, match="not finite"):
        SVC(kernel="linear").fit(1e200 * X, y)


def test_an_early_end_leaves_a_consistent_machine(samples, monkeypatch):
    X, y = samples
    solve = class_pairs._Work.solve

    def solve_and_stop(self, run):
        solve(self, run)
        self._stop[0] = 1

    monkeypatch.setattr(class_pairs._Work, "solve", solve_and_stop)
    with pytest.warns(UserWarning, match="did not converge"):
        model = SVC(C=3.0, n_jobs=1).fit(X, y)
    assert not model.converged_
    solved = model.kkt_gap_ <= model.tol
    assert solved.any()
    assert (model.n_iter_[~solved] == 0).all()
    assert np.isfinite(model.decision_function(X)).all()
    K = kernel_matrix(X, X, "rbf", gamma=model.kernel_.gamma)
    _, gap = certify(model, lambda a, b: K[np.ix_(a, b)], y, np.full(len(y), 3.0))
    assert gap == pytest.approx(model.kkt_gap_.max(), rel=1e-6)


@pytest.mark.parametrize("columns", [1, 40, 10**6])
def test_pairs_in_any_order_and_runs_of_any_length(samples, columns, monkeypatch):
    X, y = samples
    monkeypatch.setattr(class_pairs, "RUN_COLUMNS", columns)
    plain = SVC(C=3.0).fit(X, y)
    # Some pairs are left out, so that runs have gaps.
    n_pairs = plain.code_.shape[1]
    which = np.random.default_rng(0).permutation(n_pairs)[: n_pairs * 3 // 4]
    code = plain.code_[:, which]
    mixed = SVC(C=3.0, multiclass="ecoc", code=code).fit(X, y)
    np.testing.assert_array_equal(mixed.objective_, plain.objective_[which])
    np.testing.assert_array_equal(mixed.intercept_, plain.intercept_[which])
    np.testing.assert_array_equal(mixed.n_iter_, plain.n_iter_[which])
