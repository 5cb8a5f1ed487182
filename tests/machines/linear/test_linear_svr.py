"""LinearSVR: optimal, certified, and the machine that it claims to be."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm

import linear_objective
from mercer import SVR, LinearSVR

LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 6))
    return X, X @ rng.standard_normal(6) + 0.3 * rng.standard_normal(150) + 2.0


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("C", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_as_good_as_liblinear(problem, loss, C, epsilon):
    X, z = problem
    options = {"loss": loss, "C": C, "epsilon": epsilon}
    ours = LinearSVR(**options, tol=1e-9).fit(X, z)
    theirs = svm.LinearSVR(**options, tol=1e-10, max_iter=200_000, random_state=0)
    theirs.fit(X, z)
    mine = linear_objective.regression(
        X, z, ours.coef_, ours.intercept_, C, epsilon, loss
    )
    other = linear_objective.regression(
        X, z, theirs.coef_, theirs.intercept_, C, epsilon, loss
    )
    assert ours.converged_
    assert mine == pytest.approx(ours.objective_, rel=1e-10)
    assert mine <= other * (1 + 1e-8)
    # Both objectives are sums, and have rounding errors.
    assert mine - ours.dual_gap_ <= other * (1 + 1e-12)


def test_free_intercept_is_svr(problem):
    X, z = problem
    ours = LinearSVR(epsilon=0.1, penalize_intercept=False, tol=1e-10).fit(X, z)
    kernel = SVR(kernel="linear", epsilon=0.1, tol=1e-8).fit(X, z)
    assert ours.coef_ == pytest.approx(kernel.coef_.ravel(), abs=1e-4)
    assert ours.intercept_ == pytest.approx(kernel.intercept_, abs=1e-4)
    assert ours.objective_ == pytest.approx(-kernel.objective_, rel=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_single_and_weighted(problem, loss, rng):
    X, z = problem
    model = LinearSVR(loss=loss, tol=1e-9)
    weight = rng.integers(0, 3, len(z))
    dense = model.fit(X, z, weight).coef_
    repeated = model.fit(np.repeat(X, weight, axis=0), np.repeat(z, weight)).coef_
    assert repeated == pytest.approx(dense, abs=1e-4)
    assert model.fit(sparse.csr_array(X), z, weight).coef_ == pytest.approx(
        dense, abs=1e-5
    )
    assert model.fit(X.astype(np.float32), z, weight).coef_ == pytest.approx(
        dense, abs=1e-4
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_wide_sparse_data(loss, rng):
    X = sparse.random(200, 4000, 0.01, format="csr", random_state=0)
    z = X @ rng.standard_normal(4000)
    model = LinearSVR(loss=loss, epsilon=0.1, tol=1e-7).fit(X, z)
    assert model.converged_
    value = linear_objective.regression(
        X, z, model.coef_, model.intercept_, 1.0, 0.1, loss
    )
    assert value == pytest.approx(model.objective_, rel=1e-9)


def test_no_intercept(problem):
    X, z = problem
    model = LinearSVR(fit_intercept=False, warm_start=True).fit(X, z)
    assert model.intercept_ == 0.0
    assert model.predict(X) == pytest.approx(X @ model.coef_)
    first = model.n_iter_
    assert model.fit(X, z).n_iter_ <= first


def test_primal_is_refused_for_the_loss_without_square(problem):
    with pytest.raises(ValueError, match="not supported when dual=False"):
        LinearSVR(dual=False).fit(*problem)
