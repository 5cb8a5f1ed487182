"""Images and tuned machines of the study ``three-vs-eight``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer import SVC
from mercer.datasets import per_class_split, train_validation_test_split
from studies.choices import Choice, choose, validate_on
from studies.features import pixels
from studies.measures import Fitted, percent, timed_fit
from studies.study import Run, shared
from studies.three_vs_eight.protocol import KERNELS

__all__ = ["Parts", "Tuned", "parts", "tuned"]


class Parts(NamedTuple):
    """The images of the three parts, and for each image whether it is an 8."""

    images: list[NDArray]
    y: list[NDArray]


@shared
def parts(run: Run) -> Parts:
    """Split 4,995 images of each digit, or fewer, 60 : 20 : 20."""
    X, y, X_test, y_test = run.data.mnist
    X, y = np.concatenate([X, X_test]), np.concatenate([y, y_test])
    own = np.isin(y, (3, 8))
    X, y = X[own], (y[own] == 8).astype(int)
    per_class = min(run.pick(4995, 500, 100), *np.bincount(y))
    (rows,) = per_class_split(y, (per_class,), random_state=run.seed)
    split = train_validation_test_split(X[rows], y[rows], random_state=run.seed)
    return Parts(list(split[:3]), list(split[3:]))


class Tuned(NamedTuple):
    """A choice on the validation part, and the model fitted on the training part."""

    choice: Choice
    fitted: Fitted
    scores: NDArray
    test: float


@shared
def tuned(run: Run, kernel: str) -> Tuned:
    """Choose on the validation part, fit the training part, score the test part."""
    data = parts(run)
    train, validation, test = map(pixels, data.images)
    X = np.concatenate([train, validation])
    y = np.concatenate(data.y[:2])
    model, grid = KERNELS[kernel]
    choice = choose(model, grid, X, y, validate_on(len(train), len(validation)))
    best = SVC(**{**model.get_params(), **choice.settings})
    fitted = timed_fit(best, train, data.y[0])
    scores = fitted.model.decision_function(test)
    return Tuned(choice, fitted, scores, percent(scores > 0, data.y[2]))
