"""Methods agree with each other, with a generic solver, and with the plain machines."""

import numpy as np
import pytest
from multi_data import KERNELS, blend, generic_dual, matrices
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, SVR, MKLClassifier, MKLRegressor
from mercer.kernels import RBF, Linear
from mercer.machines.mkl import methods
from mercer.machines.mkl.weights import Ball

PRECISE = 1e-9


@pytest.fixture(scope="module")
def data():
    return blend()


def classify(data, several=False, **options):
    X, two, three, _ = data
    model = MKLClassifier(KERNELS, tol=PRECISE, **options).fit(
        X, three if several else two
    )
    assert model.converged_
    check_certificate(model)
    return model


def check_certificate(model):
    gap, objective = np.sum(model.dual_gap_), np.sum(model.objective_)
    assert 0 <= gap <= 1.01 * model.tol * abs(objective)
    history = model.history_
    n_rounds = np.atleast_1d(model.n_iter_)
    assert history["problem"] == np.repeat(np.arange(len(n_rounds)), n_rounds).tolist()
    assert {len(column) for column in history.values()} == {n_rounds.sum()}
    assert min(history["dual_gap"]) >= 0
    last = np.cumsum(n_rounds) - 1
    np.testing.assert_array_equal(
        np.array(history["weights"])[last], np.atleast_2d(model.weights_)
    )


def assert_same(one, other):
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-6)
    np.testing.assert_allclose(one.weights_, other.weights_, atol=1e-4)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("penalty", [None, 0.8])
@pytest.mark.parametrize("p", [1.1, 1.5, 2, 4])
def test_smo_is_group_lasso(data, p, penalty, several):
    options = dict(p=p, penalty=penalty, several=several)
    one = classify(data, method="smo", **options)
    other = classify(data, method="group-lasso", **options)
    assert_same(one, other)
    if penalty is None:
        assert Ball(p).norm(one.weights_) == pytest.approx(1.0)


@pytest.mark.parametrize("several", [False, True])
def test_simple_is_group_lasso(data, several):
    one = classify(data, method="simple", several=several)
    other = classify(data, method="group-lasso", p=1, several=several)
    assert_same(one, other)
    assert one.weights_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("p", "penalty", "other"),
    [
        (2, None, "minimise"),
        (1, None, "descend"),
        (1.5, 0.8, "minimise"),
        (1, 0.8, "alternate"),
    ],
)
def test_auto_goes_on_with_another_method(data, monkeypatch, p, penalty, other):
    seen = []
    for name in ("alternate", "descend", "minimise"):
        run = getattr(methods, name)

        def noted(*args, name=name, run=run):
            seen.append(name)
            return run(*args)

        monkeypatch.setattr(methods, name, noted)
    plain = classify(data, p=p, penalty=penalty)
    assert seen[0] == "alternate"
    seen.clear()
    monkeypatch.setattr(methods, "PATIENCE", 2)
    model = classify(data, p=p, penalty=penalty)
    assert seen == ["alternate", other]
    assert_same(model, plain)


def test_auto_keeps_to_the_limit_of_rounds(data):
    X, y = data[:2]
    with pytest.warns(ConvergenceWarning, match="max_iter=3 allows no more"):
        model = MKLClassifier(KERNELS, tol=PRECISE, max_iter=3).fit(X, y)
    assert model.n_iter_ == 3


@pytest.mark.parametrize("penalty", [None, 0.8])
@pytest.mark.parametrize("p", [1.3, 2, 4])
def test_a_generic_solver_agrees(p, penalty):
    X, y, _, _ = blend(40, seed=1)
    objective, weights = generic_dual(matrices(X), y, 1.0, p, penalty)
    for method in ("smo", "group-lasso"):
        model = MKLClassifier(KERNELS, method=method, p=p, penalty=penalty, tol=1e-8)
        model.fit(X, y)
        assert model.objective_ <= objective + 1e-6 * abs(objective)
        assert model.objective_ == pytest.approx(objective, rel=1e-5)
        np.testing.assert_allclose(model.weights_, weights, atol=2e-3)


@pytest.mark.parametrize("method", ["smo", "group-lasso"])
def test_the_penalised_form_meets_the_other(data, method):
    plain = classify(data, method=method, p=2)
    # Where the penalised weights have norm 1: lambda = ||s||_q / 2 = d's / 2.
    X, y = data[:2]
    K = matrices(X)
    beta = np.zeros(len(y))
    beta[plain.support_] = plain.dual_coef_[0]
    s = np.array([beta @ k @ beta for k in K])
    penalised = classify(data, method=method, p=2, penalty=np.linalg.norm(s) / 2)
    np.testing.assert_allclose(penalised.weights_, plain.weights_, atol=1e-4)
    np.testing.assert_allclose(
        penalised.decision_function(X), plain.decision_function(X), atol=1e-3
    )


def test_the_gap_is_that_of_the_whole_problem(data):
    X, y = data[:2]
    model = MKLClassifier(KERNELS, method="group-lasso", p=1.5, tol=0.02).fit(X, y)
    K = matrices(X)
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    s = np.array([beta @ k @ beta for k in K])
    dual = y @ beta - 0.5 * np.linalg.norm(s, 3)
    f = np.tensordot(model.weights_, np.stack(K), 1) @ beta + model.intercept_[0]
    primal = 0.5 * model.weights_ @ s + np.maximum(0, 1 - y * f).sum()
    assert -model.objective_ == pytest.approx(dual, rel=1e-9)
    assert model.dual_gap_ == pytest.approx(primal - dual, rel=1e-6)
    best = classify(data, method="group-lasso", p=1.5)
    assert dual <= -best.objective_ + 1e-6 <= primal + 2e-6


@pytest.mark.parametrize("method", ["simple", "group-lasso"])
def test_noise_gets_no_weight(method):
    X, y, _, _ = blend(400)
    noise = np.random.default_rng(5).normal(size=(400, 8))
    kernels = [RBF(gamma=0.5).on([0, 1])]
    kernels += [Linear().on([k]) for k in range(6, 14)]
    model = MKLClassifier(kernels, method=method, p=1).fit(np.hstack([X, noise]), y)
    assert model.converged_
    assert model.weights_[0] > 0.95
    assert model.weights_[1:].max() < 0.02
    assert sum(1 for _ in model.kernel_.leaves()) == np.count_nonzero(model.weights_)


@pytest.mark.parametrize("method", ["smo", "group-lasso"])
@pytest.mark.parametrize("p", [2, 4])
def test_where_no_kernel_has_a_use_weights_have_no_price(data, method, p):
    X, y, _, z = data
    options = dict(method=method, p=p, penalty=50.0)
    # Everything within the tube; and a kernel that tells no samples apart.
    still = MKLRegressor(KERNELS, epsilon=10.0, **options).fit(X, z)
    blind = MKLClassifier([0.0 * Linear()], **options).fit(X, y)
    for model in (still, blind):
        assert model.converged_
        assert model.dual_gap_ == 0.0
        np.testing.assert_array_equal(model.weights_, 0.0)


def test_a_price_beyond_all_numbers_is_infinite():
    assert Ball(2.0, 3.0).price(np.array([1e200, 0.0])) == np.inf


def test_weights_move_where_all_variables_are_at_bounds():
    # With so low a C no machine moves, whatever the weights.
    X = np.arange(6.0)[:, None]
    y = np.array([-1, 1, -1, 1, -1, 1])
    kernels = [RBF(gamma=5.0), RBF(gamma=1e-9)]
    model = MKLClassifier(kernels, method="simple", C=1e-3, tol=1e-6).fit(X, y)
    assert model.converged_
    np.testing.assert_allclose(model.weights_, [1.0, 0.0])


@pytest.mark.parametrize(
    "method", ["uniform", "alignment", "group-lasso", "smo", "simple"]
)
def test_one_kernel_is_the_plain_machine(data, method):
    X, _, y, z = data
    kernel = RBF(gamma=0.4)
    model = MKLClassifier([kernel], method=method, C=2.0, tol=1e-7).fit(X, y)
    plain = SVC(C=2.0, kernel=kernel, multiclass="ovr", tol=1e-7).fit(X, y)
    np.testing.assert_allclose(model.weights_, [1.0])
    assert model.objective_ == pytest.approx(plain.objective_.sum(), rel=1e-6)
    np.testing.assert_allclose(
        model.decision_function(X), plain.decision_function(X), atol=1e-3
    )
    model = MKLRegressor([kernel], method=method, C=2.0, tol=1e-7).fit(X, z)
    other = SVR(C=2.0, kernel=kernel, tol=1e-7).fit(X, z)
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-6)
    np.testing.assert_allclose(model.predict(X), other.predict(X), atol=1e-3)


def test_regression_by_all_methods(data):
    X, _, _, z = data
    fits = {}
    for method, p in (
        ("simple", 1), ("group-lasso", 1), ("group-lasso", 1.5), ("smo", 1.5),
        ("group-lasso", 2), ("smo", 2),
    ):  # fmt: skip
        model = MKLRegressor(KERNELS, method=method, p=p, C=3.0, tol=1e-8).fit(X, z)
        assert model.converged_
        if p in fits:
            assert_same(model, fits[p])
        fits[p] = model
    assert fits[1].score(X, z) > 0.9
    assert fits[1].objective_ < fits[1.5].objective_ < fits[2].objective_


def test_weights_of_each_machine(data):
    X, _, y, _ = data
    options = dict(method="group-lasso", tol=1e-8)
    model = MKLClassifier(KERNELS, weights="per-task", **options).fit(X, y)
    assert model.weights_.shape == (3, 5)
    assert len(model.kernel_) == len(set(model.history_["problem"])) == 3
    check_certificate(model)
    for t, column in enumerate(model.code_.T):
        alone = MKLClassifier(KERNELS, **options).fit(X, column[y])
        np.testing.assert_allclose(alone.weights_, model.weights_[t], atol=1e-4)
        assert alone.objective_ == pytest.approx(model.objective_[t])
        np.testing.assert_allclose(
            alone.decision_function(X), model.decision_function(X)[:, t], atol=1e-3
        )
    shared = MKLClassifier(KERNELS, **options).fit(X, y)
    # Own weights can only be better, and the objective is to be minimised.
    assert model.objective_.sum() >= shared.objective_ - 1e-6


@pytest.mark.parametrize("method", ["uniform", "alignment"])
def test_closed_forms_have_the_gap_of_the_machine(data, method):
    X, _, y, _ = data
    model = MKLClassifier(KERNELS, method=method, tol=1e-7).fit(X, y)
    assert model.converged_
    assert model.weights_.sum() == pytest.approx(1.0)
    kernel = model.kernel_
    plain = SVC(kernel=kernel, multiclass="ovr", tol=1e-8).fit(X, y)
    assert model.objective_ == pytest.approx(plain.objective_.sum(), rel=1e-6)


def test_alignment_is_the_closed_form(data):
    X, y, _, _ = data
    K = matrices(X)
    T = np.outer(y, y)
    n = len(y)
    H = np.eye(n) - 1 / n
    plain = np.array([(k * T).sum() / np.linalg.norm(k) / n for k in K])
    centred = [H @ k @ H for k in K]
    Tc = H @ T @ H
    one_by_one = [
        (k * Tc).sum() / np.linalg.norm(k) / np.linalg.norm(Tc) for k in centred
    ]
    for name, expected in (("plain", plain), ("centred", np.array(one_by_one))):
        model = MKLClassifier(KERNELS, method="alignment", alignment=name).fit(X, y)
        expected = np.maximum(expected, 0)
        np.testing.assert_allclose(model.weights_, expected / expected.sum(), rtol=1e-6)
    model = MKLClassifier(KERNELS, method="alignment", alignment="joint").fit(X, y)

    def aligned(d):
        total = np.tensordot(d, np.stack(centred), 1)
        return (total * Tc).sum() / np.linalg.norm(total)

    best = aligned(model.weights_)
    rng = np.random.default_rng(0)
    others = np.vstack([rng.dirichlet(np.ones(5), 300), np.eye(5), one_by_one])
    assert best >= max(map(aligned, others)) - 1e-9
