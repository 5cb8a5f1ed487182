import gc
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from mercer.runtime.threads import (
    FEW_WORKERS,
    Threads,
    _blas,
    _crew,
    _here,
    count_threads,
    memory_of_thread,
)


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


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_a_worker_may_use_another_pool(n_jobs):
    with Threads(n_jobs) as outer, Threads(n_jobs) as inner:

        def rows(k):
            return inner.map(lambda x: outer.map(lambda z: (k, x, z), [0]), range(3))

        found = outer.map(rows, range(6))
    assert found == [[[(k, x, 0)] for x in range(3)] for k in range(6)]


def in_thread(work):
    """Return what ``work`` returns in another thread than the main one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(timeout=60)


def test_a_thread_that_may_have_one_works_itself():
    def idents():
        with Threads(1) as threads:
            return threading.get_ident(), *threads.map(
                lambda _: threading.get_ident(), range(3)
            )

    assert len(set(in_thread(idents))) == 1
    assert len(set(idents())) == 2  # the main thread stays free


def test_workers_are_no_more_than_the_cores():
    cores = joblib.cpu_count()
    most, lock = [], threading.Lock()

    def work(_):
        with lock:
            most.append(len(workers()))
        time.sleep(0.001)

    def fit(_):
        for _ in range(5):
            with Threads() as threads:
                threads.map(work, range(4))

    _crew.end()
    with Threads(1), ThreadPoolExecutor(4 * cores) as pool:
        list(pool.map(fit, range(8 * cores)))
    assert len(most) == 8 * cores * 5 * 4
    assert max(most) <= cores


def workers():
    return [t for t in threading.enumerate() if t.name.startswith("mercer")]


def test_cores_are_shared_and_come_back():
    n = joblib.cpu_count() + 1
    busy, done = threading.Event(), threading.Event()

    def granted():
        """Return how many threads a pool gets."""
        with Threads(n) as threads:
            found = _crew.take(threads, n)
            _crew.give_back(threads, found)
            return found

    def granted_beside():
        assert busy.wait(60)
        found = granted()
        done.set()
        return found

    def hold(_):
        busy.set()
        done.wait(60)

    assert in_thread(granted) == n
    with Threads(n) as first, ThreadPoolExecutor(1) as pool:
        beside = pool.submit(granted_beside)
        first.map(hold, range(n))
        assert beside.result(timeout=60) == 1
    assert in_thread(granted) == n


def test_a_pool_that_was_never_closed_does_not_count():
    allowed = count_threads(None)
    lost = Threads(4)
    lost.__enter__()
    _here.depth -= 1  # what an interrupt at the wrong moment leaves is the pool only
    del lost
    gc.collect()
    assert not _crew._open and not _blas._holders
    assert count_threads(None) == allowed
    with Threads(2):
        assert _blas._limiter is not None
    assert _blas._limiter is None


def test_an_interrupt_waits_for_the_workers():
    ended = []

    def work(k):
        if k == 0:
            raise KeyboardInterrupt
        while not threads.stop[0]:
            time.sleep(0.001)
        time.sleep(0.05)
        ended.append(k)

    with pytest.raises(KeyboardInterrupt), Threads(2) as threads:
        threads.map(work, range(2))
    assert ended in ([1], [])  # not begun, or over


MANY = FEW_WORKERS + 1  # more workers than end with each fit


def idents_of(n_jobs):
    """Return the workers of a pool, each of which has done an item."""
    met = threading.Barrier(n_jobs)

    def work(_):
        met.wait(60)
        memory_of_thread()["large"] = np.ones(1000)
        return threading.get_ident()

    with Threads(n_jobs) as threads:
        return set(threads.map(work, range(n_jobs)))


def test_workers_stay_for_the_next_pool_without_their_memory():
    first = idents_of(MANY)
    assert idents_of(MANY) == first
    assert all(not memory for memory in _crew._members.values())


def test_few_workers_end():
    idents_of(FEW_WORKERS)
    assert not workers()


def test_fewer_threads_than_before():
    first = idents_of(MANY + 3)
    assert idents_of(MANY) < first
    wait_until(lambda: len(workers()) == MANY)
    assert len(idents_of(2)) == 2
    assert len(idents_of(MANY)) == MANY


def wait_until(is_so):
    for _ in range(1000):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError("ten seconds were not enough")


def test_idle_workers_end(monkeypatch):
    _crew.end()
    monkeypatch.setattr("mercer.runtime.threads.IDLE_SECONDS", 0.05)
    assert len(idents_of(MANY)) == MANY
    wait_until(lambda: not workers())
    assert len(idents_of(MANY)) == MANY


def test_workers_end_only_while_no_pool_is_open():
    with Threads(MANY) as threads:
        threads.map(lambda _: None, range(MANY))
        _crew.end()
        assert workers()
        assert threads.map(lambda k: k, range(4)) == [0, 1, 2, 3]
    _crew.end()
    assert not workers()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_no_worker_waits_while_the_process_forks():
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKS],
        capture_output=True, text=True, timeout=60, env=os.environ.copy(),
    )  # fmt: skip
    assert found.stderr == ""
    assert found.stdout.split() == ["before", "6", "fork", "0", "child", "15", "15"]


FORKS = """
import os, threading, time
from mercer.runtime.threads import Threads

def total():
    with Threads(6) as threads:
        return sum(threads.map(lambda x: time.sleep(0.1) or x, range(6)))

total()
print("before", threading.active_count() - 1, flush=True)
child = os.fork()
if child:
    os.waitpid(child, 0)
    print(total())
else:
    print("fork", threading.active_count() - 1)
    print("child", total(), flush=True)
    os._exit(0)
"""


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


def test_blas_is_held_by_any_thread():
    before = blas_threads()
    with Threads(1):
        pass  # the main thread is the first to set the limit

    def held():
        with Threads(1):
            return blas_threads()

    assert set(in_thread(held)) == {1}
    assert blas_threads() == before


def test_blas_is_given_back_by_any_thread():
    before = blas_threads()
    entered, leave = threading.Event(), threading.Event()

    def late():
        with Threads(1):
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=late)
    with Threads(1):
        thread.start()
        assert entered.wait(60)
    assert set(blas_threads()) == {1}
    leave.set()
    thread.join()
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


def test_brief_work_stays_in_the_thread_that_asks():
    own = threading.get_ident()
    with Threads(3, brief=True) as threads:
        assert threads.map(lambda _: threading.get_ident(), range(5)) == [own] * 5
        with pytest.raises(KeyError, match="item"):
            threads.map({}.__getitem__, ["item"])
        assert threads.stop[0] == 1
