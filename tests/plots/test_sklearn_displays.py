"""scikit-learn's own displays on our estimators."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, confusion_matrix

from mercer import SVC, plots
from mercer.datasets import make_moons


@pytest.fixture(scope="module")
def fitted():
    X, y = make_moons(80, noise=0.3, random_state=0)
    return SVC(gamma=1.0).fit(X, y), X, y


def test_confusion_matrix(fitted, ax):
    model, X, y = fitted
    display = plots.ConfusionMatrixDisplay.from_estimator(model, X, y, ax=ax)
    expected = confusion_matrix(y, model.predict(X))
    np.testing.assert_array_equal(display.im_.get_array(), expected)


def test_precision_and_recall(fitted, ax):
    model, X, y = fitted
    display = plots.PrecisionRecallDisplay.from_estimator(model, X, y, ax=ax)
    area = average_precision_score(y, model.decision_function(X))
    assert display.average_precision == pytest.approx(area)


def test_several_curves_on_one_pair_of_axes(fitted, ax):
    _, X, y = fitted
    for C in (0.1, 10.0):
        other = SVC(C=C, kernel="linear").fit(X, y)
        plots.RocCurveDisplay.from_estimator(other, X, y, ax=ax, name=f"C = {C}")
    labels = [line.get_label() for line in ax.lines]
    assert len(labels) == 2 and labels[0].startswith("C = 0.1 (AUC")


def test_decision_boundary(fitted, ax):
    model, X, _ = fitted
    display = plots.DecisionBoundaryDisplay.from_estimator(
        model, X, ax=ax, grid_resolution=20, response_method="decision_function"
    )
    grid = np.stack([display.xx0.ravel(), display.xx1.ravel()], axis=1)
    values = model.decision_function(grid)
    np.testing.assert_allclose(display.response.ravel(), values)


def test_validation_and_learning_curves(fitted, ax):
    _, X, y = fitted
    display = plots.ValidationCurveDisplay.from_estimator(
        SVC(), X, y, param_name="C", param_range=[0.1, 1.0, 10.0], cv=2, ax=ax
    )
    assert display.test_scores.shape == (3, 2)
    assert display.ax_ is ax
    display = plots.LearningCurveDisplay.from_estimator(
        SVC(), X, y, train_sizes=[20, 40], cv=2
    )
    np.testing.assert_array_equal(display.train_sizes, [20, 40])
