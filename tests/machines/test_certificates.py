"""Whether gaps are bounds, and how exact they are."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

import mercer
from mercer import (
    SVC,
    SVDD,
    SVR,
    MKLClassifier,
    MKLRegressor,
    NuSVC,
    OneClassSVM,
    OnlineSVC,
)
from mercer.core.problem import (
    c_svc,
    certify,
    epsilon_svr,
    nu_svc,
    nu_svr,
    one_class,
    svdd,
)
from mercer.engines.cpu.certificates import coarse_part, is_definite, refine
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.solve import Settings, TaskSpec, solve_many
from mercer.kernels import RBF, Custom, Linear, Sigmoid
from mercer.runtime.threads import Threads
from mercer.selection import svm_path

MACHINES = ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "SVDD"]
every_machine = pytest.mark.parametrize("name", MACHINES)


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 4))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.fixture
def few_rows(monkeypatch):
    """Let matrices of more than 40 rows be too large for a full test."""
    monkeypatch.setattr("mercer.engines.cpu.certificates.TESTED_ROWS", 40)


def machine(name, **settings):
    return getattr(mercer, name)(**settings)


def gap_is(model, is_finite):
    return (np.isfinite(model.dual_gap_) == is_finite).all()


@every_machine
def test_a_definite_kernel_has_a_gap_that_is_a_bound(samples, name):
    model = machine(name).fit(*samples)
    assert model.is_convex_ is True
    assert gap_is(model, True)


@every_machine
@pytest.mark.filterwarnings("ignore:The margin of")
def test_an_indefinite_kernel_has_no_bound(samples, name):
    model = machine(name, kernel="sigmoid", gamma=0.5).fit(*samples)
    assert model.converged_
    assert model.is_convex_ is False
    assert gap_is(model, False)
    # What optimality conditions say is another matter.
    assert np.max(model.kkt_gap_) <= model.tol


def test_stationary_points_of_a_kernel_differ(samples):
    """No gap may be less than what another solver finds."""
    solvers = ["smo", "decompose", "wss1", "platt"]
    models = [
        SVC(kernel="sigmoid", C=100.0, solver=solver).fit(*samples)
        for solver in solvers
    ]
    assert all(model.converged_ for model in models)
    best = min(model.objective_[0] for model in models)
    assert max(model.objective_[0] for model in models) > best + 1.0
    assert all(m.objective_[0] - best <= m.dual_gap_[0] for m in models)


@pytest.mark.parametrize(
    ("kernel", "is_convex"),
    [
        ("poly(degree=2, coef0=-1)", False),
        # A constant has no say where coefficients sum to 0.
        ("poly(degree=1, coef0=-1)", True),
        # Not definite in general, but on these samples.
        ("0.01 * sigmoid + rbf(gamma=5)", True),
        ("sigmoid(gamma=1) + 0.01 * linear", False),
    ],
)
def test_kernels_on_these_samples(samples, kernel, is_convex):
    model = SVC(kernel=kernel).fit(*samples)
    assert model.is_convex_ is is_convex
    assert gap_is(model, is_convex)


def test_an_indefinite_kernel_is_taken_at_its_word_beyond_the_test(samples, few_rows):
    X, y = samples
    model = SVC(kernel="0.01 * sigmoid + rbf(gamma=5)").fit(X, y)
    assert model.is_convex_ is False
    # One pair of classes is small enough for a test of its own.
    labels = np.where(np.arange(150) < 30, y, 2)
    model = SVC(kernel="0.01 * sigmoid + rbf(gamma=5)").fit(X, labels)
    np.testing.assert_array_equal(np.isfinite(model.dual_gap_), [True, False, False])


def given_matrices(X):
    """Return a positive and an indefinite matrix."""
    K = rbf_kernel(X, gamma=0.3)
    wave = np.sin(np.arange(len(X)))
    return K, K - 0.5 * np.outer(wave, wave)


@every_machine
def test_matrices_of_the_user_are_tested(samples, name):
    X, y = samples
    positive, indefinite = given_matrices(X)
    model = machine(name, kernel="precomputed")
    assert model.fit(positive, y).is_convex_ is True
    assert gap_is(model, True)
    assert model.fit(positive.astype(np.float32), y).is_convex_ is True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a margin that means little
        model.fit(indefinite, y)
    assert model.is_convex_ is False
    assert gap_is(model, False)


@pytest.mark.parametrize("kind", ["precomputed", "function", "Custom"])
def test_large_matrices_of_the_user_are_tested_in_part(samples, few_rows, kind):
    X, y = samples
    for sign, verdict in ((0.0, None), (-2.0, False)):

        def function(A, B, sign=sign):
            return rbf_kernel(A, B, gamma=0.3) + sign * np.outer(A[:, 0], B[:, 0])

        data = function(X, X) if kind == "precomputed" else X
        kernel = {"precomputed": kind, "function": function, "Custom": Custom(function)}
        model = SVC(kernel=kernel[kind]).fit(data, y)
        assert model.is_convex_ is verdict
        assert gap_is(model, verdict is None)


def test_low_rank_survives_rounding(samples):
    X, y = samples
    model = SVC(kernel="precomputed", C=0.1)
    assert model.fit(1e6 + 1e3 * (X @ X.T), y).is_convex_ is True
    assert model.fit((X @ X.T).astype(np.float32), y).is_convex_ is True
    assert SVC(kernel="precomputed").fit(np.zeros((150, 150)), y).is_convex_ is True


def test_only_directions_that_keep_the_sums_count(samples):
    X, y = samples
    side = np.where(y > 0, 1.0, -1.0)
    K = rbf_kernel(X, gamma=0.3) - np.outer(side, side)
    # Each side of the nu machine keeps its own sum, and so cannot move along ``side``.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a margin that means little
        assert NuSVC(kernel="precomputed").fit(K, y).is_convex_ is True
    assert SVC(kernel="precomputed").fit(K, y).is_convex_ is False
    constant = rbf_kernel(X, gamma=0.3) - 5.0
    assert SVR(kernel="precomputed").fit(constant, y).is_convex_ is True


def test_each_pair_of_classes_is_looked_at(samples):
    X, _ = samples
    y = np.repeat([0, 1, 2], 50)
    K, indefinite = given_matrices(X)
    K[100:, 100:] = indefinite[100:, 100:]
    K[:100, 100:] = K[100:, :100] = 0.0
    model = SVC(kernel="precomputed").fit(K, y)
    np.testing.assert_array_equal(np.isfinite(model.dual_gap_), [True, False, False])
    assert model.is_convex_ is False


def test_samples_without_weight_do_not_matter(samples):
    X, y = samples
    K, indefinite = given_matrices(X)
    K[100:, 100:] = indefinite[100:, 100:]
    K[:100, 100:] = K[100:, :100] = 0.0
    weight = (np.arange(150) < 100).astype(float)
    assert SVC(kernel="precomputed").fit(K, y).is_convex_ is False
    assert SVC(kernel="precomputed").fit(K, y, weight).is_convex_ is True


def test_definite_up_to_sums():
    one = np.zeros(3, dtype=np.intp)
    assert is_definite(np.eye(3) - 1.0, one)
    assert not is_definite(-np.eye(3), one)
    assert is_definite(-np.eye(3), np.arange(3))  # nothing can move
    assert not is_definite(np.full((3, 3), np.nan), one)


def test_probabilities_do_not_change_the_verdict(samples):
    X, y = samples
    settings = dict(kernel="sigmoid", gamma=0.5)
    model = SVC(**settings, probability=True, random_state=0).fit(X, y)
    assert model.is_convex_ is False
    assert gap_is(model, False)


@pytest.mark.parametrize("method", ["smo", "group-lasso", "uniform"])
@pytest.mark.parametrize("machine", [MKLClassifier, MKLRegressor])
def test_several_kernels(samples, machine, method):
    X, y = samples
    model = machine([RBF(0.3), Linear()], method=method).fit(X, y)
    assert model.is_convex_ is True
    assert gap_is(model, True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an indefinite problem need not converge
        model = machine([RBF(0.3), Sigmoid(1.0)], method=method).fit(X, y)
    assert model.is_convex_ is False
    assert gap_is(model, False)


def test_fixed_weights_ask_for_a_definite_sum_only(samples):
    X, y = samples
    K, indefinite = given_matrices(X)
    matrices = [K + np.eye(150), 1e-3 * indefinite]
    settings = dict(kernels="precomputed", normalize=None)
    model = MKLClassifier(method="uniform", **settings).fit(matrices, y)
    assert model.is_convex_ is True
    model = MKLClassifier(method="smo", **settings).fit(matrices, y)
    assert model.is_convex_ is False


def test_given_matrices_too_large_for_a_full_test(samples, few_rows):
    X, y = samples
    K, indefinite = given_matrices(X)
    model = MKLClassifier(kernels="precomputed")
    assert model.fit([K, K * K], y).is_convex_ is None
    assert gap_is(model, True)
    assert model.fit([K, indefinite], y).is_convex_ is False


def test_held_samples(samples):
    X, y = samples
    model = OnlineSVC(kernel="rbf").fit(X, y)
    assert model.is_convex_ is True
    assert gap_is(model, True)
    model = OnlineSVC(kernel="sigmoid", gamma=0.5).fit(X, y)
    assert model.is_convex_ is False
    assert gap_is(model, False)


def test_shared_matrices(samples):
    X, y = samples
    for kernel, is_convex in (("rbf", True), ("sigmoid", False)):
        points = svm_path(X, y, [0.1, 1.0], estimator=SVC(kernel=kernel, gamma=0.5))
        assert all(point.model.is_convex_ is is_convex for point in points)
        assert all(np.isfinite(point.dual_gap) == is_convex for point in points)
    K, indefinite = given_matrices(X)
    for matrix, is_convex in ((K, True), (indefinite, False)):
        (point,) = svm_path(matrix, y, [1.0], estimator=SVC(kernel="precomputed"))
        assert point.model.is_convex_ is is_convex


N = 2200  # enough for single precision to be tried
PROBLEMS = {
    "C-SVC": lambda y, w: c_svc(y, 20.0 * w),
    "nu-SVC": lambda y, w: nu_svc(y, w, 0.3),
    "epsilon-SVR": lambda y, w: epsilon_svr(y * w, 5.0 * w, 0.2),
    "nu-SVR": lambda y, w: nu_svr(y * w, 5.0 * w, 0.3),
    "one-class": lambda y, w: one_class(w, 0.2),
    "SVDD": lambda y, w: svdd(np.ones(len(y)), w / 100),
}


@pytest.fixture(scope="module")
def many_samples():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, 10))
    side = np.where(X[:, 0] + 0.3 * rng.standard_normal(N) > 0, 1.0, -1.0)
    return X, side, rng.uniform(0.5, 1.5, N)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("form", ["double", "single", "CSR"])
def test_objective_and_gap_are_those_of_double_precision(many_samples, name, form):
    X, side, weight = many_samples
    if form == "CSR":
        X = sparse.csr_array(np.where(np.abs(X) < 1.0, 0.0, X))
    data = X.astype(np.float32) if form == "single" else X
    kernel = RBF(0.1)
    problem = PROBLEMS[name](side, weight)
    with Threads(2) as threads:
        (found,) = solve_many(
            kernel,
            Operand(data),
            [0, N],
            [TaskSpec(problem, (0,))],
            Settings(),
            threads,
        )
        assert found.is_single
        part = coarse_part(problem, found, np.arange(N))
        support = np.unique(part["sample"])[::-1]  # in any order
        ((objective, more),) = refine([part], kernel, data[support], support, threads)
    K = kernel.block(data.astype(np.float64))
    exact = certify(problem, found.beta, K @ np.bincount(problem.row, found.beta, N))
    assert found.converged
    assert np.abs(found.f - K @ np.bincount(problem.row, found.beta, N)).max() > 1e-9
    assert objective == pytest.approx(exact.objective, rel=1e-12)
    assert found.objective != pytest.approx(exact.objective, rel=1e-12)
    assert found.dual_gap + more == pytest.approx(
        exact.dual_gap, rel=2e-3, abs=1e-8 * abs(exact.objective)
    )


@pytest.mark.parametrize("model", [SVC(), SVR(), NuSVC(), OneClassSVM(), SVDD()])
def test_certificates_are_refined_when_they_are_asked_for(many_samples, model):
    X, side, _ = many_samples
    model = clone(model).set_params(kernel=RBF(0.1)).fit(X.astype(np.float32), side)
    assert ("_coarse" in vars(model)) != isinstance(model, SVDD)  # it asks in its fit
    again, third = pickle.loads(pickle.dumps(model)), copy.copy(model)
    assert "_coarse" not in vars(again)
    found = model.objective_, model.dual_gap_
    assert np.array_equal(found, (model.objective_, model.dual_gap_))
    assert np.array_equal(found, (again.objective_, again.dual_gap_))
    assert np.array_equal(found, (third.objective_, third.dual_gap_))
    before = clone(model)
    assert not hasattr(before, "objective_")
    model.fit(X[:50], side[:50])
    assert not np.array_equal(found[0], model.objective_)


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_objectives_of_several_classes(many_samples, scheme, n_jobs):
    X, side, _ = many_samples
    y = (side > 0) + 2 * (X[:, 1] > 0.5)
    settings = dict(C=50.0, gamma=0.1, multiclass=scheme, n_jobs=n_jobs)
    model = SVC(**settings, probability=n_jobs == 2, random_state=0).fit(X, y)
    B = model._weights().matrix.toarray()
    K = rbf_kernel(model.support_vectors_, gamma=0.1)
    expected = 0.5 * (B * (K @ B)).sum(axis=0) - np.abs(B).sum(axis=0)
    np.testing.assert_allclose(model.objective_, expected, rtol=1e-12)


@pytest.mark.parametrize("weights", ["shared", "per-task"])
def test_objectives_of_several_kernels(many_samples, weights):
    X, side, _ = many_samples
    y = (side > 0) + 2 * (X[:, 1] > 0.5)
    kernels = [RBF(0.02), RBF(0.3), Linear()]
    model = MKLClassifier(kernels, C=10.0, weights=weights, multiclass="ovo").fit(X, y)
    B = model._weights().matrix.toarray()
    grams = [kernel.block(model.support_vectors_) for kernel in kernels]
    parts = zip(model._factors, grams, strict=True)
    s = np.array([factor * (B * (K @ B)).sum(axis=0) for factor, K in parts])
    linear = np.abs(B).sum(axis=0)
    if weights == "shared":
        s, linear = s.sum(axis=1, keepdims=True), linear.sum()
    expected = 0.5 * np.linalg.norm(s, axis=0) - linear
    np.testing.assert_allclose(np.atleast_1d(model.objective_), expected, rtol=1e-12)
