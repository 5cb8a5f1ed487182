"""Memory of this process and of those it has started."""

from __future__ import annotations

import sys

from benchmarks.processes import descendants

__all__ = ["peak_mb", "resident_mb"]


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
