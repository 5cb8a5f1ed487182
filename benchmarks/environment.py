"""The machine and the packages with which a measurement was made."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["environment"]

PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "llvmlite",
    "joblib",
    "threadpoolctl",
    "scikit-learn",
    "scikit-learn-intelex",
    "daal",
    "libsvm-official",
)
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def environment() -> dict[str, Any]:
    """Describe the machine, the packages and the state of the repository."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "system": platform.platform(),
        "threads": _threads(),
        "versions": _versions(),
    }


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _commit() -> str | None:
    commit = _git("rev-parse", "--verify", "HEAD")
    if commit is None:
        return None
    # The files of results change while they are measured; they change no time.
    elsewhere = (":/", ":(top,exclude)benchmarks/results")
    return f"{commit}-dirty" if _git("status", "-s", "--", *elsewhere) else commit


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _threads() -> dict[str, Any]:
    import numpy  # noqa: F401  loads the BLAS library that threadpoolctl reports
    from threadpoolctl import threadpool_info

    blas = [
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}"
        f" x{pool['num_threads']}"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]
    limits = {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ}
    return {"blas": blas, "limits": limits}


def _versions() -> dict[str, str | None]:
    import mercer

    found: dict[str, str | None] = {
        "python": platform.python_version(),
        "mercer": mercer.__version__,
    }
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found
