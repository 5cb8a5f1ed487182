"""What ``cache_size`` promises: kernel values and scratch memory stay within it."""

import tracemalloc

import numpy as np
import pytest

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
)
from mercer.engines.cpu.tiles import WORKERS, divide
from mercer.kernels import RBF, Custom, Linear
from mercer.selection import (
    GridSearchCV,
    cross_val_decision,
    svm_path,
    validation_curve,
)

N = 1500
# The whole matrix has 8.6 MB in single precision.
CACHE_SIZE = 4.0
# Not in the budget: the samples in the order and the coordinates that kernels want, and
# some of them as support vectors; vectors of numbers in double precision, of which each
# problem has six, with its solution, f, and two on the way.
COPIES = 4
VECTORS = 10
# What Python itself takes for small things.
SMALL_THINGS = 2**18

KERNELS = [RBF(0.02), RBF(0.2), Linear()]
FEW = {"max_iter": 3}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 6)).astype(np.float32)
    t = X[:, 0] + 0.5 * np.sin(3 * X[:, 1]) + 0.2 * rng.standard_normal(N)
    return X, t


def classes(t):
    return np.digitize(t, [-0.7, 0.0, 0.7])


def peak_above_start(fit):
    """Return the largest memory that arrays take on the way, in bytes."""
    fit()  # compiled code is loaded, or compiled
    tracemalloc.start()
    try:
        start = tracemalloc.get_traced_memory()[0]
        fit()
        return tracemalloc.get_traced_memory()[1] - start
    finally:
        tracemalloc.stop()


def allowance(X, n_variables):
    """Return the memory that is not in the budget."""
    return COPIES * X.nbytes + VECTORS * 8 * n_variables + SMALL_THINGS


# Beside each machine, the variables of all its problems in units of the samples.
MACHINES = {
    "two classes": (SVC(), "two", 1),
    "double precision": (SVC(tol=1e-5), "double", 1),
    "one-vs-one": (SVC(), "four", 3),
    "one-vs-rest": (SVC(multiclass="ovr"), "four", 4),
    "ecoc": (SVC(multiclass="ecoc"), "four", 7),
    "probability": (SVC(probability=True), "four", 3 + 5 * 3),
    "a sum of kernels": (SVC(kernel=RBF(0.1) + Linear() * RBF(0.3)), "two", 1),
    "a function": (SVC(kernel=Custom(lambda X, Z: (X @ Z.T + 1) ** 2)), "two", 1),
    "decompose": (SVC(solver="decompose"), "two", 1),
    "wss2": (SVC(solver="wss2", max_iter=200), "two", 1),
    "nu-SVC": (NuSVC(nu=0.3), "four", 3),
    "SVR": (SVR(), "values", 2),
    "nu-SVR": (NuSVR(), "values", 2),
    "one class": (OneClassSVM(nu=0.1), None, 1),
    "SVDD": (SVDD(C=0.01), None, 1),
    "several kernels": (MKLClassifier(KERNELS, **FEW), "two", 3),
    "several kernels, alignment": (
        MKLClassifier(KERNELS, method="alignment", **FEW),
        "two",
        3,
    ),
    "several kernels, pairs": (
        MKLClassifier(KERNELS, method="smo", p=2.0, **FEW),
        "two",
        3,
    ),
    "several kernels, values": (MKLRegressor(KERNELS, **FEW), "values", 2 * 3),
    "kernel PCA": (KernelPCA(3, kernel="rbf", gamma=0.1, tol=1e-2), None, 2),
    "randomized": (
        KernelPCA(3, kernel="rbf", gamma=0.1, eigen_solver="randomized"),
        None,
        2,
    ),
    "arpack": (
        KernelPCA(3, kernel="rbf", gamma=0.1, eigen_solver="arpack", tol=1e-2),
        None,
        2,
    ),
    "k-means": (KernelKMeans(4, init="k-means++", n_init=5, max_iter=3), None, 8),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MACHINES)
def test_a_fit_stays_within_the_budget(data, name):
    machine, kind, n_variables = MACHINES[name]
    X, t = data
    targets = {"two": t > 0, "double": t > 0, "four": classes(t), "values": t}
    X = X.astype(np.float64) if kind == "double" else X
    machine.set_params(cache_size=CACHE_SIZE, n_jobs=3)
    peak = peak_above_start(lambda: machine.fit(X, targets.get(kind)))
    assert peak <= CACHE_SIZE * 2**20 + allowance(X, n_variables * N)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "name", ["two classes", "one-vs-one", "decompose", "a sum of kernels", "kernel PCA"]
)
def test_many_threads_stay_within_the_budget(data, name):
    """Scratch memory is divided among threads, however many there are."""
    machine, kind, n_variables = MACHINES[name]
    X, t = data
    targets = {"two": t > 0, "four": classes(t)}
    machine.set_params(cache_size=CACHE_SIZE, n_jobs=16)
    peak = peak_above_start(lambda: machine.fit(X, targets.get(kind)))
    assert peak <= CACHE_SIZE * 2**20 + allowance(X, n_variables * N)


@pytest.mark.parametrize(
    ("machine", "cache_size"),
    [
        (SVC(C=0.05), 12.5),  # the matrix, and a part that shrinking copies
        (SVC(multiclass="ovr"), 12.5),
        (SVR(C=0.05), 12.5),
        (SVC(solver="platt", max_iter=20), 18),
        (MKLClassifier(KERNELS, **FEW), 46),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_matrix_in_memory_stays_within_the_budget(data, machine, cache_size):
    X, t = data
    y = t if isinstance(machine, SVR) else classes(t)
    machine.set_params(cache_size=cache_size, n_jobs=3)
    peak = peak_above_start(lambda: machine.fit(X, y))
    assert peak <= cache_size * 2**20 + allowance(X, 12 * N)
    if not isinstance(machine, MKLClassifier):
        assert peak >= 4 * N * N  # it was there


@pytest.mark.parametrize("cache_size", [CACHE_SIZE, 45.0])
@pytest.mark.parametrize("of", ["search", "estimator"])
@pytest.mark.filterwarnings("ignore:Kernel values could not be shared")
def test_a_search_stays_within_the_budget(data, cache_size, of):
    """Whether it shares kernel values or not, and whoever has the number."""
    X, t = data
    y = t > 0
    limit = cache_size * 2**20 + allowance(X, 40 * N)
    own = {"cache_size": cache_size if of == "search" else "auto", "n_jobs": 2}
    machine = SVC(cache_size="auto" if of == "search" else cache_size, n_jobs=2)
    grid = {"C": [0.1, 1], "gamma": [0.02, 0.1]}
    search = GridSearchCV(machine, grid, cv=3, return_train_score=True, **own)
    assert peak_above_start(lambda: search.fit(X, y)) <= limit
    assert (search.sharing_.n_shared > 0) == (cache_size > CACHE_SIZE)
    curve = {"param_name": "C", "param_range": [0.1, 1], "cv": 3, **own}
    for work in (
        lambda: validation_curve(machine, X, y, **curve),
        lambda: svm_path(X, y, [0.1, 1], estimator=machine, **own),
        lambda: cross_val_decision(machine, X, y, cv=3, **own),
    ):
        assert peak_above_start(work) <= limit


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_kernel_kmeans_from_eigenvectors(data):
    """Its square of 800 samples takes 10 MB in double precision, with one copy."""
    X = np.tile(data[0], (2, 1))
    machine = KernelKMeans(4, n_init=2, max_iter=2, cache_size=16, random_state=0)
    peak = peak_above_start(lambda: machine.fit(X))
    assert peak <= 16 * 2**20 + allowance(X, 8 * len(X))


def test_the_whole_matrix_for_kernel_pca_is_refused(data):
    machine = KernelPCA(3, kernel="rbf", eigen_solver="dense", cache_size=CACHE_SIZE)
    with pytest.raises(
        MemoryError, match=r"needs 8\.\d+ MB; cache_size=4.0 allows 4 M"
    ):
        machine.fit(data[0])


def test_the_budget_does_not_show(data):
    """Nor does the number of threads, where tiles are small."""
    X, t = data
    models = [
        SVC(cache_size=size, n_jobs=jobs).fit(X, t > 0)
        for size, jobs in ((CACHE_SIZE, 1), (CACHE_SIZE, 3), ("auto", 1))
    ]
    np.testing.assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)
    values = [model.decision_function(X) for model in models]
    np.testing.assert_allclose(values[0], values[2], atol=2e-3)


def test_memory_is_divided_whatever_the_number_of_workers():
    assert divide(800, 1000) == (800 // WORKERS, WORKERS)
    assert divide(10_000, 100) == (100, 100)  # each has what it wants
    assert divide(0, 100) == (1, 1)
    assert divide(1000, 600, 1) == (600, 1)
