"""A fit that fails or is interrupted leaves the old model, or none."""

import inspect
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

import mercer
from mercer import images, selection

ROOT = str(Path(mercer.__file__).parent)
N = 60
KERNELS = ["rbf(gamma=0.1)", "linear"]
ESTIMATORS = {
    "SVC": mercer.SVC(probability=True, random_state=0),
    "NuSVC": mercer.NuSVC(nu=0.2),
    "SVR": mercer.SVR(),
    "NuSVR": mercer.NuSVR(),
    "OneClassSVM": mercer.OneClassSVM(),
    "SVDD": mercer.SVDD(),
    "LinearSVC": mercer.LinearSVC(),
    "LinearSVR": mercer.LinearSVR(),
    "MKLClassifier": mercer.MKLClassifier(KERNELS),
    "MKLRegressor": mercer.MKLRegressor(KERNELS),
    "PCA": mercer.PCA(3),
    "KernelPCA": mercer.KernelPCA(3, kernel="rbf", fit_inverse_transform=True),
    "KMeans": mercer.KMeans(3, random_state=0),
    "KernelKMeans": mercer.KernelKMeans(3, random_state=0),
    "OnlineSVC": mercer.OnlineSVC(),
    "PassiveAggressiveClassifier": mercer.PassiveAggressiveClassifier(random_state=0),
    "GridSearchCV": selection.GridSearchCV(mercer.SVC(), {"C": [0.1, 1.0]}, cv=2),
    "RandomizedSearchCV": selection.RandomizedSearchCV(
        mercer.SVC(), {"C": [0.1, 1.0, 10.0]}, n_iter=2, cv=2, random_state=0
    ),
    "ColourHistogram": images.ColourHistogram(regions=2),
    "Deskew": images.Deskew(),
    "Distort": images.Distort(random_state=0),
    "GaussianBlur": images.GaussianBlur(),
    "GaussianProjection": images.GaussianProjection(),
    "HOG": images.HOG(cell_size=4),
    "MedianFilter": images.MedianFilter(),
    "PatchFeatures": images.PatchFeatures(4, 8, 2, n_patches=200, random_state=0),
    "Rescale": images.Rescale(),
    "ToGrey": images.ToGrey(),
    "Trim": images.Trim(),
    "VirtualSVC": images.VirtualSVC(n_copies=1, random_state=0),
    "Views": images.Views(raw="passthrough", trimmed=images.Trim()),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
pytestmark = pytest.mark.filterwarnings("ignore")


class Failure(MemoryError):
    """Stands for whatever goes wrong."""


def data(name, seed):
    """Return samples and targets; other seeds have other sizes and labels."""
    rng = np.random.default_rng(seed)
    if hasattr(images, name):
        X = rng.uniform(size=(8, 12 + 4 * seed, 12))
        return X, np.arange(8) % 2 if is_classifier(ESTIMATORS[name]) else None
    X = rng.normal(size=(N + 10 * seed, 5 + seed))
    if name.endswith("SVR") or name == "MKLRegressor":
        return X, X[:, 0] + 0.1 * rng.normal(size=len(X))
    return X, np.where(X[:, 0] > 0, f"a{seed}", f"b{seed}")


def outputs(model, X):
    """Return what a fitted model says of samples, by method."""
    found = {}
    for method in READERS:
        if hasattr(model, method):
            found[method] = getattr(model, method)(X)
    return found


class Calls:
    """Counts calls of functions of Mercer in this thread; one of them can fail."""

    def __init__(self, at=None, failure=None):
        self.n, self._at, self._failure = 0, at, failure
        self.has_failed = False

    def __call__(self, frame, event, arg):
        code = frame.f_code
        # The decorator of ``fit`` is what puts the old model back.
        if not (code.co_filename.startswith(ROOT) and code.co_name != "whole"):
            return
        if event != "call":
            return
        self.n += 1
        if self.n == self._at:
            self.has_failed = True
            sys.setprofile(None)
            raise self._failure


@contextmanager
def watched(calls):
    sys.setprofile(calls)
    try:
        yield
    finally:
        sys.setprofile(None)


def moments(model, X, y):
    """Return calls, from the first to the last of a fit, at which to fail."""
    calls = Calls()
    with watched(calls):
        clone(model).fit(X, y)
    return np.unique(np.linspace(1, calls.n, 25).astype(int))


def test_every_estimator_is_here():
    known = {
        name
        for module in (mercer, images, selection)
        for name in module.__all__
        if inspect.isclass(getattr(module, name))
        and hasattr(getattr(module, name), "fit")
    }
    assert known == set(ESTIMATORS)


READERS = ("predict", "decision_function", "transform", "predict_proba")


@every_estimator
def test_a_model_can_be_used_while_it_is_fitted_anew(name):
    """What another thread computes is of one of the two models, and never an error."""
    X, y = data(name, 0)
    Z, z = data(name, 1)  # of the same features, and for machines with more samples
    Z = X[::-1] ** 2 if hasattr(images, name) else Z[:, : X.shape[1]]
    datasets = [(X, y), (Z, z)]
    model = clone(ESTIMATORS[name]).fit(X, y)
    expected = [outputs(clone(model).fit(*some), X) for some in datasets]
    is_over, wrong, counts = threading.Event(), [], []

    def read():
        count = 0
        while not (is_over.is_set() or wrong):
            try:
                found = outputs(model, X)
            except Exception as error:
                wrong.append(error)
                break
            count += 1
            for method, values in found.items():
                if not any(np.array_equal(values, e[method]) for e in expected):
                    wrong.append(method)
        counts.append(count)

    # Threads that take turns often meet every moment of a fit.
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    readers = [threading.Thread(target=read) for _ in range(2)]
    try:
        for reader in readers:
            reader.start()
        end = time.monotonic() + 0.5
        while time.monotonic() < end and not wrong:
            model.fit(*datasets[1])
            model.fit(*datasets[0])
    finally:
        is_over.set()
        for reader in readers:
            reader.join()
        sys.setswitchinterval(old)
    assert not wrong
    assert all(counts)


@every_estimator
@pytest.mark.parametrize("failure", [KeyboardInterrupt, Failure])
def test_a_refit_that_fails_leaves_the_old_model(name, failure):
    X, y = data(name, 0)
    model = clone(ESTIMATORS[name]).fit(X, y)
    expected, before = outputs(model, X), dict(vars(model))
    n_failed = 0
    for at in moments(model, *data(name, 1)):
        calls = Calls(at, failure)
        try:
            with watched(calls):
                model.fit(*data(name, 1))
        except failure:
            n_failed += 1
            assert vars(model) == before
            for method, values in outputs(model, X).items():
                np.testing.assert_array_equal(values, expected[method], method)
        else:
            # Threads share the calls out, and a search that is interrupted takes the
            # candidates that are finished.
            assert hasattr(selection, name) or not calls.has_failed
            model.fit(X, y)
            before = dict(vars(model))
    assert n_failed > 2
    again = clone(ESTIMATORS[name]).fit(*data(name, 1))
    found = outputs(model.fit(*data(name, 1)), data(name, 1)[0])
    for method, values in outputs(again, data(name, 1)[0]).items():
        np.testing.assert_array_equal(values, found[method], method)


@every_estimator
def test_a_first_fit_that_is_interrupted_leaves_none(name):
    X, y = data(name, 0)
    model = clone(ESTIMATORS[name])
    method = "predict" if hasattr(type(model), "predict") else "transform"
    for at in moments(model, X, y):
        model = clone(model)
        try:
            with watched(Calls(at, KeyboardInterrupt)):
                model.fit(X, y)
        except KeyboardInterrupt:
            assert set(vars(model)) == set(vars(clone(model)))
            if get_tags(model).requires_fit:
                with pytest.raises(NotFittedError):
                    getattr(model, method)(X)


def test_an_error_of_the_users_function_leaves_the_old_model(rng):
    def kernel(A, B):
        if fails:
            raise KeyboardInterrupt
        return A @ B.T

    fails = False
    X = rng.normal(size=(30, 3))
    model = mercer.SVC(kernel=kernel).fit(X, X[:, 0] > 0)
    expected = model.predict(X)
    fails = True
    with pytest.raises(KeyboardInterrupt):
        model.fit(rng.normal(size=(20, 3)), np.repeat(["a", "b"], 10))
    fails = False
    np.testing.assert_array_equal(model.predict(X), expected)
    np.testing.assert_array_equal(model.classes_, [False, True])


def test_parameters_that_are_refused_leave_the_old_model(rng):
    X = rng.normal(size=(30, 3))
    model = mercer.SVC().fit(X, X[:, 0] > 0)
    expected = model.decision_function(X)
    with pytest.raises(ValueError, match="'C' parameter"):
        model.set_params(C=-1.0).fit(X[:20], X[:20, 1] > 0)
    np.testing.assert_array_equal(model.decision_function(X), expected)


@every_estimator
@pytest.mark.parametrize("kind", ["list", "array", "Series"])
def test_one_dimensional_samples_are_refused(name, kind):
    """The message is scikit-learn's, which says what to do."""
    pd = pytest.importorskip("pandas")
    X, y = data(name, 0)
    column = np.asarray(X).reshape(len(X), -1)[:, 0]
    flat = {"list": column.tolist(), "array": column, "Series": pd.Series(column)}[kind]
    refused = pytest.raises(
        ValueError, match=r"Reshape your data|Pass a DataFrame|images"
    )
    with refused:
        clone(ESTIMATORS[name]).fit(flat, y)
    model = clone(ESTIMATORS[name]).fit(X, y)
    for method in READERS:
        if hasattr(model, method):
            with refused:
                getattr(model, method)(flat)
