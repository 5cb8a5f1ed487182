"""The processes that this process has started, such as joblib's workers."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["descendants", "seconds_of_descendants"]

# Fields of /proc/PID/stat after the name in brackets: the parent, and the ticks of the
# process and of its children that have ended.
PARENT = 1
TICKS = slice(11, 15)


def _stats() -> dict[int, list[str]]:
    """Return the fields of /proc/PID/stat of every process; nothing without /proc."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended meanwhile
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
    """Return the ids of the living descendants of this process."""
    return _of_family(_stats())


def seconds_of_descendants() -> float:
    """Return the CPU time of all descendants, including those that have ended."""
    stats = _stats()
    ticks = sum(int(t) for pid in _of_family(stats) for t in stats[pid][TICKS])
    ended = os.times()
    return (
        ticks / os.sysconf("SC_CLK_TCK") + ended.children_user + ended.children_system
    )
