"""Choices made on training or validation data, and the features of the best models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import PredefinedSplit
from sklearn.pipeline import Pipeline, make_pipeline

from mercer import SVC
from mercer.images import HOG, Deskew
from mercer.selection import GridSearchCV

__all__ = [
    "Choice",
    "choose",
    "digit_features",
    "mean_distance",
    "photo_features",
    "pixels",
    "validate_on",
]


class Choice(NamedTuple):
    """The best setting, its score in per cent, and the scores of all settings."""

    settings: dict[str, Any]
    score: float
    table: list[tuple[dict[str, Any], float]]

    def __str__(self) -> str:
        return ", ".join(f"{k} = {v:.3g}" for k, v in self.settings.items())


def choose(
    model: SVC,
    grid: Mapping[str, list],
    X: NDArray,
    y: NDArray,
    cv: Any,
    scoring: Any = None,
) -> Choice:
    """Return the setting of a grid that classifies best on data left out of training.

    Of settings that do equally well the first counts.
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
    """Return the one split into the first so many samples and the rest."""
    return PredefinedSplit(np.repeat([-1, 0], [n_train, n_validation]))


def pixels(images: NDArray) -> NDArray[np.float32]:
    """Return images as rows in [0, 1]."""
    return (images.reshape(len(images), -1) / np.float32(255)).astype(np.float32)


def digit_features() -> Pipeline:
    """Return what turns digits into the features of our best model."""
    return make_pipeline(Deskew("moments"), HOG(4, 3, 12, "L1-sqrt", True, True))


def photo_features() -> HOG:
    """Return what turns colour photographs into the features of our best model."""
    return HOG(8, 2, 18, "L1-sqrt", True, True)


def mean_distance(X: NDArray) -> float:
    """Return the mean of |x - z|² over all pairs of rows: a unit for 1 / γ."""
    return 2.0 * float(X.var(axis=0, dtype=np.float64).sum())
