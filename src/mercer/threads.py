"""Worker threads, and what keeps them from getting in each other's way.

Compiled code and matrix products release the GIL, so plain Python threads use all
cores.  While they run, BLAS is held to one thread each.  That setting belongs to the
whole process, so two fits in two threads share one hold on it.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

__all__ = ["Threads", "one_blas_thread"]

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


class _BlasHold:
    """Holds BLAS at one thread for as long as anybody needs it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._limiter: Any = None

    def take(self) -> None:
        with self._lock:
            self._holders += 1
            if self._holders == 1:
                self._limiter = _controller().limit(limits=1, user_api="blas")

    def release(self) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._limiter.restore_original_limits()

    def forget(self) -> None:
        """Begin anew in a forked process, which has none of the threads that held."""
        self._lock = threading.Lock()
        if self._holders:
            self._holders = 0
            self._limiter.restore_original_limits()

    def allowed(self) -> int:
        """Return how many threads BLAS may use when nobody holds it."""
        with self._lock:
            if self._holders:
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


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread: for small products, waiting for others costs more."""
    _blas.take()
    try:
        yield
    finally:
        _blas.release()


def _is_one_of_many() -> bool:
    """Whether this is a worker of a pool that nobody has told how much it may use.

    Loky tells its workers, by the limit of BLAS; the others are as many as the cores.
    """
    if multiprocessing.current_process().daemon:
        return True
    is_main = threading.current_thread() is threading.main_thread()
    return not is_main and get_active_backend()[0].nesting_level > 0


def count_threads(n_jobs: int | None) -> int:
    """Turn ``n_jobs`` into a number: None is what BLAS would use, -1 every core.

    In a worker of joblib's threads or of a pool of processes, None is 1.
    """
    if n_jobs is None:
        if _is_one_of_many():
            return 1
        # Follows the limits that joblib's workers and the environment set for BLAS.
        return max(1, min(effective_n_jobs(-1), _blas.allowed()))
    if n_jobs == 0:
        raise ValueError(
            "n_jobs must not be 0: give a number of threads, -1 for all cores, or None."
        )
    return effective_n_jobs(n_jobs)


def _be_quiet() -> None:
    """Let values overflow in this thread: results are looked at where they are used."""
    np.seterr(over="ignore", invalid="ignore")


# In a thread of a pool, whose it is.
_worker = threading.local()


class _Run:
    """Items that workers take one after the other; cheaper than a future for each."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        items: list,
        stop: NDArray[np.uint8],
        reports: bool,
    ):
        self.items = items
        self.results: list[Any] = [None] * len(items)
        self.is_over = False  #: whether what is left is not to be done
        self._function = function
        self._stop = stop
        self._left = iter(range(len(items)))
        self._lock = threading.Lock()
        self._reports: SimpleQueue[bool] | None = SimpleQueue() if reports else None
        self._n_awaited = len(items)

    def work(self) -> None:
        """Do items until none is left, or one fails."""
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
            self._stop[0] = 1  # others may be in a loop that looks at it
            if self._reports is not None:
                self._reports.put(False)
            raise

    def wait_for_one(self) -> bool:
        """Wait until one more item is done; False if there is none to wait for."""
        if not self._n_awaited or self._reports is None:
            return False
        self._n_awaited -= 1
        return self._reports.get()


class Threads:
    """A pool of threads for the time of one fit or prediction.

    ``stop[0]`` becomes 1 when the work is to end early; compiled loops look at it.
    """

    def __init__(self, n_jobs: int | None = None):
        self.count = count_threads(n_jobs)
        self.stop = np.zeros(1, dtype=np.uint8)

    def __enter__(self) -> Threads:
        self._pool = ThreadPoolExecutor(self.count, "mercer", self._begin)
        _blas.take()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop[0] = 1
        try:
            self._pool.shutdown(wait=True, cancel_futures=True)
        finally:
            _blas.release()

    def _begin(self) -> None:
        _be_quiet()
        _worker.of = self

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        after_each: Callable[[], None] | None = None,
        at_once: int | None = None,
    ) -> list[Result]:
        """Apply ``function`` to every item; results keep the items' order.

        No more than ``at_once`` threads take part, where memory is short.

        Even one thread runs beside the main one, which stays free to notice Ctrl-C and
        to call ``after_each`` as items are done.  A worker of this pool does the items
        itself, one after the other: those that it would wait for may wait for it.
        """
        if getattr(_worker, "of", None) is self:
            return self._in_turn(function, items, after_each)
        run = _Run(function, list(items), self.stop, after_each is not None)
        n_workers = min(self.count, len(run.items), at_once or self.count)
        futures = [self._pool.submit(run.work) for _ in range(n_workers)]
        try:
            if after_each is not None:
                while run.wait_for_one():
                    after_each()
            for future in futures:
                future.result()
        except BaseException:
            self.stop[0] = 1
            run.is_over = True
            for future in futures:
                future.cancel()
            raise
        return run.results

    def _in_turn(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        after_each: Callable[[], None] | None,
    ) -> list[Result]:
        results = []
        for item in items:
            results.append(function(item))
            if after_each is not None:
                after_each()
        return results
