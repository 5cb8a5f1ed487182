"""The number of threads does not show in results, not in the last bit."""

import numpy as np
import pytest
from sklearn.base import clone

from mercer import (
    SVC,
    SVR,
    KernelKMeans,
    KernelPCA,
    KMeans,
    MKLClassifier,
    NuSVC,
    OneClassSVM,
)
from mercer.engines.cpu.engine import CpuEngine
from mercer.kernels import RBF, Chi2, Linear
from mercer.selection import GridSearchCV

COUNTS = (1, 2, 3, 16)
N = 1200


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.random((N, 8)).astype(np.float32)
    t = X @ rng.standard_normal(8) + 0.3 * rng.standard_normal(N)
    return X, t, np.digitize(t, np.quantile(t, [0.25, 0.5, 0.75]))


def arrays_of(machine):
    """Return all that was learnt, as bytes that can be compared."""
    names = [n for n in vars(machine) if n.endswith("_") and not n.startswith("_")]
    found = {}
    for name in names:
        value = getattr(machine, name)
        if isinstance(value, np.ndarray) and value.dtype != object:
            found[name] = value.tobytes()
        elif isinstance(value, (int, float, bool)):
            found[name] = repr(value).encode()
    return found


def zeros(X):
    """Return samples that are mostly zeros."""
    return X * (np.random.default_rng(1).random(X.shape) < 0.15)


FITS = {
    "whole matrix": (SVC(), "classes"),
    "rows": (SVC(solver="decompose"), "classes"),
    "rows of one problem": (SVC(solver="decompose", C=10.0), "two"),
    "rows, little memory": (SVC(solver="decompose", cache_size=3.0), "classes"),
    "nu-SVC by rows": (NuSVC(nu=0.2, solver="decompose"), "two"),
    "SVR by rows": (SVR(solver="decompose"), "values"),
    "probability": (SVC(probability=True, random_state=0), "two"),
    "one class": (OneClassSVM(nu=0.1), None),
    "several kernels": (MKLClassifier([RBF(0.5), RBF(2.0), Linear()]), "two"),
    "kernel PCA": (KernelPCA(3, kernel="rbf", gamma=1.0), None),
    "k-means": (KMeans(4, n_init=2, random_state=0), None),
    "kernel k-means": (KernelKMeans(4, n_init=2, max_iter=5, random_state=0), None),
}


@pytest.mark.parametrize("name", FITS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_and_predictions(data, name):
    X, t, y = data
    machine, kind = FITS[name]
    targets = {"classes": y, "two": y > 1, "values": t, None: None}[kind]
    is_sparse = name.startswith("rows")
    X = zeros(X) if is_sparse and name != "rows of one problem" else X
    first = None
    for count in COUNTS:
        model = clone(machine).set_params(n_jobs=count).fit(X, targets)
        found = arrays_of(model)
        for method in ("decision_function", "transform", "predict", "predict_proba"):
            if hasattr(model, method):
                found[method] = np.asarray(getattr(model, method)(X[:400])).tobytes()
        assert len(found) > 2
        first = found if first is None else first
        assert [k for k in first if first[k] != found[k]] == []


@pytest.mark.parametrize("kernel", [RBF(0.5), Linear(), RBF(0.5) + Linear(), Chi2(1.0)])
def test_kernel_matrices(data, kernel):
    X = data[0]
    for Z in (None, X[:700]):
        found = set()
        for count in COUNTS:
            with CpuEngine(count) as engine:
                found.add(engine.matrix(kernel, X, Z).tobytes())
        assert len(found) == 1


def test_searches(data):
    X, _, y = data
    found = []
    for count in COUNTS:
        search = GridSearchCV(
            SVC(), {"C": [0.1, 1.0], "gamma": [0.1, 1.0]}, cv=3, n_jobs=count
        ).fit(X[:600], y[:600])
        found.append(search.cv_results_["mean_test_score"].tobytes())
        found.append(search.decision_function(X[:100]).tobytes())
    assert set(found[2:]) == set(found[:2])
