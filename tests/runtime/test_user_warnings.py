"""Warnings name the line of the user."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from mercer import MKLClassifier, OnlineSVC, PassiveAggressiveClassifier

X = np.random.default_rng(0).normal(size=(60, 3))
y = X[:, 0] > 0.1 * X[:, 1]


@pytest.mark.parametrize(
    "model",
    [
        MKLClassifier(["rbf", "linear"], C=1e3, max_iter=1, tol=1e-9),
        PassiveAggressiveClassifier(max_iter=1),
        OnlineSVC(C=1e3, max_iter=1, method="smo"),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("wrap", [lambda model: model, make_pipeline])
def test_the_line_of_the_fit_is_named(model, wrap):
    with pytest.warns(ConvergenceWarning) as caught:
        wrap(model).fit(X, y)
    assert {warning.filename for warning in caught} == {__file__}


def test_the_line_of_other_methods_is_named():
    model = OnlineSVC(C=1e3, max_iter=1, tol=1e-6)
    model.partial_fit(X, y, classes=[False, True])
    for call in (model.finish, lambda: model.finish(X, y)):
        with pytest.warns(ConvergenceWarning) as caught:
            call()
        assert {warning.filename for warning in caught} == {__file__}
