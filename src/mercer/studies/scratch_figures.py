"""The figures of the study ``svm-from-scratch``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer import SVC
from mercer.datasets import make_clouds
from mercer.studies import figures
from mercer.studies.results import Figure, Finding, Item, Row
from mercer.studies.scratch_models import images, settings
from mercer.studies.scratch_protocol import (
    ABLATIONS,
    KERNELS,
)
from mercer.studies.study import Plan, percent, timed_fit

__all__ = ["ablation", "clouds", "convergence", "efficiency"]


def clouds(plan: Plan) -> Iterator[Item]:
    """Two Gaussian clouds, separated."""
    X, y = make_clouds(200, separation=4.0, random_state=plan.seed)
    model = SVC(kernel="linear").fit(X, y)
    drawn = figures.plane(
        X,
        y,
        model.decision_function,
        "Two clouds",
        levels=(-1, 0, 1),
        marked=model.support_,
    )
    yield Figure(
        "clouds",
        "Two Gaussian clouds, the line that separates them, its margins and its "
        "support vectors.",
        (drawn,),
    )


def convergence(plan: Plan) -> Iterator[Item]:
    """Accuracy against passes of the two textbook solvers."""
    data = images(plan, "mnist")
    m = 2 * len(data.y) // 10  # samples of a pair of classes
    passes = plan.pick(
        (1, 2, 5, 10, 20, 40, 80, 120), (1, 2, 5, 10, 20, 40, 80), (1, 3, 5)
    )
    base = settings(plan, "Gaussian", "mnist")
    series: dict[str, Any] = {}
    for name, solver in (
        ("violator and random partner", "simplified"),
        ("random pairs", "random"),
    ):
        scores = []
        for n in passes:
            model = SVC(**base, solver=solver, max_iter=n * m, random_state=plan.seed)
            scores.append(
                percent(model.fit(data.X, data.y).predict(data.X_test), data.y_test)
            )
        series[name] = (passes, scores)
    exact = percent(SVC(**base).fit(data.X, data.y).predict(data.X_test), data.y_test)
    series["optimum"] = ((passes[0], passes[-1]), (exact, exact))
    drawn = figures.lines(
        series, "passes (steps per sample)", "test %", "Convergence", log_x=True
    )
    yield Figure(
        "convergence",
        "Test accuracy on MNIST against the passes that a solver is allowed; a pass is"
        " one step per sample at most.",
        (drawn,),
    )
    scores = series["violator and random partner"][1]
    start = min(n for n in passes if n >= passes[-1] / 2)
    late = [s for s, n in zip(scores, passes, strict=True) if n >= start]
    near = [n for s, n in zip(scores, passes, strict=True) if abs(s - exact) <= 0.5]
    word = f"from pass {near[0]} on" if near else "at none of these"
    yield Finding(
        "The curve remains stable after 80 passes, so that 100 will do.",
        max(late) - min(late) <= 0.5,
        f"From pass {start} to {passes[-1]} it moves by {max(late) - min(late):.2f} "
        f"points. It is within half a point of the optimum ({exact:.1f} %) {word}.",
        "Up to half a point counts as stable.",
    )


def ablation(plan: Plan, kernel: str) -> Iterator[Item]:
    """Each parameter of a kernel by itself, over the report's range."""
    data, panels = images(plan, "mnist"), []
    n = plan.pick(len(data.y), 2000, 100)
    for name, symbol, whole in ABLATIONS[kernel]:
        values, scores = whole[:: plan.pick(1, 1, 4)], []
        for value in values:
            params = {**settings(plan, kernel, "mnist"), name: value}
            model = SVC(**params).fit(data.X[:n], data.y[:n])
            scores.append(percent(model.predict(data.X_test), data.y_test))
        is_log = name in ("C", "gamma", "tol")
        title = f"{kernel}: {symbol}"
        panels.append(
            figures.lines({"": (values, scores)}, symbol, "test %", title, log_x=is_log)
        )
        place = int(np.argmax(scores))
        worst = f"{min(scores):.1f} at {values[int(np.argmin(scores))]:.3g}"
        found = {"best": scores[place], "at": f"{values[place]:.3g}", "worst": worst}
        yield Row("ablation", f"{kernel}, {symbol}", found)
    yield Figure(
        f"ablation-{kernel}",
        f"{kernel} kernel on MNIST: one parameter moves, the others stay as tuned.",
        tuple(panels),
    )


def efficiency(plan: Plan) -> Iterator[Item]:
    """Training and inference time of each kernel."""
    data = images(plan, "mnist")
    train, infer = {}, {}
    for kernel in KERNELS:
        fitted = timed_fit(SVC(**settings(plan, kernel, "mnist")), data.X, data.y)
        started = time.perf_counter()
        fitted.model.predict(data.X_test)
        train[kernel], infer[kernel] = fitted.seconds, time.perf_counter() - started
    panels = [
        figures.bars(list(t), list(t.values()), "seconds", name)
        for name, t in (("Training", train), ("Inference", infer))
    ]
    yield Figure(
        "efficiency",
        f"MNIST, {len(data.y):,} training and {len(data.y_test):,} test images.",
        tuple(panels),
    )
    rest = max(v for k, v in train.items() if k != "Gaussian")
    yield Finding(
        "The Gaussian kernel is extremely slow beside the others.",
        train["Gaussian"] > 2 * rest,
        "Training took " + ", ".join(f"{k} {v:.2f} s" for k, v in train.items()) + ".",
        "More than twice the time of every other counts as extremely slow.",
    )
