"""Searches over linear machines beside scikit-learn's with the same machines."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import model_selection as plain
from sklearn.datasets import load_diabetes, load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from mercer import LinearSVC, LinearSVR
from mercer.selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_decision,
    validation_curve,
)
from mercer.selection.chains import chains_of
from searches import check_same, split_scores

GRID = {"C": [1.0, 0.01, 0.1]}
CLASSIFIERS = {
    "squared": LinearSVC(tol=1e-7),
    "hinge": LinearSVC(loss="hinge", tol=1e-7),
    "free": LinearSVC(loss="hinge", penalize_intercept=False, tol=1e-7),
    "l1": LinearSVC(penalty="l1", tol=1e-7),
    "balanced": LinearSVC(class_weight="balanced", tol=1e-7),
    "without": LinearSVC(fit_intercept=False, tol=1e-7),
}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    chosen = y < 4
    return X[chosen][:300] / 16, y[chosen][:300]


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X), y / 100


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(digits, name):
    ours, theirs = check_same(CLASSIFIERS[name], GRID, *digits, cv=3)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_estimator_.converged_


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_regression(diabetes, loss):
    grid = {**GRID, "epsilon": [0.0, 0.1]}
    machine = LinearSVR(loss=loss, tol=1e-9, max_iter=5000)
    check_same(machine, grid, *diabetes, cv=3, atol=1e-4, return_train_score=True)


def test_sparse_samples_that_are_wide(digits):
    X, y = digits
    X = sparse.csr_array(np.hstack([X, np.zeros((len(X), 4000))]))
    check_same(LinearSVC(tol=1e-7), GRID, X, y, cv=3)


def test_weights_and_repeated_samples(digits):
    X, y = digits
    rng = np.random.default_rng(0)
    weight = rng.random(len(y))
    splits = [
        (rng.integers(0, len(y), 200), np.arange(200, 250)),
        (np.arange(len(y)) < 220, np.arange(len(y)) >= 220),
    ]
    machine = CLASSIFIERS["hinge"]
    check_same(machine, GRID, X, y, cv=splits, fit={"sample_weight": weight})


@pytest.mark.parametrize("step", [StandardScaler(), FunctionTransformer(np.sqrt)])
def test_pipelines(digits, step):
    machine = make_pipeline(step, CLASSIFIERS["squared"])
    grid = {"linearsvc__C": GRID["C"], "linearsvc__fit_intercept": [True, False]}
    check_same(machine, grid, *digits, cv=3, scoring="f1_macro")


def test_named_columns(digits):
    X, y = digits
    frame = pd.DataFrame(X, columns=[f"pixel {k}" for k in range(X.shape[1])])
    search = GridSearchCV(LinearSVC(), GRID, cv=3).fit(frame, y)
    assert list(search.feature_names_in_) == list(frame.columns)
    assert search.sharing_.n_plain == 0


def test_candidates_that_differ_in_c_only_are_a_chain():
    group = list(
        enumerate(LinearSVC(C=C, loss=loss) for C in (3, 1) for loss in ("hinge",) * 2)
    )
    group.append((4, LinearSVC(C=0.5)))
    first, second = chains_of(group)
    assert [c for c, _ in first.candidates] == [2, 3, 0, 1]
    assert [c for c, _ in second.candidates] == [4]


def test_a_chain_needs_fewer_rounds_than_fits_of_their_own(digits):
    X, y = digits
    found = []

    class Noting(LinearSVC):
        def _keep(self, plan, result):
            super()._keep(plan, result)
            found.append(self.n_iter_)

    grid = {"C": np.geomspace(0.01, 1, 6)}
    GridSearchCV(Noting(loss="hinge"), grid, cv=2, refit=False).fit(X, y)
    shared = sum(found)
    found.clear()
    plain.GridSearchCV(Noting(loss="hinge"), grid, cv=2, refit=False).fit(X, y)
    assert shared < sum(found)


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        (LinearSVC(multi_class="crammer_singer", tol=0.1), "one problem for all"),
        (LinearSVC(probability=True), "deals out its own folds"),
    ],
)
def test_reasons_for_plain_fits(digits, machine, reason):
    search = GridSearchCV(machine, {"C": [0.1, 1]}, cv=2)
    with pytest.warns(UserWarning, match=f"Passes over the samples .*{reason}"):
        search.fit(*digits)
    assert search.sharing_.n_plain == 4


def test_a_fold_without_a_class_is_fitted_on_its_own(digits):
    X, y = digits
    order = np.argsort(y, kind="stable")
    splits = [(order[80:], order[:80]), (order[::2], order[1::2])]
    search = GridSearchCV(LinearSVC(), {"C": [0.1, 1]}, cv=splits)
    with pytest.warns(UserWarning, match="lacks some of the classes .*2 fits"):
        search.fit(X, y)
    theirs = plain.GridSearchCV(LinearSVC(), {"C": [0.1, 1]}, cv=splits).fit(X, y)
    np.testing.assert_allclose(split_scores(search), split_scores(theirs))


@pytest.mark.filterwarnings("ignore:Passes over the samples")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores")
def test_an_invalid_candidate_fails_alone(digits):
    search = GridSearchCV(LinearSVC(), {"C": [-1.0, 1.0]}, cv=2).fit(*digits)
    scores = split_scores(search)
    assert np.isnan(scores[0]).all() and np.isfinite(scores[1]).all()
    with pytest.raises(ValueError, match="'C' parameter"):
        GridSearchCV(LinearSVC(), {"C": [-1.0, 1.0]}, cv=2, error_score="raise").fit(
            *digits
        )


def test_small_memory_and_threads_do_not_change_scores(digits):
    whole = GridSearchCV(CLASSIFIERS["squared"], GRID, cv=4).fit(*digits)
    for options in ({"cache_size": 0.001}, {"n_jobs": 1}, {"n_jobs": 3}):
        other = GridSearchCV(CLASSIFIERS["squared"], GRID, cv=4, **options)
        other.fit(*digits)
        np.testing.assert_array_equal(split_scores(whole), split_scores(other))


def test_other_ways_to_search(digits):
    X, y = digits
    search = RandomizedSearchCV(
        LinearSVC(), {"C": [0.01, 0.1, 1]}, n_iter=2, cv=2, random_state=0
    ).fit(X, y)
    assert search.sharing_.n_shared == 4
    train, test = validation_curve(
        LinearSVC(tol=1e-7), X, y, param_name="C", param_range=[0.01, 1], cv=3
    )
    own = plain.validation_curve(
        LinearSVC(tol=1e-7), X, y, param_name="C", param_range=[0.01, 1], cv=3
    )
    np.testing.assert_allclose(train, own[0])
    np.testing.assert_allclose(test, own[1])
    values = cross_val_decision(LinearSVC(tol=1e-9), X, y, cv=3)
    own = plain.cross_val_predict(
        LinearSVC(tol=1e-9), X, y, cv=3, method="decision_function"
    )
    np.testing.assert_allclose(values, own, atol=1e-3)
