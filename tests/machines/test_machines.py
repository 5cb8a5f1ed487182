"""Regression, ν-machines and novelty against scikit-learn, and their certificates."""

import warnings
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import mercer
from certificate import kernel_matrix

KERNELS = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf", "gamma": 0.3},
    # Small values: LIBSVM keeps them in single precision.
    "poly": {"kernel": "poly", "gamma": 0.1, "coef0": 0.5, "degree": 3},
}
MACHINES = {
    "SVR": {"C": 2.0, "epsilon": 0.1},
    "NuSVR": {"C": 2.0, "nu": 0.4},
    # Not a whole number of samples: or all are at bounds, and any margin of an interval
    # is optimal.
    "NuSVC": {"nu": 0.311, "decision_function_shape": "ovo"},
    "OneClassSVM": {"nu": 0.3},
}
TOL = 1e-8
every_machine = pytest.mark.parametrize("name", MACHINES)
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
either_solver = pytest.mark.parametrize("solver", ["smo", "decompose"])


def samples(name, n=150):
    """Return samples, values or classes, and weights, some of them 0 or negative."""
    rng = np.random.default_rng(7)
    # Away from the origin, or the linear one-class machine has nothing to find.
    X = rng.standard_normal((n, 4)) + (1.5 if name == "OneClassSVM" else 0.0)
    X[rng.random(X.shape) < 0.3] = 0.0
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.standard_normal(n)
    if name == "NuSVC":
        # Nearly separable: LIBSVM does not end where nu leaves no margin.
        y = np.digitize(X[:, 0] + 0.5 * X[:, 1] + 0.1 * y, [-0.5, 0.5])
    weight = rng.uniform(0.2, 3.0, n)
    weight[::10] = 0.0
    weight[5::20] = -1.0
    return X, y, weight


def pair(name, kernel, **options):
    """Return the machine, and scikit-learn's."""
    settings = {**MACHINES[name], **kernel, "tol": TOL}
    ours = getattr(mercer, name)(**settings, **options)
    return ours, getattr(svm, name)(**settings)


def values(model, X):
    function = getattr(model, "decision_function", model.predict)
    return np.asarray(function(X))


def coefficients(model, n):
    beta = np.zeros(n)
    dual = model.dual_coef_
    beta[model.support_] = (dual.toarray() if sparse.issparse(dual) else dual)[0]
    return beta


def certify_regression(model, K, z, C):
    """Check box and sums, and return the gap of SVR or NuSVR."""
    beta = coefficients(model, len(z))
    assert (np.abs(beta) <= C * (1 + 1e-12)).all()
    assert abs(beta.sum()) <= 1e-9 * C.sum()
    up, down = np.maximum(beta, 0), np.minimum(beta, 0)
    if isinstance(model, mercer.NuSVR):
        assert up.sum() == pytest.approx(0.5 * model.nu * C.sum(), rel=1e-9)
        epsilon = 0.0
    else:
        epsilon = model.epsilon
    f = K @ beta
    G = np.concatenate([f - z + epsilon, f - z - epsilon])
    may_rise = np.concatenate([up < C, down < 0])
    may_fall = np.concatenate([up > 0, down > -C])
    groups = np.repeat([0, 1], len(z)) if model.__class__ is mercer.NuSVR else 0 * G
    return max(
        G[may_fall & (groups == g)].max() - G[may_rise & (groups == g)].min()
        for g in np.unique(groups)
    )


def certify_pairs(model, K, y, weight):
    """Check box and sums, and return the gap of NuSVC, before its margin is 1."""
    gap = 0.0
    dual = np.zeros((len(model.classes_) - 1, len(y)))
    dual[:, model.support_] = model.dual_coef_
    for a, b in combinations(range(len(model.classes_)), 2):
        first, second = y == a, y == b
        half = 0.5 * model.nu * weight[first | second].sum()
        beta = np.where(first, dual[b - 1], 0) + np.where(second, dual[a], 0)
        assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
        beta *= half / beta[first].sum()
        for rows, sign in ((first, 1.0), (second, -1.0)):
            alpha, room = sign * beta[rows], weight[rows]
            assert (alpha >= 0).all() and (alpha <= room * (1 + 1e-9)).all()
            assert alpha.sum() == pytest.approx(half, rel=1e-9)
            G = sign * (K[rows] @ beta)
            up, down = alpha < room * (1 - 1e-9), alpha > 0
            gap = max(gap, G[down].max() - G[up].min())
    return gap


def certify_novelty(model, K, weight):
    """Check box and sum, and return the gap of OneClassSVM."""
    alpha = coefficients(model, len(weight))
    assert (alpha >= 0).all() and (alpha <= weight * (1 + 1e-12)).all()
    assert alpha.sum() == pytest.approx(model.nu * weight.sum(), rel=1e-9)
    G = K @ alpha
    return G[alpha > 0].max() - G[alpha < weight].min()


def gap_of(model, K, y, weight):
    weight = np.maximum(weight, 0.0)
    if isinstance(model, mercer.NuSVC):
        return certify_pairs(model, K, y, weight)
    if isinstance(model, mercer.OneClassSVM):
        return certify_novelty(model, K, weight)
    return certify_regression(model, K, y, model.C * weight)


@either_solver
@every_kernel
@every_machine
def test_decision_values_and_certificate(name, kernel, solver):
    X, y, weight = samples(name)
    params = dict(KERNELS[kernel])
    K = kernel_matrix(X, X, params["kernel"], **_without(params, "kernel"))
    for w in (None, weight):
        ours, theirs = pair(name, params, solver=solver)
        theirs.fit(X, y, sample_weight=w)
        for data in (X, sparse.csr_array(X)):
            ours.fit(data, y, sample_weight=w)
            assert ours.converged_
            difference = values(ours, data) - values(theirs, X)
            assert np.abs(difference).max() <= 1e-5
            if data is X:
                gap = gap_of(ours, K, y, np.ones(len(y)) if w is None else w)
                assert gap <= TOL * (1 + 1e-6) + 1e-12 * np.abs(K).max()
                assert np.max(ours.kkt_gap_) == pytest.approx(gap, abs=1e-9)


def _without(settings, name):
    return {k: v for k, v in settings.items() if k != name}


@every_machine
def test_single_precision(name):
    X, y, weight = samples(name)
    single = X.astype(np.float32)
    ours, theirs = pair(name, KERNELS["rbf"])
    ours.set_params(tol=1e-4).fit(single, y, sample_weight=weight)
    theirs.fit(X, y, sample_weight=weight)
    assert ours.converged_
    assert ours.support_vectors_.dtype == np.float32
    assert np.abs(values(ours, single) - values(theirs, X)).max() <= 1e-3


@either_solver
@every_machine
def test_weights_are_repetitions(name, solver):
    X, y, _ = samples(name)
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), counts)
    weighted, _ = pair(name, KERNELS["rbf"], solver=solver)
    repeated, _ = pair(name, KERNELS["rbf"], solver=solver)
    weighted.fit(X, y, sample_weight=counts)
    repeated.fit(X[rows], y[rows])
    assert np.abs(values(weighted, X) - values(repeated, X)).max() <= 1e-5


@either_solver
@pytest.mark.parametrize("name", [*MACHINES, "SVDD"])
def test_threads_do_not_matter(name, solver):
    X, y, _ = samples(name, 400)
    found = []
    for n_jobs in (1, 2, 3):
        model = getattr(mercer, name)(solver=solver, n_jobs=n_jobs).fit(X, y)
        found.append((model.dual_coef_, model.intercept_, values(model, X)))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("is_sparse", [False, True])
@every_machine
def test_attributes_are_scikit_learns(name, is_sparse):
    X, y, _ = samples(name)
    ours, theirs = pair(name, KERNELS["linear"])
    data = sparse.csr_array(X) if is_sparse else X
    ours.fit(data, y)
    theirs.fit(data, y)
    public = [n for n in vars(theirs) if n.endswith("_") and not n.startswith("_")]
    for attribute in [*public, "coef_", "n_support_"]:
        mine, other = getattr(ours, attribute), getattr(theirs, attribute)
        assert sparse.issparse(mine) == sparse.issparse(other), attribute
        assert np.shape(mine) == np.shape(other), attribute
        if hasattr(other, "dtype"):
            assert mine.dtype == other.dtype, attribute
        else:
            assert type(mine) is type(other), attribute
        if attribute not in ("n_iter_", "classes_"):
            mine, other = (
                v.toarray() if sparse.issparse(v) else np.asarray(v, dtype=float)
                for v in (mine, other)
            )
            np.testing.assert_allclose(mine, other, atol=1e-4, err_msg=attribute)


@every_machine
def test_given_kernels(name):
    X, y, weight = samples(name)
    # LIBSVM loses count of a given matrix where samples have no weight.
    positive = np.abs(weight) + 0.1

    def function(A, B):
        return kernel_matrix(A, B, "rbf", gamma=0.3)

    plain, _ = pair(name, KERNELS["rbf"])
    for kernel, data in (("precomputed", function(X, X)), (function, X)):
        ours, theirs = pair(name, {"kernel": kernel})
        for w in (weight, positive):
            expected = values(plain.fit(X, y, sample_weight=w), X)
            ours.fit(data, y, sample_weight=w)
            assert np.abs(values(ours, data) - expected).max() <= 1e-5
        theirs.fit(data, y, sample_weight=positive)
        assert np.abs(values(ours, data) - values(theirs, data)).max() <= 1e-5
        np.testing.assert_array_equal(ours.support_, theirs.support_)


@pytest.mark.parametrize("name", [*MACHINES, "SVDD"])
def test_all_weights_gone(name):
    X, y, _ = samples(name)
    with pytest.raises(ValueError, match="zero or negative weights"):
        getattr(mercer, name)().fit(X, y, sample_weight=-np.ones(len(y)))


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
@pytest.mark.parametrize("name", ["SVC", *MACHINES, "SVDD", "MKLClassifier"])
def test_dense_and_sparse_copies_have_the_same_solution(name, kernel):
    """Of small data, whatever the tolerance: many solutions are within it."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[:400], y[:400]
    model = getattr(mercer, name)(**{"nu": 0.1} if name == "NuSVC" else {})
    if name == "MKLClassifier":
        model.set_params(kernels=["rbf", kernel])
    else:
        model.set_params(kernel=kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a margin that means little
        dense = clone(model).fit(X, y)
        other = clone(model).fit(sparse.csr_array(X), y)
    assert sparse.issparse(other.support_vectors_)
    np.testing.assert_array_equal(other.support_, dense.support_)
    scale = np.abs(dense.dual_coef_).max()
    np.testing.assert_allclose(
        other.dual_coef_.toarray(), dense.dual_coef_, rtol=0, atol=1e-9 * scale
    )
    np.testing.assert_allclose(other.intercept_, dense.intercept_, rtol=1e-9)


def test_a_function_gets_sparse_samples_as_they_are(rng):
    X = sparse.csr_array(rng.standard_normal((30, 4)))
    seen = []

    def product(A, B):
        seen.append(sparse.issparse(A) and sparse.issparse(B))
        return (A @ B.T).toarray()

    y = np.arange(30) % 2
    mercer.SVC(kernel=product).fit(X, y)
    mercer.SVC(kernel=mercer.kernels.Custom(product)).fit(X, y)
    mercer.MKLClassifier([mercer.kernels.Custom(product), "rbf"]).fit(X, y)
    assert seen
    assert all(seen)
