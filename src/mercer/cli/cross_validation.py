"""Scores on folds: of one model, and of all candidates of a grid.

Both go through :class:`mercer.selection.GridSearchCV`, in which folds and candidates
share kernel values.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import KFold, StratifiedKFold

from mercer.cli.command_bar import CommandBar
from mercer.cli.failures import DataFailure, Interrupted, UsageFailure
from mercer.cli.grids import DIGITS, Grid, written
from mercer.selection import GridSearchCV
from mercer.selection.candidates import MACHINES

__all__ = ["METRICS", "check_folds", "cross_validate", "score", "search"]

METRICS = {
    "classification": "accuracy",
    "regression": "R2",
    "novelty": "share of inliers",
}
#: Where a pipeline has the parameters of its machine.
STEP = "machine__"


def score(model: Any, X: Any, y: NDArray | None = None) -> float:
    """Return the metric of the model's task; without targets, the share of inliers."""
    if y is None:
        return float(np.mean(model.predict(X) == 1))
    return float(model.score(X, y))


def check_folds(source: str, n_folds: int, y: Any, n: int, task: str, why: str) -> None:
    """Refuse a number of folds that the samples do not allow."""
    if not 2 <= n_folds <= n:
        raise UsageFailure(
            f"--cv must be from 2 to {n}, the number of samples; got {n_folds}."
        )
    if task == "classification":
        classes, counts = np.unique(y, return_counts=True)
        if counts.min() < n_folds:
            rare = classes[counts.argmin()].item()
            raise DataFailure(
                f"{source}: --cv {n_folds} needs {n_folds} samples of every "
                f"class; {rare!r} has {counts.min()}.{why}"
            )


def _searcher(
    model: Any,
    grid: dict[str, Any],
    y: NDArray | None,
    task: str,
    n_folds: int,
    seed: int,
    bar: CommandBar,
) -> GridSearchCV:
    kind: Any = StratifiedKFold if task == "classification" else KFold
    return GridSearchCV(
        model,
        grid,
        scoring=score if y is None else None,
        n_jobs=model[-1].get_params(deep=False).get("n_jobs"),
        refit=False,
        cv=kind(n_folds, shuffle=True, random_state=seed),
        # Where kernel values are not shared, the search is scikit-learn's, which would
        # print to standard output.
        verbose=int(bar.is_drawn and isinstance(model[-1], MACHINES)),
        error_score=np.nan if grid else "raise",
    )


def cross_validate(
    model: Any,
    X: Any,
    y: NDArray | None,
    task: str,
    n_folds: int,
    seed: int,
    bar: CommandBar,
) -> dict[str, Any]:
    """Return the scores of a model on folds."""
    bar.begin(f"cross-validating with {n_folds} folds")
    searcher = _searcher(model, {}, y, task, n_folds, seed, bar)
    with _calm():
        found = searcher.fit(X, y).cv_results_
    return _scores(found, 0, n_folds, task)


def search(
    model: Any,
    grid: Grid,
    X: Any,
    y: NDArray | None,
    task: str,
    n_folds: int,
    seed: int,
    bar: CommandBar,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return all candidates with the best of them, and the scores of the best.

    The best candidate has the highest mean; of equal ones, the first.
    """
    bar.begin(f"searching {', '.join(grid)}")
    named = {STEP + name: values for name, values in grid.items()}
    searcher = _searcher(model, named, y, task, n_folds, seed, bar)
    with _calm():
        searcher.fit(X, y)
    results = searcher.cv_results_
    means = results["mean_test_score"]
    if np.isnan(means).all():
        raise DataFailure("no candidate of --search could be fitted on all folds.")
    at = int(np.nanargmax(np.round(means, DIGITS)))
    candidates = [
        {
            **{name.removeprefix(STEP): value for name, value in params.items()},
            "mean": float(mean),
            "std": float(deviation),
        }
        for params, mean, deviation in zip(
            results["params"], means, results["std_test_score"], strict=True
        )
    ]
    best = {name: candidates[at][name] for name in grid}
    if getattr(searcher, "interrupted_", False):
        raise _interrupted(len(candidates), grid, best, METRICS[task], means[at])
    found = {
        "parameters": list(grid),
        "metric": METRICS[task],
        "folds": n_folds,
        "best": best,
        "candidates": candidates,
    }
    return found, _scores(results, at, n_folds, task)


def _interrupted(
    done: int, grid: Grid, best: dict[str, Any], metric: str, value: float
) -> Interrupted:
    total = int(np.prod([len(values) for values in grid.values()]))
    options = " ".join(f"--{name} {written(v)}" for name, v in best.items())
    return Interrupted(
        f"interrupted after {done} of {total} candidates. The best of them has "
        f"{metric} {value:.4f}; fit it with {options}. No file was written."
    )


def _scores(results: Any, at: int, n_folds: int, task: str) -> dict[str, Any]:
    scores = [float(results[f"split{k}_test_score"][at]) for k in range(n_folds)]
    return {
        "folds": n_folds,
        "metric": METRICS[task],
        "mean": float(np.mean(scores)),
        "std": float(np.std(scores)),
        "scores": scores,
    }


@contextmanager
def _calm() -> Iterator[None]:
    """Leave out warnings of which the command speaks itself, or has nothing to say."""
    with warnings.catch_warnings():
        # Some machines and features cannot share them, which changes no score.
        warnings.filterwarnings("ignore", "Kernel values could not be shared")
        # Candidates without a score have a dash in the table.
        warnings.filterwarnings("ignore", category=FitFailedWarning)
        warnings.filterwarnings("ignore", "One or more of the test scores")
        warnings.filterwarnings("ignore", "GridSearchCV was interrupted")
        yield
