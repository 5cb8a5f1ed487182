"""What all machines share: the kernel that they take, and what a fit leaves."""

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC as TheirSVC

from mercer import SVC, SVR, NuSVC
from mercer.engines.cpu import small
from mercer.engines.cpu.engine import CpuEngine
from mercer.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Cosine,
    Custom,
    Intersection,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from mercer.kernels.expression import KernelSyntaxError
from mercer.machines.base.machine import as_kernel


@pytest.fixture
def overlapping(rng):
    X = rng.standard_normal((300, 2)).astype(np.float32)
    y = X[:, 0] + rng.standard_normal(300) > 0
    return X, y


@pytest.mark.parametrize(("C", "precision"), [(1.0, np.float32), (1e5, np.float64)])
def test_prediction_has_the_precision_that_coefficients_need(
    overlapping, monkeypatch, C, precision
):
    X, y = overlapping
    used = []

    def recording(self, kernel, X, *rest):
        used.append(X.dtype)
        return apply(self, kernel, X, *rest)

    apply = CpuEngine.apply
    monkeypatch.setattr(CpuEngine, "apply", recording)
    model = SVC(C=C, gamma=0.5).fit(X, y)
    assert model.converged_
    few = model.decision_function(X[:5])
    monkeypatch.setattr(small, "MOST_WORK", 0)
    found = model.decision_function(X)
    assert used == [precision]
    np.testing.assert_allclose(few, found[:5], atol=1e-4)
    K = rbf_kernel(X.astype(float), model.support_vectors_.astype(float), gamma=0.5)
    exact = K @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(found, exact, atol=1e-4)


def test_linear_prediction_needs_no_kernel_block(overlapping, monkeypatch):
    X, y = overlapping
    model = SVC(kernel="linear").fit(X, y)
    monkeypatch.setattr(CpuEngine, "apply", None)
    expected = X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-5)


@pytest.mark.parametrize("dtype", [object, str])
def test_a_function_of_a_matrix_that_is_no_number(dtype):
    """It is called with the whole matrix, as scikit-learn calls it."""
    X = np.array([["a", "b"], ["a", "c"], ["d", "e"], ["d", "f"]], dtype=dtype)
    y = [0, 0, 1, 1]

    def matches(A, B):
        return (A[:, None] == B[None]).sum(axis=2).astype(float)

    model, theirs = (kind(kernel=matches).fit(X, y) for kind in (SVC, TheirSVC))
    expected = theirs.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-3)


def test_blanks_around_precomputed(overlapping):
    X, y = overlapping
    model = SVC(kernel=" precomputed ").fit(X @ X.T, y)
    expected = SVC(kernel="precomputed").fit(X @ X.T, y)
    np.testing.assert_array_equal(model.dual_coef_, expected.dual_coef_)


def test_a_matrix_that_is_not_symmetric(overlapping):
    X, y = overlapping
    K = X @ X.T
    K[0] += 1.0
    with pytest.warns(ConvergenceWarning, match="must be symmetric"):
        SVC(kernel="precomputed").fit(K, y)


def test_weights_of_features_before_fit():
    with pytest.raises(AttributeError, match="only available after fit"):
        _ = SVC(kernel="linear").coef_


WORDS = ["a", "bb", "ccc", "dd", "e", "ffff"]


def alike(A, B):
    return np.array([[1.0 / (1 + abs(len(a) - len(b))) for b in B] for a in A])


@pytest.mark.parametrize("kind", [SVC, SVR])
def test_targets_of_words(kind):
    y = np.array([0, 1, 1, 0, 0, 1])
    model = kind(kernel=alike).fit(WORDS, y)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        other = kind(kernel=alike).fit(WORDS, y[:, None])
    np.testing.assert_array_equal(model.predict(WORDS), other.predict(WORDS))
    for bad in (None, np.ones((6, 2))):
        with pytest.raises(ValueError, match="y should be a 1d array"):
            kind(kernel=alike).fit(WORDS, bad)


def test_words_in_a_series():
    pandas = pytest.importorskip("pandas")
    y = [0, 1, 1, 0, 0, 1]
    model = SVC(kernel=alike).fit(pandas.Series(WORDS), y)
    expected = SVC(kernel=alike).fit(WORDS, y).predict(WORDS)
    np.testing.assert_array_equal(model.predict(pandas.Series(WORDS)), expected)


def test_words_have_no_features():
    model = SVC().fit(np.eye(3), [0, 1, 1]).set_params(kernel=alike)
    assert not hasattr(model.fit(WORDS[:2], [0, 1]), "n_features_in_")


@pytest.mark.parametrize("nu", [0.3, 1e-5])
def test_a_margin_that_is_no_more_than_rounding(overlapping, nu):
    X, y = overlapping
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        NuSVC(nu=nu, kernel="linear").fit(X, y)
    texts = [str(w.message) for w in caught]
    assert any("Raise nu=1e-05" in text for text in texts) == (nu == 1e-5)
    assert len(texts) <= 1


SETTINGS = {"degree": 2, "gamma": 0.5, "coef0": 1.0}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("linear", Linear()),
        ("poly", Polynomial(2, 0.5, 1.0)),
        (" rbf ", RBF(gamma=0.5)),
        ("sigmoid", Sigmoid(0.5, 1.0)),
        ("laplacian", Laplacian(0.5)),
        ("chi2", Chi2(0.5)),
        ("cosine", Cosine()),
        ("additive_chi2", AdditiveChi2()),
        ("intersection", Intersection()),
        ("precomputed", Precomputed()),
        ("rbf(gamma=0.1) + linear", RBF(0.1) + Linear()),
        ("rbf()", RBF()),
        (np.dot, Custom(np.dot)),
    ],
)
def test_what_estimators_take(given, expected):
    assert as_kernel(given, **SETTINGS).key() == expected.key()


def test_what_estimators_refuse():
    kernel = RBF(3.0)
    assert as_kernel(kernel, **SETTINGS) is kernel
    message = (
        "Unknown kernel 'rfb'. Did you mean 'rbf'? Known: linear, polynomial, poly, "
        "rbf, laplacian, sigmoid, cosine, additive_chi2, chi2, intersection, "
        "precomputed, or pass a Kernel or a function of two matrices."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        as_kernel("rfb", **SETTINGS)
    for wrong in (3, None, int, ["rbf"]):
        with pytest.raises(TypeError, match="kernel must be a name or text, a Kernel"):
            as_kernel(wrong, **SETTINGS)
    with pytest.raises(KernelSyntaxError, match="never closed"):
        as_kernel("rbf(gamma=2", **SETTINGS)


def test_a_class_is_not_a_kernel():
    with pytest.raises(TypeError, match=r"the class RBF, not a kernel: write RBF\(\)"):
        as_kernel(RBF, degree=3, gamma=1.0, coef0=0.0)
