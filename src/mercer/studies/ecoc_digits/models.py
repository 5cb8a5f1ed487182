"""Digits and tuned machines of the study ``ecoc-digits``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer import SVC
from mercer.studies.choices import Choice, choose
from mercer.studies.ecoc_digits.protocol import GRIDS, MOST_SEARCHED, N_TEST, SIZES
from mercer.studies.features import pixels
from mercer.studies.study import Run

__all__ = ["Digits", "claims_alone", "decide", "digits", "share_alone", "tuned"]


class Digits(NamedTuple):
    """Pixels and digits; the test images are the same for every size."""

    X: NDArray
    y: NDArray
    X_test: NDArray
    y_test: NDArray


def digits(run: Run) -> Digits:
    """Return training images in random order and 1,000 test images, as the report."""

    def make() -> Digits:
        X, y, X_test, y_test = run.data.mnist
        n = run.pick(min(SIZES[-1], len(y) - N_TEST), 4000, 400)
        if run.data.is_full:
            rows = np.random.default_rng(run.seed).permutation(len(y))[: n + N_TEST]
            X, y = X[rows], y[rows]
            X, X_test, y, y_test = X[:n], X[n:], y[:n], y[n:]
        return Digits(pixels(X[:n]), y[:n], pixels(X_test), y_test)

    return run.share("digits", make)


def tuned(
    run: Run, kernel: str, n: int, scoring: Any = None
) -> tuple[dict[str, Any], Choice]:
    """Choose a kernel's parameters by three folds of ``n`` images, at most 5,000."""
    n = min(n, MOST_SEARCHED)

    def make() -> tuple[dict[str, Any], Choice]:
        data = digits(run)
        name = {"linear": "linear", "Gaussian": "rbf"}[kernel]
        model = SVC(kernel=name, multiclass="ovr")
        choice = choose(model, GRIDS[kernel], data.X[:n], data.y[:n], 3, scoring)
        return {"kernel": name, **choice.settings}, choice

    return run.share(f"tuned {kernel} {n} {scoring is None}", make)


def claims_alone(model: SVC, X: NDArray, y: NDArray) -> NDArray[np.bool_]:
    """Return which samples only the machine of their own class accepts."""
    values = decide(model, X)
    single = (values > 0).sum(axis=1) == 1
    return single & (model.classes_[values.argmax(axis=1)] == y)


def share_alone(model: SVC, X: NDArray, y: NDArray) -> float:
    """Return the share of samples that only the machine of their class accepts."""
    return float(claims_alone(model, X, y).mean())


def decide(model: SVC, X: NDArray) -> NDArray:
    """Return the decision values of all machines of a model."""
    model.decision_function_shape = "ovo"
    return model.decision_function(X)
