"""The machine and the packages with which a measurement was made.

Where the files are a copy without their history, the environment variable
MERCER_COMMIT names the commit that they are of.
"""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["card_facts", "environment"]

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


COMMIT_VARIABLE = "MERCER_COMMIT"


def environment(device: str = "cpu") -> dict[str, Any]:
    """Describe the machine, the packages and the state of the repository.

    ``device`` is the graphics card that is measured, if one is.
    """
    found: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cpu": _cpu(),
        "cores": _cores(),
        "system": platform.platform(),
        "threads": _threads(),
        "versions": _versions(),
    }
    if device != "cpu":
        from mercer.engines.cuda.card import card_of
        from mercer.runtime.devices import card_number

        found["card"] = card_facts(card_of(device), card_number(device))
    return found


def card_facts(card: Any, number: int) -> dict[str, Any]:
    """Describe a graphics card, its driver and CuPy."""
    if not hasattr(card.xp, "cuda"):  # the stand-in of the tests
        return {"name": card.name}
    runtime = card.xp.cuda.runtime
    properties = runtime.getDeviceProperties(number)
    name = properties["name"]
    return {
        "name": name.decode() if isinstance(name, bytes) else str(name),
        "memory_mb": int(properties["totalGlobalMem"]) / 2**20,
        "cupy": card.xp.__version__,
        "cuda": _dotted(runtime.runtimeGetVersion()),
        "driver_cuda": _dotted(runtime.driverGetVersion()),
        "driver": _driver(number),
    }


def _dotted(number: int) -> str:
    """Return a version of CUDA, such as 13000, as people write it."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _driver(number: int) -> str | None:
    """Return the version of the driver, if its program tells it."""
    command = ["nvidia-smi", f"--id={number}", "--query-gpu=driver_version"]
    try:
        done = subprocess.run(
            [*command, "--format=csv,noheader"], capture_output=True, text=True
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _cores() -> int:
    """Return how many cores this process may use; a container may have few of many."""
    from joblib import cpu_count

    return cpu_count()


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
    if os.environ.get(COMMIT_VARIABLE):
        return os.environ[COMMIT_VARIABLE]
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
