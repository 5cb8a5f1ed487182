"""The files of a report: numbers as JSON, text and CSV, and figures."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import numpy as np
from sklearn import metrics

from mercer.cli.failures import UsageFailure
from mercer.cli.printing import to_csv, to_json
from mercer.cli.scores import Verdict, to_text

__all__ = ["REPORT", "report_files"]

REPORT = "report.json"
# More curves than this would hide behind their names.
MOST_NAMED = 20


def report_files(verdict: Verdict, plots: str) -> dict[str, bytes]:
    """Return the names and contents of all files, to be written at once."""
    files = {
        REPORT: to_json(verdict.report) + "\n",
        "report.txt": to_text(verdict.report) + "\n",
        "predictions.csv": to_csv(
            ("truth", "prediction"),
            zip(verdict.truth.tolist(), verdict.predicted.tolist(), strict=True),
        ),
    }
    if verdict.labels is not None:
        files["confusion.csv"] = _confusion(verdict)
    if verdict.curves:
        files["roc.csv"] = _roc(verdict)
    contents = {name: text.encode() for name, text in files.items()}
    if plots != "none":
        contents |= _figures(verdict, plots)
    return contents


def _confusion(verdict: Verdict) -> str:
    labels = verdict.labels
    matrix = metrics.confusion_matrix(verdict.truth, verdict.predicted, labels=labels)
    assert labels is not None
    rows = ([name, *row] for name, row in zip(labels, matrix.tolist(), strict=True))
    return to_csv(["truth \\ prediction", *map(str, labels)], rows)


def _roc(verdict: Verdict) -> str:
    rows = (
        (name, *point)
        for name, curve in verdict.curves.items()
        for point in np.stack(curve, axis=1).tolist()
    )
    return to_csv(["class", "false positive", "true positive", "threshold"], rows)


def _figures(verdict: Verdict, ending: str) -> dict[str, bytes]:
    try:
        # Without pyplot there is no screen to be found, and no state to be left.
        figure = import_module("matplotlib.figure").Figure
    except ImportError as error:
        raise UsageFailure(
            "figures need matplotlib. Install it: pip install 'mercer[all]', or say "
            "--plots none."
        ) from error
    drawn = {}
    if verdict.labels is None:
        drawn["prediction"] = _draw_values(figure, verdict)
    else:
        drawn["confusion"] = _draw_confusion(figure, verdict)
    if verdict.curves:
        drawn["roc"] = _draw_roc(figure, verdict)
    return {f"{name}.{ending}": _content(f, ending) for name, f in drawn.items()}


def _content(figure: Any, ending: str) -> bytes:
    out = io.BytesIO()
    # Dates would make two files of the same figure differ.
    more = {"metadata": {"Date": None}} if ending == "svg" else {}
    figure.savefig(out, format=ending, dpi=150, **more)
    return out.getvalue()


def _draw_confusion(figure: Any, verdict: Verdict) -> Any:
    assert verdict.labels is not None
    side = min(max(4.0, 0.5 * len(verdict.labels) + 2), 20.0)
    drawn = figure(figsize=(side + 1, side), layout="constrained")
    matrix = metrics.confusion_matrix(
        verdict.truth, verdict.predicted, labels=verdict.labels
    )
    display = metrics.ConfusionMatrixDisplay(matrix, display_labels=verdict.labels)
    turned = "vertical" if max(map(len, map(str, verdict.labels))) > 3 else "horizontal"
    display.plot(ax=drawn.subplots(), cmap="Blues", xticks_rotation=turned)
    return drawn


def _draw_roc(figure: Any, verdict: Verdict) -> Any:
    drawn = figure(figsize=(6, 5), layout="constrained")
    axes = drawn.subplots()
    for name, (x, y, _) in verdict.curves.items():
        area = metrics.auc(x, y)
        axes.plot(x, y, label=f"{name} (area {area:.3f})")
    axes.plot([0, 1], [0, 1], color="grey", linestyle=":", label="chance")
    axes.set(xlabel="False positive rate", ylabel="True positive rate", aspect="equal")
    if len(verdict.curves) <= MOST_NAMED:
        axes.legend(loc="lower right", fontsize="small")
    return drawn


def _draw_values(figure: Any, verdict: Verdict) -> Any:
    drawn = figure(figsize=(6, 5), layout="constrained")
    display = metrics.PredictionErrorDisplay(
        y_true=verdict.truth, y_pred=verdict.predicted
    )
    display.plot(ax=drawn.subplots(), kind="actual_vs_predicted")
    return drawn
