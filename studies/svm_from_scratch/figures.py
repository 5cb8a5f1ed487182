"""The steps of the study ``svm-from-scratch`` that draw figures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from mercer import SVC
from mercer.datasets import make_clouds
from mercer.plots import BarsDisplay, ConvergenceDisplay, DecisionRegionsDisplay
from mercer.plots.rendering import inline_svg
from studies.measures import percent, times_in_turn
from studies.panels import curves_panel, plane_panel
from studies.results import Figure, Finding, Item, Row
from studies.study import Run
from studies.svm_from_scratch.models import images, mkl, settings
from studies.svm_from_scratch.protocol import ABLATIONS, DEFAULTS, KERNELS
from studies.verdicts import judge_time

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
    """Vary each parameter by itself; the others are tuned, or at default values."""
    data, panels = images(run, "mnist"), []
    n = run.pick(len(data.y), 2000, 100)
    tuned = settings(run, kernel, "mnist")
    starts = {"others tuned": tuned, "others at defaults": DEFAULTS[kernel]}
    for name, symbol, whole in ABLATIONS[kernel]:
        values = whole[:: run.pick(1, 1, 4)]
        curves = {}
        for start, params in starts.items():
            scores = []
            for value in values:
                model = SVC(**{**params, name: value}).fit(data.X[:n], data.y[:n])
                scores.append(percent(model.predict(data.X_test), data.y_test))
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
        "parameter varies, the others have their tuned or their default values.",
        tuple(panels),
        "ablation",
    )


def efficiency(run: Run) -> Iterator[Item]:
    """Measure the training and inference time of each kernel and of all combined."""
    data = images(run, "mnist")
    models: dict[str, Any] = {
        kernel: SVC(**settings(run, kernel, "mnist")) for kernel in KERNELS
    }
    models["combined"] = mkl(run, "mnist", tuple(KERNELS))
    train = times_in_turn(
        {k: partial(m.fit, data.X, data.y) for k, m in models.items()}, repeats=3
    )
    infer = times_in_turn(
        {k: partial(m.predict, data.X_test) for k, m in models.items()}, repeats=3
    )
    medians = [
        {k: float(np.median(t)) for k, t in each.items()} for each in (train, infer)
    ]
    for kernel in models:
        values = {"train": medians[0][kernel], "inference": medians[1][kernel]}
        yield Row("efficiency", kernel, values)
    panel = inline_svg(
        BarsDisplay.from_values,
        [list(times.values()) for times in medians],
        list(models),
        sets=["training", "inference"],
        xlabel="seconds",
        title="Efficiency",
    )
    yield Figure(
        "efficiency",
        f"Times on MNIST with {len(data.y):,} training and {len(data.y_test):,} test "
        "images, medians of three runs. “Combined” has all four kernels.",
        (panel,),
        "efficiency",
    )
    rivals = [k for k in KERNELS if k != "Gaussian"]
    slowest = max(rivals, key=lambda k: medians[0][k])
    yield judge_time(
        "The Gaussian kernel is extremely slow beside the other three.",
        train["Gaussian"],
        train[slowest],
        "Training took "
        + ", ".join(f"{k} {v:.2f} s" for k, v in medians[0].items())
        + f". The slowest of the other three is {slowest}.",
    )
    yield judge_time(
        "The combined kernel has the lowest efficiency.",
        train["combined"],
        train[max(KERNELS, key=lambda k: medians[0][k])],
        f"Training it took {medians[0]['combined']:.2f} s.",
    )
