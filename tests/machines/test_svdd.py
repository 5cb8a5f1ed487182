"""The smallest ball: known sets, a generic optimiser, the one-class machine."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import naive
from certificate import kernel_matrix
from mercer import SVDD, OneClassSVM
from mercer.core.problem import DualProblem

POLY = {"kernel": "poly", "gamma": 0.3, "coef0": 1.0, "degree": 2}
KERNELS = {"linear": {"kernel": "linear"}, "poly": POLY}
either_solver = pytest.mark.parametrize("solver", ["smo", "decompose"])


def matrix(X, Z, kernel, **numbers):
    return kernel_matrix(X, Z, kernel, **numbers)


@either_solver
@pytest.mark.parametrize("weighted", [False, True])
def test_one_class_for_a_normalised_kernel(rng, solver, weighted):
    X = rng.standard_normal((200, 3))
    weight = rng.uniform(0.0, 2.0, 200) if weighted else np.ones(200)
    mass = 0.2 * weight.sum()
    settings = dict(gamma=0.4, tol=1e-9, solver=solver)
    line = OneClassSVM(nu=0.2, **settings).fit(X, sample_weight=weight)
    # In units of the mass the tolerance is another.
    settings["tol"] = 1e-9 / mass
    ball = SVDD(C=1 / mass, **settings).fit(X, sample_weight=weight)
    np.testing.assert_array_equal(ball.support_, line.support_)
    np.testing.assert_allclose(mass * ball.dual_coef_, line.dual_coef_, atol=1e-5)
    Z = rng.standard_normal((50, 3)) * 2
    distance = np.sqrt(
        ball.radius_**2 - 2 * line.decision_function(Z) / mass
    )  # |φ(z) - a|² = R² - 2 (w·φ(z) - ρ) / mass
    np.testing.assert_allclose(ball.center_distance(Z), distance, atol=1e-6)
    np.testing.assert_array_equal(ball.predict(Z), line.predict(Z))


@pytest.mark.parametrize("C", [None, 0.15])
@pytest.mark.parametrize("kernel", KERNELS)
@either_solver
def test_a_generic_optimiser(rng, kernel, C, solver):
    n = 25
    X, Z = rng.standard_normal((n, 3)), rng.standard_normal((9, 3))
    params = KERNELS[kernel]
    K, diag_Z = matrix(X, X, **params), np.diag(matrix(Z, Z, **params))
    group = np.zeros(n, dtype=np.intp)
    box = np.full(n, C or 1.0)
    start = np.full(n, 1 / n)
    problem = DualProblem(-0.5 * np.diag(K), 0 * box, box, start, np.arange(n), group)
    alpha = naive.solve(problem, K)
    norm = alpha @ K @ alpha
    distance = np.sqrt(diag_Z - 2 * matrix(Z, X, **params) @ alpha + norm)
    own = np.sqrt(np.diag(K) - 2 * K @ alpha + norm)
    free = (alpha > 1e-4) & (alpha < box - 1e-4)
    model = SVDD(C=C, solver=solver, tol=1e-9, **params).fit(X)
    assert model.objective_ == pytest.approx(naive.objective(problem, K, alpha))
    np.testing.assert_allclose(model.center_distance(Z), distance, atol=1e-4)
    np.testing.assert_allclose(own[free], model.radius_, atol=1e-4)
    assert model.kkt_gap_ <= 1e-9
    np.testing.assert_allclose(
        model.decision_function(Z), model.radius_ - distance, atol=1e-4
    )


@either_solver
def test_two_points(solver):
    model = SVDD(kernel="linear", solver=solver).fit([[0.0, 0.0], [6.0, 8.0]])
    assert model.radius_ == pytest.approx(5.0)
    assert model.boundary_.tolist() == [0, 1]
    assert model.outliers_.tolist() == []
    assert model.center_distance([[3.0, 4.0]]) == pytest.approx([0.0], abs=1e-6)


@either_solver
def test_a_circle_and_what_is_inside(rng, solver):
    angle = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    rim = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.vstack([rim, rng.uniform(-0.5, 0.5, (20, 2))]) * 3.0 + 10.0
    model = SVDD(kernel="linear", tol=1e-9, solver=solver).fit(X)
    assert model.radius_ == pytest.approx(3.0, rel=1e-6)
    assert model.coef_ == pytest.approx(np.full((1, 2), 10.0))
    assert set(model.boundary_) <= set(range(12))
    assert len(model.boundary_) >= 2
    assert (model.center_distance(X[12:]) < 3.0).all()


def test_one_point_and_copies_of_it():
    for n in (1, 5):
        model = SVDD().fit(np.full((n, 2), 4.0))
        assert model.radius_ == pytest.approx(0.0, abs=1e-7)
        assert model.converged_


@either_solver
def test_boundary_and_outliers(rng, solver):
    X = rng.standard_normal((300, 2))
    model = SVDD(C=1 / 30, gamma=0.2, tol=1e-9, solver=solver).fit(X)
    distance = model.center_distance(X)
    on, out = model.boundary_, model.outliers_
    assert sorted([*on, *out]) == model.support_.tolist()
    np.testing.assert_allclose(distance[on], model.radius_, atol=1e-6)
    assert (distance[out] >= model.radius_ - 1e-6).all()
    inside = np.setdiff1d(np.arange(300), model.support_)
    assert (distance[inside] <= model.radius_ + 1e-6).all()
    assert 0 < len(out) <= 30 <= len(on) + len(out)
    hard = SVDD(gamma=0.2, tol=1e-9, solver=solver).fit(X)
    assert hard.outliers_.size == 0
    assert (hard.center_distance(X) <= hard.radius_ + 1e-6).all()


def test_offset_widens_and_narrows(rng):
    X = rng.standard_normal((200, 2))
    ball, wide, narrow = (
        SVDD(C=0.05, offset=offset).fit(X) for offset in (0.0, 0.1, -0.1)
    )
    counts = [(m.predict(X) == 1).sum() for m in (narrow, ball, wide)]
    assert counts[0] < counts[1] < counts[2]
    assert wide.radius_ == ball.radius_
    change = wide.decision_function(X) - ball.decision_function(X)
    np.testing.assert_allclose(change, 0.1)
    np.testing.assert_array_equal(wide.score_samples(X), ball.score_samples(X))


def test_a_C_that_is_too_small(rng):
    X = rng.standard_normal((20, 2))
    with pytest.raises(ValueError, match=r"C=0.04 is too small.*at least 0.05"):
        SVDD(C=0.04).fit(X)
    assert SVDD(C=0.05).fit(X).converged_


@pytest.mark.parametrize("C", [None, 0.05])
def test_samples_without_weight_may_lie_anywhere(rng, C):
    X = rng.standard_normal((60, 2))
    weight = np.ones(60)
    weight[:5], X[:5] = [0, 0, -1, -1, 0], 100.0
    model = SVDD(C=C, kernel="linear", tol=1e-9).fit(X, sample_weight=weight)
    plain = SVDD(C=C, kernel="linear", tol=1e-9).fit(X[5:])
    assert model.radius_ == pytest.approx(plain.radius_, abs=1e-6)
    assert set(model.support_) <= set(range(5, 60))


@pytest.mark.parametrize("C", [None, 0.05])
@pytest.mark.parametrize("form", ["sparse", "function", "precomputed", "float32"])
def test_forms_of_data_and_kernel(rng, form, C):
    X = rng.standard_normal((60, 3))
    X[X < 0] = 0.0
    params = dict(POLY, C=C, tol=1e-5)
    plain = SVDD(**params).fit(X)
    data = {"sparse": sparse.csr_array(X), "float32": X.astype(np.float32)}.get(form, X)
    if form in ("function", "precomputed"):
        params = {"C": C, "tol": 1e-5, "kernel": form}
    if form == "function":
        params["kernel"] = lambda A, B: matrix(A, B, **POLY)
    if form == "precomputed":
        data = matrix(X, X, **POLY)
    model = SVDD(**params).fit(data)
    assert model.radius_ == pytest.approx(plain.radius_, rel=1e-3)
    np.testing.assert_array_equal(model.boundary_, plain.boundary_)
    np.testing.assert_array_equal(model.outliers_, plain.outliers_)
    if form != "precomputed":  # which cannot know k(x, x) of other samples
        distance = plain.center_distance(X)
        np.testing.assert_allclose(model.center_distance(data), distance, atol=1e-3)


def test_weights_are_factors_of_large_C(rng):
    X = rng.standard_normal((20, 2))
    weight = np.full(20, 0.1)
    weight[3] = 0.004
    model = SVDD(C=10.0, tol=1e-6).fit(X, sample_weight=weight)
    bounds = np.full(20, 1.0)
    bounds[3] = 0.04
    expected = SVDD(C=1.0, tol=1e-6).fit(X, sample_weight=bounds)
    assert model.radius_ == pytest.approx(expected.radius_)
    np.testing.assert_array_equal(model.dual_coef_, expected.dual_coef_)


@pytest.mark.parametrize("C", [None, 1.0, 10.0])
def test_one_sample_is_not_outside(C):
    model = SVDD(C=C).fit([[1.0, 2.0]])
    assert model.outliers_.tolist() == []
    assert model.boundary_.tolist() == [0]


def test_a_matrix_without_ones_on_the_diagonal_is_mentioned(rng):
    X = rng.standard_normal((10, 2))
    with pytest.warns(UserWarning, match=r"taken to be 1, but the diagonal .* Divide"):
        SVDD(kernel="precomputed").fit(X @ X.T)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVDD(kernel="precomputed").fit(matrix(X, X, "rbf", gamma=0.5))
