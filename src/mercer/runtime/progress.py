"""Progress of a fit: scikit-learn's callbacks, and lines of text when verbose.

:class:`Reports` is the one place that calls callbacks, and :class:`FitCallback` the one
that is called as a callback. :class:`Lines` writes the lines of text. The other classes
say what there is to report about a fit.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = [
    "CountProgress",
    "FitCallback",
    "FitProgress",
    "Lines",
    "RelayProgress",
    "StepProgress",
    "StopButton",
]

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


class Lines:
    """Writes lines of text to the log, each with the name of what is going on."""

    def __init__(self, name: str, verbose: int):
        self._name = name
        self._verbose = verbose
        self._started = self._written = time.monotonic()
        if verbose:
            speak_up()

    @property
    def seconds(self) -> float:
        """The time since the beginning."""
        return time.monotonic() - self._started

    def is_due(self) -> bool:
        """Tell whether it is time for a line, which is then expected to be written."""
        now = time.monotonic()
        if not self._verbose or now - self._written < EVERY:
            return False
        self._written = now
        return True

    def write(self, text: str, *values: Any) -> None:
        """Write a line, if lines are wanted at all."""
        if self._verbose:
            log.info("[%s] " + text, self._name, *values)


class Reports:
    """Tells the callbacks of an estimator about its fit, which begins here."""

    def __init__(self, estimator: Any, X: Any, y: Any):
        self._told = {"estimator": estimator, "X": X, "y": y}
        self._context = estimator._init_callback_context(max_subtasks=None)
        self._context.call_on_fit_task_begin(**self._told)

    def report(self, task: str, metadata: Any) -> bool:
        """Report a part of the fit; return whether a callback asks for an early end.

        ``metadata`` is what callbacks are told, or a function that returns it.
        """
        if not self._context._callbacks:
            return False
        found = metadata() if callable(metadata) else metadata
        part = self._context.subcontext(task_name=task)
        part.call_on_fit_task_begin(**self._told)
        return bool(part.call_on_fit_task_end(**self._told, metadata=found))

    def end(self) -> None:
        """Report the end of the fit."""
        self._context.call_on_fit_task_end(**self._told)


class FitProgress:
    """Reports on the problems of one fit.

    A callback that asks for an early end sets ``stop[0]``.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        verbose: int,
        stop: Any,
        gap: str = "KKT gap",
    ):
        self._stop = stop
        self._gap = gap
        self._lock = threading.Lock()
        self._lines = Lines(type(estimator).__name__, verbose)
        self._reports = Reports(estimator, X, y)
        self.stopped_early = False
        for callback in getattr(estimator, "_skl_callbacks", ()):
            if isinstance(callback, StopButton):
                callback.connect(stop)

    def __call__(self, tasks: Sequence[Any]) -> None:
        """Report the state of the problems."""

        def metadata() -> dict[str, Any]:
            return {
                "gap": max(task.gap for task in tasks),
                "solved": sum(bool(task.done) for task in tasks),
                "problems": len(tasks),
            }

        with self._lock:
            if self._reports.report("solve", metadata):
                self.stopped_early = True
                self._stop[0] = 1
            if self._lines.is_due():
                gaps = [task.gap for task in tasks if np.isfinite(task.gap)]
                self._lines.write(
                    "%.1f s: %d of %d problems solved, %d steps, %s %.2g",
                    self._lines.seconds,
                    sum(task.done for task in tasks),
                    len(tasks),
                    sum(task.n_iter for task in tasks),
                    self._gap,
                    max(gaps, default=np.inf),
                )

    def finish(self, tasks: Sequence[Any]) -> None:
        """Report the end of the fit."""
        largest = max((s.kkt_gap for s in tasks), default=0.0)
        total = sum(s.dual_gap for s in tasks)
        self.end(f"{self._gap} {largest:.2g}, dual gap {total:.3g}")

    def end(self, found: str) -> None:
        """Report the end of the fit, and what was found."""
        self._reports.end()
        self._lines.write("fitted in %.2f s: %s", self._lines.seconds, found)


class StepProgress:
    """Reports on the rounds of a fit that does not consist of dual problems.

    Each round has a name and a value of what is measured. A call returns whether a
    callback asked for an early end.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, verbose: int):
        self._lines = Lines(type(estimator).__name__, verbose)
        self._reports = Reports(estimator, X, y)
        #: whether a callback has asked for an early end
        self.ended = False

    def __call__(self, what: str, value: float) -> bool:
        """Report one round: the name and the value of what is measured."""
        if self._reports.report("round", {what: value}):
            self.ended = True
        if self._lines.is_due():
            self._write(what, value)
        return self.ended

    def _write(self, what: str, value: float) -> None:
        self._lines.write("%.1f s: %s %.6g", self._lines.seconds, what, value)

    def finish(self, what: str, value: float) -> None:
        """Report the end of the fit."""
        self._reports.end()
        self._write(f"fitted, {what}", value)


class CountProgress:
    """Says, at most once a second, how many of many things are done."""

    def __init__(self, estimator: Any, total: int, unit: str, verbose: int):
        self._lines = Lines(type(estimator).__name__, verbose)
        self._total = total
        self._unit = unit
        self._done = 0

    def add(self, count: int) -> None:
        """Count things that are done."""
        self._done = min(self._done + count, self._total)
        if self._lines.is_due():
            seconds = self._lines.seconds
            done = (self._done, self._total, self._unit)
            self._lines.write("%.1f s: %d of %d %s", seconds, *done)

    def finish(self) -> None:
        """Report the end."""
        seconds = self._lines.seconds
        self._lines.write("%d %s in %.2f s", self._total, self._unit, seconds)


class FitCallback:
    """A callback of scikit-learn that is interested in the reports of a fit only."""

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing when a fit begins."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing when a fit has ended."""

    def on_fit_task_begin(self, estimator: Any, context: Any, **_: Any) -> None:
        """Do nothing: what there is to report is known when a part of a fit ends."""

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, metadata: Any = None, **_: Any
    ) -> bool:
        """Receive a report, if this is one; return whether the fit shall end early."""
        if metadata is None:  # the end of the whole fit
            return False
        return self.receive(estimator, context.task_name, metadata)

    def receive(self, estimator: Any, task: str, metadata: dict[str, Any]) -> bool:
        """Do something with a report; return whether the fit shall end early."""
        raise NotImplementedError


class RelayProgress(FitCallback):
    """Passes the reports of a fit within a fit on to the callbacks of the outer one.

    It is a callback of the inner estimator. Each report of the inner fit is reported as
    a part of the outer fit, and an early end that is asked for there ends the inner
    fit.
    """

    def __init__(self, estimator: Any, X: Any, y: Any):
        self._reports = Reports(estimator, X, y)

    def receive(self, estimator: Any, task: str, metadata: dict[str, Any]) -> bool:
        return self._reports.report(task, metadata)

    def finish(self) -> None:
        """Report the end of the outer fit."""
        self._reports.end()


class StopButton(FitCallback):
    """Ends a fit from another thread, also between two reports.

    It is a callback of the estimator. Solvers look at the flag that it sets every few
    steps, so that a fit ends within milliseconds. The estimator then holds an
    unfinished model, which says that it has not converged. A button that was pressed
    stays pressed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flags: list[Any] = []
        #: whether the button was pressed
        self.is_pressed = False

    def connect(self, flag: Any) -> None:
        """Take the flag of a fit, an array of one number."""
        with self._lock:
            self._flags.append(flag)
            if self.is_pressed:
                flag[0] = 1

    def press(self) -> None:
        """End the fits that have this callback, those that run and those to come."""
        with self._lock:
            self.is_pressed = True
            for flag in self._flags:
                flag[0] = 1

    def receive(self, estimator: Any, task: str, metadata: dict[str, Any]) -> bool:
        return self.is_pressed
