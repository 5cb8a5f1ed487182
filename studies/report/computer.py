"""The hardware and software of a run, without names of users, hosts or folders."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import mercer

__all__ = ["describe_computer"]

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "matplotlib", "mlxtend")


def describe_computer() -> dict[str, Any]:
    """Return the date, processor, cores, memory and versions as text."""
    return {
        "Date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "Processor": _processor(),
        "Cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "Memory": _memory(),
        "System": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "Mercer": mercer.__version__,
        **{name: _version(name) for name in PACKAGES},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return "unknown"
    return f"{size / 2**30:.0f} GiB"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
