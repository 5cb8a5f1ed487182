"""Machines that learn online, in the study ``kernel-methods``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import SVC, OnlineSVC, PassiveAggressiveClassifier
from mercer.datasets import make_moons, noisy_stream
from mercer.plots import DecisionRegionsDisplay
from mercer.studies.choices import choose
from mercer.studies.measures import percent, timed_fit
from mercer.studies.panels import curves_panel, plane_panel
from mercer.studies.results import Figure, Finding, Item, Row
from mercer.studies.study import Run

__all__ = ["best", "online_machines", "passive"]

VARIANTS = {"pa": "classic", "pa1": "first relaxation", "pa2": "second relaxation"}
N_TRAIN, N_TEST, GROUP = 200, 100, 20


def stream(run: Run) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Return 200 training and 100 test samples, some of them with wrong labels."""
    whole = list(
        noisy_stream(
            N_TRAIN + N_TEST,
            chunk_size=N_TRAIN + N_TEST,
            separation=3.0,
            flip=0.1,
            random_state=run.seed,
        )
    )
    X, y = whole[0]
    n = run.pick(N_TRAIN, N_TRAIN, 40)
    return X[:n], y[:n], X[N_TRAIN:], y[N_TRAIN:]


def learn(model: Any, X: NDArray, y: NDArray, group: int) -> Any:
    """Learn all samples once, ``group`` of them at a time."""
    classes = np.unique(y)
    for k in range(0, len(y), group):
        model.partial_fit(X[k : k + group], y[k : k + group], classes=classes)
    return model


def passive(run: Run) -> Iterator[Item]:
    """Compare the three updates for several C, sample by sample and in groups."""
    X, y, X_test, y_test = stream(run)
    panels: list[str] = []
    by_C: dict[str, list[float]] = {name: [] for name in ("pa1", "pa2")}
    Cs = (0.001, 0.01, 0.1, 1.0, 10.0)[:: run.pick(1, 1, 4)]
    for variant, name in VARIANTS.items():
        for kernel in (None, "rbf"):
            made = [
                PassiveAggressiveClassifier(0.1, variant, kernel, gamma=0.3)
                for _ in range(2)
            ]
            started = time.perf_counter()
            model = learn(made[0], X, y, 1)
            seconds = time.perf_counter() - started
            grouped = learn(made[1], X, y, GROUP)
            values = {
                "train": percent(model.predict(X), y),
                "test": percent(model.predict(X_test), y_test),
                "grouped": percent(grouped.predict(X_test), y_test),
            }
            label = f"{name}, {'linear' if kernel is None else 'Gaussian kernel'}"
            yield Row("passive", label, values, seconds=seconds)
            if kernel is None:
                panels.append(
                    plane_panel(
                        DecisionRegionsDisplay.from_estimator, model, X, y, title=name
                    )
                )
    for variant, scores in by_C.items():
        for C in Cs:
            model = learn(PassiveAggressiveClassifier(C, variant), X, y, 1)
            scores.append(percent(model.predict(X_test), y_test))
    series = {VARIANTS[v]: (Cs, s) for v, s in by_C.items()}
    panels.append(curves_panel(series, "C", "test %", "The effect of C", log_x=True))
    yield Figure(
        "passive",
        "Passive-aggressive machines after one pass over 200 samples with C = 0.1; a "
        "tenth of the samples have wrong labels. The last panel varies C.",
        tuple(panels),
    )
    free = learn(PassiveAggressiveClassifier(1.0, "pa"), X, y, 1)
    large = learn(PassiveAggressiveClassifier(1e9, "pa2"), X, y, 1)
    apart = np.abs(
        free.decision_function(X_test) - large.decision_function(X_test)
    ).max()
    yield Finding(
        "As C grows the relaxed updates tend to the classic one.",
        bool(apart < 1e-3),
        f"At C = 1e9 the decision values of both differ by {apart:.1e} at most.",
        "Less than 1e-3 counts as the same.",
    )


def moons(run: Run, n: int) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Return ``n`` training and 1,000 test samples of two moons."""
    X, y = make_moons(n + 1000, noise=0.25, random_state=run.seed)
    order = np.random.default_rng(run.seed).permutation(n + 1000)
    X, y = X[order], y[order]
    return X[:n], y[:n], X[n:], y[n:]


def online_machines(run: Run) -> Iterator[Item]:
    """Measure LASVM and online SMO over n, from nothing and from a fitted half."""
    sizes = run.pick((100, 200, 500, 1000, 2000), (100, 200, 500, 1000), (50, 100))
    starts = {"from nothing": 0.0, "half of the set fitted first": 0.5}
    train: dict[str, list[float]] = {}
    infer: dict[str, list[float]] = {}
    scores: dict[str, float] = {}
    for n in sizes:
        X, y, X_test, y_test = moons(run, n)
        models: dict[str, Any] = {"SVC, all at once": None}
        models |= {
            f"{m}, {s}": (m, part)
            for m in ("lasvm", "smo")
            for s, part in starts.items()
        }
        for name, how in models.items():
            started = time.perf_counter()
            if how is None:
                model: Any = SVC(C=1.0, gamma=1.0).fit(X, y)
            else:
                model = OnlineSVC(C=1.0, kernel="rbf", gamma=1.0, method=how[0])
                first = int(how[1] * n)
                if first:
                    model.fit(X[:first], y[:first])
                learn(model, X[first:], y[first:], 1)
                model.finish()
            seconds = time.perf_counter() - started
            train.setdefault(name, []).append(seconds)
            started = time.perf_counter()
            scores[name] = percent(model.predict(X_test), y_test)
            infer.setdefault(name, []).append(time.perf_counter() - started)
            if n == sizes[-1]:
                held = len(model.support_) if how is None else len(model.samples_)
                values = {
                    "n": n,
                    "test": scores[name],
                    "held": held,
                    "infer": infer[name][-1],
                }
                gap = getattr(model, "dual_gap_", None)
                yield Row(
                    "online",
                    name,
                    values,
                    seconds=seconds,
                    gap=None if gap is None else float(np.sum(gap)),
                )
    words = ("training samples", "seconds")
    series = [{k: (sizes, v) for k, v in t.items()} for t in (train, infer)]
    panels = (
        curves_panel(
            series[0], *words, "Training, sample by sample", log_x=True, log_y=True
        ),
        curves_panel(
            series[1], *words, "Inference, 1,000 samples", log_x=True, log_y=True
        ),
    )
    yield Figure("online", "Times of online machines on two noisy moons.", panels)
    spread = max(scores.values()) - min(scores.values())
    yield Finding(
        "Online learning gives no significant results, for want of good parameters.",
        spread > 2.0,
        f"With the same parameters, LASVM and online SMO end within {spread:.1f} "
        "points of the machine that saw all samples at once.",
        "A difference of at most two points, about two standard errors of 1,000 "
        "samples, counts as equal.",
    )


def best(run: Run) -> Iterator[Item]:
    """Go beyond the report: the online machine with C and γ chosen by folds."""
    X, y, X_test, y_test = moons(run, run.pick(1000, 1000, 100))
    grid: dict[str, list] = {"gamma": [0.3, 1.0, 3.0], "C": [0.3, 1, 10]}
    choice = choose(SVC(), grid, X, y, 5)
    fitted = timed_fit(OnlineSVC(kernel="rbf", **choice.settings), X, y)
    values = {
        "test": percent(fitted.model.predict(X_test), y_test),
        "setting": str(choice),
    }
    yield Row(
        "best",
        "Two noisy moons: LASVM, chosen by five folds",
        values,
        seconds=fitted.seconds,
        gap=fitted.gap,
    )
