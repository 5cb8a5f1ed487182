"""Worker threads, and what keeps them from getting in each other's way.

Compiled code and matrix products release the GIL, so that plain Python threads use all
cores.  While they run, BLAS is limited to one thread.  This limit belongs to the whole
process, so that two fits in two threads share it.

Fits that run at the same time share the cores: all take their workers from one pool,
and a fit that finds the cores busy works in the thread that called it.  More threads
than cores would slow a fit down: each time a worker returns its result, the caller may
have to wait for the interpreter's lock.

Many workers stay for a while when a fit has ended, since another one often follows, and
starting a thread for each of many cores can take longer than a short fit.  They end
before the process forks and when it ends, and what they keep is freed after each fit.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np
from joblib import cpu_count, effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

__all__ = ["Threads", "memory_of_thread", "one_blas_thread"]

Item = TypeVar("Item")
Result = TypeVar("Result")

# Seconds after which a worker without work ends.
IDLE_SECONDS = 30.0
# So many workers end with each fit.  They start in no time, and the system puts new
# threads on the cores that have least to do, while threads that wake up often share a
# core for a while: beside other work, fits of 0.2 s took a fifth longer on two cores.
FEW_WORKERS = 4


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

    def __init__(self) -> None:
        self.memory: dict[Hashable, Any] = {}


_here = _Here()


def memory_of_thread() -> dict[Hashable, Any]:
    """Return what the current thread keeps from item to item, such as large arrays.

    A worker keeps it until the fit or prediction has ended.
    """
    return _here.memory


class _Crew:
    """The worker threads of the process, which wait for work while no fit runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Weak references: a pool that an interrupt kept from leaving is not counted on.
        self._open: WeakSet[Threads] = WeakSet()
        self._orders: SimpleQueue[_Run | None] = SimpleQueue()
        #: what each worker keeps, by its thread
        self._members: dict[threading.Thread, dict[Hashable, Any]] = {}
        self._n_staying = 0  #: members that have not been told to end
        self._n_ordered = 0  #: orders that no worker has carried out yet

    def enter(self, threads: Threads) -> None:
        """Count a pool that was opened."""
        with self._lock:
            self._open.add(threads)

    def leave(self, threads: Threads) -> None:
        """Forget a pool; after the last one, few workers end and many keep nothing."""
        ended: list[threading.Thread] = []
        with self._lock:
            self._open.discard(threads)
            if not self._open:
                if self._n_staying <= FEW_WORKERS:
                    ended = self._dismiss()
                for memory in self._members.values():
                    memory.clear()
        if _here.worker_of is None:  # a worker cannot wait for itself
            for member in ended:
                member.join()

    def _dismiss(self) -> list[threading.Thread]:
        """Tell all workers to end, and return them."""
        for _ in range(self._n_staying):
            self._orders.put(None)
        self._n_staying = 0
        return list(self._members)

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

    def order(self, run: _Run, n_workers: int) -> None:
        """Let some workers begin with a run, each as soon as it is free.

        The crew has no more threads than may be at work.  A worker that has found no
        more items counts as busy for another moment; without a limit a new thread would
        be started in that moment, with scratch memory of its own.  Workers that an
        earlier fit with more threads has left end, for the same reason: work would go
        round among all of them.
        """
        with self._lock:
            counts = [threads.count for threads in self._open]
            size = max(min(_cores(), sum(counts)), max(counts, default=1))
            self._n_ordered += n_workers
            while self._n_staying > size:
                self._n_staying -= 1
                self._orders.put(None)
            # Workers start before there is something to do: one that works already
            # would keep this thread from starting the others.
            while self._n_staying < min(size, self._n_ordered):
                # A daemon: workers of a pool that was never closed must not keep the
                # process from ending.
                member = threading.Thread(
                    target=self._serve, args=[self._orders], daemon=True,
                    name=f"mercer_{self._n_staying}",
                )  # fmt: skip
                self._members[member] = {}
                self._n_staying += 1
                member.start()
            for _ in range(n_workers):
                self._orders.put(run)

    def _serve(self, orders: SimpleQueue[_Run | None]) -> None:
        """Be a worker: carry out orders until told to end, or idle for long."""
        _be_quiet()
        own = threading.current_thread()
        _here.memory = self._members[own]
        while True:
            try:
                run = orders.get(timeout=IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if self._n_ordered:
                        continue
                    self._n_staying -= 1
                    del self._members[own]
                return
            if run is None:
                break
            run.work()
            del run  # it holds items and results
            with self._lock:
                self._n_ordered -= 1
        with self._lock:
            del self._members[own]

    def end(self) -> None:
        """Let all workers end, unless a fit or prediction runs."""
        # A signal may have stopped this very thread while it held the lock.
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._open:
                return
            members = self._dismiss()
        finally:
            self._lock.release()
        for member in members:
            member.join()

    def forget(self) -> None:
        """Start again in a forked process, which has none of the threads."""
        self.__init__()  # type: ignore[misc]


_crew = _Crew()
atexit.register(_crew.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_crew.end, after_in_child=_crew.forget)


class _Run:
    """Items that workers take one after another, without a lock and without futures.

    A worker signs on before it takes its first item and signs off when none is left.
    The run is over when the last worker has signed off, so that nobody waits for a
    worker that came too late.
    """

    def __init__(
        self,
        threads: Threads,
        function: Callable[[Any], Any],
        items: list,
        reports: bool,
    ):
        self.results: list[Any] = [None] * len(items)
        self._items = items
        self._function = function
        self._threads = threads
        self._left = deque(range(len(items)))  # its methods are atomic
        self._lock = threading.Lock()
        self._n_working = 0
        self._is_closed = False  #: whether no worker may sign on any more
        self._error: BaseException | None = None
        self._over = threading.Lock()  #: is free when the run is over
        self._over.acquire()
        self._reports: SimpleQueue[bool] | None = SimpleQueue() if reports else None
        self._n_awaited = len(items)

    def _signs_on(self) -> bool:
        with self._lock:
            self._n_working += not self._is_closed
            return not self._is_closed

    def _sign_off(self) -> None:
        with self._lock:
            self._n_working -= 1
            if not self._n_working:
                self._is_closed = True
                self._over.release()

    def work(self) -> None:
        """Do items until none is left or one fails."""
        if not self._signs_on():
            return
        before, _here.worker_of = _here.worker_of, self._threads
        left, items, results = self._left, self._items, self.results
        function, reports = self._function, self._reports
        try:
            while left:
                try:
                    number = left.popleft()
                except IndexError:  # another worker was faster
                    break
                results[number] = function(items[number])
                if reports is not None:
                    reports.put(True)
        except BaseException as error:
            self._error = self._error or error
            left.clear()
            self._threads.stop[0] = 1  # other workers may be in a loop that checks this
            if reports is not None:
                reports.put(False)
        finally:
            _here.worker_of = before
            self._sign_off()

    def close(self) -> None:
        """Let no item begin any more."""
        with self._lock:
            self._left.clear()
            if not (self._is_closed or self._n_working):
                self._over.release()
            self._is_closed = True

    def wait(self) -> None:
        """Wait until no worker does an item any more."""
        with self._over:
            pass

    def outcome(self) -> list:
        """Wait for the results, and raise the error of an item that has failed."""
        self.wait()
        # The error refers to this object, which must not refer to it for ever.
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
        finally:
            del error
        return self.results

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
    results do not depend on how many it gets.  If the work is ``brief``, some
    milliseconds, waking threads would take longer: the thread that asks does it all.
    """

    def __init__(self, n_jobs: int | None = None, brief: bool = False):
        # Brief work has one thread; only a number that is not allowed is looked for.
        self.count = 1 if brief and n_jobs != 0 else count_threads(n_jobs)
        self._is_brief = brief
        self.stop = np.zeros(1, dtype=np.uint8)
        self.n_at_work = 0  #: threads that work for this pool and count for no other
        self._left: list[_Run] = []  #: runs whose workers may not have ended yet

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
            for run in self._left:
                run.wait()
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
        stays free to notice Ctrl-C and to call ``after_each`` as items are done. Brief
        work is the exception.  Any
        other thread works together with the workers that it gets.  A worker of this
        pool does the items itself, one after another.
        """
        if _here.worker_of is self or self._is_brief:
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
            return self._share_out(run, granted - works_along, works_along, after_each)
        finally:
            _crew.give_back(self, granted)

    def team(
        self, function: Callable[[], None], n_jobs: int, at_once: int | None = None
    ) -> None:
        """Call ``function()`` in as many threads as there are for so many jobs.

        The function takes jobs until none is left, with compiled code that needs no
        lock for it.  A call that comes late finds none.
        """
        most = min(self.count, n_jobs, at_once or self.count)
        self.map(lambda _: function(), range(most))

    def _share_out(
        self,
        run: _Run,
        n_workers: int,
        works_along: bool,
        after_each: Callable[[], None] | None,
    ) -> list:
        """Let workers do the items, and wait for them."""
        try:
            _crew.order(run, n_workers)
            if works_along:
                with np.errstate(over="ignore", invalid="ignore"):
                    run.work()
            elif after_each is not None:
                while run.wait_for_one():
                    after_each()
            return run.outcome()
        except BaseException:
            self.stop[0] = 1
            run.close()
            self._left.append(run)
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
