"""Choices of parameters, made on training or validation data only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import PredefinedSplit

from mercer import SVC
from mercer.selection import GridSearchCV

__all__ = ["Choice", "choose", "describe", "validate_on"]

# Parameters and how the reports write them.
SYMBOLS = {"gamma": "γ", "degree": "d", "coef0": "r", "tol": "ε"}


class Choice(NamedTuple):
    """The best setting, its score in per cent, and the scores of all settings."""

    settings: dict[str, Any]
    score: float
    table: list[tuple[dict[str, Any], float]]

    def __str__(self) -> str:
        return describe(self.settings)


def describe(settings: Mapping[str, Any]) -> str:
    """Return settings in words.

    >>> describe({"C": 10, "gamma": 0.02})
    'C = 10, γ = 0.02'
    """
    return ", ".join(f"{SYMBOLS.get(k, k)} = {v:.3g}" for k, v in settings.items())


def choose(
    model: SVC,
    grid: Mapping[str, list],
    X: NDArray,
    y: NDArray,
    cv: Any,
    scoring: Any = None,
) -> Choice:
    """Return the setting of a grid that classifies best on data left out of training.

    If several settings do equally well, the first of them is chosen.
    """
    search = GridSearchCV(model, dict(grid), cv=cv, refit=False, scoring=scoring)
    search.fit(X, y)
    scores = 100 * search.cv_results_["mean_test_score"]
    table = [
        (dict(settings), float(score))
        for settings, score in zip(search.cv_results_["params"], scores, strict=True)
    ]
    settings, score = max(table, key=lambda entry: entry[1])
    return Choice(settings, score, table)


def validate_on(n_train: int, n_validation: int) -> PredefinedSplit:
    """Return the single split: train on the first samples, validate on the rest."""
    return PredefinedSplit(np.repeat([-1, 0], [n_train, n_validation]))
