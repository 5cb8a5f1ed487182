"""Progress: scikit-learn's callbacks in a fit, and lines of text when verbose."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["CountProgress", "FitProgress", "RelayProgress", "StepProgress"]

log = logging.getLogger("mercer")

# Seconds between two lines of text.
EVERY = 1.0


def speak_up() -> None:
    """Let messages of ``verbose`` be seen, unless the program arranged otherwise."""
    if not log.hasHandlers():
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
    if log.getEffectiveLevel() > logging.INFO:
        log.setLevel(logging.INFO)


class FitProgress:
    """Reports on the tasks of one fit.

    Each report is a subtask of the fit in scikit-learn's callback protocol.  A callback
    that asks for an early end sets ``stop[0]``.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, verbose: int, stop: Any):
        self._estimator = estimator
        self._data = {"X": X, "y": y}
        self._stop = stop
        self._verbose = verbose
        self._lock = threading.Lock()
        self._started = self._spoken = time.monotonic()
        self._context = estimator._init_callback_context(max_subtasks=None)
        self._context.call_on_fit_task_begin(estimator=estimator, **self._data)
        self.stopped_early = False
        if verbose:
            speak_up()

    def __call__(self, tasks: Sequence[Any]) -> None:
        """Report the state of the tasks."""
        with self._lock:
            if self._context._callbacks:
                step = self._context.subcontext(task_name="solve")
                step.call_on_fit_task_begin(estimator=self._estimator, **self._data)
                end = step.call_on_fit_task_end(
                    estimator=self._estimator,
                    metadata={
                        "gap": max(task.gap for task in tasks),
                        "solved": sum(bool(task.done) for task in tasks),
                        "problems": len(tasks),
                    },
                    **self._data,
                )
                if end:
                    self.stopped_early = True
                    self._stop[0] = 1
            now = time.monotonic()
            if self._verbose and now - self._spoken >= EVERY:
                self._spoken = now
                self._speak(tasks, now)

    def _speak(self, tasks: Sequence[Any], now: float) -> None:
        n_done = sum(task.done for task in tasks)
        gaps = [task.gap for task in tasks if np.isfinite(task.gap)]
        log.info(
            "[%s] %.1f s: %d of %d problems solved, %d steps, KKT gap %.2g",
            type(self._estimator).__name__,
            now - self._started,
            n_done,
            len(tasks),
            sum(task.n_iter for task in tasks),
            max(gaps, default=np.inf),
        )

    def finish(self, tasks: Sequence[Any]) -> None:
        """Report the end of the fit."""
        self._context.call_on_fit_task_end(estimator=self._estimator, **self._data)
        if self._verbose:
            log.info(
                "[%s] fitted in %.2f s: KKT gap %.2g, dual gap %.3g",
                type(self._estimator).__name__,
                time.monotonic() - self._started,
                max((s.kkt_gap for s in tasks), default=0.0),
                sum(s.dual_gap for s in tasks),
            )


class CountProgress:
    """Says, at most once a second, how many of many things are done."""

    def __init__(self, estimator: Any, total: int, unit: str, verbose: int):
        self._name = type(estimator).__name__
        self._total = total
        self._unit = unit
        self._verbose = verbose
        self._done = 0
        self._started = self._spoken = time.monotonic()
        if verbose:
            speak_up()

    def add(self, count: int) -> None:
        """Count things that are done."""
        self._done = min(self._done + count, self._total)
        now = time.monotonic()
        if self._verbose and now - self._spoken >= EVERY:
            self._spoken = now
            log.info(
                "[%s] %.1f s: %d of %d %s",
                self._name,
                now - self._started,
                self._done,
                self._total,
                self._unit,
            )

    def finish(self) -> None:
        """Report the end."""
        if self._verbose:
            seconds = time.monotonic() - self._started
            log.info(
                "[%s] %d %s in %.2f s", self._name, self._total, self._unit, seconds
            )


class StepProgress:
    """Reports on the rounds of a fit that is no set of dual problems.

    Each round is a subtask of the fit in scikit-learn's callback protocol, with what
    is measured as metadata.  A call returns whether a callback asked for an early end.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, verbose: int):
        self._estimator = estimator
        self._data = {"X": X, "y": y}
        self._verbose = verbose
        self._started = self._spoken = time.monotonic()
        self._context = estimator._init_callback_context(max_subtasks=None)
        self._context.call_on_fit_task_begin(estimator=estimator, **self._data)
        #: whether a callback has asked for an early end
        self.ended = False
        if verbose:
            speak_up()

    def __call__(self, what: str, value: float) -> bool:
        """Report one round: the name and the value of what is measured."""
        if self._context._callbacks:
            step = self._context.subcontext(task_name="round")
            step.call_on_fit_task_begin(estimator=self._estimator, **self._data)
            end = step.call_on_fit_task_end(
                estimator=self._estimator, metadata={what: value}, **self._data
            )
            self.ended = self.ended or bool(end)
        now = time.monotonic()
        if self._verbose and now - self._spoken >= EVERY:
            self._spoken = now
            self._speak(what, value)
        return self.ended

    def _speak(self, what: str, value: float) -> None:
        name = type(self._estimator).__name__
        seconds = time.monotonic() - self._started
        log.info("[%s] %.1f s: %s %.6g", name, seconds, what, value)

    def finish(self, what: str, value: float) -> None:
        """Report the end of the fit."""
        self._context.call_on_fit_task_end(estimator=self._estimator, **self._data)
        if self._verbose:
            self._speak(f"fitted, {what}", value)


class RelayProgress:
    """Passes the reports of a fit within a fit on to the callbacks of the outer one.

    It is itself a callback, of the inner estimator.  Each report of that is a subtask
    of the outer fit, and an early end that is asked for there ends the inner fit.
    """

    def __init__(self, estimator: Any, X: Any, y: Any):
        self._estimator = estimator
        self._data = {"X": X, "y": y}
        self._context = estimator._init_callback_context(max_subtasks=None)
        self._context.call_on_fit_task_begin(estimator=estimator, **self._data)

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing: the outer fit has set its callbacks up."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing: the outer fit tears its callbacks down."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing: a report begins when it ends, see below."""

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, metadata: dict[str, Any] | None = None
    ) -> bool:
        """Pass a report on; return whether a callback asked for an early end."""
        if metadata is None or not self._context._callbacks:
            return False  # the end of the inner fit, of which the outer has its own
        step = self._context.subcontext(task_name=context.task_name)
        step.call_on_fit_task_begin(estimator=self._estimator, **self._data)
        return bool(
            step.call_on_fit_task_end(
                estimator=self._estimator, metadata=metadata, **self._data
            )
        )

    def finish(self) -> None:
        """Report the end of the outer fit."""
        self._context.call_on_fit_task_end(estimator=self._estimator, **self._data)
