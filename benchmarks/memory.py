"""Memory of this process."""

from __future__ import annotations

import sys

__all__ = ["peak_mb", "resident_mb"]


def _status(field: str) -> float | None:
    try:
        with open("/proc/self/status") as lines:
            for line in lines:
                if line.startswith(f"{field}:"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return None


def peak_mb() -> float:
    """Return the peak of resident memory so far."""
    # Where the system tells: ru_maxrss of a child process starts at its parent's.
    peak = _status("VmHWM")
    if peak is not None:
        return peak
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def resident_mb() -> float | None:
    """Return resident memory now; None where the system does not tell."""
    return _status("VmRSS")
