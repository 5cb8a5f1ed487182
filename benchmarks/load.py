"""Whether a timed stretch had the machine for itself."""

from __future__ import annotations

import os
import time

from benchmarks.processes import seconds_of_descendants

__all__ = ["Watch"]

# Of /proc/stat: user, nice, system, irq, softirq and what the host took away.
BUSY_FIELDS = (0, 1, 2, 5, 6, 7)
# The system counts in ticks of some milliseconds: less time than this tells nothing.
LEAST_SECONDS = 0.2


def _busy_seconds() -> float | None:
    """Return the time that all cores have spent on anything, since the start."""
    try:
        with open("/proc/stat") as lines:
            fields = [int(ticks) for ticks in next(lines).split()[1:]]
    except OSError:
        return None
    return sum(fields[i] for i in BUSY_FIELDS) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    return time.process_time() + seconds_of_descendants()


class Watch:
    """Counts what others than this process and its children take, from now on."""

    def __init__(self) -> None:
        self._busy = _busy_seconds()
        self._own = _own_seconds()
        self._started = time.perf_counter()

    def others(self) -> float | None:
        """Return how many cores others kept busy on average; None where unknown."""
        wall = time.perf_counter() - self._started
        busy = _busy_seconds()
        if busy is None or self._busy is None or wall < LEAST_SECONDS:
            return None
        own = _own_seconds() - self._own
        return max(0.0, busy - self._busy - own) / wall
