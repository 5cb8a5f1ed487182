"""Live progress of a run: a progress bar on a terminal, or lines of text."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mercer.studies.report.outcomes import Outcome

__all__ = ["Watcher", "make_watcher"]


class Watcher:
    """Receives the events of a run; this class ignores them."""

    @contextmanager
    def watch(self, n_steps: int) -> Iterator[None]:
        """Watch while ``n_steps`` steps run."""
        yield

    def begin(self, study: str, step: str) -> None:
        """Receive the news that a step begins."""

    def skip(self, study: str, step: str) -> None:
        """Receive the news that an earlier run has computed a step."""

    def end(self, study: str, outcome: Outcome) -> None:
        """Receive the outcome of a step."""


class LineWatcher(Watcher):
    """Writes a line of text for each step."""

    @contextmanager
    def watch(self, n_steps: int) -> Iterator[None]:
        self._count, self._total = 0, n_steps
        yield

    def skip(self, study: str, step: str) -> None:
        self._count += 1

    def end(self, study: str, outcome: Outcome) -> None:
        self._count += 1
        sys.stderr.write(f"[{self._count}/{self._total}] {describe(study, outcome)}\n")
        sys.stderr.flush()


class RichWatcher(Watcher):
    """Shows a progress bar with the current step, and a line for each finished step."""

    @contextmanager
    def watch(self, n_steps: int) -> Iterator[None]:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        columns = (
            SpinnerColumn(),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        with Progress(*columns) as self._bar:
            self._task = self._bar.add_task("", total=n_steps)
            yield

    def begin(self, study: str, step: str) -> None:
        self._bar.update(self._task, description=f"{study}: {step}")

    def skip(self, study: str, step: str) -> None:
        self._bar.advance(self._task)

    def end(self, study: str, outcome: Outcome) -> None:
        self._bar.console.print(
            describe(study, outcome), highlight=False, markup=False, soft_wrap=True
        )
        self._bar.advance(self._task)


def describe(study: str, outcome: Outcome) -> str:
    """Return the line of text for a step that has ended."""
    line = f"{outcome.seconds:6.1f} s  {study}: {outcome.step}"
    return line if outcome.status == "done" else f"{line}: {outcome.status}"


def make_watcher(progress: Any) -> Watcher:
    """Return the watcher that ``progress`` asks for."""
    if isinstance(progress, Watcher):
        return progress
    if not progress:
        return Watcher()
    if importlib.util.find_spec("rich") is None:
        return LineWatcher()
    return RichWatcher() if sys.stdout.isatty() else LineWatcher()
