"""Ctrl-C and the bar."""

import logging

import numpy as np
import pytest
from sklearn.datasets import load_iris

from mercer import SVC
from mercer.runtime import progress
from mercer.selection import GridSearchCV
from mercer.selection.evaluation import Evaluation

GRID = {"C": [0.1, 1, 10], "gamma": [0.01, 0.1, 1.0]}


def interrupt_after(monkeypatch, n_batches):
    original = Evaluation._run_batch
    done = []

    def run(self, units, maker):
        if len(done) == n_batches:
            raise KeyboardInterrupt
        done.append(len(units))
        original(self, units, maker)

    monkeypatch.setattr(Evaluation, "_run_batch", run)


def test_what_is_finished_is_kept(monkeypatch):
    X, y = load_iris(return_X_y=True)
    whole = GridSearchCV(SVC(), GRID).fit(X, y)
    interrupt_after(monkeypatch, 2)
    search = GridSearchCV(SVC(), GRID)
    with pytest.warns(UserWarning, match="6 of 9 candidates are finished"):
        search.fit(X, y)
    assert search.interrupted_ and not whole.interrupted_
    kept = [p for p in whole.cv_results_["params"] if p["gamma"] < 1]
    assert search.cv_results_["params"] == kept
    expected = [
        score
        for p, score in zip(
            whole.cv_results_["params"],
            whole.cv_results_["mean_test_score"],
            strict=True,
        )
        if p["gamma"] < 1
    ]
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], expected)
    assert search.best_score_ == max(expected)
    assert search.best_estimator_.get_params()["C"] == search.best_params_["C"]
    assert search.predict(X).shape == y.shape


def test_nothing_finished_is_an_interruption(monkeypatch):
    X, y = load_iris(return_X_y=True)
    interrupt_after(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        GridSearchCV(SVC(), GRID).fit(X, y)


def test_an_interruption_in_the_middle_of_solving(monkeypatch):
    """Problems under way end at once; their candidates do not count."""
    from mercer.selection import evaluation

    X, y = load_iris(return_X_y=True)
    calls = []
    original = evaluation.solve_portion

    def solve(portion, *rest):
        calls.append(portion)
        if len(calls) > 7:
            raise KeyboardInterrupt
        return original(portion, *rest)

    monkeypatch.setattr(evaluation, "solve_portion", solve)
    # All pairs of classes are one portion: five folds for each gamma.
    with pytest.warns(UserWarning, match="3 of 9 candidates are finished"):
        search = GridSearchCV(SVC(), GRID, n_jobs=1).fit(X, y)
    assert [p["gamma"] for p in search.cv_results_["params"]] == [0.01] * 3


def test_lines_of_text(caplog, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    X, y = load_iris(return_X_y=True)
    with caplog.at_level(logging.INFO, logger="mercer"):
        search = GridSearchCV(SVC(), GRID, verbose=2).fit(X, y)
    last = caplog.messages[-1]
    assert "45 of 45 fits" in last
    assert f"best so far {search.best_score_:.4g}" in last
    assert len(caplog.messages) > 5


@pytest.mark.parametrize("with_train", [False, True])
@pytest.mark.parametrize("scoring", [None, ["accuracy", "f1_macro"]])
def test_scores_of_each_fit_are_printed(capsys, scoring, with_train):
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(
        SVC(), {"C": [1, 10]}, cv=3, scoring=scoring, refit=False, verbose=3,
        return_train_score=with_train,
    ).fit(X, y)  # fmt: skip
    lines = sorted(capsys.readouterr().out.splitlines())
    assert len(lines) == 6
    assert lines[0].startswith("[CV 1/3] C=1, ")
    name = "score" if scoring is None else "accuracy"
    found = search.cv_results_
    score = f"{found[f'split0_test_{name}'][0]:.3f}"
    if with_train:
        score = f"(train={found[f'split0_train_{name}'][0]:.3f}, test={score})"
    assert f"{name}={score}" in lines[0]


def test_without_verbose_nothing_is_said(caplog):
    X, y = load_iris(return_X_y=True)
    with caplog.at_level(logging.INFO, logger="mercer"):
        GridSearchCV(SVC(), {"C": [1]}).fit(X, y)
    assert caplog.messages == []
