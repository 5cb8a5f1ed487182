"""Measure linear machines at equal gaps: ``python -m benchmarks.linear_gaps --help``.

Each library solves the same problem with one tolerance after the other.  One code
measures all solutions: the primal objective is computed from weights and intercepts in
double precision, and the *excess* is its relative distance from a lower bound, the dual
objective of a tight fit by Mercer, for the machine that is farthest from it.  A library
reaches a level of excess in the least time of all its fits that are at least as good.
The defaults of Mercer and of scikit-learn are measured too.

The libraries take turns.  Fits of less than a second are repeated, and their least time
counts.  Tolerances become smaller until one fit has taken longer than ``--budget``.

LIBLINEAR is the package liblinear-official.  skglm's LinearSVC has the hinge loss and
no intercept: it gets a column of ones, which makes its problem the same, and is fitted
for each class against the rest.  Libraries that do not take part are named with the
reason.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import svm

from benchmarks.cases import Case
from benchmarks.data import load
from benchmarks.linear import (
    SkglmSVC,
    dense_rows,
    digits,
    objectives,
    text_like,
    word_counts,
)
from benchmarks.parts import Part, run_parts
from benchmarks.timing import timed
from mercer import LinearSVC

__all__ = ["PARTS", "main"]

LEVELS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
TOLERANCES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
# The tolerance of the fit that gives the lower bound.
EXACT = 1e-8
# Fits are repeated up to so often, until they have taken a second.
REPEATS = 5
# skglm gets no larger problems: its fits take minutes.
MOST_FOR_SKGLM = 50_000


class Liblinear:
    """LIBLINEAR through its own package, with the intercept of scikit-learn."""

    def __init__(self, loss: str, tol: float):
        self.loss, self.tol = loss, tol

    def fit(self, X: Any, y: NDArray) -> Liblinear:
        from liblinear.liblinearutil import parameter, problem, train

        solver = 3
        if self.loss == "squared_hinge":
            # The dual problem where there are more features, as scikit-learn chooses.
            solver = 1 if X.shape[0] < X.shape[1] else 2
        given = sparse.csr_matrix(X) if sparse.issparse(X) else X
        options = parameter(f"-s {solver} -B 1 -e {self.tol} -q")
        model = train(problem(y, given, bias=1), options)
        classes = np.unique(y)
        labels = list(model.get_labels())
        positive = classes[1:] if len(classes) == 2 else classes
        found = [model.get_decfun(labels.index(c)) for c in positive]
        # LIBLINEAR knows nothing of features after the last value that is not 0.
        self.coef_ = np.zeros((len(found), X.shape[1]))
        self.coef_[:, : model.nr_feature] = [weights for weights, _ in found]
        self.intercept_ = np.array([bias for _, bias in found])
        return self


def _makers(X: Any, y: NDArray, loss: str) -> dict[str, Callable[[float], Any]]:
    """Return how each library makes a machine with a tolerance."""
    found: dict[str, Callable[[float], Any]] = {
        "mercer": lambda tol: LinearSVC(loss=loss, tol=tol, random_state=0),
        "sklearn": lambda tol: svm.LinearSVC(loss=loss, tol=tol, random_state=0),
        "liblinear": lambda tol: Liblinear(loss, tol),
        "skglm": SkglmSVC,
    }
    skipped = _skipped(X, loss)
    return {name: make for name, make in found.items() if name not in skipped}


def _skipped(X: Any, loss: str) -> dict[str, str]:
    """Return the libraries that do not take part, and why."""
    reasons = {}
    if not find_spec("liblinear"):
        reasons["liblinear"] = "liblinear-official is not installed"
    if not find_spec("skglm"):
        reasons["skglm"] = "skglm is not installed"
    elif loss != "hinge":
        reasons["skglm"] = f"skglm has no {loss} loss"
    elif X.shape[0] > MOST_FOR_SKGLM:
        reasons["skglm"] = f"more than {MOST_FOR_SKGLM} samples take skglm minutes"
    return reasons


def _quickest(make: Callable[[], Any], X: Any, y: NDArray) -> tuple[Any, float, float]:
    """Return a fitted machine, and the least wall and CPU times of its fits."""
    wall, cpu = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while not wall or (len(wall) < REPEATS and sum(wall) < 1.0):
            model, times = timed(lambda: make().fit(X, y))
            wall.append(times.seconds)
            cpu.append(times.cpu_seconds)
    return model, min(wall), min(cpu)


def sweep(X: Any, y: NDArray, loss: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return what each library needs for each level of excess."""
    exact = LinearSVC(loss=loss, tol=EXACT, max_iter=10_000).fit(X, y)
    bound = objectives(X, y, exact, loss) - exact.dual_gap_

    def excess(model: Any) -> float:
        found = objectives(X, y, model, loss)
        return float(((found - bound) / bound).max())

    makers = _makers(X, y, loss)
    for make in makers.values():  # compiles
        _quickest(partial(make, 0.1), X[:300], y[:300])
    facts: dict[str, Any] = {"shape": str(X.shape), "classes": len(np.unique(y))}
    facts["skipped"] = _skipped(X, loss)
    runs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in makers}
    going = dict(makers)
    for tol in TOLERANCES[:3] if options.fast else TOLERANCES:
        for name, make in list(going.items()):
            model, wall, cpu = _quickest(partial(make, tol), X, y)
            runs[name].append((excess(model), wall, cpu))
            if wall > options.budget:
                del going[name]
    for name, kind in (("mercer", LinearSVC), ("sklearn", svm.LinearSVC)):
        make = partial(kind, loss=loss, random_state=0)
        model, wall, cpu = _quickest(make, X, y)
        facts[f"{name}_default_seconds"] = wall
        facts[f"{name}_default_cpu_seconds"] = cpu
        facts[f"{name}_default_excess"] = excess(model)
    for level in LEVELS:
        for name, found in runs.items():
            good = [(wall, cpu) for reached, wall, cpu in found if reached <= level]
            if good:
                facts[f"{name}_seconds_to_{level:.0e}"] = min(good)[0]
                facts[f"{name}_cpu_seconds_to_{level:.0e}"] = min(good)[1]
        theirs = facts.get(f"sklearn_seconds_to_{level:.0e}")
        ours = facts.get(f"mercer_seconds_to_{level:.0e}")
        if ours and theirs:
            facts[f"speedup_at_{level:.0e}"] = theirs / ours
    return facts | {"runs": runs}


def _table(name: str) -> tuple[NDArray, NDArray]:
    case = Case("", "", "fit", name, 1_000_000)
    data = load(case)
    return np.ascontiguousarray(data.X, dtype=np.float64), data.y


def _samples(name: str, options: argparse.Namespace) -> tuple[Any, NDArray]:
    if options.fast or name.startswith("mnist"):
        return digits(options, int(name.split("-")[-1]) if "-" in name else 300)
    if name == "rows":
        return dense_rows(options)
    made = {"text": text_like, "words": word_counts}
    return made[name](options) if name in made else _table(name)


def _part(name: str, loss: str, options: argparse.Namespace) -> dict[str, Any]:
    return sweep(*_samples(name, options), loss, options)


PARTS: dict[str, Part] = {
    f"{name}-{short}": partial(_part, name, loss)
    for name in ("mnist-5000", "mnist-10000", "mnist-60000", "rows", "text", "words",
                 "a9a", "ijcnn1")
    for short, loss in (("squared", "squared_hinge"), ("hinge", "hinge"))
}  # fmt: skip


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--budget",
        type=float,
        default=20.0,
        help="seconds of a fit after which a library gets no smaller tolerance",
    )
    parser.set_defaults(n=None)


def main() -> int:
    """Run the parts that are asked for."""
    files = ["mnist.npz", "a9a.npz", "ijcnn1.npz"]
    return run_parts("linear_gaps", __doc__, PARTS, files, _options)


if __name__ == "__main__":
    sys.exit(main())
