"""Compare small fits and predictions: ``python -m benchmarks.small``.

The data are what people first try a library on: all tables that come with scikit-learn,
and two moons, circles, blobs and the like of 50 to 5,000 samples, as they are and
standardised; and, with ``--classes``, up to a thousand classes of few samples each.
Every estimator that scikit-learn has as well is fitted to them, and predicts one row,
ten, and all.  Each time is the median of several calls, Mercer's and scikit-learn's in
turn, after calls that warm up.  The table is sorted by the ratio, the worst first.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import cluster, datasets, decomposition, linear_model, svm

import mercer
from benchmarks.parts import console

# Calls begin until so many have been timed, or so many seconds have passed.
CALLS = 100
SECONDS = 0.06
# The first calls are not counted, unless there are few.
WARM_UP = 5
# No timing of an estimator goes on if one of its calls takes more seconds.
TOO_LONG = 20.0
SIZES = (50, 200, 1000, 5000)
WITH_MANY_CLASSES = ("SVC rbf", "SVC linear")
CLASSES = {"100 x 50": (100, 50), "300 x 10": (300, 10), "1000 x 5": (1000, 5)}


class Table(NamedTuple):
    """Samples and targets."""

    name: str
    X: NDArray
    y: NDArray


class Times(NamedTuple):
    """Median milliseconds of the same work in both libraries."""

    name: str
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        """Mercer's time, in units of scikit-learn's."""
        return self.ours / self.theirs


Estimators = dict[str, tuple[Any, Any]]


def classifiers() -> Estimators:
    """Return pairs of estimators that learn classes, by name."""
    both: dict[str, tuple[type, type, dict]] = {
        **{
            f"SVC {kernel}": (mercer.SVC, svm.SVC, {"kernel": kernel})
            for kernel in ("rbf", "linear", "poly", "sigmoid")
        },
        "SVC balanced": (mercer.SVC, svm.SVC, {"class_weight": "balanced"}),
        "SVC probability": (
            mercer.SVC, svm.SVC, {"probability": True, "random_state": 0},
        ),
        "NuSVC": (mercer.NuSVC, svm.NuSVC, {"nu": 0.1}),
        "LinearSVC": (mercer.LinearSVC, svm.LinearSVC, {}),
    }  # fmt: skip
    found = {name: (a(**given), b(**given)) for name, (a, b, given) in both.items()}
    found["PassiveAggressive"] = (
        mercer.PassiveAggressiveClassifier(random_state=0),
        linear_model.SGDClassifier(
            penalty=None, learning_rate="pa1", eta0=1.0, random_state=0
        ),
    )
    return found


def regressors() -> Estimators:
    """Return pairs of estimators that learn numbers, by name."""
    return {
        "SVR": (mercer.SVR(), svm.SVR()),
        "SVR C=100": (mercer.SVR(C=100.0), svm.SVR(C=100.0)),
        "SVR linear": (mercer.SVR(kernel="linear"), svm.SVR(kernel="linear")),
        "NuSVR": (mercer.NuSVR(), svm.NuSVR()),
        "LinearSVR": (mercer.LinearSVR(), svm.LinearSVR()),
    }


def without_targets(n_clusters: int) -> Estimators:
    """Return pairs of estimators that look at the samples alone, by name."""
    seeded = {"n_clusters": n_clusters, "random_state": 0}
    rbf = {"n_components": 2, "kernel": "rbf"}
    return {
        "OneClassSVM": (mercer.OneClassSVM(), svm.OneClassSVM()),
        "OneClassSVM nu=0.1": (
            mercer.OneClassSVM(nu=0.1), svm.OneClassSVM(nu=0.1),
        ),
        "KMeans": (mercer.KMeans(**seeded), cluster.KMeans(**seeded)),
        "KernelPCA rbf": (mercer.KernelPCA(**rbf), decomposition.KernelPCA(**rbf)),
        "PCA": (mercer.PCA(), decomposition.PCA()),
        "PCA 2": (mercer.PCA(2), decomposition.PCA(2)),
    }  # fmt: skip


def standardised(table: Table) -> Table:
    """Return the table with mean 0 and deviation 1 in every column."""
    X = table.X - table.X.mean(axis=0)
    return table._replace(
        name=f"{table.name}, standardised", X=X / np.maximum(X.std(axis=0), 1e-12)
    )


def many_classes(n_classes: int, each: int, d: int = 30) -> tuple[NDArray, NDArray]:
    """Return classes of a few samples that lie around centres at random."""
    rng = np.random.default_rng(n_classes)
    y = np.repeat(np.arange(n_classes), each)
    return rng.normal(size=(n_classes, d))[y] + rng.normal(size=(len(y), d)), y


def tables_of_classes(sizes: tuple[int, ...]) -> Iterator[Table]:
    """Return tables whose targets are classes."""
    yield Table("iris", *datasets.load_iris(return_X_y=True))
    yield Table("wine", *datasets.load_wine(return_X_y=True))
    yield Table("breast cancer", *datasets.load_breast_cancer(return_X_y=True))
    yield Table("digits", *datasets.load_digits(return_X_y=True))
    for n in sizes:
        yield Table(f"moons {n}", *datasets.make_moons(n, noise=0.2, random_state=0))
        circles = datasets.make_circles(n, noise=0.1, factor=0.5, random_state=0)
        yield Table(f"circles {n}", *circles)
        yield Table(f"blobs {n}", *datasets.make_blobs(n, random_state=0))
        made = datasets.make_classification(n, random_state=0)
        yield Table(f"classification {n}", *made)


def tables_of_numbers(sizes: tuple[int, ...]) -> Iterator[Table]:
    """Return tables whose targets are numbers."""
    yield Table("diabetes", *datasets.load_diabetes(return_X_y=True))
    X, y = datasets.load_linnerud(return_X_y=True)
    yield Table("linnerud", X, y[:, 0])
    for n in sizes:
        yield Table(f"friedman {n}", *datasets.make_friedman1(n, random_state=0))


def medians(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float]:
    """Return the median times of two pieces of work, which are called in turn."""
    taken: list[tuple[float, float]] = []
    begun = time.perf_counter()
    while len(taken) < 3 or (
        len(taken) < WARM_UP + CALLS and time.perf_counter() - begun < SECONDS
    ):
        started = time.perf_counter()
        ours()
        between = time.perf_counter()
        theirs()
        ended = time.perf_counter()
        taken.append((between - started, ended - between))
        if ended - started > TOO_LONG:
            break
    first = min(WARM_UP, len(taken) // 2)
    mine, other = 1e3 * np.median(taken[first:], axis=0)
    return float(mine), float(other)


def compare(table: Table, estimators: Estimators, chosen: str) -> Iterator[Times]:
    """Time fits to a table, and predictions, of estimators whose name is chosen."""
    X, y = table.X, table.y
    for name, (ours, theirs) in estimators.items():
        what = f"{table.name}: {name}"
        if chosen not in what:
            continue
        fits = partial(ours.fit, X, y), partial(theirs.fit, X, y)
        yield Times(f"{what}, fit", *medians(*fits))
        method = "predict" if hasattr(ours, "predict") else "transform"
        mine, other = getattr(ours, method), getattr(theirs, method)
        for rows, said in ((1, "one row"), (10, "ten rows"), (len(X), "all rows")):
            some = X[:rows]
            both = medians(partial(mine, some), partial(other, some))
            yield Times(f"{what}, {said}", *both)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.small",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--only", default="", metavar="TEXT", help="lines that have this text in them")
    add("--sizes", default=SIZES, type=int, nargs="*", help="sizes of made tables")
    add("--classes", action="store_true", help="measure many classes, too")
    add("--worst", default=None, type=int, help="print so many lines of the table")
    options = parser.parse_args()
    # Some tables are not standardised on purpose, so that fits may not converge.
    warnings.simplefilter("ignore")
    found: list[Times] = []
    sizes = tuple(options.sizes)
    for raw in tables_of_classes(sizes):
        n_classes = len(np.unique(raw.y))
        for table in (raw, standardised(raw)):
            estimators = {**classifiers(), **without_targets(n_classes)}
            found += compare(table, estimators, options.only)
    for raw in tables_of_numbers(sizes):
        for table in (raw, standardised(raw)):
            found += compare(table, regressors(), options.only)
    for name, counts in CLASSES.items() if options.classes else ():
        table = Table(f"{name} classes", *many_classes(*counts))
        some = {k: v for k, v in classifiers().items() if k in WITH_MANY_CLASSES}
        found += compare(table, some, options.only)
    for line in sorted(found, key=lambda line: -line.ratio)[: options.worst]:
        console.print(
            f"{line.name:<56} Mercer {line.ours:9.3f} ms   scikit-learn "
            f"{line.theirs:9.3f} ms   ratio {line.ratio:5.2f}",
            soft_wrap=True,
            highlight=False,
        )
    ratios = np.array([line.ratio for line in found])
    above = [f"{(ratios > most).sum()} above {most}" for most in (1, 1.25, 1.5, 2)]
    console.print(
        f"{len(found)} comparisons: median ratio {np.median(ratios):.2f}, "
        + ", ".join(above),
        soft_wrap=True,
        highlight=False,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
