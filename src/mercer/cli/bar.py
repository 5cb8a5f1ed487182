"""A progress bar on the error stream, where that is a terminal."""

from __future__ import annotations

import math
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mercer.cli.models import last_step

__all__ = ["Bar"]

# The KKT gap with which most machines begin.
USUAL = 2.0


class Bar:
    """Shows how far fits are, as a callback of scikit-learn."""

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
        self._first = USUAL

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
        self._first = USUAL

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
        """Show how many problems are solved, or how far the only one is."""
        found: Any = metadata or {}
        gap, solved, problems = (found.get(k) for k in ("gap", "solved", "problems"))
        if self._task is None or gap is None:
            return False
        if problems > 1:
            done, state = solved / problems, f"{solved} of {problems} problems"
        elif gap < math.inf:
            # From the gap at the start to ``tol`` the way is measured in digits.
            tol = min(estimator.tol, 0.5)
            self._first = max(self._first, gap)
            done = math.log(self._first / max(gap, tol)) / math.log(self._first / tol)
            state = f"KKT gap {gap:.1e}"
        else:
            return False
        self._progress.update(self._task, total=1.0, completed=done, state=state)
        return False
