"""Probabilities, against generic optimisers and loops."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.calibration import _SigmoidCalibration

from mercer import SVC, NuSVC
from mercer.multiclass.calibration import (
    Sigmoids,
    class_probabilities,
    couple,
    deal_out,
    fit_sigmoid,
    normalise,
    weigh_evidence,
)
from mercer.multiclass.codes import (
    exhaustive,
    hadamard,
    one_vs_one,
    one_vs_rest,
)


def platt_loss(A, B, f, is_positive, weight):
    n_plus, n_minus = weight[is_positive].sum(), weight[~is_positive].sum()
    t = np.where(is_positive, (n_plus + 1) / (n_plus + 2), 1 / (n_minus + 2))
    p = expit(-(A * f + B))
    return -(weight * (t * np.log(p) + (1 - t) * np.log1p(-p))).sum()


@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_sigmoid_is_the_best_one(rng, is_weighted):
    f = rng.standard_normal(200)
    is_positive = rng.random(200) < expit(2.0 * f - 0.5)
    weight = rng.integers(0, 4, 200).astype(float) if is_weighted else np.ones(200)
    found = fit_sigmoid(f, is_positive, weight)
    best = minimize(
        lambda v: platt_loss(*v, f, is_positive, weight), [-1.0, 0.0], tol=1e-12
    )
    np.testing.assert_allclose(found, best.x, atol=1e-3)
    assert platt_loss(*found, f, is_positive, weight) <= best.fun + 1e-8


def test_the_sigmoid_is_that_of_scikit_learn(rng):
    f = rng.standard_normal(500) * 3
    is_positive = rng.random(500) < expit(f)
    found = fit_sigmoid(f, is_positive, np.ones(500))
    other = _SigmoidCalibration().fit(f, is_positive.astype(float))
    np.testing.assert_allclose(found, (other.a_, other.b_), rtol=1e-3, atol=1e-4)


def test_weights_are_repetitions(rng):
    f = rng.standard_normal(60)
    is_positive = f + rng.standard_normal(60) > 0
    weight = rng.integers(0, 4, 60)
    repeated = np.repeat(np.arange(60), weight)
    found = fit_sigmoid(f, is_positive, weight.astype(float))
    other = fit_sigmoid(f[repeated], is_positive[repeated], np.ones(len(repeated)))
    np.testing.assert_allclose(found, other, rtol=1e-5, atol=1e-7)


@given(
    n=st.integers(1, 30),
    scale=st.sampled_from([1e-200, 1e-8, 1.0, 1e6, 1e150]),
    kind=st.sampled_from(["mixed", "apart", "reversed", "positive", "negative"]),
    seed=st.integers(0, 99),
)
@example(n=2, scale=1e-200, kind="apart", seed=0)
@settings(deadline=None, max_examples=80)
def test_odd_decisions_give_a_finite_sigmoid(n, scale, kind, seed):
    rng = np.random.default_rng(seed)
    f = rng.standard_normal(n) * scale
    is_positive = {
        "mixed": rng.random(n) < 0.5,
        "apart": f > 0,
        "reversed": f < 0,
        "positive": np.ones(n, dtype=bool),
        "negative": np.zeros(n, dtype=bool),
    }[kind]
    A, B = fit_sigmoid(f, is_positive, np.ones(n))
    with np.errstate(over="ignore"):
        p = Sigmoids(np.array([A]), np.array([B]))(f[:, None])
    assert np.isfinite(p).all()
    assert ((p > 0) & (p < 1)).all()
    if kind == "apart" and is_positive.any() and not is_positive.all():
        assert p[is_positive].min() > p[~is_positive].max()


def test_constant_decisions_give_the_share_of_the_sides():
    A, B = fit_sigmoid(np.zeros(30), np.arange(30) < 10, np.ones(30))
    p = Sigmoids(np.array([A]), np.array([B]))(np.zeros((1, 1)))
    # Between 1/22 and 11/12, in the proportion of the sides.
    np.testing.assert_allclose(p, (10 * 11 / 12 + 20 / 22) / 30, rtol=1e-6)


def test_folds_have_even_shares(rng):
    y = rng.permutation(np.repeat([0, 1, 2], [50, 23, 2]))
    fold = deal_out(y, 0)
    assert (deal_out(y, 0) == fold).all()
    assert (deal_out(y, 1) != fold).any()
    sizes = [np.bincount(fold[y == c], minlength=5) for c in range(3)]
    assert all(np.ptp(s) <= 1 for s in sizes)
    assert np.ptp(np.bincount(fold)) <= 1


def objective_of_coupling(P, p):
    n_classes = len(P)
    r = np.zeros((n_classes, n_classes))
    first, second = np.triu_indices(n_classes, 1)
    r[first, second], r[second, first] = p, 1 - p
    return sum((r[j, i] * P[i] - r[i, j] * P[j]) ** 2
               for i, j in zip(first, second, strict=True))  # fmt: skip


@given(seed=st.integers(0, 999), n_classes=st.integers(3, 6))
@settings(deadline=None, max_examples=25)
def test_coupling_has_the_least_objective(seed, n_classes):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.01, 0.99, (1, n_classes * (n_classes - 1) // 2))
    P = couple(p, n_classes)[0]
    np.testing.assert_allclose(P.sum(), 1.0)
    assert (P >= 0).all()
    best = objective_of_coupling(P, p[0])
    for _ in range(50):
        other = np.abs(P + 0.05 * rng.standard_normal(n_classes))
        assert objective_of_coupling(other / other.sum(), p[0]) >= best - 1e-12


def test_coupling_returns_consistent_probabilities(rng):
    P = rng.dirichlet(np.ones(7), size=40)
    first, second = np.triu_indices(7, 1)
    pairs = P[:, first] / (P[:, first] + P[:, second])
    np.testing.assert_allclose(couple(pairs, 7), P, atol=1e-9)


def test_coupling_of_certain_pairs(rng):
    p = np.clip((rng.random((100, 45)) < 0.5).astype(float), 1e-7, 1 - 1e-7)
    P = couple(p, 10)
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


def test_chunks_make_no_difference(rng, monkeypatch):
    p = rng.uniform(0.05, 0.95, (100, 10))
    whole = couple(p, 5)
    monkeypatch.setattr("mercer.multiclass.calibration.CHUNK_VALUES", 100)
    np.testing.assert_allclose(couple(p, 5), whole, rtol=1e-12)


def test_evidence_of_one_vs_rest_counts_once(rng):
    p = rng.uniform(0.01, 0.99, (20, 4))
    odds = p / (1 - p)
    expected = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(weigh_evidence(p, one_vs_rest(4)), expected)


@pytest.mark.parametrize(
    "code", [one_vs_one(5), one_vs_rest(5), hadamard(5), exhaustive(4), one_vs_one(2),
             np.array([[1], [-1]], dtype=np.int8)]
)  # fmt: skip
def test_probabilities_are_probabilities(rng, code):
    p = rng.uniform(1e-7, 1 - 1e-7, (50, code.shape[1]))
    P = class_probabilities(p, code)
    assert P.shape == (50, len(code))
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    # The sides of a class, made certain, make the class the most probable.
    for c, row in enumerate(code):
        sure = np.where(row == 0, 0.5, np.where(row > 0, 1 - 1e-7, 1e-7))
        assert class_probabilities(sure[None], code).argmax() == c


def test_normalise():
    np.testing.assert_allclose(normalise(np.array([[1.0, 3.0]])), [[0.25, 0.75]])


def test_decision_values_next_to_nothing():
    decisions = 1e-310 * np.array([1.0, -1.0, 2.0, -2.0])
    sides = np.array([True, False, True, True])
    A, B = fit_sigmoid(decisions, sides, np.ones(4))
    # The share of the sides is all that there is to learn.
    expected = fit_sigmoid(np.zeros(4), sides, np.ones(4))
    assert abs(A * decisions).max() < 1e-300
    assert pytest.approx(expected.B, rel=1e-9) == B
    p = Sigmoids(np.array([A]), np.array([B]))(decisions[:, None])
    # Between 1/3 and 4/5, in the proportion of the sides.
    np.testing.assert_allclose(p, (3 * 4 / 5 + 1 / 3) / 4, rtol=1e-6)


@pytest.mark.parametrize("kind", [SVC, NuSVC])
def test_samples_without_weight_have_no_say_in_probabilities(kind, rng):
    X = rng.normal(size=(120, 2))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += 2.0 * y - 1.0
    wrong = np.arange(120) % 3 == 0
    labels, weight = np.where(wrong, 1 - y, y), np.where(wrong, 0.0, 1.0)
    model = kind(kernel="linear", probability=True, random_state=0)
    model.fit(X, labels, sample_weight=weight)
    # A third of wrong labels would leave no probability far above two thirds.
    assert model.predict_proba(X).max(axis=1).mean() > 0.9
    assert (model.predict(X) == y).mean() > 0.95
