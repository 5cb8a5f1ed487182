"""Held-out studies."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from mercer import SVC, SVR
from mercer.selection import holdout_search


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=4, return_X_y=True)
    return X[:200] / 16, y[:200]


@pytest.mark.parametrize("refit_on", ["train+validation", "train"])
def test_parts_and_scores(digits, refit_on):
    X, y = digits
    grid = {"C": [0.01, 1, 10], "gamma": [0.01, 0.1]}
    found = holdout_search(SVC(), grid, X, y, random_state=1, refit_on=refit_on)
    parts = [found.train, found.validation, found.test]
    assert [len(part) for part in parts] == [120, 40, 40]
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(200))
    scores = []
    for params in found.search.cv_results_["params"]:
        model = SVC(**params).fit(X[found.train], y[found.train])
        scores.append(model.score(X[found.validation], y[found.validation]))
    np.testing.assert_allclose(found.search.cv_results_["mean_test_score"], scores)
    assert found.validation_score == max(scores)
    used = found.train
    if refit_on != "train":
        used = np.concatenate([found.train, found.validation])
    best = SVC(**found.best_params).fit(X[used], y[used])
    assert found.test_score == best.score(X[found.test], y[found.test])
    np.testing.assert_array_equal(found.model.predict(X), best.predict(X))
    again = holdout_search(SVC(), grid, X, y, random_state=1, refit_on=refit_on)
    np.testing.assert_array_equal(found.test, again.test)


def test_the_test_part_is_touched_once(digits):
    """Every score but the last is about training and validation samples only."""
    X, y = digits
    tagged = np.column_stack([X, np.arange(len(X)) / 1e6])
    seen = []

    def score(estimator, X, y):
        seen.append(np.rint(X[:, -1] * 1e6).astype(int))
        return estimator.score(X, y)

    found = holdout_search(
        SVC(), {"C": [0.1, 1, 10]}, tagged, y, scoring=score, random_state=0
    )
    *earlier, last = seen
    assert len(earlier) == 3
    assert not np.isin(np.concatenate(earlier), found.test).any()
    np.testing.assert_array_equal(np.sort(last), found.test)


def test_regression(rng):
    X = rng.normal(size=(50, 2))
    found = holdout_search(SVR(), {"C": [0.1, 10]}, X, X[:, 0], random_state=0)
    assert [len(part) for part in found[-3:]] == [30, 10, 10]
    assert found.best_params == {"C": 10}


def test_wrong_calls(digits):
    with pytest.raises(ValueError, match="refit_on"):
        holdout_search(SVC(), {"C": [1]}, *digits, refit_on="test")
    with pytest.raises(ValueError, match="one scorer"):
        holdout_search(SVC(), {"C": [1]}, *digits, scoring=["accuracy"])
    with pytest.raises(ValueError, match="precomputed"):
        holdout_search(SVC(kernel="precomputed"), {"C": [1]}, np.eye(200), digits[1])
