"""The fit that a command asks for: read data, choose a machine, check, fit, save."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from mercer.cli.command_bar import CommandBar
from mercer.cli.data.loaded import LoadedData, ReadOptions
from mercer.cli.data.reading import read_data
from mercer.cli.data.sources import name_of
from mercer.cli.data.targets import as_classes, as_values, guess_task, sides
from mercer.cli.failures import DataFailure, PoorAnswer, UsageFailure, first_line
from mercer.cli.models import describe_machine, save_model
from mercer.cli.pipelines import TASKS, Choices, build
from mercer.selection import GridSearchCV

__all__ = ["FitRequest", "train"]

METRICS = {
    "classification": "accuracy",
    "regression": "R2",
    "novelty": "share of inliers",
}
DEFAULTS = {"classification": "svc", "regression": "svr"}
# Columns should be scaled if their spreads differ by more than this factor.
UNEVEN = 100.0


@dataclass(frozen=True)
class FitRequest:
    """What a fit is asked to do, and with which data."""

    data: Path
    how: ReadOptions
    choices: Choices
    out: Path
    cv: int | None = None
    test_size: float | None = None
    normal: str | None = None
    strict: bool = False

    @property
    def source(self) -> str:
        """What messages call the data."""
        return name_of(self.data)


def train(
    request: FitRequest, quiet: bool, remark: Callable[[str], None]
) -> dict[str, Any]:
    """Fit as requested, write the model, and return what there is to say about it."""
    with CommandBar(quiet) as bar:
        bar.begin(f"reading {request.source}")
        is_novelty = TASKS.get(request.choices.machine) == "novelty"
        loaded = read_data(
            request.data, replace(request.how, needs_target=not is_novelty)
        )
        machine, task, why = _decide(request, loaded)
        X, y = _samples(request, loaded, task)
        is_sparse = sparse.issparse(X)
        _remark_on_scale(request, X, remark)
        model = build(request.choices, machine, loaded.schema, is_sparse)
        guess = _told_guess(request, task, why)
        cv = None
        if request.cv is not None:
            cv = _cross_validate(request, model, X, y, task, bar, guess)
        X, y, held_out = _hold_out(request, X, y, task, guess)
        started = time.perf_counter()
        with _fitting(request):
            bar.watch(model, "fitting").fit(X, y)
        seconds = time.perf_counter() - started
        test = _test(model, held_out, task)
    found = describe_machine(model)
    if request.strict and not found["converged"]:
        gap = f"dual gap {found['dual_gap']:.2g}"
        if found["kkt_gap"] is not None:
            gap = f"KKT gap {found['kkt_gap']:.2g}"
        raise PoorAnswer(
            f"the fit did not converge ({gap}); {request.out} was not written. "
            "Scale the data, lower C, or raise --max-iter or --tol."
        )
    save_model(
        model,
        request.out,
        loaded.schema,
        task=task,
        target=loaded.schema.target,
        scale=request.choices.scale,
        normal=request.normal,
        data=Path(request.source).name,
        samples=X.shape[0],
        cv=cv,
        test=test,
    )
    facts = {"task": task, "why": why, "samples": X.shape[0], "seconds": seconds}
    columns = {"features": X.shape[1], "target": loaded.schema.target}
    checks = {"cv": cv, "test": test, "model": str(request.out)}
    return {**found, **facts, **columns, **checks}


def _decide(request: FitRequest, loaded: LoadedData) -> tuple[str, str, str]:
    """Return the machine, its task, and why it is this one."""
    if request.choices.machine != "auto":
        task = TASKS[request.choices.machine]
        if request.normal is not None and task != "novelty":
            raise UsageFailure("--normal is for --machine oneclass and svdd only.")
        return request.choices.machine, task, "as asked"
    if request.normal is not None:
        raise UsageFailure("--normal is for --machine oneclass and svdd only.")
    task, why = guess_task(loaded)
    return DEFAULTS[task], task, why


def _told_guess(request: FitRequest, task: str, why: str) -> str:
    """Return what an error should add where the target was guessed to be classes."""
    if request.choices.machine != "auto" or task != "classification":
        return ""
    return f" Classification was guessed because {why}."


def _samples(
    request: FitRequest, loaded: LoadedData, task: str
) -> tuple[Any, NDArray | None]:
    if task == "classification":
        return loaded.X, as_classes(loaded)
    if task == "regression":
        return loaded.X, as_values(loaded)
    if request.normal is None:
        return loaded.X, None
    side = sides(loaded, request.normal)
    if side is None or not (side == 1).any():
        raise DataFailure(
            f"{loaded.source} has no row of the class {request.normal!r} (--normal). "
            "Name the column that has the classes with --target."
        )
    return loaded.X[side == 1], None


def _remark_on_scale(
    request: FitRequest, X: Any, remark: Callable[[str], None]
) -> None:
    if request.choices.scale != "none" or sparse.issparse(X) or X.shape[0] < 2:
        return
    spreads = X.std(axis=0)
    spreads = spreads[spreads > 0]
    if len(spreads) and spreads.max() > UNEVEN * spreads.min():
        ratio = spreads.max() / spreads.min()
        if request.how.size is None and not request.data.is_dir():
            remark(
                f"the spreads of the columns differ by a factor of {ratio:.0f}; "
                "--scale standard may give a better model."
            )


@contextmanager
def _fitting(request: FitRequest) -> Iterator[None]:
    """Say that the data are at fault where a fit refuses them."""
    try:
        yield
    except ValueError as error:
        why = first_line(error)
        if request.choices.scale != "none" and "contains NaN" in str(error):
            # The values that were read are finite, so that scaling made them infinite.
            scale = request.choices.scale
            why = f"--scale {scale}: some values are too large to scale."
        raise DataFailure(f"{request.source}: {why}") from error


def _score(model: Any, X: Any, y: NDArray | None = None) -> float:
    """Return the metric of the model's task; without targets, the share of inliers."""
    if y is None:
        return float(np.mean(model.predict(X) == 1))
    return float(model.score(X, y))


def _cross_validate(
    request: FitRequest,
    model: Any,
    X: Any,
    y: NDArray | None,
    task: str,
    bar: CommandBar,
    guess: str,
) -> dict[str, Any]:
    n_folds, n = int(request.cv or 0), X.shape[0]
    if not 2 <= n_folds <= n:
        raise UsageFailure(
            f"--cv must be from 2 to {n}, the number of samples; got {n_folds}."
        )
    kind: Any = KFold
    if task == "classification" and y is not None:
        classes, counts = np.unique(y, return_counts=True)
        if counts.min() < n_folds:
            rare = classes[counts.argmin()].item()
            raise DataFailure(
                f"{request.source}: --cv {n_folds} needs {n_folds} samples of every "
                f"class; {rare!r} has {counts.min()}.{guess}"
            )
        kind = StratifiedKFold
    bar.begin(f"cross-validating with {n_folds} folds")
    search = GridSearchCV(
        model,
        {},
        scoring=_score if y is None else None,
        n_jobs=request.choices.n_jobs,
        refit=False,
        cv=kind(n_folds, shuffle=True, random_state=request.choices.seed),
        verbose=int(bar.is_drawn),
        error_score="raise",
    )
    with _fitting(request), warnings.catch_warnings():
        # Some machines and features cannot share them, which changes no score.
        warnings.filterwarnings("ignore", "Kernel values could not be shared")
        found = search.fit(X, y).cv_results_
    scores = [float(found[f"split{k}_test_score"][0]) for k in range(n_folds)]
    return {
        "folds": n_folds,
        "metric": METRICS[task],
        "mean": float(np.mean(scores)),
        "std": float(np.std(scores)),
        "scores": scores,
    }


def _hold_out(
    request: FitRequest, X: Any, y: NDArray | None, task: str, guess: str
) -> tuple[Any, NDArray | None, tuple[Any, NDArray | None] | None]:
    size = request.test_size
    if size is None:
        return X, y, None
    if not 0 < size < X.shape[0] or (size >= 1 and size % 1):
        raise UsageFailure(
            "--test-size must be a share between 0 and 1 or a whole number below "
            f"{X.shape[0]}, the number of samples; got {size:g}."
        )
    rows = np.arange(X.shape[0])
    try:
        train, test = train_test_split(
            rows,
            test_size=size if size < 1 else int(size),
            random_state=request.choices.seed,
            stratify=y if task == "classification" else None,
        )
    except ValueError as error:
        raise DataFailure(
            f"{request.source}: --test-size {size:g}: {error}{guess}"
        ) from error
    if y is None:
        return X[train], None, (X[test], None)
    return X[train], y[train], (X[test], y[test])


def _test(model: Any, held_out: Any, task: str) -> dict[str, Any] | None:
    if held_out is None:
        return None
    X, y = held_out
    value = _score(model, X, y)
    return {"metric": METRICS[task], "score": value, "samples": X.shape[0]}
