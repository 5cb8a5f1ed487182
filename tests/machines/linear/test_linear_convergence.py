"""Convergence: what ``converged_`` means, and what the warning says."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer import LinearSVC, LinearSVR
from mercer.engines.cpu.linear import solve
from mercer.engines.cpu.linear.newton import _Newton

FREE = {
    "hinge": LinearSVC(loss="hinge", penalize_intercept=False),
    "squared": LinearSVC(penalize_intercept=False),
    "insensitive": LinearSVR(epsilon=0.1, penalize_intercept=False),
}


def drawn(seed, scale, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 6)) * scale + offset * rng.standard_normal(6)
    return X, rng.integers(0, 2, 40)


@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", FREE)
def test_a_free_intercept_converges_whatever_the_scale(name, C, scale):
    for seed in range(5):
        X, y = drawn(seed, scale)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = clone(FREE[name]).set_params(C=C, tol=1e-6).fit(X, y)
        assert model.converged_
        assert np.max(model.dual_gap_ / model.objective_) <= 1e-6


def test_a_class_without_weight_has_a_finite_intercept():
    X, _ = drawn(0, 1.0)
    y = np.arange(len(X)) % 3
    model = LinearSVC(loss="hinge", penalize_intercept=False, tol=1e-6)
    model.fit(X, y, sample_weight=np.where(y == 1, 0.0, 1.0))
    assert model.converged_
    assert np.isfinite(model.intercept_).all()


@pytest.mark.parametrize("name", FREE)
def test_the_warning_says_why_a_machine_has_not_converged(name):
    X, y = drawn(0, 1.0)
    reasons = set()
    for max_iter in range(1, 40):
        model = clone(FREE[name]).set_params(C=1.0, tol=1e-4, max_iter=max_iter)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y)
        is_small = np.max(model.dual_gap_ / model.objective_) <= 1e-4
        told = " ".join(str(warning.message) for warning in caught)
        assert model.converged_ == (not told)
        assert ("duality gap is" in told) == (not is_small)
        assert ("no round was left to confirm" in told) == (
            is_small and not model.converged_
        )
        reasons.add(told[:60])
    assert model.converged_
    assert len(reasons) > 2


def test_the_warning_tells_of_sums_that_do_not_hold(monkeypatch):
    def never(self, task):
        task.off = 0.25
        return False

    monkeypatch.setattr(_Newton, "sums_hold", never)
    X, y = drawn(0, 1.0)
    with pytest.warns(ConvergenceWarning, match=r"the sum is off by 0\.25 of their"):
        LinearSVC(penalize_intercept=False, max_iter=30).fit(X, y)


def test_the_warning_tells_of_weights_that_violate_their_conditions():
    X, y = drawn(0, 1.0)
    with pytest.warns(ConvergenceWarning, match="a weight violates its condition"):
        model = LinearSVC(penalty="l1", C=10.0, max_iter=1, tol=0.9).fit(X, y)
    assert not model.converged_


def test_nothing_hinders_a_machine_with_a_penalised_intercept():
    assert solve._hindrance([SimpleNamespace(done=True)]) == ""
