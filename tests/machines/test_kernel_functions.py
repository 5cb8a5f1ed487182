"""A function as kernel means the same in all estimators."""

import threading
import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from mercer import (
    SVC,
    SVDD,
    SVR,
    KernelKMeans,
    KernelPCA,
    MKLClassifier,
    MKLRegressor,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OnlineSVC,
    PassiveAggressiveClassifier,
)
from mercer.engines.cpu import tiles
from mercer.kernels import RBF, Custom, Pairwise

MACHINES = {
    "SVC": SVC(),
    "NuSVC": NuSVC(nu=0.2),
    "SVR": SVR(),
    "NuSVR": NuSVR(),
    "OneClassSVM": OneClassSVM(),
    "SVDD": SVDD(),
}
OTHERS = {
    "MKLClassifier": MKLClassifier(),
    "MKLRegressor": MKLRegressor(),
    "OnlineSVC": OnlineSVC(),
    "OnlineSVC, lasvm": OnlineSVC(method="lasvm"),
    "PassiveAggressiveClassifier": PassiveAggressiveClassifier(random_state=0),
    "KernelPCA": KernelPCA(3, fit_inverse_transform=True),
    "KernelKMeans": KernelKMeans(3, random_state=0),
}
ESTIMATORS = {**MACHINES, **OTHERS}
BY_ROWS = ("KernelPCA", "KernelKMeans")
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
pytestmark = pytest.mark.filterwarnings("ignore")


def gaussian(A, B):
    assert A.ndim == B.ndim == 2
    A, B = (M.toarray() if sparse.issparse(M) else M for M in (A, B))
    return np.exp(-0.1 * ((A[:, None] - B[None]) ** 2).sum(axis=2))


def gaussian_of_two(a, b):
    assert a.ndim == b.ndim == 1
    return np.exp(-0.1 * ((a - b) ** 2).sum())


def with_kernel(name, kernel):
    model = clone(ESTIMATORS[name])
    if name.startswith("MKL"):
        return model.set_params(kernels=[kernel, "linear"])
    return model.set_params(kernel=kernel)


def samples(name, n=40):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 3))
    if "SVR" in name or "Regressor" in name:
        return X, X[:, 0]
    return X, np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "a", "b")


def values(model, X):
    for method in ("decision_function", "transform", "predict"):
        if hasattr(model, method):
            return getattr(model, method)(X)


@every_estimator
@pytest.mark.parametrize("form", ["function", "Custom", "Pairwise", "sparse"])
def test_a_function_is_its_kernel(name, form):
    X, y = samples(name)
    expected = values(with_kernel(name, RBF(0.1)).fit(X, y), X[:7] + 0.1)
    kernel = {"Custom": Custom(gaussian), "Pairwise": Pairwise(gaussian_of_two)}
    model = with_kernel(name, kernel.get(form, gaussian))
    new = X[:7] + 0.1
    if form == "sparse":
        if name == "KernelPCA":
            model.set_params(fit_inverse_transform=False)
        X, new = sparse.csr_array(X), sparse.csr_array(new)
    found = values(model.fit(X, y), new)
    if name == "KernelPCA":  # signs of components are free
        found, expected = np.abs(found), np.abs(expected)
    np.testing.assert_allclose(found, expected, atol=2e-3)


@every_estimator
def test_one_thread_at_a_time(name, monkeypatch):
    monkeypatch.setattr(tiles, "TILE_VALUES", 1)
    busy, calls = threading.Lock(), []

    def careful(A, B):
        assert busy.acquire(blocking=False), "the function is called from two threads"
        try:
            time.sleep(1e-4)  # lets other threads run
            calls.append(A.shape)
            return gaussian(A, B)
        finally:
            busy.release()

    X, y = samples(name, 600)
    # As a part of a sum, a function is called tile by tile.
    model = with_kernel(name, Custom(careful) + RBF(0.1))
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=4)
    values(model.fit(X, y), X)
    assert len(calls) > 10


@every_estimator
@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda A, B: A, r"returned shape \(\d+, 3\) for \d+ x \d+ samples; it must"),
        (lambda A, B: np.full((A.shape[0], B.shape[0]), np.nan), "NaN or infinity"),
    ],
)
def test_bad_values_are_refused(name, kernel, message):
    with pytest.raises(ValueError, match=message):
        with_kernel(name, kernel).fit(*samples(name))


@every_estimator
def test_errors_of_the_function_are_the_users(name):
    def broken(A, B):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        with_kernel(name, broken).fit(*samples(name))


@every_estimator
def test_a_function_of_two_samples(name):
    X, y = samples(name)

    def of_two(a, b):
        return float(np.exp(-0.1 * ((a - b) ** 2).sum()))

    model = with_kernel(name, of_two)
    if name in BY_ROWS:
        same = values(with_kernel(name, gaussian).fit(X, y), X)
        np.testing.assert_allclose(
            np.abs(values(model.fit(X, y), X)), np.abs(same), atol=1e-6
        )
        return
    with pytest.raises(ValueError, match=r"operands|goes into kernels\.Pairwise"):
        model.fit(X, y)


@pytest.mark.parametrize("name", BY_ROWS)
@pytest.mark.parametrize("function", [np.inner, np.dot], ids=["matrices", "rows"])
def test_functions_of_numpy(name, function):
    X, y = samples(name)
    expected = values(with_kernel(name, "linear").fit(X, y), X)
    found = values(with_kernel(name, function).fit(X, y), X)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-6)


@pytest.mark.parametrize("name", BY_ROWS)
def test_arguments_of_the_function(name):
    X, y = samples(name)
    calls = []

    def scaled(A, B, *, gamma):
        calls.append(gamma)
        return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    model = with_kernel(name, scaled).set_params(kernel_params={"gamma": 0.1})
    found = values(model.fit(X, y), X)
    expected = values(with_kernel(name, gaussian).fit(X, y), X)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-6)
    assert set(calls) == {0.1}


def length_kernel(A, B):
    assert all(isinstance(word, str) for word in A)
    lengths = [np.array([len(word) for word in words], float) for words in (A, B)]
    return np.exp(-(np.subtract.outer(*lengths) ** 2))


@every_estimator
def test_samples_that_are_not_numbers(name):
    words = ["a", "bb", "ccc", "a b", "dddd", "eeeee", "ff", "g"] * 3
    y = samples(name)[1][: len(words)]
    model = with_kernel(name, length_kernel)
    if name in MACHINES:
        assert np.isfinite(values(model.fit(words, y), ["aa", "b"])).all()
        model = with_kernel(name, Custom(length_kernel))
    message = f"{name.split(',')[0]} needs samples that are numbers here.* OneClassSVM"
    with pytest.raises(TypeError, match=message):
        model.fit(words, y)


@every_estimator
def test_numbers_in_an_array_of_objects(name):
    X, y = samples(name)
    found = values(with_kernel(name, Custom(gaussian)).fit(X.astype(object), y), X)
    expected = values(with_kernel(name, Custom(gaussian)).fit(X, y), X)
    np.testing.assert_array_equal(found, expected)


def test_pairwise_names_what_is_wrong():
    with pytest.raises(ValueError, match=r"shape \(2,\) for two .*kernels\.Custom"):
        SVC(kernel=Pairwise(lambda a, b: a[:2])).fit(*samples("SVC"))
    with pytest.raises(TypeError, match="Pairwise takes a function of two samples"):
        SVC(kernel=Pairwise(3)).fit(*samples("SVC"))
