"""Fits beside each other: in threads, in joblib's workers, and after a fork."""

import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info

import mercer
from mercer.runtime.threads import Threads, count_threads

NAMES = ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "SVDD"]
BACKENDS = ["loky", "threading", "multiprocessing"]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def fit(name, seed=0):
    """Fit a machine, and return all that could come out differently."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 5))
    y = rng.integers(0, 3, 300)
    model = getattr(mercer, name)().fit(X, y)
    return model.dual_coef_, model.intercept_, model.predict(X)


def assert_same(found, expected):
    # Sums depend on how arrays lie in memory, in the last bit; and where that decides
    # between two steps, the solver ends elsewhere within its (polished) tolerance.
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8)


def blas_threads():
    return max(m["num_threads"] for m in threadpool_info() if m["user_api"] == "blas")


def in_fork(work):
    """Return what ``work`` returns in a forked process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with os.fdopen(writing, "wb") as file:
                pickle.dump(work(), file)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        found = pickle.load(file)
    assert os.waitpid(child, 0)[1] == 0
    return found


def test_two_fits_at_once():
    jobs = [(name, seed) for name in NAMES for seed in (0, 1)]
    expected = [fit(*job) for job in jobs]
    before = blas_threads()
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda job: fit(*job), jobs))
    for mine, other in zip(found, expected, strict=True):
        assert_same(mine, other)
    assert blas_threads() == before


def test_many_fits_at_once():
    jobs = [(name, seed) for name in NAMES for seed in range(4)]
    expected = [fit(*job) for job in jobs]
    before = blas_threads()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda job: fit(*job), jobs))
    for mine, other in zip(found, expected, strict=True):
        assert_same(mine, other)
    assert blas_threads() == before
    workers = [t for t in threading.enumerate() if t.name.startswith("mercer")]
    assert len(workers) <= joblib.cpu_count()


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_fits_in_threads_of_workers(backend):
    """Pools inside pools end, and agree."""

    def several(names):
        with ThreadPoolExecutor(3) as pool:
            return list(pool.map(fit, names))

    expected = [fit(name) for name in NAMES]
    halves = joblib.Parallel(n_jobs=2, backend=backend)(
        joblib.delayed(several)(names) for names in (NAMES[:3], NAMES[3:])
    )
    for mine, other in zip(chain(*halves), expected, strict=True):
        assert_same(mine, other)


def test_one_model_predicts_in_two_threads(rng):
    X, y = rng.standard_normal((300, 5)), rng.integers(0, 3, 300)
    model = mercer.SVC().fit(X, y)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(model.decision_function, [X, X])
    assert_same([first, second], [model.decision_function(X)] * 2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_workers_of_joblib_fit_alike(backend):
    expected = [fit(name) for name in NAMES]
    found = joblib.Parallel(n_jobs=2, backend=backend)(
        joblib.delayed(fit)(name) for name in NAMES
    )
    for mine, other in zip(found, expected, strict=True):
        assert_same(mine, other)


@pytest.mark.parametrize("backend", BACKENDS)
def test_workers_of_joblib_do_not_oversubscribe(backend):
    n = joblib.cpu_count()
    counts = joblib.Parallel(n_jobs=max(2, n), backend=backend)(
        joblib.delayed(count_threads)(None) for _ in range(4)
    )
    assert counts == [1] * 4


@pytest.mark.skipif(joblib.cpu_count() < 2, reason="needs two cores")
def test_a_loky_worker_keeps_to_its_limit():
    with joblib.parallel_config("loky", inner_max_num_threads=2):
        counts = joblib.Parallel(n_jobs=2)(
            joblib.delayed(count_threads)(None) for _ in range(2)
        )
    assert counts == [2, 2]


def test_a_number_of_threads_that_was_asked_for_stands():
    for backend in ("threading", "multiprocessing"):
        counts = joblib.Parallel(n_jobs=2, backend=backend)(
            joblib.delayed(count_threads)(3) for _ in range(2)
        )
        assert counts == [3, 3]


@needs_fork
@pytest.mark.parametrize("name", NAMES)
def test_after_a_fork(name):
    expected = fit(name)
    assert_same(in_fork(lambda: fit(name)), expected)
    assert_same(fit(name), expected)


@needs_fork
@pytest.mark.skipif(sys.platform == "darwin", reason="its BLAS does not survive forks")
def test_a_fork_in_the_middle_of_a_fit():
    """The child has no part in the fit, nor in its hold on BLAS."""
    before, expected = blas_threads(), fit("SVC")
    with Threads(2) as threads:
        threads.map(abs, [1, 2])
        found, after, count = in_fork(
            lambda: (fit("SVC"), blas_threads(), count_threads(None))
        )
        assert blas_threads() == 1
    assert_same(found, expected)
    assert after == before
    assert count == count_threads(None)


IMPORTS_AT_ONCE = """
import sys
from concurrent.futures import ThreadPoolExecutor
import mercer
sys.setswitchinterval(1e-5)
names = [name for name in mercer.__all__ if name not in vars(mercer)]
with ThreadPoolExecutor(len(names)) as pool:
    found = list(pool.map(lambda name: getattr(mercer, name), names))
assert len(found) > 20, found
"""


def test_threads_may_ask_for_everything_at_once():
    """What is imported when it is first asked for is never found half made."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS_AT_ONCE], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
