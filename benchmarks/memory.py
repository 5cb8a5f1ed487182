"""The memory of this process and of the processes that it has started."""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.processes import descendants

__all__ = ["claim_memory", "peak_mb", "resident_mb"]

# A virtual machine gives freed memory back to its host after some seconds. To get it
# again takes from 0.1 to 1.9 s per GB, depending on the host.
CLAIMED_BYTES = 2 << 30


def claim_memory() -> None:
    """Use some memory and free it, so that no peer has to wait for the host.

    The recorded peak of memory is reset afterwards.  If the system does not allow to
    reset the peak, no memory is claimed.
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

    The peaks of worker processes that are alive are added, so that memory shared with
    them counts twice.
    """
    # VmHWM is preferred, because ru_maxrss of a child starts at that of its parent.
    peak = _status("VmHWM")
    if peak is not None:
        return peak + sum(_status("VmHWM", pid) or 0.0 for pid in descendants())
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def resident_mb() -> float | None:
    """Return the resident memory now, or None if the system does not report it."""
    return _status("VmRSS")
