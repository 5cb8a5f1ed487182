"""Compare small fits and predictions of a few rows: ``python -m benchmarks.small``.

Each time is the median of many calls, Mercer's and scikit-learn's in turn. All the data
are scikit-learn's own or made on the spot.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import svm
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import mercer
from benchmarks.data import letter_like
from benchmarks.parts import console

CALLS = 200
WARM_UP = 10
# Rows of the table with 26 classes, most of which become support vectors.
N_LETTERS = 6000


def milliseconds(*works: Callable[[], Any]) -> list[float]:
    """Return the median time of each piece of work; they are called in turn."""
    taken = np.empty((CALLS, len(works)))
    for _ in range(WARM_UP):
        for work in works:
            work()
    for times in taken:
        for k, work in enumerate(works):
            started = time.perf_counter()
            work()
            times[k] = time.perf_counter() - started
    return (1e3 * np.median(taken, axis=0)).tolist()


def compare(name: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    """Print the times of Mercer and scikit-learn, and their ratio."""
    mercer_ms, sklearn_ms = milliseconds(ours, theirs)
    console.print(
        f"{name:<48} Mercer {mercer_ms:7.3f} ms   scikit-learn {sklearn_ms:7.3f} ms   "
        f"Mercer / scikit-learn {mercer_ms / sklearn_ms:5.2f}",
        soft_wrap=True,
    )


def main() -> int:
    """Print the table."""
    tables = {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "breast cancer, 200 rows": [
            v[:200] for v in load_breast_cancer(return_X_y=True)
        ],
    }
    for name, (X, y) in tables.items():
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        for options in ({}, {"C": 10.0, "gamma": 0.5}, {"kernel": "linear"}):
            said = ", ".join(f"{k}={v}" for k, v in options.items()) or "defaults"
            ours, theirs = mercer.SVC(**options), svm.SVC(**options)
            compare(
                f"fit {name}: {said}",
                lambda m=ours, X=X, y=y: m.fit(X, y),
                lambda m=theirs, X=X, y=y: m.fit(X, y),
            )
    tables["26 classes"] = letter_like(N_LETTERS, seed=0)
    for name, (X, y) in tables.items():
        ours, theirs = mercer.SVC().fit(X, y), svm.SVC().fit(X, y)
        for n in (1, 10):
            compare(
                f"predict {name}: {n} rows, {len(theirs.support_)} vectors",
                lambda m=ours, X=X, n=n: m.predict(X[:n]),
                lambda m=theirs, X=X, n=n: m.predict(X[:n]),
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
