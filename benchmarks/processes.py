"""The processes that this one has started, such as joblib's workers."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["descendants", "seconds_of_descendants"]

# Of /proc/PID/stat, after the name in brackets: the parent, and the ticks spent by the
# process and by those of its children that have ended.
PARENT = 1
TICKS = slice(11, 15)


def _stats() -> dict[int, list[str]]:
    """Return what the system tells of every process; nothing where it does not."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
    return found


def _of_family(stats: dict[int, list[str]]) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, fields in stats.items():
        children.setdefault(int(fields[PARENT]), []).append(pid)
    found, waiting = [], [os.getpid()]
    while waiting:
        mine = children.get(waiting.pop(), [])
        found += mine
        waiting += mine
    return found


def descendants() -> list[int]:
    """Return the ids of the processes below this one that are alive."""
    return _of_family(_stats())


def seconds_of_descendants() -> float:
    """Return the processor time that they, and those that ended, have taken."""
    stats = _stats()
    ticks = sum(int(t) for pid in _of_family(stats) for t in stats[pid][TICKS])
    ended = os.times()
    return (
        ticks / os.sysconf("SC_CLK_TCK") + ended.children_user + ended.children_system
    )
