import os
import subprocess
import sys
import threading
import time

import joblib
import pytest
from threadpoolctl import threadpool_info

from mercer.threads import Threads, count_threads


def blas_threads():
    return [m["num_threads"] for m in threadpool_info() if m["user_api"] == "blas"]


def test_results_keep_order():
    with Threads(3) as threads:
        assert threads.map(lambda x: x * x, range(20)) == [x * x for x in range(20)]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_worker_may_map_too(n_jobs):
    with Threads(n_jobs) as threads:

        def rows(k):
            return threads.map(lambda x: (k, x), range(3))

        found = threads.map(rows, range(6))
    assert found == [[(k, x) for x in range(3)] for k in range(6)]


def test_a_worker_of_another_pool_waits_for_this_one():
    with Threads(1) as outer, Threads(1) as inner:
        name = threading.get_ident
        (names,) = outer.map(lambda _: (name(), *inner.map(lambda _: name(), [0])), [0])
    assert names[0] != names[1]


def test_an_error_in_a_nested_map_comes_through():
    with (
        Threads(1) as threads,
        pytest.raises(ZeroDivisionError),
    ):
        threads.map(lambda k: threads.map(lambda x: x // k, [1]), [0])


def test_blas_is_held_and_given_back():
    before = blas_threads()
    with Threads(2):
        assert set(blas_threads()) == {1}
        with Threads(1):
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_blas_is_given_back_when_holds_overlap():
    before = blas_threads()
    first, second = Threads(1), Threads(1)
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert set(blas_threads()) == {1}
    second.__exit__()
    assert blas_threads() == before


def test_an_error_ends_the_work():
    def work(item):
        if item == 3:
            raise ValueError("item 3")
        return item

    with Threads(2) as threads:
        with pytest.raises(ValueError, match="item 3"):
            threads.map(work, range(1000))
        assert threads.stop[0] == 1


@pytest.mark.parametrize("is_watched", [False, True])
def test_an_error_stops_those_that_go_on(is_watched):
    with Threads(2) as threads:

        def work(item):
            if item == 1:
                raise ValueError("item 1")
            while not threads.stop[0]:
                time.sleep(0.001)

        with pytest.raises(ValueError, match="item 1"):
            threads.map(work, range(2), (lambda: None) if is_watched else None)


def test_an_error_of_after_each_ends_the_work():
    done = []

    def fail():
        raise KeyError("after")

    with Threads(2) as threads, pytest.raises(KeyError, match="after"):
        threads.map(lambda x: (done.append(x), time.sleep(0.001)), range(1000), fail)
    assert len(done) < 1000


def test_nothing_to_do():
    with Threads(2) as threads:
        assert threads.map(lambda x: x, []) == []
        assert threads.map(lambda x: x, [], lambda: None) == []


def test_after_each_runs_in_the_callers_thread():
    seen = []
    with Threads(2) as threads:
        threads.map(lambda x: x, range(5), lambda: seen.append(threading.get_ident()))
    assert seen == [threading.get_ident()] * 5


def test_n_jobs():
    assert count_threads(1) == 1
    assert count_threads(-1) == joblib.cpu_count()
    assert 1 <= count_threads(None) <= joblib.cpu_count()


def test_workers_of_joblib_do_not_oversubscribe():
    counts = joblib.Parallel(n_jobs=joblib.cpu_count())(
        joblib.delayed(count_threads)(None) for _ in range(2)
    )
    assert counts == [1, 1]


SLOW_FIT = """
import signal, sys, time, numpy as np
from mercer import SVC
# Where tests run in the background, signals of the keyboard may be ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
X = rng.standard_normal((6000, 3))
y = rng.integers(0, 2, 6000)
SVC().fit(X[:50], y[:50])
print("ready", flush=True)
try:
    SVC(C=1e6, gamma=0.1, tol=1e-9, solver="{solver}").fit(X, y)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize("solver", ["smo", "decompose"])
def test_ctrl_c_ends_a_long_fit(solver):
    import signal

    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_FIT.format(solver=solver)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ.copy(),
    )
    try:
        assert process.stdout.readline().strip() == "ready"
        time.sleep(1.5)
        assert process.poll() is None, "the fit ended before it could be interrupted"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=10)
        assert "interrupted" in out
    finally:
        process.kill()
