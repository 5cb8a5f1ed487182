"""Count the source files of Mercer that a call runs through.

    python tools/count_files.py            # the three calls and their limits
    python tools/count_files.py --list     # and which files they are

A reader who follows ``SVC.fit`` opens these files.  Every call is traced on a small fit
after one that warms up, in all threads.  A compiled function counts where Numba tells
the tracer that it is called; the functions that it calls are not seen.  The exit status
is 1 if a call runs through too many.
"""

from __future__ import annotations

import argparse
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import mercer
from mercer.selection import GridSearchCV

ROOT = Path(mercer.__file__).parent
LIMITS = {"SVC.fit": 13, "SVC.predict": 7, "GridSearchCV.fit": 18}


def files_of(call: Callable[[], object]) -> list[str]:
    """Return the files of Mercer in which the call, or a thread of it, runs a line."""
    seen: set[str] = set()

    def note(frame, event, argument):
        if event == "call":
            seen.add(frame.f_code.co_filename)

    threading.setprofile_all_threads(note) if sys.version_info >= (3, 12) else (
        threading.setprofile(note),
        sys.setprofile(note),
    )
    try:
        call()
    finally:
        if sys.version_info >= (3, 12):
            threading.setprofile_all_threads(None)
        else:
            sys.setprofile(None)
            threading.setprofile(None)
    paths = (Path(name) for name in seen)
    return sorted(
        str(path.relative_to(ROOT)) for path in paths if path.is_relative_to(ROOT)
    )


def counted() -> dict[str, list[str]]:
    """Return the files of each call that has a limit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = (X[:, 0] + X[:, 1] > 0).astype(int) + (X[:, 2] > 1)
    model = mercer.SVC()
    search = GridSearchCV(mercer.SVC(), {"C": [0.1, 1.0], "gamma": [0.1, 1.0]}, cv=3)
    calls: dict[str, Callable[[], object]] = {
        "SVC.fit": lambda: model.fit(X, y),
        "SVC.predict": lambda: model.predict(X),
        "GridSearchCV.fit": lambda: search.fit(X, y),
    }
    found = {}
    for name, call in calls.items():
        call()
        found[name] = files_of(call)
    return found


def main() -> int:
    """Print the counts; return 1 if one is above its limit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true", help="name the files too")
    names = parser.parse_args().list
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = counted()
    is_over = False
    for call, files in found.items():
        is_over |= len(files) > LIMITS[call]
        sys.stdout.write(f"{call}: {len(files)} files, at most {LIMITS[call]}\n")
        if names:
            sys.stdout.writelines(f"    {name}\n" for name in files)
    return int(is_over)


if __name__ == "__main__":
    sys.exit(main())
