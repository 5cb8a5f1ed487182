"""Measure grid search: ``python -m benchmarks.selection --help``.

One grid, 6 values of C by 3 of gamma on 5 folds of 3,000 MNIST images, by Mercer's
search, by scikit-learn's over Mercer's SVC, and by scikit-learn's over its own SVC with
two processes; in turn, in one run.  The scores of all folds are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from sklearn import model_selection, svm

from benchmarks.load import Watch
from benchmarks.machine import environment
from benchmarks.processes import seconds_of_descendants
from mercer import SVC
from mercer.selection import GridSearchCV

__all__ = ["PEERS", "main"]

RESULTS = Path(__file__).parent / "results"
GRID = {"C": [0.1, 1, 3, 10, 30, 100], "gamma": [0.005, 0.02, 0.05]}
N_FOLDS = 5
console = Console()


def load(is_fast: bool) -> tuple[NDArray, NDArray]:
    """Return 3,000 MNIST images, or some of scikit-learn's digits if fast."""
    if is_fast:
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return (X[:300] / 16).astype(np.float32), y[:300]
    with np.load(Path(os.environ["MERCER_DATA"], "mnist.npz")) as file:
        X = file["x_train"][:3000].reshape(3000, -1).astype(np.float32)
        return X / np.float32(255), file["y_train"][:3000]


def search_of(peer: str) -> Any:
    """Return the search of a peer."""
    plain = model_selection.GridSearchCV
    return {
        "mercer": lambda: GridSearchCV(SVC(), GRID, cv=N_FOLDS),
        "scikit-learn over mercer": lambda: plain(SVC(), GRID, cv=N_FOLDS),
        "scikit-learn": lambda: plain(svm.SVC(), GRID, cv=N_FOLDS, n_jobs=2),
    }[peer]()


PEERS = ("mercer", "scikit-learn over mercer", "scikit-learn")


def scores_of(search: Any) -> NDArray:
    """Return the scores of all candidates on all folds."""
    results = search.cv_results_
    return np.column_stack([results[f"split{k}_test_score"] for k in range(N_FOLDS)])


def _cpu_seconds() -> float:
    """Return the processor time of this process and its children."""
    return time.process_time() + seconds_of_descendants()


def measure(peers: list[str], repeats: int, is_fast: bool) -> list[dict[str, Any]]:
    """Run the peers in turn; a peer that takes more than a minute is run once."""
    X, y = load(is_fast)
    few = np.concatenate([np.flatnonzero(y == c)[:30] for c in np.unique(y)])
    model_selection.GridSearchCV(SVC(), {"C": [1]}, cv=2).fit(X[few], y[few])
    GridSearchCV(SVC(), {"C": [1, 2]}, cv=2).fit(X[few], y[few])
    facts: dict[str, dict[str, Any]] = {}
    for _ in range(repeats):
        for peer in peers:
            known = facts.setdefault(peer, {"peer": peer, "n": len(y), "runs": []})
            if known["runs"] and min(known["runs"]) > 60:
                continue
            watch, began, cpu = Watch(), time.perf_counter(), _cpu_seconds()
            search = search_of(peer).fit(X, y)
            known["runs"].append(time.perf_counter() - began)
            known.setdefault("cpu_seconds", []).append(_cpu_seconds() - cpu)
            known.setdefault("others_cores", []).append(watch.others())
            known["scores"] = scores_of(search)
            known["best_score"] = float(search.best_score_)
            known["best_params"] = search.best_params_
    return _compare(list(facts.values()), len(y) // N_FOLDS)


def _compare(facts: list[dict[str, Any]], n_test: int) -> list[dict[str, Any]]:
    """Set every peer beside Mercer: its time, and test samples judged otherwise."""
    base = facts[0]
    scores = [known.pop("scores") for known in facts]
    for known, mine in zip(facts, scores, strict=True):
        known["seconds"] = min(known["runs"])
        known["ratio"] = known["seconds"] / min(base["runs"])
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
    add("peers", nargs="*", metavar="PEER", help=f"of: {', '.join(PEERS)}")
    add("--repeats", type=int, default=2, metavar="N")
    add("--fast", action="store_true", help="few samples, no data files: a smoke run")
    add("--output", type=Path, default=RESULTS, metavar="DIR")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.peers) - set(PEERS))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}. Known: {', '.join(PEERS)}.")
    if not arguments.fast and not os.environ.get("MERCER_DATA"):
        parser.error("MERCER_DATA is not set; it names the folder of mnist.npz.")
    peers = [peer for peer in PEERS if peer in arguments.peers or not arguments.peers]
    if peers[0] != "mercer":
        peers.insert(0, "mercer")
    facts = measure(peers, 1 if arguments.fast else arguments.repeats, arguments.fast)
    place = environment()
    path = arguments.output / f"selection-{time.strftime('%Y-%m-%d-%H%M%S')}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(json.dumps({**f, "environment": place}) + "\n" for f in facts)
    )
    for known in facts:
        console.print(
            f"{known['peer']:<26}{known['seconds']:>8.2f} s {known['ratio']:>7.1f}x  "
            f"(processor {min(known['cpu_seconds']):.1f} s)  "
            f"best {known['best_score']:.4f}, samples judged otherwise: at most "
            f"{known['largest_difference']:g} in a fold, "
            f"{known['all_differences']:g} in all; other processes' cores "
            f"{known['others_cores']}",
            markup=False, highlight=False, soft_wrap=True,
        )  # fmt: skip
    console.print(str(path), markup=False, highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
