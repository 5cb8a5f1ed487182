"""Targets: whether they are classes or values, and the arrays that fits need."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.data.loaded import LoadedData, Target, typed
from mercer.cli.failures import DataFailure

__all__ = ["as_classes", "as_values", "guess_task", "sides", "spelt_like"]

# Whole numbers with more different values than this are quantities, not classes.
MOST_CLASSES = 100


def _of(loaded: LoadedData) -> Target:
    if loaded.target is None:
        raise DataFailure(
            f"{loaded.source} has no target. Name its column with --target."
        )
    return loaded.target


def guess_task(loaded: LoadedData) -> tuple[str, str]:
    """Return "classification" or "regression", and why."""
    values = _of(loaded).values
    name = f"the target {_of(loaded).name!r}"
    if values.dtype.kind in "Ub":
        kind = "text" if values.dtype.kind == "U" else "true or false"
        return "classification", f"{name} is {kind}"
    n_different = len(np.unique(values))
    if values.dtype.kind == "f":
        return "regression", f"{name} has fractions"
    if n_different <= min(MOST_CLASSES, max(2, len(values) // 2)):
        why = f"{name} has {n_different} different whole numbers"
        if n_different > 2:
            why += "; use --machine svr for regression"
        return "classification", why
    return "regression", f"{name} has {n_different} different values"


def as_classes(loaded: LoadedData) -> NDArray:
    """Return the target as classes, or say which value is not a class."""
    target = _of(loaded)
    if target.values.dtype.kind == "f":
        # Above 2 ** 53, neighbouring whole numbers are the same float64.
        with np.errstate(invalid="ignore"):
            is_whole = (target.values % 1 == 0) & (np.abs(target.values) < 2**53)
        wrong = int(np.flatnonzero(~is_whole)[0])
        raise DataFailure(
            f"{loaded.where(wrong, target.name)}: {target.values[wrong]} is not "
            "a class. Classes are text or whole numbers. Use --machine svr for "
            "regression."
        )
    classes = np.unique(target.values)
    if len(classes) < 2:
        raise DataFailure(
            f"{loaded.source}, column {target.name!r} has only one class, "
            f"{classes.tolist()[0]!r}, and a classifier needs two or more. "
            "--machine oneclass learns what samples of one kind look like."
        )
    return target.values


def as_values(loaded: LoadedData) -> NDArray:
    """Return the target as numbers, or say which value is not a number."""
    target = _of(loaded)
    if target.values.dtype.kind == "U":
        texts = target.values.tolist()
        wrong = next((i for i, t in enumerate(texts) if not _is_finite(t)), 0)
        raise DataFailure(
            f"{loaded.where(wrong, target.name)}: {texts[wrong]!r} is not a number, "
            "and regression needs numbers. Use --machine svc for classes."
        )
    values = target.values.astype(np.float64)
    if not np.isfinite(values).all():
        wrong = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataFailure(
            f"{loaded.where(wrong, target.name)}: {values[wrong]} is not finite."
        )
    return values


def _is_finite(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def spelt_like(loaded: LoadedData, classes: NDArray) -> NDArray:
    """Return the target with the classes spelt as a model spells them."""
    target = _of(loaded)
    if classes.dtype.kind == "U":
        if target.texts is not None:
            return np.array(target.texts)
        return target.values.astype(str)
    values = target.values
    if values.dtype.kind == "U":
        known = list(map(str, classes.tolist()))
        wrong = next(
            i for i, t in enumerate(values) if not (_is_finite(t) or t in known)
        )
        raise DataFailure(
            f"{loaded.where(wrong, target.name)}: {str(values[wrong])!r} is not "
            f"one of the model's classes, {', '.join(known[:10])}."
        )
    if classes.dtype.kind == "b":
        return values.astype(bool) if np.isin(values, [0, 1]).all() else values
    return values.astype(np.int64) if values.dtype.kind == "b" else values


def sides(loaded: LoadedData, normal: Any) -> NDArray | None:
    """Return 1 for normal samples and -1 for others, if the target tells."""
    if loaded.target is None:
        return None
    if normal is not None:
        values, texts = loaded.target.values, loaded.target.texts
        if values.dtype.kind == "b":
            wanted = typed([str(normal)])[0]
            return np.where([value == wanted for value in values.tolist()], 1, -1)
        values = values.astype(str) if texts is None else np.array(texts)
        return np.where(values == str(normal), 1, -1)
    values = loaded.target.values
    is_told = values.dtype.kind == "i" and set(np.unique(values).tolist()) <= {-1, 1}
    return values if is_told else None
