"""One parameter varies: what the exact solver and the printed program find."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer import SVC, gram_matrix
from studies.measures import percent
from studies.panels import curves_panel
from studies.results import Figure, Item, Row
from studies.study import Run, shared
from studies.svm_from_scratch.models import images, settings
from studies.svm_from_scratch.printed import train_printed
from studies.svm_from_scratch.protocol import ABLATIONS, DEFAULTS

__all__ = ["FAR_BELOW", "PLAIN", "WITH_ONE", "Curve", "ablation", "curve", "size"]

TUNED, PLAIN = "others tuned", "others at defaults, as printed"
# Another default that the report may have had: r = 1, where scikit-learn has 0.
WITH_ONE = "others at defaults, r = 1, as printed"
# A value of γ far below those of the report, at which a Gaussian kernel underfits.
FAR_BELOW = 2.0**-14


class Curve(NamedTuple):
    """The accuracies over the values of a parameter, and the answers."""

    values: list[float]
    train: list[float]
    test: list[float]
    found: list[NDArray]


def size(run: Run) -> int:
    """Return the number of training images of an ablation."""
    return int(run.pick(len(images(run, "mnist").y), 2000, 100))


@shared
def curve(run: Run, kernel: str, name: str, start: str) -> Curve:
    """Vary one parameter; the others are tuned, or at defaults as the report did it."""
    data, n = images(run, "mnist"), size(run)
    X, y = data.X[:n], data.y[:n]
    (whole,) = [v for own, _, v in ABLATIONS[kernel] if own == name]
    values = list(whole[:: run.pick(1, 1, 2)])
    if (kernel, name, start) == ("Gaussian", "gamma", PLAIN):
        values.append(FAR_BELOW)
    params = settings(run, kernel, "mnist") if start == TUNED else DEFAULTS[kernel]
    if start == WITH_ONE:
        params = {**params, "coef0": 1.0}
    made = Curve(values, [], [], [])
    for value in values:
        model: Any = SVC(**{**params, name: value})
        if start == TUNED:
            trained = model.fit(X, y).predict(X)
            found = model.predict(data.X_test)
        else:
            # One step binds the kernel to the data; the printed program solves.
            model.set_params(max_iter=1).fit(X, y)
            program, K = train_printed(model, X, y, run.seed)
            trained = program.predict(K)
            found = program.predict(gram_matrix(model.kernel_, data.X_test, X))
        made.train.append(percent(trained, y))
        made.test.append(percent(found, data.y_test))
        made.found.append(found)
    return made


def ablation(run: Run, kernel: str) -> Iterator[Item]:
    """Vary each parameter by itself; the others are tuned, or at default values."""
    data, panels, n = images(run, "mnist"), [], size(run)
    for name, symbol, whole in ABLATIONS[kernel]:
        curves = {}
        for start in (TUNED, PLAIN, *[WITH_ONE] * (kernel == "polynomial")):
            own = curve(run, kernel, name, start)
            count = sum(value in whole for value in own.values)
            values, scores = own.values[:count], own.test[:count]
            curves[start] = (values, scores)
            place = int(np.argmax(scores))
            worst = f"{min(scores):.1f} at {values[int(np.argmin(scores))]:.3g}"
            found = {
                "best": scores[place],
                "at": f"{values[place]:.3g}",
                "worst": worst,
            }
            label = f"{kernel}, {symbol}; {start}; {n:,} images"
            yield Row("ablation", label, found, len(data.y_test))
        is_log = name in ("C", "gamma", "tol")
        title = f"{kernel}: {symbol}"
        panels.append(curves_panel(curves, symbol, "test %", title, log_x=is_log))
    yield Figure(
        f"ablation-{kernel}",
        f"{kernel[0].upper()}{kernel[1:]} kernel on MNIST, {n:,} training images: one "
        "parameter varies, the others have their tuned values, or default values and "
        "the program as printed.",
        tuple(panels),
        "ablation",
    )
