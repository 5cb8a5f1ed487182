"""A digest of what decides the results of a step, apart from its settings."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import mercer
from studies.report.computer import describe_computer
from studies.study import Run, Step

__all__ = ["facts_of"]

LIBRARY = Path(mercer.__file__).parent
STUDIES = Path(__file__).parents[1]
# Published numbers are joined to the results when the page is made.
JOINED_LATER = "published.py"
# The command line computes none of the results.
SHOWS_ONLY = (LIBRARY / "cli",)


def facts_of(step: Step, run: Run) -> dict[str, Any]:
    """Return the code, data, versions and settings on which the step's results depend.

    The code is that of the step's whole study, of the helpers that studies share, and
    of the library.
    """
    computer = describe_computer()
    del computer["Date"]
    return {
        "code": _digest([_folder_of(step), STUDIES]) + _library(),
        "computer": computer,
        "data": run.data.fingerprint,
        "seed": run.seed,
        "kind": run.kind,
    }


def _folder_of(step: Step) -> Path:
    file = inspect.getsourcefile(step.work)
    return STUDIES if file is None else Path(file).parent


def _digest(folders: Iterable[Path]) -> str:
    """Return a digest of the code that lies directly in these folders."""
    files = (path for folder in folders for path in sorted(folder.glob("*.py")))
    return _digest_of(path for path in files if path.name != JOINED_LATER)


@cache
def _library() -> str:
    def files() -> Iterator[Path]:
        for path in sorted(LIBRARY.rglob("*.py")):
            if not any(path.is_relative_to(folder) for folder in SHOWS_ONLY):
                yield path

    return _digest_of(files())


def _digest_of(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
