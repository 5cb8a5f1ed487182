"""What a study is: a protocol in words and data, tables, and steps to run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.studies.data import Data
from mercer.studies.results import Item

__all__ = ["Fitted", "Plan", "Step", "Study", "Table", "percent", "timed_fit"]


@dataclass
class Plan:
    """What a run is made with.

    Attributes
    ----------
    data : Data
        The images.
    seed : int
        Seed of every split, and of everything drawn.
    quick : bool
        Whether to make do with very few images: to see that all works, not to learn.
    """

    data: Data
    seed: int = 0
    quick: bool = False
    _shared: dict[str, Any] = field(default_factory=dict, repr=False)

    def share(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what steps share, made by the first that asks for it."""
        if name not in self._shared:
            self._shared[name] = make()
        return self._shared[name]

    def forget(self) -> None:
        """Let go of what steps shared."""
        self._shared.clear()

    def pick(self, full: Any, sample: Any, quick: Any) -> Any:
        """Return the setting for full MNIST, for the sample, or for a quick run."""
        if self.quick:
            return quick
        return full if self.data.is_full else sample


class Step(NamedTuple):
    """A part of a study that runs, is stored and can fail by itself."""

    name: str
    work: Callable[..., Iterable[Item]]
    settings: Mapping[str, Any] = {}

    def run(self, plan: Plan) -> Iterable[Item]:
        """Yield the results."""
        return self.work(plan, **self.settings)


class Table(NamedTuple):
    """A table of the page: its columns in order, and which of them are per cent.

    Percentages are compared with the published ones, but for those in ``shown_only``.
    """

    name: str
    title: str
    columns: Mapping[str, str]
    percentages: Sequence[str] = ()
    shown_only: Sequence[str] = ()
    note: str = ""


class Study(NamedTuple):
    """One report, made again."""

    name: str
    title: str
    about: str
    protocol: Sequence[str]
    errata: Sequence[str]
    tables: Sequence[Table]
    steps: Callable[[Plan], list[Step]]


class Fitted(NamedTuple):
    """A model, the seconds its fit took, and how far from optimal it can be."""

    model: Any
    seconds: float
    gap: float | None


def timed_fit(model: Any, X: Any, y: NDArray, **more: Any) -> Fitted:
    """Fit a model, and note time and dual gap, of all its machines together."""
    started = time.perf_counter()
    model.fit(X, y, **more)
    seconds = time.perf_counter() - started
    gap = getattr(model, "dual_gap_", None)
    return Fitted(model, seconds, None if gap is None else float(np.sum(gap)))


def percent(predicted: NDArray, truth: NDArray) -> float:
    """Return how many of a hundred are right."""
    return 100.0 * float(np.mean(np.asarray(predicted) == np.asarray(truth)))
