"""How much memory may be used."""

from __future__ import annotations

import os

__all__ = ["budget_bytes", "free_memory"]

MEGABYTE = 2**20
UNKNOWN_FREE_MEMORY = 4 * 2**30


def budget_bytes(cache_size: float | str) -> int:
    """Turn ``cache_size`` (MB, or "auto": a quarter of free memory) into bytes."""
    if cache_size == "auto":
        return free_memory() // 4
    return int(float(cache_size) * MEGABYTE)


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
