"""The files of a report: numbers as JSON, text and CSV, and figures."""

from __future__ import annotations

import numpy as np
from sklearn import metrics

from mercer.cli.failures import needed
from mercer.cli.printing import to_csv, to_json
from mercer.cli.scores import Verdict, to_text

__all__ = ["report_files"]

# More curves than this cannot be told apart; roc.csv has all of them.
MOST_CURVES = 10


def report_files(verdict: Verdict, plots: str) -> dict[str, bytes]:
    """Return the names and contents of all files of a report."""
    files = {
        "report.json": to_json(verdict.report) + "\n",
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
    needed(
        "matplotlib",
        "figures need matplotlib. Install it: pip install matplotlib, or do without "
        "figures: --plots none.",
    )
    # This import is slow, and the other commands do not need it.
    from mercer.plots import HeatMapDisplay, PredictionErrorDisplay, RocCurvesDisplay
    from mercer.plots.rendering import figure_bytes
    from mercer.plots.style import COLORS

    drawn = {}
    if verdict.labels is None:
        display = PredictionErrorDisplay(y_true=verdict.truth, y_pred=verdict.predicted)
        drawn["prediction"] = figure_bytes(
            display.plot,
            kind="actual_vs_predicted",
            scatter_kwargs={"color": COLORS[0]},
            figsize=(6, 5),
            ending=ending,
        )
    else:
        side = min(max(4.0, 0.36 * len(verdict.labels) + 2), 20.0)
        drawn["confusion"] = figure_bytes(
            HeatMapDisplay.from_predictions,
            verdict.truth,
            verdict.predicted,
            labels=verdict.labels,
            figsize=(side + 1, side),
            ending=ending,
        )
    if verdict.curves:
        rates, title = _hardest(verdict)
        drawn["roc"] = figure_bytes(
            RocCurvesDisplay.from_rates,
            rates,
            title=title,
            figsize=(6, 5),
            ending=ending,
        )
    return {f"{name}.{ending}": content for name, content in drawn.items()}


def _hardest(verdict: Verdict) -> tuple[dict[str, tuple], str | None]:
    """Return the curves to draw, those with the least areas, and what they are."""
    rates = {name: curve[:2] for name, curve in verdict.curves.items()}
    if len(rates) <= MOST_CURVES:
        return rates, None
    areas = {name: metrics.auc(*pair) for name, pair in rates.items()}
    chosen = sorted(rates, key=areas.__getitem__)[:MOST_CURVES]
    title = f"The {MOST_CURVES} hardest of {len(rates)} classes"
    return {name: rates[name] for name in chosen}, title
