"""Digits and tuned machines of the study ``ecoc-digits``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer import SVC
from studies.choices import Choice, choose
from studies.data import Images
from studies.ecoc_digits.protocol import GRIDS, MOST_SEARCHED, N_TEST, SIZES
from studies.features import pixels
from studies.measures import Fitted, percent, timed_fit
from studies.study import Run, shared

__all__ = [
    "NO_ANSWER",
    "Compared",
    "compared",
    "decide",
    "digits",
    "settings",
    "share_alone",
    "tuned",
]

# What stands for an image without an answer.
NO_ANSWER = -1

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


class Compared(NamedTuple):
    """All ways from two to ten classes, for one size and one kernel."""

    found: dict[str, float]  #: percentages, by column
    unique: NDArray  #: what the one machine that says yes answers, or no answer
    near: NDArray  #: the nearest mean of the positive labels, or no answer
    ecoc: NDArray  #: what the printed code predicts
    n_positive: NDArray  #: how many machines say yes
    train_unique: float  #: percentage of training images that are uniquely right
    fits: tuple[Fitted, ...]  #: one-vs-all, the printed code and the Hadamard code


@shared
def compared(run: Run, n: int, kernel: str) -> Compared:
    """Fit and score all ways, for one size and one kernel."""
    data = digits(run)
    X, y = data.X[:n], data.y[:n]

    def fit(params: dict[str, Any], **more: Any) -> Any:
        return timed_fit(SVC(**params, solver="smo", **more), X, y)

    alone = settings(run, kernel, n, share_alone)
    ova = fit(alone, multiclass="ovr", decode="barycentre")
    params = settings(run, kernel, n)
    printed = fit(params, multiclass="ecoc", code="dietterich15", decode="hamming")
    simplex = fit(params, multiclass="ecoc", code="hadamard", decode="hamming")
    fits = (ova, printed, simplex)
    by_ova, by_printed, by_simplex = (f.model.predict(data.X_test) for f in fits)
    simplex.model.decode = "loss"
    classes, values = ova.model.classes_, decide(ova.model, data.X_test)
    n_positive = (values > 0).sum(axis=1)
    unique = np.where(n_positive == 1, classes[values.argmax(axis=1)], NO_ANSWER)
    means = np.stack([X[y == label].mean(axis=0) for label in classes])
    away = ((data.X_test[:, None, :] - means) ** 2).sum(axis=2)
    chosen = classes[np.where(values > 0, away, np.inf).argmin(axis=1)]
    near = np.where(n_positive > 0, chosen, NO_ANSWER)
    found = {
        "barycentre": percent(near, data.y_test),
        "nearest": percent(by_ova, data.y_test),
        "ecoc": percent(by_printed, data.y_test),
        "hadamard": percent(by_simplex, data.y_test),
        "margin": percent(classes[values.argmax(axis=1)], data.y_test),
        "unique": percent(unique, data.y_test),
        "loss": percent(simplex.model.predict(data.X_test), data.y_test),
    }
    trained = 100 * share_alone(ova.model, X, y)
    # The models are large, and are left out.
    kept = tuple(fitted._replace(model=None) for fitted in fits)
    return Compared(found, unique, near, by_printed, n_positive, trained, kept)
