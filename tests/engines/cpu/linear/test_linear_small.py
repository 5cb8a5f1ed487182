"""Small linear machines, solved in one call, against the long way and the gap."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification

from mercer import LinearSVC, LinearSVR
from mercer.engines.cpu.linear import solve as solving

MACHINES = [
    LinearSVC(tol=1e-9),
    LinearSVC(tol=1e-9, C=30.0, loss="hinge"),
    LinearSVC(tol=1e-9, fit_intercept=False),
    LinearSVC(tol=1e-9, loss="hinge", fit_intercept=False, class_weight="balanced"),
    LinearSVC(tol=1e-9, intercept_scaling=5.0),
    LinearSVR(tol=1e-9, epsilon=0.3),
    LinearSVR(tol=1e-9, loss="squared_epsilon_insensitive", epsilon=0.1),
]


@pytest.fixture
def samples():
    return make_classification(
        90, 6, n_informative=5, n_redundant=0, n_classes=3, random_state=1
    )


def long_way(estimator, X, y, **fit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solving, "SMALL_STEP", 0)
        return estimator.fit(X, y, **fit)


@pytest.mark.parametrize("estimator", MACHINES, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("one_call", [0, 2**20])
def test_one_call_gives_what_the_long_way_gives(
    estimator, dtype, one_call, samples, monkeypatch
):
    X, y = samples[0].astype(dtype), samples[1]
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    calls = []
    solve = solving.solve_small_machines
    monkeypatch.setattr(
        solving, "solve_small_machines", lambda *a: calls.append(1) or solve(*a)
    )
    monkeypatch.setattr(solving, "ONE_CALL", one_call)
    short = estimator.fit(X, y, sample_weight=weight)
    coef, intercept, objective = short.coef_, short.intercept_, short.objective_
    assert len(calls) == (1 if one_call else len(np.atleast_1d(objective)))
    assert short.converged_
    assert np.all(np.asarray(short.dual_gap_) <= 1e-9 * np.asarray(objective))
    long = long_way(estimator, X, y, sample_weight=weight)
    np.testing.assert_allclose(objective, long.objective_, rtol=1e-8)
    np.testing.assert_allclose(coef, long.coef_, atol=2e-4)
    np.testing.assert_allclose(intercept, long.intercept_, atol=2e-4)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(3, 30),
    st.integers(1, 7),
    st.sampled_from(["hinge", "squared_hinge"]),
    st.floats(1e-3, 1e3),
)
def test_the_gap_is_that_of_the_definition(seed, n, d, loss, C):
    """Objectives by loops over samples and features."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), np.where(rng.random(n) < 0.5, -1, 1)
    y[:2] = -1, 1
    model = LinearSVC(loss=loss, C=C, tol=1e-7).fit(X, y)
    w, b = model.coef_[0], model.intercept_[0]
    primal = 0.5 * (sum(v * v for v in w) + b * b)
    for x, side in zip(X, y, strict=True):
        slack = max(0.0, 1.0 - side * (sum(x * w) + b))
        primal += C * (slack if loss == "hinge" else slack**2)
    assert model.converged_
    assert float(model.objective_[0]) == pytest.approx(primal, rel=1e-9)
    # No other weights are better by more than the gap: try some.
    for _ in range(5):
        v = w + 0.05 * rng.normal(size=d)
        c = b + 0.05 * rng.normal()
        slack = np.maximum(0.0, 1.0 - y * (X @ v + c))
        other = 0.5 * (v @ v + c * c)
        other += C * (slack.sum() if loss == "hinge" else (slack**2).sum())
        assert other >= primal - float(model.dual_gap_[0]) - 1e-9 * primal


def test_what_is_not_solved_goes_the_long_way(samples, monkeypatch):
    X, y = samples
    monkeypatch.setattr(solving, "MOST_SMALL_ROUNDS", 2)
    model = LinearSVC(loss="hinge").fit(X, y)
    assert model.converged_
    assert model.n_iter_ > 2


def test_too_few_rounds_are_told(samples):
    with pytest.warns(UserWarning, match="did not converge in 2 iterations"):
        model = LinearSVC(loss="hinge", max_iter=2).fit(*samples)
    assert not model.converged_


def test_values_that_overflow_are_refused(samples):
    X, y = samples
    with pytest.raises(ValueError, match="not finite"):
        LinearSVC().fit(1e200 * X, y)


@pytest.mark.parametrize("scale", [1e4, 1e6, 1e8])
def test_features_that_depend_on_each_other_at_any_scale(scale):
    """Rounding errors leave nothing of some pivots of the second derivative."""
    X, y = make_classification(600, 12, n_informative=6, n_classes=3, random_state=1)
    model = LinearSVC().fit(scale * X, y)
    assert model.converged_
    assert (model.dual_gap_ <= 1e-4 * model.objective_).all()
