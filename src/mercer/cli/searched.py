"""What a search has found: a table of scores for people, and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.failures import UsageFailure, needed
from mercer.cli.grids import DIGITS, Grid, written

__all__ = ["check_figure", "search_figure", "search_table"]

# Rows of a list of candidates; JSON has all of them.
MOST_LISTED = 20
ENDINGS = (".png", ".svg", ".pdf")


def search_table(found: dict[str, Any]) -> str:
    """Return the scores of a search as text.

    Two parameters make a table with one of them across. Otherwise there is a line for
    each candidate; those of three and more parameters go from the best to the worst.
    """
    names, folds = found["parameters"], found["folds"]
    title = f"{found['metric']}, mean of {folds} folds"
    if len(names) == 2:
        rows, columns, scores = _square(found)
        head = [f"{names[0]} \\ {names[1]}", *map(written, columns)]
        body = [
            [written(value), *map(_score, line)]
            for value, line in zip(rows, scores, strict=True)
        ]
        return "\n".join([title, *_aligned([head, *body])])
    ranked = found["candidates"]
    if len(names) > 1:
        ranked = sorted(ranked, key=_rank)
    body = [
        [*(written(c[name]) for name in names), _score(c["mean"]), _score(c["std"])]
        for c in ranked[:MOST_LISTED]
    ]
    lines = [title, *_aligned([[*names, "mean", "deviation"], *body])]
    if len(ranked) > MOST_LISTED:
        lines.append(f"and {len(ranked) - MOST_LISTED} more, which --json lists")
    return "\n".join(lines)


def _rank(candidate: dict[str, Any]) -> float:
    mean = candidate["mean"]
    return np.inf if np.isnan(mean) else -mean


def _score(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.4f}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if k else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _square(found: dict[str, Any]) -> tuple[list[Any], list[Any], NDArray]:
    """Return the values of two parameters, and the score of each pair of them."""
    down, across = found["parameters"]
    candidates = found["candidates"]
    rows = sorted({c[down] for c in candidates})
    columns = sorted({c[across] for c in candidates})
    scores = np.full((len(rows), len(columns)), np.nan)
    for c in candidates:
        place = rows.index(c[down]), columns.index(c[across])
        scores[place] = round(c["mean"], DIGITS)
    return rows, columns, scores


def check_figure(path: Path, grid: Grid | None) -> None:
    """Refuse a figure that cannot be drawn, before any work."""
    if grid is None:
        raise UsageFailure("--figure draws the scores of --search. Give --search, too.")
    if len(grid) > 2:
        raise UsageFailure(
            f"--figure draws one or two parameters, and --search has {len(grid)}. "
            "Leave --figure out; --json prints all scores."
        )
    if path.suffix.lower() not in ENDINGS:
        raise UsageFailure(
            f"--figure {path} must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}."
        )
    needed(
        "matplotlib",
        "--figure needs matplotlib. Install it: pip install matplotlib, or leave "
        "--figure out.",
    )


def search_figure(found: dict[str, Any], ending: str) -> bytes:
    """Return the content of a file: a heat map of two parameters, or a curve of one."""
    # This import is slow, and only figures need it.
    from mercer.plots import CurvesDisplay, HeatMapDisplay
    from mercer.plots.rendering import figure_bytes

    names, metric = found["parameters"], found["metric"]
    if len(names) == 2:
        rows, columns, scores = _square(found)
        size = max(4.5, 0.8 * len(columns) + 2.0), max(3.0, 0.5 * len(rows) + 1.5)
        return figure_bytes(
            HeatMapDisplay.from_arrays,
            scores,
            rows=list(map(written, rows)),
            columns=list(map(written, columns)),
            xlabel=names[1],
            ylabel=names[0],
            zlabel=metric,
            figsize=size,
            ending=ending.lower(),
        )
    (name,) = names
    values = [c[name] for c in found["candidates"]]
    return figure_bytes(
        CurvesDisplay.from_curves,
        {metric: (values, [c["mean"] for c in found["candidates"]])},
        xlabel=name,
        ylabel=metric,
        log_x=min(values) > 0 and max(values) >= 100 * min(values),
        legend=False,
        figsize=(5.0, 3.5),
        ending=ending.lower(),
    )
