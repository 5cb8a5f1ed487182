"""Live progress of a run: a progress bar on a terminal, or lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mercer.runtime.bar import Bar
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


class BarWatcher(Watcher):
    """Shows a progress bar with the current step, and a line for each finished step."""

    @contextmanager
    def watch(self, n_steps: int) -> Iterator[None]:
        self._total = n_steps
        with Bar("reproduce", n_steps, "steps") as self._bar:
            yield

    def begin(self, study: str, step: str) -> None:
        self._bar.note(f"{study}: {step}")

    def skip(self, study: str, step: str) -> None:
        self._bar.advance(1)

    def end(self, study: str, outcome: Outcome) -> None:
        line = f"{self._bar.done + 1} of {self._total}: {outcome.seconds:.1f} s for "
        line += f"{study}: {outcome.step}"
        if outcome.status != "done":
            line += f": {outcome.status}"
        self._bar.advance(1, line)
        self._bar.note("")


def make_watcher(progress: Any) -> Watcher:
    """Return the watcher that ``progress`` asks for."""
    if isinstance(progress, Watcher):
        return progress
    return BarWatcher() if progress else Watcher()
