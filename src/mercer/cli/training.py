"""The fit that a command asks for: read data, choose a machine, check, fit, save."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from mercer.cli.choices import Choices
from mercer.cli.command_bar import CommandBar
from mercer.cli.cross_validation import (
    METRICS,
    check_folds,
    cross_validate,
    score,
    search,
)
from mercer.cli.data.loaded import LoadedData, ReadOptions
from mercer.cli.data.reading import read_data
from mercer.cli.data.sources import name_of
from mercer.cli.data.targets import as_classes, as_values, guess_task, sides, spelt_like
from mercer.cli.failures import (
    DataFailure,
    ModelFailure,
    PoorAnswer,
    UsageFailure,
    first_line,
)
from mercer.cli.grids import Grid, at_the_edge, written
from mercer.cli.models import Model, describe_machine, load_model, save_model
from mercer.cli.pipelines import TASKS, build
from mercer.cli.printing import rounded
from mercer.machines.base.streams import StreamClassifier
from mercer.machines.svr import SVR
from mercer.runtime.validation import as_dense

__all__ = ["FitRequest", "train"]

DEFAULTS = {"classification": "svc", "regression": "svr"}
# Columns should be scaled if their spreads differ by more than this factor.
UNEVEN = 100.0
# Folds of a search, if --cv does not say.
USUAL_FOLDS = 5
# A share of rows at the bound C that is too large for a good regression.
MOST_AT_BOUND = 0.9
# Rows that a machine learns from at once when it goes on learning.
CHUNK = 512


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
    grid: Grid | None = None  #: what --search asks for
    earlier: Path | None = None  #: a model file to go on from

    @property
    def source(self) -> str:
        """What messages call the data."""
        return name_of(self.data)


def train(
    request: FitRequest, quiet: bool, remark: Callable[[str], None]
) -> dict[str, Any]:
    """Fit as requested, write the model, and return what there is to say about it."""
    with CommandBar(quiet) as bar:
        if request.earlier is not None:
            model, loaded, facts = _learn_more(request, request.earlier, bar)
        else:
            model, loaded, facts = _fit_anew(request, bar, remark)
    found = describe_machine(model)
    if request.strict and found["converged"] is False:
        gap = f"dual gap {found['dual_gap']:.2g}"
        if found["kkt_gap"] is not None:
            gap = f"KKT gap {found['kkt_gap']:.2g}"
        raise PoorAnswer(
            f"the fit did not converge ({gap}); {request.out} was not written. "
            "Scale the data, lower C, or raise --max-iter or --tol."
        )
    kept = ("task", "samples", "cv", "test")
    save_model(
        model,
        request.out,
        loaded.schema,
        target=loaded.schema.target,
        scale=request.choices.scale,
        normal=request.normal,
        data=Path(request.source).name,
        **{name: facts[name] for name in kept},
    )
    return {
        **found,
        **facts,
        "features": loaded.X.shape[1],
        "target": loaded.schema.target,
        "model": str(request.out),
    }


def _fit_anew(
    request: FitRequest, bar: CommandBar, remark: Callable[[str], None]
) -> tuple[Any, LoadedData, dict[str, Any]]:
    """Read data and fit a machine to them; return it, the data, and facts."""
    bar.begin(f"reading {request.source}")
    is_novelty = TASKS.get(request.choices.machine) == "novelty"
    loaded = read_data(request.data, replace(request.how, needs_target=not is_novelty))
    machine, task, why = _decide(request, loaded)
    X, y = _samples(request, loaded, task)
    _remark_on_scale(request, loaded, X, remark)
    unit = _unit_of_target(request, task, y)
    model = build(request.choices, machine, loaded.schema, sparse.issparse(X))
    guess = _told_guess(request, task, why)
    # Held-out samples take no part in a search, so that their score is an honest one.
    X, y, held_out = _hold_out(request, X, y, task, guess)
    cv = searched = None
    n_folds = USUAL_FOLDS if request.cv is None else request.cv
    if request.cv is not None or request.grid:
        check_folds(request.source, n_folds, y, X.shape[0], task, guess)
        in_units = y if unit is None or y is None else y / unit
        how = (X, in_units, task, n_folds, request.choices.seed, bar)
        with _fitting(request):
            if request.grid:
                searched, cv = search(model, request.grid, *how)
            else:
                cv = cross_validate(model, *how)
    if searched is not None and request.grid:
        _remark_on_edges(request.grid, searched["best"], remark)
        model[-1].set_params(**searched["best"])
    if unit is not None:
        _to_values(model[-1], unit)
    started = time.perf_counter()
    with _fitting(request):
        bar.watch(model, "fitting").fit(X, y)
    seconds = time.perf_counter() - started
    _remark_on_bounds(model[-1], y, remark)
    facts = {"task": task, "why": why, "samples": X.shape[0], "seconds": seconds}
    test = _test(model, held_out, task)
    return model, loaded, {**facts, "cv": cv, "test": test, "search": searched}


def _learn_more(
    request: FitRequest, earlier: Path, bar: CommandBar
) -> tuple[Any, LoadedData, dict[str, Any]]:
    """Read a model and new rows, and learn from them after predicting them."""
    found = load_model(earlier)
    machine = found.machine
    if not isinstance(machine, StreamClassifier):
        raise ModelFailure(
            f"the {type(machine).__name__} in {found.source} cannot go on learning. "
            "Fit it anew, or fit --machine online or passive first."
        )
    bar.begin(f"reading {request.source}")
    how = replace(request.how, needs_target=True, schema=found.schema)
    loaded = read_data(request.data, how)
    y = _known_classes(found, spelt_like(loaded, machine.classes_), loaded)
    n = len(y)

    def chunks() -> Iterator[tuple[Any, NDArray]]:
        for first in range(0, n, CHUNK):
            rows = slice(first, first + CHUNK)
            yield _prepared(found.estimator, loaded.X[rows]), y[rows]
            done = min(first + CHUNK, n)
            bar.show(done / n, f"{done} of {n} rows")

    bar.begin("learning")
    started = time.perf_counter()
    before = dict.fromkeys(machine.history_, 0)
    before |= {name: v[-1] for name, v in machine.history_.items() if v}
    with _fitting(request):
        machine.learn_stream(chunks())
        if hasattr(machine, "finish"):
            bar.begin("finishing")
            machine.finish()
    seconds = time.perf_counter() - started
    facts = {
        "task": found.task,
        "why": f"it goes on from {found.source}",
        "samples": n,
        "seconds": seconds,
        "mistakes": machine.history_["n_mistakes"][-1] - before["n_mistakes"],
        "cv": None,
        "test": None,
        "search": None,
    }
    return found.estimator, replace(loaded, schema=found.schema), facts


def _known_classes(model: Model, y: NDArray, loaded: LoadedData) -> NDArray:
    """Return classes of new rows, or say which of them the model does not know."""
    new = np.flatnonzero(~np.isin(y, model.machine.classes_))
    if len(new):
        known = ", ".join(map(str, model.machine.classes_[:10]))
        raise DataFailure(
            f"{loaded.where(int(new[0]), model.schema.target)}: {y[new[0]].item()!r} "
            f"is not one of the model's classes, {known}. A model keeps the classes "
            "of its first fit; fit it anew."
        )
    return y


def _prepared(estimator: Any, X: Any) -> Any:
    """Return what the machine at the end of a pipeline sees of samples."""
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        return estimator[:-1].transform(X)
    return X


def _remark_on_edges(
    grid: Grid, best: dict[str, Any], remark: Callable[[str], None]
) -> None:
    """Say where a wider range might be better."""
    if names := at_the_edge(grid, best):
        told = " and ".join(f"{name}={written(best[name])}" for name in names)
        remark(f"the best {told} is at the edge of its range; try a wider range.")


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
    request: FitRequest, loaded: LoadedData, X: Any, remark: Callable[[str], None]
) -> None:
    """Say that columns have very different scales, and name the extreme ones."""
    is_image = loaded.schema.image is not None
    if request.choices.scale != "none" or is_image or X.shape[0] < 2:
        return
    if sparse.issparse(X):
        spreads = np.ravel(abs(X).max(axis=0).toarray())
    else:
        spreads = np.nanstd(X, axis=0)
    known = np.flatnonzero(spreads > 0)
    if not len(known):
        return
    least = known[spreads[known].argmin()]
    most = known[spreads[known].argmax()]
    ratio = spreads[most] / spreads[least]
    if ratio > UNEVEN:
        names = [
            name for name, columns in loaded.schema.layout().items() for _ in columns
        ] or [str(k + loaded.schema.first_index) for k in range(X.shape[1])]
        remark(
            f"the spreads of the columns differ by a factor of {rounded(ratio)}: that "
            f"of {names[most]!r} is {rounded(spreads[most])}, that of "
            f"{names[least]!r} is {rounded(spreads[least])}. --scale standard may "
            "give a better model."
        )


def _unit_of_target(request: FitRequest, task: str, y: NDArray | None) -> float | None:
    """Return the unit that --scale-target asks for, which is a standard deviation."""
    if not request.choices.scale_target:
        return None
    if task != "regression" or y is None:
        raise UsageFailure(
            f"--scale-target is for regression, and this is {task}. Leave it out, or "
            "choose --machine svr."
        )
    return float(np.std(y)) or 1.0


def _to_values(machine: Any, unit: float) -> None:
    """Turn parameters in units of the target into those for its values.

    A machine fitted to targets that are ``unit`` times as large is ``unit`` times as
    large, too, if its dual variables and its tube are. With a squared loss, the dual
    variables follow their residuals without a bound.
    """
    parameters = machine.get_params(deep=False)
    squared = str(parameters.get("loss", "")).startswith("squared")
    names = ["epsilon"] if squared else ["epsilon", "C"]
    if "kernel" in parameters:  # its tolerance is a gap in units of the target
        names.append("tol")
    machine.set_params(**{n: parameters[n] * unit for n in names if n in parameters})


def _remark_on_bounds(
    machine: Any, y: NDArray | None, remark: Callable[[str], None]
) -> None:
    """Say that C keeps a regression from reaching its targets."""
    if not isinstance(machine, SVR) or y is None:
        return
    at_bound = np.abs(as_dense(machine.dual_coef_)).sum(axis=0) >= machine.C * (
        1 - 1e-9
    )
    count = int(np.count_nonzero(at_bound))
    if count >= MOST_AT_BOUND * len(y):
        remark(
            f"{count} of {len(y)} rows are at the bound C={machine.C:g}, so that the "
            f"values, whose spread is {rounded(float(np.std(y)))}, are out of reach. "
            "--scale-target takes C in units of this spread; a larger --C helps, too."
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
            f"{request.source}: --test-size {size:g} leaves too few samples: the fit "
            "and the test need a sample of every class each, and every class needs "
            f"two.{guess}"
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
