"""A progress bar on the error stream, where that is a terminal."""

from __future__ import annotations

import math
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mercer.cli.models import last_step

__all__ = ["Bar"]


class Bar:
    """Shows how far fits are: a callback of scikit-learn that goes by the KKT gap."""

    def __init__(self, quiet: bool = False):
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._task: Any = None
        self._first = math.inf

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def say(self, what: str) -> None:
        """Begin another piece of work."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(what, total=None, state="")
        self._first = math.inf

    def watch(self, estimator: Any, what: str) -> Any:
        """Show the fit of a pipeline that begins next, and return the pipeline."""
        self.say(what)
        last_step(estimator).set_callbacks(self)
        return estimator

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing: a fit begins."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing: a fit ends."""

    def on_fit_task_begin(self, estimator: Any, context: Any, **_: Any) -> None:
        """Do nothing: a part of a fit begins."""

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, metadata: Any = None, **_: Any
    ) -> bool:
        """Show the gap; the way from the first one to ``tol`` is measured in digits."""
        gap = (metadata or {}).get("gap", math.inf)
        if self._task is not None and 0 < gap < math.inf:
            self._first = (
                min(self._first, gap) if self._first == math.inf else self._first
            )
            whole = math.log(max(self._first, 2 * estimator.tol) / estimator.tol)
            done = math.log(self._first / max(gap, estimator.tol))
            self._progress.update(
                self._task,
                total=1.0,
                completed=min(max(done / whole, 0.0), 1.0),
                state=f"KKT gap {gap:.1e}",
            )
        return False
