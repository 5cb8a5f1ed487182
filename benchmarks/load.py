"""Whether a timed stretch had the machine for itself."""

from __future__ import annotations

import os
import time

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


class Watch:
    """Counts what other processes take, from its creation on."""

    def __init__(self) -> None:
        self._busy = _busy_seconds()
        self._own = time.process_time()
        self._started = time.perf_counter()

    def others(self) -> float | None:
        """Return how many cores others kept busy on average; None where unknown."""
        wall = time.perf_counter() - self._started
        busy = _busy_seconds()
        if busy is None or self._busy is None or wall < LEAST_SECONDS:
            return None
        own = time.process_time() - self._own
        return max(0.0, busy - self._busy - own) / wall
