"""The classifier: what it takes, what it refuses, and identities it must satisfy."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV

from certificate import certify
from mercer import SVC, kernels

# Tight enough for decision values to agree to 1e-6.
TIGHT = dict(gamma=0.3, C=2.0, tol=1e-8)


def make(n_classes=3, n=90, seed=0):
    """Samples whose classes are mixed in order."""
    X, y = make_classification(
        n, 6, n_informative=4, n_classes=n_classes, class_sep=0.8, random_state=seed
    )
    X.flags.writeable = y.flags.writeable = False
    return X, y


def check_same(one, other, X, Z=None, atol=1e-5):
    """Both machines give the same values, and the same classes."""
    Z = X if Z is None else Z
    np.testing.assert_allclose(
        one.decision_function(X), other.decision_function(Z), atol=atol
    )
    np.testing.assert_array_equal(one.predict(X), other.predict(Z))


def coefficients(model, n):
    """Return the coefficients sample by sample, shape (n, n_classes - 1)."""
    dense = np.zeros((n, len(model.dual_coef_)))
    dense[model.support_] = model.dual_coef_.T
    return dense


@pytest.mark.parametrize(
    "names",
    [[0, 1, 2], [7, -3, 2], [1.0, -2.0, 3.0], ["b", "a", "cc"], [True, False], [9, 8]],
    ids=str,
)
@pytest.mark.parametrize("dtype", [None, object])
def test_labels(names, dtype):
    X, y = make(len(names))
    y = np.array(names, dtype=dtype)[y]
    if dtype is object and not isinstance(names[0], str):
        y = y.astype(type(names[0]))
    model = SVC(**TIGHT).fit(X, y)
    assert model.classes_.tolist() == sorted(names)
    assert model.predict(X).dtype == y.dtype
    check_same(model, svm.SVC(**TIGHT).fit(X, y), X)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize(
    ("shape", "break_ties"), [("ovo", False), ("ovr", False), ("ovr", True)]
)
def test_shapes_of_decisions(n_classes, shape, break_ties):
    X, y = make(n_classes, 150)
    Z = np.random.default_rng(0).normal(size=(400, 6))
    settings = dict(TIGHT, decision_function_shape=shape, break_ties=break_ties)
    model = SVC(**settings).fit(X, y)
    check_same(model, svm.SVC(**settings).fit(X, y), Z)
    columns = {"ovo": n_classes * (n_classes - 1) // 2, "ovr": n_classes}[shape]
    expected = (400,) if n_classes == 2 else (400, columns)
    assert model.decision_function(Z).shape == expected
    if n_classes > 2:
        assert model.set_params(break_ties=True, decision_function_shape="ovo")
        with pytest.raises(ValueError, match="break_ties must be False when"):
            model.predict(Z)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", ["smo", "decompose"])
def test_weights_are_repetitions(n_classes, solver):
    X, y = make(n_classes)
    times = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = SVC(**TIGHT, solver=solver).fit(X, y, times)
    repeated = SVC(**TIGHT, solver=solver).fit(X.repeat(times, 0), y.repeat(times))
    np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-8)
    check_same(weighted, repeated, X)
    assert not np.isin(np.flatnonzero(times == 0), weighted.support_).any()


@pytest.mark.parametrize("class_weight", [{0: 3.0, 2: 0.5}, {1: 2.0}, "balanced"])
def test_class_weights(class_weight):
    X, y = make()
    keep = np.flatnonzero((y > 0) | (np.arange(len(y)) < 40))
    settings = dict(TIGHT, class_weight=class_weight)
    model = SVC(**settings).fit(X[keep], y[keep])
    other = svm.SVC(**settings).fit(X[keep], y[keep])
    check_same(model, other, X)
    np.testing.assert_allclose(model.class_weight_, other.class_weight_)
    by_sample = SVC(**TIGHT).fit(X[keep], y[keep], model.class_weight_[y[keep]])
    check_same(model, by_sample, X)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (lambda y: np.zeros(len(y)), "all samples have zero or negative weights"),
        (lambda y: np.full(len(y), -1.0), "all samples have zero or negative weights"),
        (lambda y: y == 1, "all samples with positive weights belong to the same cl"),
        (lambda y: np.ones(3), "sample_weight.shape ==|inconsistent numbers"),
        (lambda y: np.where(y == 1, np.nan, 1.0), "sample_weight contains NaN"),
        (lambda y: np.where(y == 1, np.inf, 1.0), "sample_weight contains infinity"),
    ],
)
def test_bad_weights(weights, message):
    X, y = make()
    with pytest.raises(ValueError, match=message):
        SVC().fit(X, y, sample_weight=weights(y))


def test_a_class_without_weight_is_never_predicted():
    X, y = make()
    weight = (y != 1).astype(float)
    model = SVC(**TIGHT).fit(X, y, weight)
    assert model.n_support_[1] == 0
    assert model.converged_
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_order_of_samples_does_not_matter(n_classes):
    X, y = make(n_classes)
    order = np.random.default_rng(2).permutation(len(y))
    model, other = SVC(**TIGHT).fit(X, y), SVC(**TIGHT).fit(X[order], y[order])
    np.testing.assert_allclose(
        coefficients(model, len(y))[order], coefficients(other, len(y)), atol=1e-5
    )
    check_same(model, other, X)


def test_weights_scale_C():
    X, y = make()
    weight = np.random.default_rng(3).uniform(0.5, 2.0, len(y))
    model = SVC(**TIGHT).fit(X, y, 10.0 * weight)
    check_same(model, SVC(**dict(TIGHT, C=20.0)).fit(X, y, weight), X, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", ["smo", "decompose", "wss2"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_sorted", [False, True])
def test_precomputed(n_classes, solver, dtype, is_sorted):
    X, y = make(n_classes)
    if is_sorted:
        X, y = X[np.argsort(y)], np.sort(y)
    Z = make(n_classes, seed=5)[0]
    K, K_new = rbf_kernel(X, gamma=0.3), rbf_kernel(Z, X, gamma=0.3)
    settings = dict(solver=solver, C=2.0, tol=1e-6)
    model = SVC(kernel="precomputed", **settings).fit(K.astype(dtype), y)
    own = SVC(gamma=0.3, **settings).fit(X, y)
    check_same(model, own, K_new.astype(dtype), Z, atol=1e-4)
    np.testing.assert_array_equal(model.n_support_, own.n_support_)
    assert model.support_vectors_.shape == (0, 0)
    other = SVC(kernel=kernels.Precomputed(), **settings).fit(K.astype(dtype), y)
    np.testing.assert_array_equal(model.dual_coef_, other.dual_coef_)


def test_precomputed_shapes():
    X, y = make()
    K = X @ X.T
    model = SVC(kernel="precomputed")
    with pytest.raises(ValueError, match=r"must be a square matrix\. Input is a 90x6"):
        model.fit(X, y)
    with pytest.raises(TypeError, match="Sparse precomputed kernels are not"):
        model.fit(sparse.csr_array(K), y)
    model.fit(K, y)
    with pytest.raises(ValueError, match="90"):
        model.predict(K[:, :50])


@pytest.mark.parametrize(
    "kernel",
    [
        lambda A, B: rbf_kernel(A, B, gamma=0.1) + A @ B.T,
        lambda A, B: sparse.csr_array(rbf_kernel(A, B, gamma=0.1) + A @ B.T),
        kernels.RBF(gamma=0.1) + kernels.Linear(),
        "rbf(gamma=0.1) + linear",
    ],
    ids=["function", "function giving sparse", "object", "text"],
)
@pytest.mark.parametrize("solver", ["smo", "decompose"])
def test_ways_to_give_a_kernel(kernel, solver):
    X, y = make()
    K = rbf_kernel(X, gamma=0.1) + linear_kernel(X)
    model = SVC(kernel=kernel, tol=1e-8, solver=solver).fit(X, y)
    check_same(model, SVC(kernel="precomputed", tol=1e-8).fit(K, y), X, K)
    if not callable(kernel):
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (lambda A, B: np.ones(3), ValueError, r"returned shape \(3,\) for 90 x 90 s"),
        (lambda A, B: A @ B.T * np.nan, ValueError, "returned NaN or infinity"),
        ("rfb", ValueError, r"Unknown kernel 'rfb'\. Did you mean 'rbf'\?"),
        ("rbf(gamma=", ValueError, "column"),
        (kernels.RBF(gamma=-1), ValueError, "gamma must be a finite number >= 0"),
        (kernels.RBF, TypeError, r"is the class RBF, not a kernel: write RBF\(\)"),
    ],
)
def test_bad_kernels(kernel, error, message):
    with pytest.raises(error, match=message):
        SVC(kernel=kernel).fit(*make())


def test_search():
    X, y = make(2)
    grid = {"C": [0.1, 10.0], "kernel__gamma": [0.01, 0.1, 1.0]}
    found = GridSearchCV(SVC(kernel=kernels.RBF()), grid, cv=3).fit(X, y)
    other = GridSearchCV(svm.SVC(), {"C": grid["C"], "gamma": grid["kernel__gamma"]})
    other = other.set_params(cv=3).fit(X, y)
    ours, theirs = (s.cv_results_["mean_test_score"] for s in (found, other))
    np.testing.assert_allclose(ours, theirs)
    assert found.best_estimator_.kernel_.gamma == other.best_params_["gamma"]


def test_infinite_C_is_a_hard_margin():
    X, y = make_classification(60, 4, class_sep=3.0, random_state=0)
    hard, large = SVC(C=np.inf).fit(X, y), SVC(C=1e8).fit(X, y)
    assert hard.converged_
    check_same(hard, large, X)
    margin = hard.decision_function(X) * np.where(y == 1, 1, -1)
    assert margin.min() >= 1 - 2 * hard.tol


DEGENERATE = {
    "duplicates": lambda X: X[np.arange(len(X)) // 9],
    "constant features": lambda X: np.column_stack([X[:, :1], np.full((len(X), 3), 7)]),
    "all the same": lambda X: np.ones_like(X),
    "one feature": lambda X: X[:, :1],
    "whole numbers": lambda X: np.round(X).astype(int),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("gamma", [0.0, 0.5, "scale"])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("n", [3, 90])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_degenerate_samples(name, gamma, C, n):
    X, y = make()
    X = DEGENERATE[name](X)
    X, y = (X[:n], np.arange(3)) if n == 3 else (X, y)
    model = SVC(gamma=gamma, C=C, max_iter=200_000).fit(X, y)
    K = rbf_kernel(X, gamma=model.kernel_.gamma)
    _, gap = certify(model, lambda a, b: K[np.ix_(a, b)], y, np.full(n, C))
    # One feature, many errors and a high price for them take millions of steps.
    assert model.converged_ or (C > 1 and "feature" in name)
    assert gap <= model.tol or not model.converged_
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_refit_and_copies(kernel):
    model = SVC(**TIGHT, kernel=kernel)
    with pytest.raises(NotFittedError, match="This SVC instance is not fitted yet"):
        model.predict([[1.0]])
    for n_classes in (3, 2, 4):
        X, y = make(n_classes)
        model.fit(X, y)
        check_same(model, clone(model).fit(X, y), X, atol=0.0)
        check_same(model, pickle.loads(pickle.dumps(model)), X, atol=0.0)
        assert hasattr(model, "coef_") == (kernel == "linear")
    assert SVC(**model.get_params()).get_params() == model.get_params()
    if kernel == "rbf":
        with pytest.raises(AttributeError, match="only available when using a linear"):
            _ = model.coef_
        check_same(model.set_params(C=1.0), SVC(**TIGHT).fit(X, y), X, atol=0.0)
    else:
        pairs = SVC(**TIGHT, kernel=kernel, decision_function_shape="ovo").fit(X, y)
        expected = X @ pairs.coef_.T + pairs.intercept_
        np.testing.assert_allclose(pairs.decision_function(X), expected)
