"""Tables of scores from the results of a search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["ScoreTable", "label_of", "table_of"]


class ScoreTable(NamedTuple):
    """Mean scores and deviations; a parameter has the rows, another the columns."""

    rows: list[Any]
    columns: list[Any]
    scores: NDArray  #: (n_rows, n_columns); NaN means that nothing was tried
    deviations: NDArray


def table_of(search: Any, column: str, row: str | None, score: str) -> ScoreTable:
    """Read the scores of a search; the best over all other parameters counts.

    ``search`` has ``cv_results_``, or is such a mapping.
    """
    results: Mapping[str, Any] = getattr(search, "cv_results_", search)
    means = _column(results, f"mean_{score}", "score")
    spreads = results.get(f"std_{score}", np.zeros(len(means)))
    across = list(_column(results, _parameter(column), "parameter"))
    down = [None] * len(means)
    if row is not None:
        down = list(_column(results, _parameter(row), "parameter"))
    # In a list of grids, a parameter has no value in rows of grids that lack it.
    tried = [
        entry
        for entry in zip(means, spreads, down, across, strict=True)
        if not any(value is np.ma.masked for value in entry[2:])
    ]
    rows, columns = _values([e[2] for e in tried]), _values([e[3] for e in tried])
    scores = np.full((len(rows), len(columns)), np.nan)
    deviations = np.zeros_like(scores)
    for mean, spread, a, b in tried:
        place = _position(rows, a), _position(columns, b)
        if np.isnan(scores[place]) or mean > scores[place]:
            scores[place], deviations[place] = mean, spread
    return ScoreTable(rows, columns, scores, deviations)


def label_of(value: Any) -> str:
    """Return a short text for a value of a parameter."""
    is_float = isinstance(value, float | np.floating)
    return f"{value:.4g}" if is_float else str(value)


def _parameter(name: str) -> str:
    return name if name.startswith("param_") else f"param_{name}"


def _column(results: Mapping[str, Any], name: str, kind: str) -> Any:
    if name not in results:
        start = {"score": "mean_", "parameter": "param_"}[kind]
        known = [str(key) for key in results if str(key).startswith(start)]
        raise ValueError(
            f"The search has no {kind} {name.removeprefix(start)!r}. It has: "
            f"{', '.join(key.removeprefix(start) for key in known) or 'none'}."
        )
    return results[name]


def _values(column: list[Any]) -> list[Any]:
    """Return the different values, sorted if all of them are numbers."""
    values: list[Any] = []
    for value in column:
        if not any(_is_same(value, other) for other in values):
            values.append(value)
    is_number = all(np.isreal(v) and np.isscalar(v) for v in values)
    return sorted(values) if is_number else values


def _is_same(a: Any, b: Any) -> bool:
    # A search clones kernels, and kernels are equal only if they are identical.
    return bool(a is b or repr(a) == repr(b))


def _position(values: list[Any], value: Any) -> int:
    return next(k for k, other in enumerate(values) if _is_same(value, other))
