"""Images and tuned machines of the study ``three-vs-eight``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer import SVC, gram_matrix
from mercer.datasets import per_class_split, train_validation_test_split
from studies.choices import Choice, choose, validate_on
from studies.features import pixels
from studies.handout import Ended, Handout, kkt_gap, objective
from studies.measures import Fitted, percent, timed, timed_fit
from studies.study import Run, shared
from studies.three_vs_eight.protocol import KERNELS, MOST_SWEEPS, PASSES

__all__ = ["Parts", "Printed", "Tuned", "as_printed", "parts", "tuned"]


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


class Printed(NamedTuple):
    """A run of the report's own program, with the choice of :func:`tuned`."""

    scores: dict[str, NDArray]  #: f by part, "validation" and "test"
    ended: Ended
    kkt: float
    gap: float  #: how far its objective is below the optimum, relative to it
    seconds: float


@shared
def as_printed(run: Run, kernel: str) -> Printed:
    """Train by the simplified SMO as the report prints it, max_passes = 10."""
    data, exact = parts(run), tuned(run, kernel).fitted.model
    train, validation, test = map(pixels, data.images)
    K = gram_matrix(exact.kernel_, train)
    y = np.where(data.y[0] == 1, 1.0, -1.0)

    def work() -> Handout:
        program = Handout(K, y, exact.C, exact.tol, seed=run.seed)
        program.run(MOST_SWEEPS, PASSES)
        return program

    seconds, program = timed(work)
    best = -float(np.sum(exact.objective_))
    scores = {
        name: program.decide(gram_matrix(exact.kernel_, X, train))
        for name, X in (("validation", validation), ("test", test))
    }
    gap = (best - objective(program)) / abs(best)
    return Printed(scores, program.ended, kkt_gap(program), gap, seconds)
