"""Memory of this process and of those it has started."""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.processes import descendants

__all__ = ["claim_memory", "peak_mb", "resident_mb"]

# A virtual machine gives freed memory back to its host after some seconds, and waits
# for it when it is used again: from 0.1 to 1.9 s per GB, as the host pleases.
CLAIMED_BYTES = 2 << 30


def claim_memory() -> None:
    """Have free memory held ready, so that no peer pays for the host's delay.

    The peak of memory does not count what was claimed, or nothing is claimed.
    """
    try:
        with open("/proc/self/clear_refs", "w") as reset_of_peak:
            np.empty(CLAIMED_BYTES, dtype=np.uint8).fill(1)
            reset_of_peak.write("5")
    except (OSError, MemoryError):
        pass


def _status(field: str, process: int | str = "self") -> float | None:
    try:
        with open(f"/proc/{process}/status") as lines:
            for line in lines:
                if line.startswith(f"{field}:"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return None


def peak_mb() -> float:
    """Return the peak of resident memory so far.

    Those of worker processes that are alive are added; what they share counts twice.
    """
    # Where the system tells: ru_maxrss of a child process starts at its parent's.
    peak = _status("VmHWM")
    if peak is not None:
        return peak + sum(_status("VmHWM", pid) or 0.0 for pid in descendants())
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def resident_mb() -> float | None:
    """Return resident memory now; None where the system does not tell."""
    return _status("VmRSS")
