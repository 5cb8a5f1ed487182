"""Scores of predictions, all computed by scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

from mercer.cli.data.loaded import LoadedData
from mercer.cli.data.targets import as_values, sides, spelt_like
from mercer.cli.failures import DataFailure
from mercer.cli.models import Model

__all__ = ["Verdict", "judge", "to_text"]


@dataclass(frozen=True)
class Verdict:
    """A report, and the values from which figures are drawn."""

    report: dict[str, Any]
    headline: tuple[str, float]
    truth: NDArray
    predicted: NDArray
    labels: NDArray | None = None  #: the classes in the confusion matrix
    curves: dict[str, tuple[NDArray, NDArray, NDArray]] = field(default_factory=dict)
    unknown: list[Any] = field(default_factory=list)


def judge(model: Model, loaded: LoadedData) -> Verdict:
    """Compare the predictions of a model with the target of a table."""
    predicted = model.ask("predict", loaded)
    if model.task == "regression":
        return _regression(as_values(loaded), predicted)
    if model.task == "novelty":
        truth = sides(loaded, model.normal)
        if truth is None:
            raise DataFailure(
                f"{loaded.source}: the target must be 1 for normal samples and -1 for "
                "other samples, unless the model was fitted with --normal."
            )
        classes = np.array([-1, 1])
    else:
        classes = model.machine.classes_
        truth = spelt_like(loaded, classes)
    scores = _scores(model, loaded, classes)
    return _classification(truth, predicted, classes, scores, model, loaded)


def _scores(model: Model, loaded: LoadedData, classes: NDArray) -> dict[str, Any]:
    """Return a score for each class; for two classes, only for the second one."""
    values = model.ask("decision_function", loaded)
    if values.ndim == 1:
        return {str(classes[1]): (classes[1], values)}
    if model.has("predict_proba"):
        values = model.ask("predict_proba", loaded)
    if values.shape[1] != len(classes):
        return {}
    return {str(c): (c, values[:, k]) for k, c in enumerate(classes)}


def _classification(
    truth: NDArray,
    predicted: NDArray,
    classes: NDArray,
    scores: dict[str, Any],
    model: Model,
    loaded: LoadedData,
) -> Verdict:
    labels = np.unique(np.concatenate([classes, truth]))
    unknown = np.setdiff1d(truth, classes)
    curves = {}
    for name, (label, values) in scores.items():
        is_it = truth == label
        if is_it.any() and not is_it.all():
            curves[name] = metrics.roc_curve(is_it, values)
    areas = {name: metrics.auc(x, y) for name, (x, y, _) in curves.items()}
    recalls = metrics.recall_score(
        truth, predicted, labels=np.unique(truth), average=None, zero_division=0
    )
    report = {
        "task": model.task,
        "samples": len(truth),
        "accuracy": metrics.accuracy_score(truth, predicted),
        "balanced_accuracy": float(np.mean(recalls)),
        "f1_macro": metrics.f1_score(
            truth, predicted, labels=labels, average="macro", zero_division=0
        ),
        "roc_auc": float(np.mean(list(areas.values()))) if areas else None,
        "log_loss": None,
        "classes": _by_class(truth, predicted, labels, areas),
    }
    if model.has("predict_proba") and not len(unknown):
        proba = model.ask("predict_proba", loaded)
        report["log_loss"] = metrics.log_loss(truth, proba, labels=classes)
    headline = "accuracy", report["accuracy"]
    return Verdict(report, headline, truth, predicted, labels, curves, unknown.tolist())


def _by_class(
    truth: NDArray, predicted: NDArray, labels: NDArray, areas: dict[str, float]
) -> dict[str, Any]:
    parts = metrics.precision_recall_fscore_support(
        truth, predicted, labels=labels, zero_division=0
    )
    names = ("precision", "recall", "f1", "samples")
    return {
        str(label): {
            **{name: part[k].item() for name, part in zip(names, parts, strict=True)},
            "roc_auc": areas.get(str(label)),
        }
        for k, label in enumerate(labels)
    }


def _regression(truth: NDArray, predicted: NDArray) -> Verdict:
    enough = len(truth) > 1
    report = {
        "task": "regression",
        "samples": len(truth),
        "r2": metrics.r2_score(truth, predicted) if enough else float("nan"),
        "mae": metrics.mean_absolute_error(truth, predicted),
        "rmse": metrics.root_mean_squared_error(truth, predicted),
    }
    return Verdict(report, ("R2", report["r2"]), truth, predicted)


TITLES = {
    "task": "task",
    "samples": "samples",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1_macro": "mean F1",
    "roc_auc": "area under ROC",
    "log_loss": "log loss",
    "r2": "R2",
    "mae": "mean absolute error",
    "rmse": "root mean squared error",
}


def to_text(report: dict[str, Any]) -> str:
    """Return a report for people."""
    lines = []
    for key, title in TITLES.items():
        value = report.get(key)
        if value is not None:
            shown = f"{value:.4f}" if isinstance(value, float) else value
            lines.append(f"{title:<24} {shown}")
    if classes := report.get("classes"):
        width = max(5, *map(len, classes))
        heads = "".join(f"{head:>11}" for head in ("precision", "recall", "F1"))
        lines += ["", f"{'class':<{width}}{heads}{'samples':>9}"]
        for name, part in classes.items():
            values = "".join(f"{part[k]:>11.4f}" for k in ("precision", "recall", "f1"))
            lines.append(f"{name:<{width}}{values}{part['samples']:>9}")
    return "\n".join(lines)
