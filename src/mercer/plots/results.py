"""Tables of scores from the results of a search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Table", "label_of", "table_of"]


class Table(NamedTuple):
    """Mean scores and their deviations, rows by one parameter, columns by another."""

    rows: list[Any]
    columns: list[Any]
    scores: NDArray  #: (n_rows, n_columns), NaN where nothing was tried
    deviations: NDArray


def table_of(search: Any, column: str, row: str | None, score: str) -> Table:
    """Read the scores of a search; over other parameters the best counts.

    ``search`` has ``cv_results_`` or is such a mapping.
    """
    results: Mapping[str, Any] = getattr(search, "cv_results_", search)
    means = _column(results, f"mean_{score}", "score")
    spreads = results.get(f"std_{score}", np.zeros(len(means)))
    across = list(_column(results, _parameter(column), "parameter"))
    down = [None] * len(means)
    if row is not None:
        down = list(_column(results, _parameter(row), "parameter"))
    rows, columns = _values(down), _values(across)
    scores = np.full((len(rows), len(columns)), np.nan)
    deviations = np.zeros_like(scores)
    for mean, spread, a, b in zip(means, spreads, down, across, strict=True):
        place = _position(rows, a), _position(columns, b)
        if np.isnan(scores[place]) or mean > scores[place]:
            scores[place], deviations[place] = mean, spread
    return Table(rows, columns, scores, deviations)


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
    """Return the different values, numbers in order, others as they came."""
    values: list[Any] = []
    for value in column:
        if not any(_is_same(value, other) for other in values):
            values.append(value)
    is_number = all(np.isreal(v) and np.isscalar(v) for v in values)
    return sorted(values) if is_number else values


def _is_same(a: Any, b: Any) -> bool:
    # Kernels compare by identity, and a search clones them.
    return bool(a is b or repr(a) == repr(b))


def _position(values: list[Any], value: Any) -> int:
    return next(k for k, other in enumerate(values) if _is_same(value, other))
