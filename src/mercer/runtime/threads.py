"""Worker threads, and what keeps them from getting in each other's way.

Compiled code and matrix products release the GIL, so that plain Python threads use all
cores.  While they run, BLAS is limited to one thread.  This limit belongs to the whole
process, so that two fits in two threads share it.

Fits that run at the same time share the cores: all take their workers from one pool,
and a fit that finds the cores busy works in the thread that called it.  More threads
than cores would slow a fit down: each time a worker returns its result, the caller may
have to wait for the interpreter's lock.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from queue import SimpleQueue
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np
from joblib import cpu_count, effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

__all__ = ["Threads", "one_blas_thread"]

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _controller() -> ThreadpoolController:
    # SciPy brings a BLAS of its own.  A library that is loaded later would not be known
    # here, and would keep all its threads.
    import_module("scipy.linalg")
    return ThreadpoolController()


@cache
def _cores() -> int:
    return cpu_count()


def _take_control() -> None:
    """Let this thread set the limit of BLAS.

    threadpoolctl lets only one thread do so, the first that has tried, for as long as
    this thread lives.  It silently ignores a limit that another thread asks for.
    """
    for library in _controller().lib_controllers:
        if clear := getattr(library, "clear_controlling_thread", None):
            clear(force=True)


class _BlasHold:
    """Limits BLAS to one thread for as long as a fit or prediction needs that."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Weak: a holder that an interrupt keeps from releasing must not hold for ever.
        self._holders: WeakSet[Any] = WeakSet()
        self._limiter: Any = None

    def take(self, holder: Any) -> None:
        with self._lock:
            self._holders.add(holder)
            if self._limiter is None:
                _take_control()
                self._limiter = _controller().limit(limits=1, user_api="blas")

    def release(self, holder: Any) -> None:
        with self._lock:
            self._holders.discard(holder)
            if not self._holders:
                self._restore()

    def _restore(self) -> None:
        if self._limiter is not None:
            _take_control()
            self._limiter.restore_original_limits()
            self._limiter = None
            _take_control()  # the next thread that sets a limit may be any thread

    def forget(self) -> None:
        """Start again in a forked process, which has none of these threads."""
        self._lock = threading.Lock()
        self._holders = WeakSet()
        self._restore()

    def allowed(self) -> int:
        """Return how many threads BLAS may use without our limit."""
        with self._lock:
            if self._limiter is not None:
                known = self._limiter.get_original_num_threads().get("blas")
            else:
                known = max(
                    (m["num_threads"] for m in _controller().info()
                     if m["user_api"] == "blas"),
                    default=None,
                )  # fmt: skip
        return known or effective_n_jobs(-1)


_blas = _BlasHold()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas.forget)


class _Holder:
    """Something that can hold BLAS at one thread."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread: small products cost less than waiting for threads."""
    holder = _Holder()
    _blas.take(holder)
    try:
        yield
    finally:
        _blas.release(holder)


def _is_one_of_many() -> bool:
    """Tell whether this is a worker of a pool that sets no thread limit.

    Loky sets the limit of BLAS in its workers.  Other pools have a worker for each
    core, so that one worker may use one core.
    """
    if multiprocessing.current_process().daemon:
        return True
    is_main = threading.current_thread() is threading.main_thread()
    return not is_main and get_active_backend()[0].nesting_level > 0


def count_threads(n_jobs: int | None) -> int:
    """Turn ``n_jobs`` into a number of threads.

    None means as many as BLAS would use, or 1 in a worker of joblib's threads or of a
    pool of processes; -1 means all cores.
    """
    if n_jobs is None:
        if _is_one_of_many():
            return 1
        # This follows the limits that joblib and the environment set for BLAS.
        return max(1, min(effective_n_jobs(-1), _blas.allowed()))
    if n_jobs == 0:
        raise ValueError(
            "n_jobs must not be 0: give a number of threads, -1 for all cores, or None."
        )
    return effective_n_jobs(n_jobs)


def _be_quiet() -> None:
    """Allow overflow in this thread: the results are checked where they are used."""
    np.seterr(over="ignore", invalid="ignore")


class _Here(threading.local):
    """What the current thread is doing."""

    worker_of: Threads | None = None  #: the pool it works for, if it is a worker
    depth = 0  #: how many pools it has opened, one inside the other


_here = _Here()


class _Crew:
    """The worker threads of the process; they exist while a fit or prediction runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Weak references: a pool that an interrupt kept from leaving is not counted on.
        self._open: WeakSet[Threads] = WeakSet()
        self._pool: ThreadPoolExecutor | None = None
        self._size = 0  #: the largest number of threads of the pool

    def enter(self, threads: Threads) -> None:
        """Count a pool that was opened."""
        with self._lock:
            self._open.add(threads)

    def leave(self, threads: Threads) -> None:
        """Forget a pool; after the last one the workers end."""
        with self._lock:
            self._open.discard(threads)
            pool = None
            if not self._open:
                pool, self._pool = self._pool, None
        if pool is not None:
            # A worker cannot wait for itself.
            pool.shutdown(wait=_here.worker_of is None, cancel_futures=True)

    def take(self, threads: Threads, wanted: int) -> int:
        """Return how many threads may work for a pool now, at least one.

        One of them is the thread that asks, which works itself or waits.  The others
        count as being at work until they are given back.
        """
        with self._lock:
            # A number of threads that the user asked for holds while no other fit runs.
            room = max(_cores(), threads.count)
            busy = sum(other.n_at_work for other in self._open)
            granted = max(1, min(wanted, 1 + room - busy))
            threads.n_at_work += granted - 1
            return granted

    def give_back(self, threads: Threads, granted: int) -> None:
        """Note that threads are not at work any more."""
        with self._lock:
            threads.n_at_work -= granted - 1

    def submit(self, work: Callable[[], None]) -> Future[None]:
        """Let a worker begin as soon as one is free.

        The crew has no more threads than may be at work.  A worker that has handed in
        its result counts as busy for another moment; without a limit a new thread would
        be started in that moment, with scratch memory of its own.
        """
        with self._lock:
            counts = [threads.count for threads in self._open]
            size = max(min(_cores(), sum(counts)), max(counts, default=1))
            if self._pool is not None and size > self._size:
                self._pool.shutdown(wait=False)  # it finishes what it has begun
                self._pool = None
            if self._pool is None:
                self._size = size
                self._pool = ThreadPoolExecutor(size, "mercer", _be_quiet)
            return self._pool.submit(work)

    def forget(self) -> None:
        """Start again in a forked process, which has none of the threads."""
        self.__init__()  # type: ignore[misc]


_crew = _Crew()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_crew.forget)


class _Run:
    """Items that workers take one after another, which is cheaper than futures."""

    def __init__(
        self,
        threads: Threads,
        function: Callable[[Any], Any],
        items: list,
        reports: bool,
    ):
        self.items = items
        self.results: list[Any] = [None] * len(items)
        self.is_over = False  #: whether the remaining items are not to be done
        self._function = function
        self._threads = threads
        self._left = iter(range(len(items)))
        self._lock = threading.Lock()
        self._reports: SimpleQueue[bool] | None = SimpleQueue() if reports else None
        self._n_awaited = len(items)

    def work(self) -> None:
        """Do items until none is left or one fails."""
        before, _here.worker_of = _here.worker_of, self._threads
        try:
            while not self.is_over:
                with self._lock:
                    number = next(self._left, None)
                if number is None:
                    return
                self.results[number] = self._function(self.items[number])
                if self._reports is not None:
                    self._reports.put(True)
        except BaseException:
            self.is_over = True
            self._threads.stop[0] = 1  # other workers may be in a loop that checks this
            if self._reports is not None:
                self._reports.put(False)
            raise
        finally:
            _here.worker_of = before

    def wait_for_one(self) -> bool:
        """Wait until one more item is done; return False if no more are expected."""
        if not self._n_awaited or self._reports is None:
            return False
        self._n_awaited -= 1
        return self._reports.get()


class Threads:
    """Worker threads for one fit or prediction, taken from the crew of the process.

    ``stop[0]`` becomes 1 when the work is to end early; compiled loops check it.
    ``count`` is the number of threads that it may have when nothing else runs.  The
    results do not depend on how many it gets.
    """

    def __init__(self, n_jobs: int | None = None):
        self.count = count_threads(n_jobs)
        self.stop = np.zeros(1, dtype=np.uint8)
        self.n_at_work = 0  #: threads that work for this pool and count for no other
        self._left: list[
            Future[None]
        ] = []  #: workers that may still run after a failure

    def __enter__(self) -> Threads:
        # A worker, or a thread that has another pool open, is already counted.
        is_counted = _here.worker_of is not None or _here.depth > 0
        self.n_at_work = 0 if is_counted else 1
        _here.depth += 1
        _crew.enter(self)
        _blas.take(self)
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop[0] = 1
        _here.depth -= 1
        try:
            wait(self._left)
        finally:
            _blas.release(self)
            _crew.leave(self)

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        after_each: Callable[[], None] | None = None,
        at_once: int | None = None,
    ) -> list[Result]:
        """Apply ``function`` to every item; results keep the items' order.

        At most ``at_once`` threads take part, where memory is short.

        The main thread never does items itself, even if there is only one worker: it
        stays free to notice Ctrl-C and to call ``after_each`` as items are done.  Any
        other thread works together with the workers that it gets.  A worker of this
        pool does the items itself, one after another.
        """
        if _here.worker_of is self:
            return self._in_turn(function, items, after_each)
        todo = list(items)
        if not todo:
            return []
        granted = _crew.take(self, min(self.count, len(todo), at_once or self.count))
        try:
            is_main = threading.current_thread() is threading.main_thread()
            if granted == 1 and not is_main:
                return self._in_turn(function, todo, after_each)
            run = _Run(self, function, todo, after_each is not None)
            works_along = not is_main and after_each is None
            self._share_out(run, granted - works_along, works_along, after_each)
            return run.results
        finally:
            _crew.give_back(self, granted)

    def _share_out(
        self,
        run: _Run,
        n_workers: int,
        works_along: bool,
        after_each: Callable[[], None] | None,
    ) -> None:
        """Let workers do the items, and wait for them."""
        futures: list[Future[None]] = []
        try:
            futures.extend(_crew.submit(run.work) for _ in range(n_workers))
            if works_along:
                with np.errstate(over="ignore", invalid="ignore"):
                    run.work()
            elif after_each is not None:
                while run.wait_for_one():
                    after_each()
            for future in futures:
                future.result()
        except BaseException:
            self.stop[0] = 1
            run.is_over = True
            self._left += [future for future in futures if not future.cancel()]
            raise

    def _in_turn(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        after_each: Callable[[], None] | None,
    ) -> list[Result]:
        """Do the items in this thread, one after another."""
        before, _here.worker_of = _here.worker_of, self
        results = []
        try:
            for item in items:
                # Without after_each, which may be a user's function.
                with np.errstate(over="ignore", invalid="ignore"):
                    results.append(function(item))
                if after_each is not None:
                    after_each()
        except BaseException:
            self.stop[0] = 1
            raise
        finally:
            _here.worker_of = before
        return results
