"""The outcomes of steps, of studies and of a whole run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from studies.results import Item
from studies.study import Study

__all__ = ["Outcome", "Report", "StudyReport"]


class Outcome(NamedTuple):
    """How a step ended, and its results."""

    step: str
    status: str  #: "done", "failed" or "unavailable"
    seconds: float
    items: Sequence[Item] = ()
    message: str = ""
    is_reused: bool = False  #: whether an earlier run had stored it
    processor_seconds: float = 0.0  #: the time of all cores together


class StudyReport(NamedTuple):
    """A study and the outcomes of its steps, in order."""

    study: Study
    outcomes: Sequence[Outcome]

    @property
    def seconds(self) -> float:
        """The time that the steps took, in this run or in an earlier one."""
        return sum(outcome.seconds for outcome in self.outcomes)

    @property
    def processor_seconds(self) -> float:
        """The time of all cores together."""
        return sum(outcome.processor_seconds for outcome in self.outcomes)


class Report(NamedTuple):
    """Everything that the page shows."""

    studies: Sequence[StudyReport]
    data: str
    is_full: bool
    quick: bool
    seed: int
    seconds: float
    computer: dict[str, Any]
    page: Path
    n_left: int = 0  #: the number of steps that did not run because of an interruption

    @property
    def n_reused(self) -> int:
        """The number of steps whose results an earlier run had stored."""
        return sum(o.is_reused for report in self.studies for o in report.outcomes)

    @property
    def failed(self) -> list[str]:
        """Names of the steps that failed, ``study/step``."""
        return [
            f"{report.study.name}/{outcome.step}"
            for report in self.studies
            for outcome in report.outcomes
            if outcome.status == "failed"
        ]
