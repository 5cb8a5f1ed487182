"""How long work takes without compilation, and how many predictions are right."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import event

__all__ = [
    "Fitted",
    "percent",
    "relative_gap",
    "seconds_of",
    "timed",
    "timed_fit",
    "times_in_turn",
]

# Work that takes less than this many seconds is timed several times.
SHORT = 0.3
REPEATS = 3


class Fitted(NamedTuple):
    """A model, and what the page says about its fit.

    ``gap`` is the largest duality gap of its machines as a fraction of the objective.
    """

    model: Any
    seconds: float
    gap: float | None
    converged: bool | None

    @property
    def facts(self) -> dict[str, Any]:
        """The keywords of :class:`~studies.results.Row` about the fit."""
        return {
            "seconds": self.seconds,
            "gap": self.gap,
            "converged": self.converged,
        }


def timed_fit(model: Any, X: Any, y: NDArray | None = None, **more: Any) -> Fitted:
    """Fit a model; return it with the time, the relative gap and whether it converged.

    A fit during which Numba compiled or loaded a function is run again, and a short fit
    is run up to three times, so that the time is that of the fit alone.
    """
    arguments = (X,) if y is None else (X, y)
    seconds = seconds_of(model.fit, *arguments, **more)
    machine = getattr(model, "steps", [("", model)])[-1][1]  # of a pipeline
    return Fitted(model, seconds, relative_gap(machine), _converged(machine))


def seconds_of(work: Callable[..., Any], *arguments: Any, **more: Any) -> float:
    """Return how long work takes when nothing is compiled: the median of its runs."""
    return timed(work, *arguments, **more)[0]


def timed(work: Callable[..., Any], *arguments: Any, **more: Any) -> tuple[float, Any]:
    """Return how long work takes when nothing is compiled, and its last result."""
    taken: list[float] = []
    is_warm = False
    while len(taken) < REPEATS:
        with _compilations() as compiled:
            started = time.perf_counter()
            found = work(*arguments, **more)
            seconds = time.perf_counter() - started
        if compiled and not is_warm:
            # Whatever this run compiled or loaded, the next run has in memory.
            is_warm = True
            continue
        taken.append(seconds)
        if seconds > SHORT:
            break
    return statistics.median(taken), found


def times_in_turn(
    works: Mapping[str, Callable[[], Any]], repeats: int = 5
) -> dict[str, list[float]]:
    """Return the times of several pieces of work that take turns, after a first turn.

    Because they take turns, a busy spell of the computer meets all of them.

    >>> times = times_in_turn({"a": lambda: None, "b": lambda: None}, repeats=2)
    >>> {name: len(taken) for name, taken in times.items()}
    {'a': 2, 'b': 2}
    """
    taken: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, work in works.items():
            started = time.perf_counter()
            work()
            if turn:  # the first turn compiles
                taken[name].append(time.perf_counter() - started)
    return taken


@contextmanager
def _compilations() -> Iterator[list[bool]]:
    """Give a list that gets an entry whenever Numba compiles or loads a function."""
    seen: list[bool] = []

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            seen.append(True)

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compiler_lock", Listener()):
        yield seen


def relative_gap(model: Any) -> float | None:
    """Return the largest gap of a model's machines over their objective, or None.

    A gap is infinite if a kernel is not positive definite: the dual is no bound then.
    Such a gap is None, too.
    """
    gap = getattr(model, "dual_gap_", None)
    objective = getattr(model, "objective_", None)
    if gap is None or objective is None:
        return None
    size = np.maximum(np.abs(np.atleast_1d(objective)), np.finfo(float).tiny)
    found = float(np.max(np.atleast_1d(gap) / size))
    return found if np.isfinite(found) else None


def _converged(model: Any) -> bool | None:
    found = getattr(model, "converged_", None)
    return None if found is None else bool(np.all(found))


def percent(predicted: NDArray, truth: NDArray) -> float:
    """Return the percentage of predictions that are right."""
    return 100.0 * float(np.mean(np.asarray(predicted) == np.asarray(truth)))
