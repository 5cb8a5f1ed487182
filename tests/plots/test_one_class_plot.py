"""The boundary of one-class machines."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVDD, OneClassSVM
from mercer.datasets import make_clouds
from mercer.plots import OneClassDisplay


@pytest.fixture(scope="module")
def X():
    return make_clouds(80, random_state=0)[0]


def offsets(collection):
    return np.asarray(collection.get_offsets())


def test_ball(X, ax):
    model = SVDD(C=0.05, gamma=0.3).fit(X)
    display = OneClassDisplay.from_estimator(model, X, ax=ax, title="ball")
    assert display.ax_ is ax and ax.get_title() == "ball"
    np.testing.assert_allclose(
        offsets(display.on_boundary_), X[np.sort(model.boundary_)]
    )
    np.testing.assert_allclose(offsets(display.outliers_), X[np.sort(model.outliers_)])
    assert len(model.outliers_) > 0
    n_drawn = sum(
        len(offsets(c))
        for c in (display.inside_, display.on_boundary_, display.outliers_)
    )
    assert n_drawn == len(X)
    on_line = np.concatenate([p.vertices for p in display.line_.get_paths()])
    assert np.abs(model.decision_function(on_line)).max() < 0.02
    assert display.levels_ is not None
    assert ax.get_legend() is not None


@pytest.mark.parametrize("machine", [OneClassSVM, sklearn.svm.OneClassSVM])
def test_one_class(X, machine):
    model = machine(nu=0.2, gamma=0.3, tol=1e-7).fit(X)
    display = OneClassDisplay.from_estimator(model, X, levels=False)
    decision = model.decision_function(X)
    assert display.levels_ is None
    near = np.abs(decision) < 1e-5
    assert 0 < near.sum() < 30
    np.testing.assert_allclose(offsets(display.on_boundary_), X[near])
    np.testing.assert_allclose(offsets(display.outliers_), X[(decision < 0) & ~near])


def test_weights_move_the_bounds(X):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    model = OneClassSVM(nu=0.3, gamma=0.3, tol=1e-7).fit(X, sample_weight=weight)
    display = OneClassDisplay.from_estimator(model, X)
    decision = model.decision_function(X)
    np.testing.assert_allclose(offsets(display.outliers_), X[decision < -1e-6])


def test_other_samples_and_other_detectors(X):
    model = make_pipeline(StandardScaler(), SVDD(C=0.05, gamma=0.3)).fit(X)
    new = X + 2.0
    display = OneClassDisplay.from_estimator(model, new)
    decision = model.decision_function(new)
    np.testing.assert_allclose(offsets(display.outliers_), new[decision < 0])
    assert len(offsets(display.on_boundary_)) == 0
    forest = IsolationForest(n_estimators=10, random_state=0).fit(X)
    display = OneClassDisplay.from_estimator(forest, X, grid_resolution=20)
    assert len(offsets(display.outliers_)) == (forest.decision_function(X) < 0).sum()
    with pytest.raises(ValueError, match="two features"):
        OneClassDisplay.from_estimator(model, np.zeros((3, 1)))


def test_other_samples_are_drawn_apart_and_fit_into_the_plane(X):
    far = X[:5] + 40
    model = SVDD(C=0.05, gamma=0.3).fit(X)
    display = OneClassDisplay.from_estimator(model, X, others=far)
    np.testing.assert_allclose(offsets(display.others_), far)
    assert display.ax_.get_xlim()[1] > far[:, 0].max()
    # The samples of the fit keep the marks of their coefficients.
    assert len(offsets(display.on_boundary_)) == len(model.boundary_)
    assert OneClassDisplay.from_estimator(model, X).others_ is None
