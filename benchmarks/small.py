"""Compare small fits and predictions: ``python -m benchmarks.small``.

Each time is the median of many calls, Mercer's and scikit-learn's in turn. All the data
are scikit-learn's own or made on the spot: tables of 100 to 2,000 samples, as people
first try a library on, and a hundred or more classes of few samples each.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import svm
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_moons,
)
from sklearn.exceptions import ConvergenceWarning

import mercer
from benchmarks.data import letter_like
from benchmarks.parts import console

CALLS = 200
WARM_UP = 10
# No more calls begin after so many seconds.
SECONDS = 4.0
# Rows of the table with 26 classes, most of which become support vectors.
N_LETTERS = 6000


def blobs(n_classes: int, each: int, d: int) -> tuple[NDArray, NDArray]:
    """Return classes of a few samples that lie around centres at random."""
    rng = np.random.default_rng(n_classes)
    y = np.repeat(np.arange(n_classes), each)
    return rng.normal(size=(n_classes, d))[y] + rng.normal(size=(len(y), d)), y


def milliseconds(*works: Callable[[], Any]) -> list[float]:
    """Return the median time of each piece of work; they are called in turn."""
    for work in works:
        work()
    taken: list[list[float]] = []
    begun = time.perf_counter()
    while len(taken) < WARM_UP + CALLS and time.perf_counter() - begun < SECONDS:
        times = []
        for work in works:
            started = time.perf_counter()
            work()
            times.append(time.perf_counter() - started)
        taken.append(times)
    first = min(WARM_UP, len(taken) // 2)
    return (1e3 * np.median(taken[first:], axis=0)).tolist()


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
    warnings.simplefilter("ignore", ConvergenceWarning)
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
    middle = {
        "breast cancer": load_breast_cancer(return_X_y=True),
        "digits": load_digits(return_X_y=True),
        "two moons, 1,000": make_moons(1000, noise=0.2, random_state=0),
        "5 classes x 100": blobs(5, 100, 8),
        "100 classes x 50": blobs(100, 50, 30),
        "300 classes x 10": blobs(300, 10, 30),
    }
    for name, (X, y) in middle.items():
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
        tables[name] = X, y
        for kernel in ("rbf", "linear"):
            ours, theirs = mercer.SVC(kernel=kernel), svm.SVC(kernel=kernel)
            compare(
                f"fit {name}: {kernel}",
                lambda m=ours, X=X, y=y: m.fit(X, y),
                lambda m=theirs, X=X, y=y: m.fit(X, y),
            )
    for name in ("iris", "wine", "breast cancer", "digits", "5 classes x 100"):
        X, y = tables[name]
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
        for loss in ("squared_hinge", "hinge"):
            ours, theirs = mercer.LinearSVC(loss=loss), svm.LinearSVC(loss=loss)
            compare(
                f"fit {name}: LinearSVC, {loss}",
                lambda m=ours, X=X, y=y: m.fit(X, y),
                lambda m=theirs, X=X, y=y: m.fit(X, y),
            )
    X, y = load_diabetes(return_X_y=True)
    ours, theirs = mercer.SVR(C=100.0), svm.SVR(C=100.0)
    compare("fit diabetes: SVR", lambda: ours.fit(X, y), lambda: theirs.fit(X, y))
    tables["26 classes"] = letter_like(N_LETTERS, seed=0)
    for name, (X, y) in tables.items():
        ours, theirs = mercer.SVC().fit(X, y), svm.SVC().fit(X, y)
        for n in (1, 10, 150):
            compare(
                f"predict {name}: {n} rows, {len(theirs.support_)} vectors",
                lambda m=ours, X=X, n=n: m.predict(X[:n]),
                lambda m=theirs, X=X, n=n: m.predict(X[:n]),
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
