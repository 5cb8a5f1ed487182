"""How much memory may be used."""

from __future__ import annotations

import os
from typing import NamedTuple

__all__ = ["WORKERS", "Room", "budget_bytes", "divide", "free_memory", "given_budget"]

MEGABYTE = 2**20
UNKNOWN_FREE_MEMORY = 4 * 2**30
# Memory is divided among so many workers, whatever their number is: what they compute
# must not depend on it.
WORKERS = 8


class Room(NamedTuple):
    """Memory that is divided among workers."""

    each: int  #: bytes that one worker may take
    at_once: int  #: workers that there is room for


def divide(total: int, wanted: int, workers: int = WORKERS) -> Room:
    """Divide memory among workers, of whom each could use ``wanted`` bytes."""
    each = max(1, min(wanted, total // max(workers, 1)))
    return Room(each, max(1, total // each))


def budget_bytes(cache_size: float | str) -> int:
    """Turn ``cache_size`` (MB, or "auto": a quarter of free memory) into bytes.

    The budget is for kernel values and for all scratch memory whose size goes with the
    square of the number of samples or with the tiles that threads compute. Samples,
    copies of them, vectors of one number per sample, and results are not in it.
    """
    if cache_size == "auto":
        return free_memory() // 4
    return int(float(cache_size) * MEGABYTE)


def given_budget(cache_size: float | str) -> int | None:
    """Return the bytes that a user has allowed; None where "auto" leaves it open."""
    return None if cache_size == "auto" else budget_bytes(cache_size)


def free_memory() -> int:
    """Memory that can be had without swapping, as far as the system tells."""
    found = []
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    found.append(int(line.split()[1]) * 1024)
    except OSError:
        pass
    try:  # a container may have less than its machine
        with (
            open("/sys/fs/cgroup/memory.max") as most,
            open("/sys/fs/cgroup/memory.current") as current,
        ):
            found.append(max(0, int(most.read()) - int(current.read())))
    except (OSError, ValueError):
        pass
    if not found:
        try:
            found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
        except (AttributeError, OSError, ValueError):
            found.append(UNKNOWN_FREE_MEMORY)
    return min(found)
