"""The steps of the study ``svm-from-scratch`` that draw figures."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer import SVC
from mercer.datasets import make_clouds
from mercer.plots import (
    AblationDisplay,
    BarsDisplay,
    ConvergenceDisplay,
    DecisionRegionsDisplay,
)
from mercer.plots.rendering import inline_svg
from mercer.studies.measures import percent, timed_fit
from mercer.studies.panels import plane_panel
from mercer.studies.results import Figure, Finding, Item, Row
from mercer.studies.study import Run
from mercer.studies.svm_from_scratch.models import images, settings
from mercer.studies.svm_from_scratch.protocol import ABLATIONS, KERNELS

__all__ = ["ablation", "clouds", "convergence", "efficiency"]


def clouds(run: Run) -> Iterator[Item]:
    """Draw two Gaussian clouds and the machine that separates them."""
    X, y = make_clouds(200, separation=4.0, random_state=run.seed)
    model = SVC(kernel="linear").fit(X, y)
    drawn = plane_panel(
        DecisionRegionsDisplay.from_estimator, model, X, y, title="Two clouds"
    )
    yield Figure(
        "clouds",
        "Two Gaussian clouds, the line that separates them, its margins (dashed) and "
        "its support vectors (ringed; thick rings are at their bound C).",
        (drawn,),
    )


def convergence(run: Run) -> Iterator[Item]:
    """Draw the accuracy of the two textbook solvers against their passes."""
    data = images(run, "mnist")
    m = 2 * len(data.y) // 10  # samples of a pair of classes
    passes = run.pick(
        (1, 2, 5, 10, 20, 40, 80, 120), (1, 2, 5, 10, 20, 40, 80), (1, 3, 5)
    )
    base = settings(run, "Gaussian", "mnist")
    series: dict[str, Any] = {}
    for name, solver in (
        ("violator and random partner", "simplified"),
        ("random pairs", "random"),
    ):
        scores = []
        for n in passes:
            model = SVC(**base, solver=solver, max_iter=n * m, random_state=run.seed)
            scores.append(
                percent(model.fit(data.X, data.y).predict(data.X_test), data.y_test)
            )
        series[name] = {"passes": passes, "test %": scores}
    exact = percent(SVC(**base).fit(data.X, data.y).predict(data.X_test), data.y_test)
    ends = (passes[0], passes[-1])
    series["optimum"] = {"passes": ends, "test %": (exact, exact)}
    drawn = inline_svg(
        ConvergenceDisplay.from_histories, series, log_clock=True, title="Convergence"
    )
    yield Figure(
        "convergence",
        "Test accuracy on MNIST against the passes that a solver may take; a pass has "
        "at most one step for each sample.",
        (drawn,),
    )
    scores = series["violator and random partner"]["test %"]
    start = min(n for n in passes if n >= passes[-1] / 2)
    late = [s for s, n in zip(scores, passes, strict=True) if n >= start]
    near = [n for s, n in zip(scores, passes, strict=True) if abs(s - exact) <= 0.5]
    word = f"from pass {near[0]} on" if near else "at no pass that was measured"
    yield Finding(
        "The curve remains stable after 80 passes, so that 100 will do.",
        max(late) - min(late) <= 0.5,
        f"From pass {start} to {passes[-1]} it moves by {max(late) - min(late):.2f} "
        f"points. It is within half a point of the optimum ({exact:.1f} %) {word}.",
        "A change of at most half a point counts as stable.",
    )


def ablation(run: Run, kernel: str) -> Iterator[Item]:
    """Vary each parameter of a kernel by itself over the report's range."""
    data, panels = images(run, "mnist"), []
    n = run.pick(len(data.y), 2000, 100)
    for name, symbol, whole in ABLATIONS[kernel]:
        values, scores = whole[:: run.pick(1, 1, 4)], []
        for value in values:
            params = {**settings(run, kernel, "mnist"), name: value}
            model = SVC(**params).fit(data.X[:n], data.y[:n])
            scores.append(percent(model.predict(data.X_test), data.y_test))
        panels.append(
            inline_svg(
                AblationDisplay.from_arrays,
                values,
                scores,
                xlabel=symbol,
                ylabel="test %",
                log=name in ("C", "gamma", "tol"),
                title=f"{kernel}: {symbol}",
            )
        )
        place = int(np.argmax(scores))
        worst = f"{min(scores):.1f} at {values[int(np.argmin(scores))]:.3g}"
        found = {"best": scores[place], "at": f"{values[place]:.3g}", "worst": worst}
        yield Row("ablation", f"{kernel}, {symbol}", found)
    yield Figure(
        f"ablation-{kernel}",
        f"{kernel[0].upper()}{kernel[1:]} kernel on MNIST: one parameter varies, the "
        "others keep their tuned values.",
        tuple(panels),
    )


def efficiency(run: Run) -> Iterator[Item]:
    """Measure the training and inference time of each kernel."""
    data = images(run, "mnist")
    train, infer = {}, {}
    for kernel in KERNELS:
        fitted = timed_fit(SVC(**settings(run, kernel, "mnist")), data.X, data.y)
        started = time.perf_counter()
        fitted.model.predict(data.X_test)
        train[kernel], infer[kernel] = fitted.seconds, time.perf_counter() - started
    panels = [
        inline_svg(
            BarsDisplay.from_values,
            list(t.values()),
            list(t),
            xlabel="seconds",
            title=name,
            figsize=(4.4, 2.1),
        )
        for name, t in (("Training", train), ("Inference", infer))
    ]
    yield Figure(
        "efficiency",
        f"Times on MNIST with {len(data.y):,} training and {len(data.y_test):,} test "
        "images.",
        tuple(panels),
    )
    rest = max(v for k, v in train.items() if k != "Gaussian")
    yield Finding(
        "The Gaussian kernel is extremely slow beside the others.",
        train["Gaussian"] > 2 * rest,
        "Training took " + ", ".join(f"{k} {v:.2f} s" for k, v in train.items()) + ".",
        "More than twice the time of every other kernel counts as extremely slow.",
    )
