"""The fit that a command line asks for: read, decide, check, fit, write."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from mercer.cli.bar import Bar
from mercer.cli.failures import DataFailure, PoorAnswer, UsageFailure, first_line
from mercer.cli.machines import TASKS, Choices, build
from mercer.cli.models import last_step, save_model
from mercer.cli.reading import read_table
from mercer.cli.sources import name_of
from mercer.cli.tables import Reading, Table
from mercer.cli.targets import as_classes, as_values, guess_task, sides
from mercer.kernels.expression import to_text

__all__ = ["METRICS", "Plan", "describe_machine", "score", "train"]

METRICS = {
    "classification": "accuracy",
    "regression": "R2",
    "novelty": "share of inliers",
}
DEFAULTS = {"classification": "svc", "regression": "svr"}
# Columns whose spreads differ more than this call for scaling.
UNEVEN = 100.0


@dataclass(frozen=True)
class Plan:
    """What a fit is asked to do."""

    data: Path
    how: Reading
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


def train(plan: Plan, quiet: bool, remark: Callable[[str], None]) -> dict[str, Any]:
    """Carry a plan out, write the model, and return what there is to say about it."""
    with Bar(quiet) as bar:
        bar.say(f"reading {plan.source}")
        is_novelty = TASKS.get(plan.choices.machine) == "novelty"
        table = read_table(plan.data, replace(plan.how, needs_target=not is_novelty))
        machine, task, why = _decide(plan, table)
        X, y = _samples(plan, table, task)
        is_sparse = sparse.issparse(X)
        _remark_on_scale(plan, X, remark)
        model = build(plan.choices, machine, table.schema, is_sparse)
        guess = _told_guess(plan, task, why)
        cv = None
        if plan.cv is not None:
            cv = _cross_validate(plan, model, X, y, task, bar, guess)
        X, y, held_out = _hold_out(plan, X, y, task, guess)
        started = time.perf_counter()
        _fit(plan, bar.watch(model, "fitting"), X, y)
        seconds = time.perf_counter() - started
        test = _test(model, held_out, task)
    found = describe_machine(model)
    if plan.strict and not found["converged"]:
        raise PoorAnswer(
            f"the fit did not converge (KKT gap {found['kkt_gap']:.2g}); {plan.out} "
            "was not written. Scale the data, lower C, or raise --max-iter or --tol."
        )
    save_model(
        model,
        plan.out,
        table.schema,
        task=task,
        target=table.schema.target,
        scale=plan.choices.scale,
        normal=plan.normal,
        data=Path(plan.source).name,
        samples=X.shape[0],
        cv=cv,
        test=test,
    )
    facts = {"task": task, "why": why, "samples": X.shape[0], "seconds": seconds}
    columns = {"features": X.shape[1], "target": table.schema.target}
    checks = {"cv": cv, "test": test, "model": str(plan.out)}
    return {**found, **facts, **columns, **checks}


def _decide(plan: Plan, table: Table) -> tuple[str, str, str]:
    """Return the machine, its task, and why it is this one."""
    if plan.choices.machine != "auto":
        task = TASKS[plan.choices.machine]
        if plan.normal is not None and task != "novelty":
            raise UsageFailure("--normal is for --machine oneclass or svdd.")
        return plan.choices.machine, task, "as asked"
    if plan.normal is not None:
        raise UsageFailure("--normal is for --machine oneclass or svdd.")
    task, why = guess_task(table)
    return DEFAULTS[task], task, why


def _told_guess(plan: Plan, task: str, why: str) -> str:
    """Return what an error should add where classes were guessed to be the target."""
    if plan.choices.machine != "auto" or task != "classification":
        return ""
    return f" Classification was guessed, since {why}."


def _samples(plan: Plan, table: Table, task: str) -> tuple[Any, NDArray | None]:
    if task == "classification":
        return table.X, as_classes(table)
    if task == "regression":
        return table.X, as_values(table)
    if plan.normal is None:
        return table.X, None
    side = sides(table, plan.normal)
    if side is None or not (side == 1).any():
        raise DataFailure(
            f"{table.source} has no row of the class {plan.normal!r} (--normal). Name "
            "the column of the classes: --target."
        )
    return table.X[side == 1], None


def _remark_on_scale(plan: Plan, X: Any, remark: Callable[[str], None]) -> None:
    if plan.choices.scale != "none" or sparse.issparse(X) or X.shape[0] < 2:
        return
    spreads = X.std(axis=0)
    spreads = spreads[spreads > 0]
    if len(spreads) and spreads.max() > UNEVEN * spreads.min():
        ratio = spreads.max() / spreads.min()
        if plan.how.size is None and not plan.data.is_dir():
            remark(
                f"the spreads of the columns differ by a factor of {ratio:.0f}; "
                "--scale standard may give a better model."
            )


def _fit(plan: Plan, model: Any, X: Any, y: NDArray | None) -> None:
    try:
        model.fit(X) if y is None else model.fit(X, y)
    except ValueError as error:
        why = first_line(error)
        if plan.choices.scale != "none" and "contains NaN" in str(error):
            # The values are finite as they are read.
            why = f"--scale {plan.choices.scale}: some values are too large to scale."
        raise DataFailure(f"{plan.source}: {why}") from error


def score(model: Any, X: Any, y: NDArray | None) -> float:
    """Return the metric of the model's task."""
    if y is None:
        return float(np.mean(model.predict(X) == 1))
    return float(model.score(X, y))


def _cross_validate(
    plan: Plan,
    model: Any,
    X: Any,
    y: NDArray | None,
    task: str,
    bar: Bar,
    guess: str,
) -> dict[str, Any]:
    n_folds, n = int(plan.cv or 0), X.shape[0]
    if not 2 <= n_folds <= n:
        raise UsageFailure(f"--cv must be from 2 to {n}, the samples; got {n_folds}.")
    kind: Any = KFold
    if task == "classification" and y is not None:
        classes, counts = np.unique(y, return_counts=True)
        if counts.min() < n_folds:
            rare = classes[counts.argmin()].item()
            raise DataFailure(
                f"{plan.source}: --cv {n_folds} needs {n_folds} samples of every "
                f"class; {rare!r} has {counts.min()}.{guess}"
            )
        kind = StratifiedKFold
    folds = kind(n_folds, shuffle=True, random_state=plan.choices.seed)
    scores = []
    for k, (train, test) in enumerate(folds.split(X, y), start=1):
        part = bar.watch(clone(model), f"fold {k} of {n_folds}")
        _fit(plan, part, X[train], None if y is None else y[train])
        scores.append(score(part, X[test], None if y is None else y[test]))
    return {
        "folds": n_folds,
        "metric": METRICS[task],
        "mean": float(np.mean(scores)),
        "std": float(np.std(scores)),
        "scores": scores,
    }


def _hold_out(
    plan: Plan, X: Any, y: NDArray | None, task: str, guess: str
) -> tuple[Any, NDArray | None, tuple[Any, NDArray | None] | None]:
    size = plan.test_size
    if size is None:
        return X, y, None
    if not 0 < size < X.shape[0] or (size >= 1 and size % 1):
        raise UsageFailure(
            "--test-size must be a share between 0 and 1 or a whole number below "
            f"{X.shape[0]}, the samples; got {size:g}."
        )
    rows = np.arange(X.shape[0])
    try:
        train, test = train_test_split(
            rows,
            test_size=size if size < 1 else int(size),
            random_state=plan.choices.seed,
            stratify=y if task == "classification" else None,
        )
    except ValueError as error:
        raise DataFailure(
            f"{plan.source}: --test-size {size:g}: {error}{guess}"
        ) from error
    if y is None:
        return X[train], None, (X[test], None)
    return X[train], y[train], (X[test], y[test])


def _test(model: Any, held_out: Any, task: str) -> dict[str, Any] | None:
    if held_out is None:
        return None
    X, y = held_out
    value = score(model, X, y)
    return {"metric": METRICS[task], "score": value, "samples": X.shape[0]}


def describe_machine(model: Any) -> dict[str, Any]:
    """Return what a fitted machine says of itself."""
    machine = last_step(model)
    classes = getattr(machine, "classes_", None)
    try:
        kernel = to_text(machine.kernel_)
    except ValueError:
        kernel = repr(machine.kernel_)
    return {
        "machine": type(machine).__name__,
        "kernel": kernel,
        "classes": None if classes is None else classes.tolist(),
        "support_vectors": len(machine.support_),
        "converged": bool(machine.converged_),
        "kkt_gap": float(np.max(machine.kkt_gap_)),
        "dual_gap": float(np.sum(machine.dual_gap_)),
        "iterations": int(np.sum(machine.n_iter_)),
    }
