"""Decision regions: what is drawn where."""

import numpy as np
import pandas as pd
import pytest
import sklearn.svm
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, NuSVC
from mercer.datasets import make_clouds, make_moons
from mercer.plots import DecisionRegionsDisplay


@pytest.fixture(scope="module")
def moons():
    return make_moons(90, noise=0.25, random_state=0)


def offsets(collection):
    return (
        np.empty((0, 2)) if collection is None else np.asarray(collection.get_offsets())
    )


def as_set(points):
    return {tuple(p) for p in np.asarray(points).round(9).tolist()}


def contour_points(contour):
    return [path.vertices for path in contour.get_paths()]


def test_boundary_and_margins_are_level_lines(moons, ax):
    X, y = moons
    model = SVC(C=5, gamma=1.0).fit(X, y)
    display = DecisionRegionsDisplay.from_estimator(model, X, y, ax=ax, title="moons")
    assert display.ax_ is ax and display.figure_ is ax.figure
    (boundary,) = display.boundary_
    (on_zero,) = contour_points(boundary)
    assert np.abs(model.decision_function(on_zero)).max() < 0.02
    low, high = contour_points(display.margin_)
    assert model.decision_function(low) == pytest.approx(-1, abs=0.02)
    assert model.decision_function(high) == pytest.approx(1, abs=0.02)
    assert ax.get_title() == "moons"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 0", "feature 1")
    labels = ax.get_legend_handles_labels()[1]
    assert {"class 0", "class 1", "margin, f = ±1"} <= set(labels)


@pytest.mark.parametrize("machine", [SVC, sklearn.svm.SVC])
@pytest.mark.parametrize("class_weight", [None, {0: 0.5, 1: 3.0}])
def test_rings_tell_free_from_bound(moons, machine, class_weight):
    X, y = moons
    model = machine(C=1.0, gamma=1.0, class_weight=class_weight, tol=1e-6).fit(X, y)
    display = DecisionRegionsDisplay.from_estimator(model, X, y)
    f = model.decision_function(X)[model.support_] * np.where(y[model.support_], 1, -1)
    # Free ones lie on the margin, the others inside it.
    on_margin = np.abs(f - 1) < 1e-4
    assert 0 < on_margin.sum() < len(f)
    assert as_set(offsets(display.free_)) == as_set(X[model.support_][on_margin])
    assert as_set(offsets(display.bound_)) == as_set(X[model.support_][~on_margin])
    widths = [display.free_.get_linewidths()[0], display.bound_.get_linewidths()[0]]
    assert widths[1] > 2 * widths[0]


def test_sample_weights_are_factors_of_the_bounds(moons):
    X, y = moons
    weight = np.random.default_rng(0).uniform(0.2, 3, len(y))
    model = SVC(C=1.0, gamma=1.0, tol=1e-6).fit(X, y, weight)
    display = DecisionRegionsDisplay.from_estimator(model, X, y, sample_weight=weight)
    size = np.abs(model.dual_coef_[0])
    at_bound = np.isclose(size, weight[model.support_], rtol=1e-6)
    assert as_set(offsets(display.bound_)) == as_set(X[model.support_][at_bound])


def test_hard_margin_has_no_bound_vectors():
    X, y = make_clouds(40, separation=9.0, random_state=0)
    model = SVC(C=np.inf, kernel="linear").fit(X, y)
    display = DecisionRegionsDisplay.from_estimator(model, X, y)
    assert display.bound_ is None
    assert len(offsets(display.free_)) == len(model.support_)


def test_nu_machine(moons):
    X, y = moons
    model = NuSVC(nu=0.4, gamma=1.0, tol=1e-6).fit(X, y)
    display = DecisionRegionsDisplay.from_estimator(model, X, y)
    f = model.decision_function(X)[model.support_] * np.where(y[model.support_], 1, -1)
    assert as_set(offsets(display.bound_)) == as_set(X[model.support_][f < 1 - 1e-4])


def test_regions_are_the_predictions():
    X, y = make_clouds(60, n_classes=3, random_state=0)
    names = np.array(["b", "a", "c"])[y]
    model = SVC(gamma=0.3).fit(X, names)
    display = DecisionRegionsDisplay.from_estimator(model, X, names, grid_resolution=31)
    xx, yy = display.plane.mesh
    grid = np.stack([xx.ravel(), yy.ravel()], axis=1)
    expected = np.searchsorted(model.classes_, model.predict(grid)).reshape(31, 31)
    np.testing.assert_array_equal(display.regions, expected)
    drawn = np.asarray(display.surface_.get_array()).reshape(31, 31, -1)[..., :3]
    for k in range(3):
        assert len(np.unique(drawn[expected == k], axis=0)) == 1
    assert len(np.unique(drawn.reshape(-1, 3), axis=0)) == 3
    assert display.margin_ is None and display.decision is None
    for name, points in zip("abc", display.points_, strict=True):
        assert points.get_label() == f"class {name}"
        np.testing.assert_allclose(offsets(points), X[names == name])
    markers = {str(p.get_paths()[0].vertices) for p in display.points_}
    assert len(markers) == 3


def test_pipeline_marks_the_samples_of_the_fit(moons):
    X, y = moons
    X = X * [1.0, 50.0]
    model = make_pipeline(StandardScaler(), SVC(gamma=1.0)).fit(X, y)
    display = DecisionRegionsDisplay.from_estimator(model, X, y)
    rings = np.concatenate([offsets(display.free_), offsets(display.bound_)])
    assert as_set(rings) == as_set(X[model[-1].support_])
    with pytest.raises(ValueError, match=r"samples of its fit only.*support=False"):
        DecisionRegionsDisplay.from_estimator(model, X + 1, y)
    display = DecisionRegionsDisplay.from_estimator(model, X + 1, y, support=False)
    assert display.free_ is None and display.bound_ is None


def test_other_samples_keep_the_support_vectors(moons):
    X, y = moons
    model = SVC(gamma=1.0).fit(X[:60], y[:60])
    display = DecisionRegionsDisplay.from_estimator(model, X[60:], y[60:])
    rings = np.concatenate([offsets(display.free_), offsets(display.bound_)])
    assert as_set(rings) == as_set(X[model.support_])
    assert sum(len(offsets(p)) for p in display.points_) == 30


def test_frames_other_models_and_switches(moons):
    X, y = moons
    frame = pd.DataFrame(X, columns=["height", "weight"])
    model = LogisticRegression().fit(frame, y)
    display = DecisionRegionsDisplay.from_estimator(
        model, frame, y, legend=False, margins=False
    )
    assert display.ax_.get_xlabel() == "height"
    assert display.ax_.get_legend() is None
    assert display.free_ is None and display.margin_ is None


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((4, 3)), r"two features, got shape \(4, 3\)"),
        (np.zeros((0, 2)), r"one sample or more"),
        (np.array([[0.0, np.nan]]), "NaN or infinity"),
    ],
)
def test_bad_samples(moons, X, message):
    model = SVC().fit(*moons)
    with pytest.raises(ValueError, match=message):
        DecisionRegionsDisplay.from_estimator(model, X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="at least 2, got 1"):
        DecisionRegionsDisplay.from_estimator(model, *moons, grid_resolution=1)
    with pytest.raises(ValueError, match="90 samples and y has 3"):
        DecisionRegionsDisplay.from_estimator(model, moons[0], [0, 1, 0], support=False)


def test_one_point_still_has_a_plane(moons):
    model = SVC().fit(*moons)
    display = DecisionRegionsDisplay.from_estimator(model, [[0.0, 1.0]], [0])
    assert display.ax_.get_xlim() == (-0.5, 0.5)
