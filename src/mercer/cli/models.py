"""Model files: a pipeline, with notes about the columns that it was fitted to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

import mercer
from mercer.cli.data.features import check_for_steps
from mercer.cli.data.loaded import ImageForm, LoadedData, Schema
from mercer.cli.data.sources import Source, name_of, opened
from mercer.cli.failures import DataFailure, ModelFailure, UsageFailure, first_line
from mercer.files.model_files import read_header
from mercer.kernels.base import Kernel
from mercer.kernels.expression import to_text
from mercer.machines.base.machine import KernelMachine
from mercer.machines.base.streams import StreamClassifier
from mercer.machines.linear.base import LinearMachine
from mercer.machines.mkl import MKLClassifier, MKLRegressor
from mercer.runtime.devices import check_device

__all__ = [
    "Model",
    "describe_machine",
    "last_step",
    "load_model",
    "save_model",
    "task_of",
]

#: Version of the notes.
NOTES = 1


@dataclass(frozen=True)
class Model:
    """What a model file holds."""

    source: str
    estimator: Any
    header: dict[str, Any]
    schema: Schema

    @property
    def machine(self) -> Any:
        """The last step of the pipeline."""
        return last_step(self.estimator)

    @property
    def notes(self) -> dict[str, Any]:
        """The notes that were stored with the fit."""
        return self.header["notes"]

    @property
    def task(self) -> str:
        """The kind of task: classification, regression or novelty."""
        return task_of(self.machine)

    @property
    def normal(self) -> str | None:
        """The class that novelty detection was fitted to, where there are classes."""
        return self.notes.get("normal")

    def has(self, method: str) -> bool:
        """Tell whether the machine has a method, such as ``predict_proba``."""
        return hasattr(self.machine, method)

    def ask(self, method: str, loaded: LoadedData) -> NDArray:
        """Return what a method of the estimator returns for loaded samples."""
        try:
            return getattr(self.estimator, method)(loaded.X)
        except ValueError as error:
            if self.schema.missing == "steps" and not _takes_text(self.estimator):
                check_for_steps(loaded)
            raise DataFailure(f"{loaded.source}: {first_line(error)}") from error


def _takes_text(estimator: Pipeline) -> bool:
    """Tell whether the first step of a pipeline may have learnt from text."""
    first = estimator[0]
    tags = get_tags(first).input_tags
    return isinstance(first, ColumnTransformer) or tags.string or tags.categorical


def task_of(machine: Any) -> str:
    """Return the kind of task of a machine: classification, regression or novelty."""
    if is_classifier(machine):
        return "classification"
    return "regression" if is_regressor(machine) else "novelty"


def last_step(estimator: Any) -> Any:
    """Return the machine at the end of a pipeline, or a machine itself."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def describe_machine(model: Any) -> dict[str, Any]:
    """Return facts about a fitted machine; None stands for what it does not have."""
    machine = last_step(model)
    classes = getattr(machine, "classes_", None)
    kernel = getattr(machine, "kernel_", None)
    return {
        "machine": type(machine).__name__,
        "kernel": None if kernel is None else _kernel_text(kernel),
        "kernels": _kernel_weights(machine),
        "classes": None if classes is None else classes.tolist(),
        "support_vectors": _count_support(machine),
        "converged": _has_converged(machine),
        "kkt_gap": _largest(machine, "kkt_gap_"),
        "dual_gap": _total(machine, "dual_gap_"),
        "iterations": int(np.sum(machine.n_iter_)),
        "seen": getattr(machine, "n_seen_", None),
    }


def _count_support(machine: Any) -> int | None:
    if isinstance(machine, LinearMachine) or getattr(machine, "kernel_", 1) is None:
        return None
    return int(machine.support_vectors_.shape[0])


def _has_converged(machine: Any) -> bool | None:
    """Tell whether a machine is at the optimum, where it can be known."""
    if hasattr(machine, "converged_"):
        return bool(machine.converged_)
    gap = _largest(machine, "kkt_gap_")
    return None if gap is None else gap <= machine.tol


def _largest(machine: Any, name: str) -> float | None:
    values = getattr(machine, name, None)
    return None if values is None else float(np.max(values))


def _total(machine: Any, name: str) -> float | None:
    values = getattr(machine, name, None)
    return None if values is None else float(np.sum(values))


def _kernel_weights(machine: Any) -> list[tuple[str, float]] | None:
    """Return each kernel with its weight, for machines that learn weights."""
    if not isinstance(machine, MKLClassifier | MKLRegressor):
        return None
    names = [k if isinstance(k, str) else _kernel_text(k) for k in machine.kernels]
    return list(zip(names, machine.weights_.tolist(), strict=True))


def _kernel_text(kernel: Kernel) -> str:
    try:
        return to_text(kernel)
    except ValueError:
        return repr(kernel)


def save_model(estimator: Any, path: Path, schema: Schema, **notes: Any) -> None:
    """Write a fitted pipeline with its notes."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    found = {"notes": NOTES, "created": now, "schema": asdict(schema), **notes}
    last_step(estimator).set_callbacks()
    try:
        mercer.save(estimator, path, notes=found)
    except TypeError as error:
        raise ModelFailure(error) from error


def load_model(path: Path, device: str | None = None) -> Model:
    """Read a model file, also one that :func:`mercer.save` wrote without notes.

    The model computes on the processor, wherever it was fitted, unless a device is
    given.
    """
    name = name_of(path)
    try:
        with opened(path) as source:
            header, estimator = _load(source)
    except OSError as error:
        why = error.strerror or error
        raise ModelFailure(f"the model {name} cannot be read: {why}.") from error
    machine = last_step(estimator)
    if not _can_predict(machine):
        raise ModelFailure(
            f"the {type(machine).__name__} in {name} is not a fitted machine. Give a "
            "file that mercer fit has written, or mercer.save after a fit."
        )
    _set_device(machine, device)
    return Model(name, estimator, header, _schema(name, estimator, header["notes"]))


def _can_predict(machine: Any) -> bool:
    """Tell whether a machine is one of those that commands deal with, and fitted."""
    if isinstance(machine, StreamClassifier):
        return machine.__sklearn_is_fitted__()
    is_known = isinstance(machine, KernelMachine | LinearMachine)
    return is_known and hasattr(machine, "converged_")


def _set_device(machine: Any, device: str | None) -> None:
    if isinstance(machine, KernelMachine):
        try:
            check_device(device or "cpu")
        except ValueError as error:
            raise UsageFailure(f"--device: {error}") from error
        machine.set_params(device=device or "cpu")
    elif device not in (None, "cpu"):
        raise UsageFailure(
            f"--device {device}: {type(machine).__name__} computes on the processor. "
            "Leave --device out."
        )


def _load(source: Source) -> tuple[dict[str, Any], Any]:
    try:
        return read_header(source.path), mercer.load(source.path)
    except ValueError as error:
        raise ModelFailure(source.told(error)) from error


def _schema(name: str, estimator: Any, notes: dict[str, Any]) -> Schema:
    n = int(estimator.n_features_in_)
    if "schema" not in notes:
        names = getattr(estimator, "feature_names_in_", None)
        numbers = tuple(str(j + 1) for j in range(n))
        features = numbers if names is None else tuple(map(str, names))
        # What the steps of such a pipeline make of its columns, only they know.
        has_steps = isinstance(estimator, Pipeline) and len(estimator) > 1
        return Schema(
            "arrays",
            features,
            n,
            named=names is not None,
            missing="steps" if has_steps else "refuse",
        )
    if notes.get("notes") != NOTES:
        raise ModelFailure(
            f"{name} has notes of version {notes.get('notes')}; this Mercer "
            f"reads {NOTES}. Install a newer version of Mercer."
        )
    try:
        values = dict(notes["schema"])
        image = values.pop("image")
        features = tuple(map(str, values.pop("features")))
        form = None if image is None else ImageForm(**image)
        schema = Schema(features=features, image=form, **values)
        fits = not features or sum(map(len, schema.layout().values())) == n
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFailure(
            f"{name} is damaged: its notes cannot be used ({error!r})."
        ) from error
    if not fits or (features and len(features) != schema.n_columns):
        raise ModelFailure(
            f"{name} is damaged: its notes do not agree with its model of {n} features."
        )
    return schema
