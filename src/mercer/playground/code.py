"""The Python code that makes the model that the page shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer.playground import messages
from mercer.playground.digits import BINS, CELL, KERNELS, PER_DIGIT
from mercer.playground.messages import Answer, Points
from mercer.playground.settings import CLASSIFIERS, MachineSettings, python_call
from mercer.playground.solvers import RULES

__all__ = ["python_code"]

PARTS = ("plane", "solvers", "stream", "digits")
LEARNERS = {
    "lasvm": ("OnlineSVC", {"method": "lasvm"}),
    "smo": ("OnlineSVC", {"method": "smo"}),
    "pa1": ("PassiveAggressiveClassifier", {"variant": "pa1"}),
    "pa2": ("PassiveAggressiveClassifier", {"variant": "pa2"}),
}
#: What is printed of each machine; those of one kind of samples show what SVR shows.
SHOWN = {
    "SVC": "model.score(X, y), len(model.support_), model.kkt_gap_.max()",
    "NuSVC": "model.score(X, y), len(model.support_), model.kkt_gap_.max()",
    "SVR": "len(model.support_), model.kkt_gap_, model.dual_gap_",
    "KernelKMeans": "np.bincount(model.labels_), model.inertia_",
    "KernelPCA": "model.explained_variance_ratio_",
}

DIGITS = f"""import numpy as np
from sklearn.pipeline import make_pipeline

from mercer import MKLClassifier
from mercer.datasets import load_mnist
from mercer.images import HOG, Deskew, Rescale, Views

X, y = load_mnist(sample=True)
parts = [np.flatnonzero(y == digit)[:{PER_DIGIT}] for digit in range(10)]
chosen = np.sort(np.concatenate(parts))
views = Views(
    raw=Rescale(), hog=HOG({CELL}, 1, {BINS}, block_norm="L2", interpolation=True)
)
kernels = [
    {(chr(10) + "    ").join(f'"{text}",' for text in KERNELS)}
]
machine = MKLClassifier(kernels, p=1.5, C=10.0, probability=True, random_state=0)
model = make_pipeline(Deskew(), views, machine)
model.fit(X[chosen], y[chosen])
print(model[-1].weights_)
"""


def python_code(message: Mapping[str, Any]) -> Answer:
    """Return the code of what a part of the page shows."""
    part = messages.choice(message, "part", PARTS, "plane")
    if part == "digits":
        code = DIGITS
    elif part == "stream":
        code = _stream(message)
    else:
        code = _fit(message, part)
    return Answer({"type": "code", "code": code})


def _fit(message: Mapping[str, Any], part: str) -> str:
    """Return code with the points in it, and a fit of the machine to them."""
    if part == "solvers":
        message = {**message, "machine": "SVC"}
    settings, points = MachineSettings.of(message), messages.points(message)
    arguments = settings.arguments(len(points.X))
    if part == "solvers":
        arguments["solver"] = messages.choice(message, "rule", tuple(RULES), "wss2")
    model = python_call(settings.machine, arguments)
    lines = ["import numpy as np", f"from mercer import {settings.machine}", ""]
    lines += _literals(points, settings.machine in CLASSIFIERS)
    targets = {"SVR": "X[:, :1], X[:, 1]", "SVC": "X, y", "NuSVC": "X, y"}
    shown = SHOWN.get(settings.machine, SHOWN["SVR"])
    fit = f"model.fit({targets.get(settings.machine, 'X')})"
    lines += [f"model = {model}", fit, f"print({shown})"]
    return "\n".join(lines) + "\n"


def _literals(points: Points, with_classes: bool) -> list[str]:
    lines = ["X = np.array([", *(f"    [{x:g}, {y:g}]," for x, y in points.X), "])"]
    if with_classes:
        listed = np.array2string(points.label, separator=", ", threshold=10**6)
        lines.append(f"y = np.array({listed})")
    return lines


def _stream(message: Mapping[str, Any]) -> str:
    """Return code that lets one machine learn from a stream."""
    settings = MachineSettings.of({**message, "machine": "SVC"})
    key = messages.choice(message, "learner", tuple(LEARNERS), "lasvm")
    budget = messages.whole(message, "budget", 10, 500, 150)
    name, own = LEARNERS[key]
    arguments = {"C": settings.C, **own, **settings.kernel_arguments()}
    model = python_call(name, {**arguments, "budget": budget})
    return (
        f"from mercer import {name}\n"
        "from mercer.datasets import noisy_stream\n\n"
        "# Any iterable of chunks (X, y) will do.\n"
        "chunks = noisy_stream(300, flip=0.05, random_state=0)\n"
        f"model = {model}\n"
        "model.learn_stream(chunks, classes=[0, 1])\n"
        "history = model.history_\n"
        'print(history["n_mistakes"][-1], "mistakes", history["n_support"][-1])\n'
    )
