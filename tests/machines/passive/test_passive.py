"""Passive-aggressive learning: closed forms, scikit-learn's, kernels, budgets."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import PassiveAggressiveClassifier as ScikitLearns
from sklearn.linear_model import SGDClassifier

import naive
from mercer import PassiveAggressiveClassifier
from mercer.kernels import RBF, Polynomial

LOSSES = {"pa1": "hinge", "pa2": "squared_hinge"}


def samples(rng, n=150, d=5, n_classes=3):
    X = rng.normal(size=(n, d))
    y = np.digitize(X[:, 0] + 0.4 * rng.normal(size=n), [-0.4, 0.5])
    return X, np.minimum(y, n_classes - 1)


def closed_form(variant, loss, square, C):
    if variant == "pa":
        return loss / square
    if variant == "pa1":
        return min(C, loss / square)
    return loss / (square + 1 / (2 * C))


@pytest.mark.parametrize("C", [0.05, 10.0])
@pytest.mark.parametrize("variant", ["pa", "pa1", "pa2"])
def test_one_step_is_the_closed_form(variant, C, rng):
    X, y = samples(rng, 30, n_classes=2)
    model = PassiveAggressiveClassifier(C, variant, fit_intercept=False)
    w, wrong, inside = np.zeros(5), 0, 0
    for x, label in zip(X, y, strict=True):
        sign = 2 * label - 1
        margin = sign * (w @ x)
        loss = max(0.0, 1.0 - margin)
        inside += 0 < margin < 1  # any loss counts, not only a wrong sign
        wrong += margin < 0
        w = w + closed_form(variant, loss, x @ x, C) * sign * x
        model.partial_fit([x], [label], classes=[0, 1])
        np.testing.assert_allclose(model.coef_[0], w, rtol=1e-10, atol=1e-14)
        if variant == "pa":
            assert sign * (w @ x) >= 1 - 1e-10
    assert inside and wrong


@pytest.mark.parametrize("variant", ["pa", "pa1", "pa2"])
def test_the_update_of_all_classes(variant, rng):
    X, y = samples(rng, 60)
    model = PassiveAggressiveClassifier(
        0.3, variant, fit_intercept=False, multiclass="joint"
    ).partial_fit(X, y, classes=[0, 1, 2])
    W = np.zeros((3, 5))
    for x, label in zip(X, y, strict=True):
        f = W @ x
        rival = max((r for r in range(3) if r != label), key=lambda r: f[r])
        loss = max(0.0, 1.0 - (f[label] - f[rival]))
        step = closed_form(variant, loss, 2 * (x @ x), 0.3)
        W[label] += step * x
        W[rival] -= step * x
    np.testing.assert_allclose(model.coef_, W, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("variant", ["pa1", "pa2"])
def test_coefficients_are_those_of_scikit_learn(
    variant, n_classes, fit_intercept, average, rng
):
    X, y = samples(rng, n_classes=n_classes)
    X[5] = 0.0
    weight = {0: 2.0, 1: 0.5, 2: 1.0} if n_classes == 3 else {0: 2.0, 1: 0.5}
    options = dict(
        fit_intercept=fit_intercept, average=average, class_weight=weight,
        shuffle=False, max_iter=4, tol=None,
    )  # fmt: skip
    for kind, share in ((np.asarray, 1.0), (sparse.csr_array, 0.01)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            theirs = ScikitLearns(C=0.3, loss=LOSSES[variant], **options)
            theirs.fit(kind(X), y)
        mine = PassiveAggressiveClassifier(
            0.3, variant, intercept_share=share, **options
        ).fit(kind(X), y)
        for name in ("coef_", "intercept_"):
            np.testing.assert_allclose(
                getattr(mine, name), getattr(theirs, name), rtol=1e-9, atol=1e-12
            )


def test_stopping_is_that_of_scikit_learn(rng):
    X, y = samples(rng)
    weight = rng.uniform(0.5, 1.5, len(y))
    theirs = SGDClassifier(
        loss="hinge", penalty=None, learning_rate="pa1", eta0=0.1, shuffle=False,
        random_state=0,
    ).fit(X, y, sample_weight=weight)  # fmt: skip
    mine = PassiveAggressiveClassifier(0.1, shuffle=False).fit(X, y, weight)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, rtol=1e-8)
    assert mine.n_iter_ == theirs.n_iter_


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("multiclass", ["ovr", "joint"])
@pytest.mark.parametrize("variant", ["pa", "pa1", "pa2"])
def test_the_linear_kernel_is_the_linear_machine(variant, multiclass, average, rng):
    X, y = samples(rng, 300)
    options = dict(variant=variant, C=0.2, multiclass=multiclass, average=average,
                   shuffle=False, max_iter=3, tol=None)  # fmt: skip
    linear = PassiveAggressiveClassifier(**options).fit(X, y)
    dual = PassiveAggressiveClassifier(kernel="linear", **options).fit(X, y)
    np.testing.assert_allclose(dual.coef_, linear.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        dual.decision_function(X), linear.decision_function(X), rtol=1e-8, atol=1e-10
    )


def test_kernel_steps_are_the_closed_form(rng):
    X, y = samples(rng, 40, n_classes=2)
    kernel = Polynomial(2, 0.5, 1.0)
    model = PassiveAggressiveClassifier(0.4, "pa1", kernel)
    model.partial_fit(X, y, classes=[0, 1])
    held, bias = [], 0.0
    for x, label in zip(X, y, strict=True):
        sign = 2 * label - 1
        f = bias + sum(a * naive.polynomial(x, z, 0.5, 1.0, 2) for a, z in held)
        step = min(0.4, max(0, 1 - sign * f) / naive.polynomial(x, x, 0.5, 1.0, 2))
        if step > 0:
            held.append((sign * step, x))
            bias += sign * step
    assert len(model.support_vectors_) == len(held)
    f = [
        bias + sum(a * naive.polynomial(x, z, 0.5, 1.0, 2) for a, z in held) for x in X
    ]
    np.testing.assert_allclose(model.decision_function(X), f, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("removal", ["oldest", "smallest"])
def test_budget(removal, rng):
    X, y = samples(rng, 700)
    model = PassiveAggressiveClassifier(
        kernel=RBF(0.3), budget=60, removal=removal
    )  # fmt: skip
    for k in range(0, 700, 70):
        model.partial_fit(X[k : k + 70], y[k : k + 70], classes=[0, 1, 2])
        assert len(model.support_vectors_) <= 60
    assert len(model.support_vectors_) == 60
    assert model.score(X, y) > 0.45


def test_the_oldest_leaves(rng):
    X, y = samples(rng, 30, n_classes=2)
    narrow = RBF(1e6)  # no sample says anything of another: all have a loss
    model = PassiveAggressiveClassifier(
        0.1, kernel=narrow, budget=10, removal="oldest", fit_intercept=False
    ).partial_fit(X, y, classes=[0, 1])
    held = {tuple(x) for x in model.support_vectors_}
    assert held == {tuple(x) for x in X[20:]}


def test_the_smallest_leaves(rng):
    X, y = samples(rng, 30, n_classes=2)
    weight = rng.permutation(np.linspace(0.1, 1.0, 30))
    model = PassiveAggressiveClassifier(
        0.1, kernel=RBF(1e6), budget=29, removal="smallest", fit_intercept=False
    ).partial_fit(X, y, classes=[0, 1], sample_weight=weight)
    held = {tuple(x) for x in model.support_vectors_}
    # The last one stays in any case.
    assert {tuple(x) for x in X} - held == {tuple(X[weight[:-1].argmin()])}


def test_a_second_pass_adds_to_what_is_held(rng):
    X, y = samples(rng, 60)
    model = PassiveAggressiveClassifier(kernel=RBF(0.5), max_iter=5, tol=None).fit(X, y)
    assert len(model.support_vectors_) <= 60


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_groups_and_single_samples_are_the_same(kernel, rng):
    X, y = samples(rng, 300)
    options = dict(kernel=kernel, gamma=0.2, average=True)
    whole = PassiveAggressiveClassifier(**options).partial_fit(X, y, classes=[0, 1, 2])
    single = PassiveAggressiveClassifier(**options)
    for k in range(len(y)):
        single.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1, 2])
    np.testing.assert_allclose(
        single.decision_function(X), whole.decision_function(X), rtol=1e-8, atol=1e-10
    )


def test_refusals(rng):
    X, y = samples(rng, 30)
    with pytest.raises(ValueError, match="needs a kernel"):
        PassiveAggressiveClassifier(budget=5).fit(X, y)
    with pytest.raises(ValueError, match="balanced"):
        PassiveAggressiveClassifier(class_weight="balanced").partial_fit(
            X, y, [0, 1, 2]
        )
    with pytest.raises(AttributeError, match="no support vectors"):
        _ = PassiveAggressiveClassifier().fit(X, y).dual_coef_
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = PassiveAggressiveClassifier(kernel="rbf").fit(X, y).coef_
    with pytest.raises(ValueError, match="not finite"):
        PassiveAggressiveClassifier(variant="pa").fit(X * 1e200, y)


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_no_threads_are_refused(kernel):
    machine = PassiveAggressiveClassifier(kernel=kernel, n_jobs=0)
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        machine.fit([[0.0], [1.0]], [0, 1])
