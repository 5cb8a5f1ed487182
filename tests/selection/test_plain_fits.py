"""Where kernel values cannot be shared, and what hostile input comes to."""

import numpy as np
import pytest
from sklearn import model_selection as plain
from sklearn import svm
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier

from mercer import SVC, SVDD, NuSVC
from mercer.selection import GridSearchCV
from searches import check_same, split_scores


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=5, return_X_y=True)
    return X[:240] / 16, y[:240]


@pytest.mark.parametrize(
    ("estimator", "grid", "reason"),
    [
        (DummyClassifier(), {"strategy": ["prior"]}, "DummyClassifier is not an SVC"),
        (SVDD(), {"C": [0.5]}, "SVDD is not an SVC"),
        (svm.SVC(), {"C": [1]}, r"is the one of scikit-learn, .* Use mercer\.SVC"),
        (SVC(solver="decompose"), {"C": [1]}, "needs its own matrix"),
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


def test_a_matrix_over_the_budget(digits):
    search = GridSearchCV(SVC(gamma=0.05), {"C": [1, 10]}, cv=2, cache_size=0.5)
    with pytest.warns(UserWarning, match="cache_size=0.5 allows 0 MB"):
        search.fit(*digits)
    assert search.sharing_.n_plain == 4
    with pytest.raises(ValueError, match="cache_size"):
        search.set_params(cache_size=-1).fit(*digits)


def test_failed_fits_count_as_in_scikit_learn(digits):
    X, y = digits
    grid = {"nu": [0.1, 0.99], "gamma": [0.05]}
    y = np.where(y == 0, 0, 1)
    with pytest.warns(Warning) as caught:
        search = GridSearchCV(NuSVC(), grid, cv=3).fit(X, y)
    assert any("specified nu is infeasible" in str(w.message) for w in caught)
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
    """Where single precision is not enough, the fit is a plain one in double."""
    X, y = digits
    noisy = np.random.default_rng(0).permutation(y)
    grid = {"C": [1e4], "gamma": [1e-3]}
    with pytest.warns(UserWarning, match="single precision"):
        search = GridSearchCV(SVC(tol=1e-5), grid, cv=2, refit=False)
        search.fit(X.astype(np.float32), noisy)
    assert search.sharing_.n_plain > 0
