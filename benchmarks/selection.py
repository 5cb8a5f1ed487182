"""Measure grid search: ``python -m benchmarks.selection --help``.

The grid has 6 values of C and 3 of gamma, on 5 folds of 3,000 MNIST images or, with
``--data``, of a table: 6,000 x 16 with 26 classes like UCI's letters, 4,000 x 36 with 6
classes like its satellite images, 4,000 x 54 with 7 classes like its covertype, or
"pipeline": the satellite images behind a scaler that is fitted in each fold, and 3 x 3
settings.  "digits", "cancer" and "wine" are the data sets that come with scikit-learn,
and "three" are 3,000 x 20 random samples of three classes.  ``--data tables`` takes
them all in turn.

A grid is searched by Mercer's search, by scikit-learn's search over Mercer's SVC, and
by scikit-learn's search over its own SVC with two processes, in turn.  Times are
medians, and the scores of all folds are compared.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets, model_selection, svm
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.data import (
    covtype_like,
    letter_like,
    missing_files,
    mnist,
    satimage_like,
    standardised,
)
from benchmarks.environment import environment
from benchmarks.parts import RESULTS, console
from benchmarks.timing import timed
from mercer import SVC
from mercer.runtime.writing import write_file
from mercer.selection import GridSearchCV

__all__ = ["PEERS", "TABLES", "main"]

C = (0.1, 1, 3, 10, 30, 100)
N_FOLDS = 5
N_FAST = 300


class Table(NamedTuple):
    """Data, and the values of gamma to search."""

    samples: Callable[[int], tuple[NDArray, NDArray]]
    n: int
    gamma: tuple[float, ...]
    C: tuple[float, ...] = C
    is_scaled: bool = False  #: whether a scaler is fitted in each fold


def _letters(n: int) -> tuple[NDArray, NDArray]:
    X, y = letter_like(n)
    return standardised(X), y


def _ground(n: int) -> tuple[NDArray, NDArray]:
    X, y = satimage_like(n)
    return standardised(X), y


def _bundled(load: Callable[..., Any]) -> Callable[[int], tuple[NDArray, NDArray]]:
    def samples(n: int) -> tuple[NDArray, NDArray]:
        X, y = load(return_X_y=True)
        few = np.random.default_rng(0).permutation(len(y))[:n]
        return standardised(X[few]), y[few]

    return samples


def _three(n: int) -> tuple[NDArray, NDArray]:
    return datasets.make_classification(
        n, 20, n_informative=8, n_classes=3, random_state=0
    )


TABLES = {
    "mnist": Table(lambda n: mnist(n, False), 3000, (0.005, 0.02, 0.05)),
    "letter": Table(_letters, 6000, (0.02, 0.06, 0.2)),
    "satimage": Table(_ground, 4000, (0.01, 0.03, 0.1)),
    "covtype": Table(covtype_like, 4000, (0.05, 0.15, 0.5)),
    "pipeline": Table(
        satimage_like, 4000, (0.01, 0.03, 0.1), (1, 10, 100), is_scaled=True
    ),
    "digits": Table(_bundled(datasets.load_digits), 1797, (0.003, 0.015, 0.06)),
    "cancer": Table(_bundled(datasets.load_breast_cancer), 569, (0.01, 0.03, 0.1)),
    "wine": Table(_bundled(datasets.load_wine), 178, (0.01, 0.05, 0.2)),
    "three": Table(_three, 3000, (0.01, 0.05, 0.2)),
}


def search_of(peer: str, table: Table) -> Any:
    """Return the search of a peer."""
    plain = model_selection.GridSearchCV
    grid: dict[str, Any] = {"C": list(table.C), "gamma": list(table.gamma)}

    def machine(kind: Any) -> Any:
        return make_pipeline(StandardScaler(), kind()) if table.is_scaled else kind()

    if table.is_scaled:
        grid = {f"svc__{name}": values for name, values in grid.items()}
    return {
        "mercer": lambda: GridSearchCV(machine(SVC), grid, cv=N_FOLDS),
        "scikit-learn over mercer": lambda: plain(machine(SVC), grid, cv=N_FOLDS),
        "scikit-learn": lambda: plain(machine(svm.SVC), grid, cv=N_FOLDS, n_jobs=2),
    }[peer]()


PEERS = ("mercer", "scikit-learn over mercer", "scikit-learn")


def scores_of(search: Any) -> NDArray:
    """Return the scores of all candidates on all folds."""
    results = search.cv_results_
    return np.column_stack([results[f"split{k}_test_score"] for k in range(N_FOLDS)])


def measure(
    peers: list[str], repeats: int, is_fast: bool, name: str = "mnist"
) -> list[dict[str, Any]]:
    """Run the peers in turn; a peer that takes more than a minute is run once."""
    table = TABLES[name]
    if is_fast and name == "mnist":
        X, y = mnist(N_FAST, is_fast=True)
    else:
        X, y = table.samples(2 * N_FAST if is_fast else table.n)
    few = np.concatenate([np.flatnonzero(y == c)[:30] for c in np.unique(y)])
    model_selection.GridSearchCV(SVC(), {"C": [1]}, cv=2).fit(X[few], y[few])
    GridSearchCV(SVC(), {"C": [1, 2]}, cv=2).fit(X[few], y[few])
    facts: dict[str, dict[str, Any]] = {}
    for _ in range(repeats):
        for peer in peers:
            known = facts.setdefault(
                peer, {"peer": peer, "data": name, "n": len(y), "runs": []}
            )
            if known["runs"] and min(known["runs"]) > 60:
                continue
            search, times = timed(lambda peer=peer: search_of(peer, table).fit(X, y))
            known["runs"].append(times.seconds)
            known.setdefault("cpu_seconds", []).append(times.cpu_seconds)
            known.setdefault("others_cores", []).append(times.others_cores)
            known["scores"] = scores_of(search)
            known["best_score"] = float(search.best_score_)
            known["best_params"] = search.best_params_
    return _compare(list(facts.values()), len(y) // N_FOLDS)


def _compare(facts: list[dict[str, Any]], n_test: int) -> list[dict[str, Any]]:
    """Compare every peer with the first, which is Mercer, in time and in scores.

    Differences of scores are counted in test samples that are classified differently.
    """
    base = facts[0]
    scores = [known.pop("scores") for known in facts]
    for known, mine in zip(facts, scores, strict=True):
        known["seconds"] = median(known["runs"])
        known["ratio"] = known["seconds"] / median(base["runs"])
        apart = np.abs(mine - scores[0]) * n_test
        known["largest_difference"] = round(float(apart.max()), 3)
        known["all_differences"] = round(float(apart.sum()), 3)
    return facts


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.selection", description=__doc__
    )
    add = parser.add_argument
    add("peers", nargs="*", metavar="PEER", help=f"peers: {', '.join(PEERS)}")
    add(
        "--data", choices=[*TABLES, "tables"], default="mnist",
        help="what to search on (default mnist; tables: all but mnist)",
    )  # fmt: skip
    add("--repeats", type=int, default=3, metavar="N", help="runs (default 3)")
    add("--fast", action="store_true", help="smoke run on tiny data, without files")
    add("--output", type=Path, default=RESULTS, metavar="DIR", help="results folder")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.peers) - set(PEERS))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}. Known: {', '.join(PEERS)}.")
    needs_files = arguments.data == "mnist" and not arguments.fast
    problem = missing_files(["mnist.npz"]) if needs_files else None
    if problem:
        parser.error(problem)
    peers = [peer for peer in PEERS if peer in arguments.peers or not arguments.peers]
    if peers[0] != "mercer":
        peers.insert(0, "mercer")
    repeats = 1 if arguments.fast else arguments.repeats
    names = [arguments.data]
    if arguments.data == "tables":
        names = [name for name in TABLES if name != "mnist"]
    facts = []
    for name in names:
        facts += measure(peers, repeats, arguments.fast, name)
    place = environment()
    path = arguments.output / f"selection-{time.strftime('%Y-%m-%d-%H%M%S')}.jsonl"
    lines = [json.dumps({**f, "environment": place}) + "\n" for f in facts]
    write_file(path, "".join(lines), makes_folder=True)
    for known in facts:
        console.print(
            f"{known['data']:<10}{known['peer']:<26}"
            f"{known['seconds']:>8.2f} s {known['ratio']:>7.1f}x  "
            f"(CPU {min(known['cpu_seconds']):.1f} s)  "
            f"best {known['best_score']:.4f}, samples classified differently: at most "
            f"{known['largest_difference']:g} in a fold, "
            f"{known['all_differences']:g} in all; cores busy with other processes "
            f"{known['others_cores']}",
            markup=False, highlight=False, soft_wrap=True,
        )  # fmt: skip
    console.print(str(path), markup=False, highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
