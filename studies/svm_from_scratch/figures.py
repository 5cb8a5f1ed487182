"""The steps of the study ``svm-from-scratch`` that draw figures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from mercer import SVC, gram_matrix
from mercer.datasets import make_clouds
from mercer.plots import BarsDisplay, ConvergenceDisplay, DecisionRegionsDisplay
from mercer.plots.rendering import inline_svg
from studies.handout import Pairs
from studies.measures import percent, times_in_turn
from studies.panels import plane_panel
from studies.results import Figure, Finding, Item, Row
from studies.study import Run
from studies.svm_from_scratch.claims import printed_times
from studies.svm_from_scratch.models import images, mkl, settings
from studies.svm_from_scratch.protocol import DEFAULTS, KERNELS

__all__ = ["clouds", "convergence", "efficiency"]

# The sweeps at which the accuracy is taken.
PASSES = (1, 2, 5, 10, 20, 40, 80, 100, 120, 160)


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
    """Draw the accuracy of the printed program against its sweeps, at defaults."""
    data = images(run, "mnist")
    m = 2 * len(data.y) // 10  # samples of a pair of classes
    sweeps = run.pick(PASSES, PASSES, (1, 3, 5))
    base = DEFAULTS["Gaussian"]
    exact_model = SVC(**base).fit(data.X, data.y)
    exact = percent(exact_model.predict(data.X_test), data.y_test)
    K = gram_matrix(exact_model.kernel_, data.X)
    K_test = gram_matrix(exact_model.kernel_, data.X_test, data.X)
    program = Pairs(K, data.y, exact_model.C, exact_model.tol, seed=run.seed)
    scores = []
    for n in sweeps:
        program.run(n, n + 1)
        scores.append(percent(program.predict(K_test), data.y_test))
    drawn_pairs = []
    for n in sweeps:
        model = SVC(**base, solver="random", max_iter=n * m, random_state=run.seed)
        found = model.fit(data.X, data.y).predict(data.X_test)
        drawn_pairs.append(percent(found, data.y_test))
    ends = (sweeps[0], sweeps[-1])
    series: dict[str, Any] = {
        "violator and random partner": {"passes": sweeps, "test %": scores},
        "random pairs": {"passes": sweeps, "test %": drawn_pairs},
        "optimum": {"passes": ends, "test %": (exact, exact)},
    }
    drawn = inline_svg(
        ConvergenceDisplay.from_histories, series, log_clock=True, title="Convergence"
    )
    yield Figure(
        "convergence",
        "Test accuracy on MNIST against the sweeps of the printed program, which the "
        "report calls iterations, with default parameters. Random pairs draw a pair "
        "for each sample of a sweep.",
        (drawn,),
    )
    start = min(n for n in sweeps if n >= 2 * sweeps[-1] / 3)
    late = [s for s, n in zip(scores, sweeps, strict=True) if n >= start]
    told = ", ".join(f"{n}: {s:.1f}" for n, s in zip(sweeps, scores, strict=True))
    told = f"Test accuracy by sweep: {told}; the optimum has {exact:.1f} %."
    soon = next(n for n, s in zip(sweeps, scores, strict=True) if s >= scores[-1] - 1)
    yield Finding(
        "The accuracy rises rapidly and converges soon.",
        soon <= 20,
        f"{told} It is within a point of its last value from sweep {soon} on.",
        "Within a point after at most 20 sweeps counts.",
        "converges soon",
    )
    yield Finding(
        "The curve remains stable after 80 iterations.",
        max(late) - min(late) <= 0.5,
        f"{told} From sweep {start} to {sweeps[-1]} it moves by "
        f"{max(late) - min(late):.2f} points.",
        "A change of at most half a point counts as stable.",
        "stable",
    )
    at_hundred = scores[max(k for k, n in enumerate(sweeps) if n <= 100)]
    yield Finding(
        "100 iterations are a reasonable choice.",
        abs(at_hundred - exact) <= 0.5,
        f"{told} At 100 sweeps, or the last before, it is {at_hundred:.1f} %.",
        "Within half a point of the optimum counts.",
        "hundred",
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
    printed = printed_times(run)
    for kernel in models:
        values = {
            "train": medians[0][kernel],
            "inference": medians[1][kernel],
            "printed": float(np.median(printed[0][kernel])),
            "printed_inference": float(np.median(printed[1][kernel])),
        }
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
