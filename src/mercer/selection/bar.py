"""A bar that shows how far a search is, and the best so far."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import numpy as np

from mercer.runtime.progress import EVERY, speak_up

try:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed
    from rich.progress import TimeRemainingColumn as Remaining
except ImportError:
    Progress = None  # type: ignore[assignment, misc]

__all__ = ["Bar"]

log = logging.getLogger("mercer")


class Bar:
    """Counts fits; drawn with rich where it is installed, else lines of text.

    Nothing is shown unless ``verbose``; with ``verbose`` of 2 and more, or where the
    output is not a terminal, lines of text.
    """

    def __init__(self, name: str, total: int, verbose: int):
        self._name = name
        self._total = total
        self._verbose = verbose
        self._done = 0.0
        self._best: tuple[float, dict[str, Any]] | None = None
        self._lock = threading.Lock()
        self._progress: Any = None

    def __enter__(self) -> Bar:
        self._started = self._spoken = time.monotonic()
        if not self._verbose:
            return self
        if Progress is not None and self._verbose == 1:
            progress = Progress(
                TextColumn("[progress.description]{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("fits"),
                Elapsed(),
                Remaining(),
                TextColumn("{task.fields[best]}"),
            )
            if progress.console.is_terminal:
                self._progress = progress
                self._task = progress.add_task(self._name, total=self._total, best="")
                progress.start()
                return self
        speak_up()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._progress is not None:
            self._progress.stop()
        elif self._verbose:
            self._speak(time.monotonic())

    def advance(self, fits: float) -> None:
        """Count fits, or parts of them."""
        with self._lock:
            self._done += fits
            self._show()

    @property
    def done(self) -> int:
        """The fits that are finished."""
        return int(self._done + 1e-6)  # parts of fits add up with rounding errors

    def offer(self, score: float, params: dict[str, Any]) -> None:
        """Take note of the mean score of a candidate."""
        if not np.isfinite(score):
            return
        with self._lock:
            if self._best is None or score > self._best[0]:
                self._best = (score, params)
            self._show()

    @property
    def best(self) -> str:
        """The best so far, in words."""
        if self._best is None:
            return ""
        score, params = self._best
        chosen = ", ".join(f"{name}={value}" for name, value in params.items())
        return f"best so far {score:.4g} ({chosen})"

    def _show(self) -> None:
        if self._progress is not None:
            self._progress.update(self._task, completed=self.done, best=self.best)
            return
        now = time.monotonic()
        if self._verbose and now - self._spoken >= EVERY:
            self._spoken = now
            self._speak(now)

    def _speak(self, now: float) -> None:
        log.info(
            "[%s] %.1f s: %d of %d fits%s",
            self._name,
            now - self._started,
            self.done,
            self._total,
            f", {self.best}" if self._best else "",
        )
