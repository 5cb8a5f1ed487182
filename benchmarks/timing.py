"""Time a piece of work, and tell whether other processes kept the machine busy."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.processes import seconds_of_descendants

__all__ = ["Times", "Watch", "timed"]

# Fields of /proc/stat: user, nice, system, irq, softirq, and time taken by the host.
BUSY_FIELDS = (0, 1, 2, 5, 6, 7)
# The system counts in ticks of some milliseconds, so shorter times tell nothing.
LEAST_SECONDS = 0.2


def _busy_seconds() -> float | None:
    """Return the time that all cores have been busy since the system was started."""
    try:
        with open("/proc/stat") as lines:
            fields = [int(ticks) for ticks in next(lines).split()[1:]]
    except OSError:
        return None
    return sum(fields[i] for i in BUSY_FIELDS) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    """Return the CPU time of this process and its children."""
    return time.process_time() + seconds_of_descendants()


class Watch:
    """Measures, from now on, the CPU time of this process and of all others."""

    def __init__(self) -> None:
        self._busy = _busy_seconds()
        self._own = _own_seconds()
        self._started = time.perf_counter()

    def own(self) -> float:
        """Return the CPU time that this process and its children have taken."""
        return _own_seconds() - self._own

    def others(self) -> float | None:
        """Return how many cores others kept busy on average; None if unknown."""
        wall = time.perf_counter() - self._started
        busy = _busy_seconds()
        if busy is None or self._busy is None or wall < LEAST_SECONDS:
            return None
        return max(0.0, busy - self._busy - self.own()) / wall


class Times(NamedTuple):
    """What a piece of work has taken."""

    seconds: float  #: wall time
    cpu_seconds: float  #: CPU time of this process and its children
    others_cores: float | None  #: cores that other processes kept busy, if known


def timed(work: Callable[[], Any]) -> tuple[Any, Times]:
    """Return the result of ``work()``, and the time it took."""
    watch = Watch()
    started = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - started
    return result, Times(seconds, watch.own(), watch.others())
