"""Digits and tuned machines of the study ``ecoc-digits``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import SVC
from studies.choices import Choice, choose
from studies.data import Images
from studies.ecoc_digits.protocol import GRIDS, MOST_SEARCHED, N_TEST, SIZES
from studies.features import pixels
from studies.study import Run, shared

__all__ = ["decide", "digits", "settings", "share_alone", "tuned"]

NAMES = {"linear": "linear", "Gaussian": "rbf"}


@shared
def digits(run: Run) -> Images:
    """Return training images in random order and 1,000 test images, as the report."""
    X, y, X_test, y_test = run.data.mnist
    n = run.pick(min(SIZES[-1], len(y) - N_TEST), 4000, 400)
    if run.data.is_full:
        rows = np.random.default_rng(run.seed).permutation(len(y))[: n + N_TEST]
        X, y = X[rows], y[rows]
        X, X_test, y, y_test = X[:n], X[n:], y[:n], y[n:]
    return Images(pixels(X[:n]), y[:n], pixels(X_test), y_test)


def tuned(run: Run, kernel: str, n: int, scoring: Any = None) -> Choice:
    """Choose a kernel's parameters by three folds of ``n`` images, at most 5,000."""
    return _tuned(run, kernel, min(n, MOST_SEARCHED), scoring)


@shared
def _tuned(run: Run, kernel: str, n: int, scoring: Any) -> Choice:
    data, model = digits(run), SVC(kernel=NAMES[kernel], multiclass="ovr")
    return choose(model, GRIDS[kernel], data.X[:n], data.y[:n], 3, scoring)


def settings(run: Run, kernel: str, n: int, scoring: Any = None) -> dict[str, Any]:
    """Return the tuned parameters of a machine, and the name of its kernel."""
    return {"kernel": NAMES[kernel], **tuned(run, kernel, n, scoring).settings}


def share_alone(model: SVC, X: NDArray, y: NDArray) -> float:
    """Return the share of samples that only the machine of their class accepts."""
    values = decide(model, X)
    single = (values > 0).sum(axis=1) == 1
    return float((single & (model.classes_[values.argmax(axis=1)] == y)).mean())


def decide(model: SVC, X: NDArray) -> NDArray:
    """Return the decision values of all machines of a model."""
    model.decision_function_shape = "ovo"
    return model.decision_function(X)
