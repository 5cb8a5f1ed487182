"""Convergence: what ``converged_`` means, and what the warning says."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer import LinearSVC, LinearSVR
from mercer.engines.cpu.linear import coordinates, solve
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


def text(n, seed):
    """Return samples with more features than samples, of which many matter."""
    rng = np.random.default_rng(seed)
    d, each = 5 * n, 20
    columns = rng.integers(0, d, each * n, dtype=np.int32)
    ends = np.arange(0, each * n + 1, each, dtype=np.int32)
    X = sparse.csr_array((rng.random(each * n), columns, ends), shape=(n, d))
    X.sum_duplicates()
    return X, (X @ rng.standard_normal(d) > 0).astype(int)


@pytest.mark.parametrize("most", [0, 2000])
@pytest.mark.parametrize("free", [False, True])
def test_l1_with_many_weights_ends_by_newton_steps(free, most, monkeypatch):
    # With a matrix of second derivatives or, as for more weights, without.
    monkeypatch.setattr(coordinates, "MOST_TOGETHER", most)
    for seed in range(3):
        X, y = text(400, seed)
        model = LinearSVC(
            penalty="l1", tol=1e-8, penalize_intercept=not free, random_state=seed
        )
        model.fit(X, y)
        assert model.converged_
        assert model.n_iter_ < 300
        monkeypatch.setattr(coordinates, "_newton_on_support", lambda *_: None)
        plain = clone(model).set_params(tol=1e-6, max_iter=20_000).fit(X, y)
        monkeypatch.undo()
        monkeypatch.setattr(coordinates, "MOST_TOGETHER", most)
        assert model.objective_ == pytest.approx(plain.objective_, rel=2e-6)
        assert (model.objective_ - model.dual_gap_ <= plain.objective_).all()


KINDS = {
    "hinge": LinearSVC(loss="hinge"),
    "squared": LinearSVC(),
    "l1": LinearSVC(penalty="l1"),
    "joint": LinearSVC(multi_class="crammer_singer"),
    "insensitive": LinearSVR(epsilon=0.1),
    "squared insensitive": LinearSVR(loss="squared_epsilon_insensitive"),
}


@given(
    kind=st.sampled_from(sorted(KINDS)),
    free=st.booleans(),
    shape=st.sampled_from(["small", "dense", "sparse", "wide"]),
    C=st.sampled_from([1e-3, 1.0, 1e3]),
    tol=st.sampled_from([0.5, 1e-2, 1e-4, 1e-7]),
    max_iter=st.sampled_from([0, 1, 2, 3, 5, 10, 30, 100]),
    seed=st.integers(0, 1000),
)
def test_attributes_and_warning_agree(kind, free, shape, C, tol, max_iter, seed):
    rng = np.random.default_rng(seed)
    d = {"small": 5, "dense": 70, "sparse": 300, "wide": 3100}[shape]
    X = rng.standard_normal((40, d)) * (rng.random((40, d)) < min(1.0, 20 / d))
    y = rng.integers(0, 3, 40)
    model = clone(KINDS[kind]).set_params(C=C, tol=tol, max_iter=max_iter)
    model.set_params(penalize_intercept=kind == "joint" or not free, random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(sparse.csr_array(X) if shape in ("sparse", "wide") else X, y)
    told = " ".join(str(warning.message) for warning in caught)
    is_small = bool(np.all(model.dual_gap_ <= tol * np.asarray(model.objective_)))
    assert model.converged_ == (not told)
    assert is_small or not model.converged_
    assert ("the duality gap is" in told) == (not is_small)
    assert "iterations: ." not in told  # there is always a reason
    assert model.n_iter_ <= max(max_iter, 1)
