"""Where kernel values cannot be shared, and what hostile input comes to."""

import warnings

import numpy as np
import pytest
from sklearn import model_selection as plain
from sklearn import svm
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import FitFailedWarning

from mercer import SVC, SVDD, NuSVC, gram_matrix, kernels
from mercer.selection import GridSearchCV, svm_path, validation_curve
from searches import check_same, split_scores


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=5, return_X_y=True)
    return X[:240] / 16, y[:240]


class Cautious(SVC):
    """Looks at the samples before it learns."""

    def fit(self, X, y, sample_weight=None):
        assert np.isfinite(X).all()
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    ("estimator", "grid", "reason"),
    [
        (SVDD(), {"C": [0.5]}, "SVDD is not an SVC"),
        (svm.SVC(), {"C": [1]}, r"is the one of scikit-learn, .* Use mercer\.SVC"),
        (SVC(solver="decompose"), {"C": [1]}, "needs its own matrix"),
        (Cautious(), {"C": [1]}, "Cautious has a fit of its own"),
        (SVC(kernel=lambda X, Z: X @ Z.T), {"C": [1]}, "function of all samples"),
    ],
)
def test_what_cannot_share_is_fitted_plainly(digits, estimator, grid, reason):
    X, y = digits
    options = {"cv": 2, "scoring": lambda e, X, y: float(np.mean(e.predict(X) == y))}
    with pytest.warns(UserWarning, match=reason):
        search = GridSearchCV(estimator, grid, **options).fit(X, y)
    theirs = plain.GridSearchCV(estimator, grid, **options).fit(X, y)
    np.testing.assert_array_equal(split_scores(search), split_scores(theirs))
    assert search.sharing_.n_shared == 0 and search.sharing_.n_plain == 2


def test_without_a_kernel_the_search_is_scikit_learns(digits):
    X, y = digits
    search = GridSearchCV(SVC(gamma=0.05), {"C": [1]}, cv=2).fit(X, y)
    assert search.sharing_.n_shared == 2
    grid = {"strategy": ["prior", "uniform"]}
    search.set_params(estimator=DummyClassifier(random_state=0), param_grid=grid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(X, y)
    theirs = plain.GridSearchCV(search.estimator, grid, cv=2).fit(X, y)
    assert set(vars(search)) == {*vars(theirs), "cache_size"}
    curves = validation_curve(
        search.estimator, X, y, param_name="strategy", param_range=["prior"], cv=2
    )
    np.testing.assert_array_equal(curves[1], split_scores(theirs)[:1])


def test_subclasses_choose_their_own_candidates(digits):
    X, y = digits

    class Twice(GridSearchCV):
        """Looks closer around the best of the grid."""

        def _run_search(self, evaluate_candidates):
            results = evaluate_candidates(plain.ParameterGrid(self.param_grid))
            best = results["params"][int(np.argmax(results["mean_test_score"]))]
            close = [{"C": factor * best["C"]} for factor in (0.5, 2)]
            evaluate_candidates(close, more_results={"round": [2, 2]})

        def _format_results(self, params, n_splits, out, more=None):
            if more:
                more = {"round": [1, 1, *more["round"]]}
            return super()._format_results(params, n_splits, out, more)

    search = Twice(SVC(gamma=0.05), {"C": [1, 10]}, cv=2).fit(X, y)
    assert search.sharing_.n_shared == 8 and search.sharing_.n_plain == 0
    assert search.cv_results_["round"].tolist() == [1, 1, 2, 2]
    grid = {"C": [params["C"] for params in search.cv_results_["params"]]}
    theirs = plain.GridSearchCV(SVC(gamma=0.05), grid, cv=2).fit(X, y)
    np.testing.assert_array_equal(split_scores(search), split_scores(theirs))


def test_a_matrix_over_the_budget(digits):
    search = GridSearchCV(SVC(gamma=0.05), {"C": [1, 10]}, cv=2, cache_size=0.5)
    with pytest.warns(UserWarning, match="cache_size=0.5 allows 0 MB"):
        search.fit(*digits)
    assert search.sharing_.n_plain == 4
    assert search.best_estimator_.cache_size == "auto"
    small = GridSearchCV(SVC(gamma=0.05, cache_size=0.5), {"C": [1, 10]}, cv=2)
    with pytest.warns(UserWarning, match="cache_size=0.5 allows 0 MB"):
        small.fit(*digits)
    np.testing.assert_array_equal(split_scores(search), split_scores(small))
    with pytest.raises(ValueError, match="cache_size"):
        search.set_params(cache_size=-1).fit(*digits)


def test_failed_fits_count_as_in_scikit_learn(digits):
    X, y = digits
    grid = {"nu": [0.1, 0.99], "gamma": [0.05]}
    y = np.where(y == 0, 0, 1)
    with pytest.warns(Warning) as caught:
        search = GridSearchCV(NuSVC(), grid, cv=3).fit(X, y)
    assert any("specified nu is infeasible" in str(w.message) for w in caught)
    told = next(str(w.message) for w in caught if "not be shared" in str(w.message))
    assert "the fit fails: ValueError: specified nu is infeasible" in told
    assert "gamma=0.05, nu=0.99 on split 2" in told and "nu=0.1" not in told
    scores = split_scores(search)
    assert np.isfinite(scores[0]).all() and np.isnan(scores[1]).all()
    with pytest.raises(ValueError, match="infeasible"):
        GridSearchCV(NuSVC(), grid, cv=3, error_score="raise").fit(X, y)
    with pytest.raises(ValueError, match="C"):
        GridSearchCV(SVC(), {"C": [-1.0]}, error_score="raise").fit(X, y)


def test_hostile_samples(digits):
    X, y = digits
    spoilt = X.copy()
    spoilt[3, 4] = np.nan
    with pytest.warns(Warning), pytest.raises(ValueError, match="contains NaN"):
        GridSearchCV(SVC(), {"C": [1, 2]}).fit(spoilt, y)
    with pytest.raises(ValueError, match="nonsense"):
        GridSearchCV(SVC(), {"nonsense": [1]}, error_score="raise").fit(X, y)
    with pytest.raises(ValueError):
        GridSearchCV(SVC(), {"C": []}).fit(X, y)
    constant = np.ones_like(X)
    check_same(SVC(), {"C": [0.1, 10]}, constant, y, cv=2)
    same = np.repeat(X[:20], 3, axis=0)
    check_same(SVC(), {"C": [1e-6, 1e6]}, same, np.repeat(y[:20] > 1, 3), cv=2)
    check_same(SVC(gamma=0.05), {"C": [1]}, np.asfortranarray(X), y.tolist(), cv=2)
    check_same(SVC(gamma=0.01), {"C": [1]}, (16 * X).astype(np.int64), y, cv=2)


def test_large_c_in_single_precision_is_certified(digits):
    """Where single precision is not enough, such problems are solved in double."""
    X, y = digits
    noisy = np.random.default_rng(0).permutation(y)
    machine = SVC(tol=1e-5, gamma=1e-3)
    X = X.astype(np.float32)
    check_same(machine, {"C": [0.01, 1e4]}, X, noisy, cv=2)
    for point in svm_path(X, noisy, [0.01, 1e4], estimator=machine):
        assert point.converged and np.max(point.model.kkt_gap_) <= 1e-5
    single = gram_matrix(kernels.RBF(1e-3), X)
    double = gram_matrix(kernels.RBF(1e-3), X.astype(np.float64))
    # The solution would not be one of the matrix in single precision.
    assert np.abs(single - double).max() * 1e4 > 1e-5


def test_where_memory_is_short_such_fits_are_plain_ones(digits, monkeypatch, caplog):
    """No fit counts twice: neither such a fit, nor one that fails."""
    monkeypatch.setattr("mercer.selection.evaluation.repair", lambda *_: None)
    X, y = digits
    noisy = np.random.default_rng(0).permutation(y)
    grid = {"C": [0.01, 1e4, -1.0], "gamma": [1e-3]}
    why = r"single precision is not enough for tol=1e-05, with rounding errors of .e-0"
    which = r".*\(2 fits: C=10000.0, gamma=0.001 on split 0, 1\)"
    search = GridSearchCV(SVC(tol=1e-5), grid, cv=2, refit=False, verbose=2)
    with (
        pytest.warns(UserWarning, match=why + which),
        pytest.warns(FitFailedWarning),
        caplog.at_level("INFO", logger="mercer"),
    ):
        search.fit(X.astype(np.float32), noisy)
    assert search.sharing_.n_plain == 4 and search.sharing_.n_shared == 2
    assert "6 of 6 fits" in caplog.messages[-1]


@pytest.mark.parametrize("place", ["Evaluation._plan", "is_coarse"])
def test_an_error_on_shared_values_only_is_raised(digits, monkeypatch, place):
    """It is not taken for a fit that fails, which would fail in the plain way too."""

    def broken(*_, **__):
        raise KeyError("nobody expects it")

    monkeypatch.setattr(f"mercer.selection.evaluation.{place}", broken)
    search = GridSearchCV(SVC(gamma=0.05), {"C": [1]}, cv=2)
    with pytest.raises(RuntimeError, match=r"C=1 on split 0 fails on shared.*KeyErr"):
        search.fit(*digits)


def test_an_error_in_a_kernel_of_shared_values_only_is_raised(digits, monkeypatch):
    bound, calls = SVC._bound, []

    def broken_at_first(machine, valid):
        calls.append(valid)
        if len(calls) == 1:
            raise KeyError("nobody expects it")
        return bound(machine, valid)

    monkeypatch.setattr(SVC, "_bound", broken_at_first)
    search = GridSearchCV(SVC(gamma=0.05), {"C": [1]}, cv=2)
    with pytest.raises(RuntimeError, match=r"C=1 on split 0 fails on shared.*KeyErr"):
        search.fit(*digits)
