"""Live progress of a run: a progress bar on a terminal, or lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mercer.runtime.bar import Bar
from studies.report.outcomes import Outcome

__all__ = ["TimeLeft", "Watcher", "make_watcher"]

Costs = Mapping[tuple[str, str], float]
# Seconds of measured work that the pace of a run is weighed against.
CAUTION = 15.0


class TimeLeft:
    """Estimates how long the rest of a run takes.

    Parameters
    ----------
    costs : mapping of (study, step) to float
        The seconds that each step took when it was measured. Steps of this run that
        took longer or shorter tell how fast the present computer is.
    """

    def __init__(self, costs: Costs):
        self._left = dict(costs)
        self._whole = sum(costs.values())
        self._measured = 0.0
        self._taken = 0.0

    @property
    def share_done(self) -> float:
        """The part of the work that is done, from 0 to 1."""
        return 1.0 - sum(self._left.values()) / self._whole if self._whole else 1.0

    @property
    def seconds(self) -> float:
        """How long the steps take that are left."""
        # The first steps compile, so a few seconds say little about the pace.
        pace = (self._taken + CAUTION) / (self._measured + CAUTION)
        return pace * sum(self._left.values())

    def skip(self, study: str, step: str) -> None:
        """Count a step as done that took no time."""
        self._left.pop((study, step), None)

    def end(self, study: str, step: str, seconds: float) -> None:
        """Count a step as done that took so many seconds."""
        self._measured += self._left.pop((study, step), 0.0)
        self._taken += seconds

    def __str__(self) -> str:
        seconds = self.seconds
        if seconds >= 90:
            return f"about {seconds / 60:.0f} min left"
        return (
            f"about {5 * round(seconds / 5)} s left" if seconds > 7 else "almost done"
        )


class Watcher:
    """Receives the events of a run; this class ignores them."""

    @contextmanager
    def watch(self, costs: Costs) -> Iterator[None]:
        """Watch while steps run; ``costs`` has the usual seconds of each of them."""
        yield

    def begin(self, study: str, step: str) -> None:
        """Receive the news that a step begins."""

    def skip(self, study: str, step: str) -> None:
        """Receive the news that an earlier run has computed a step."""

    def end(self, study: str, outcome: Outcome) -> None:
        """Receive the outcome of a step."""


class BarWatcher(Watcher):
    """Shows how much of the work is done, how long is left, and each finished step."""

    @contextmanager
    def watch(self, costs: Costs) -> Iterator[None]:
        self._n_steps, self._n_done = len(costs), 0
        self._left = TimeLeft(costs)
        with Bar("reproduce", 100, "%") as self._bar:
            yield

    def begin(self, study: str, step: str) -> None:
        self._bar.note(f"{self._left}; {study}: {step}")

    def skip(self, study: str, step: str) -> None:
        before = self._left.share_done
        self._left.skip(study, step)
        self._n_done += 1
        self._bar.advance(100 * (self._left.share_done - before))

    def end(self, study: str, outcome: Outcome) -> None:
        before = self._left.share_done
        self._left.end(study, outcome.step, outcome.seconds)
        self._n_done += 1
        line = f"{self._n_done} of {self._n_steps}: {outcome.seconds:.1f} s for "
        line += f"{study}: {outcome.step}"
        if outcome.status != "done":
            line += f": {outcome.status}"
        if self._n_done < self._n_steps:
            line += f"; {self._left}"
        self._bar.advance(100 * (self._left.share_done - before), line)
        self._bar.note("")


def make_watcher(progress: Any) -> Watcher:
    """Return the watcher that ``progress`` asks for."""
    if isinstance(progress, Watcher):
        return progress
    return BarWatcher() if progress else Watcher()
