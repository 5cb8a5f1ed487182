"""Machines that learn online, in the study ``kernel-methods``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mercer import SVC, OnlineSVC, PassiveAggressiveClassifier
from mercer.datasets import make_moons, noisy_stream
from mercer.plots import DecisionRegionsDisplay
from studies.choices import choose
from studies.measures import percent, relative_gap, timed
from studies.panels import curves_panel, plane_panel
from studies.results import Figure, Finding, Item, Row
from studies.study import Run

__all__ = ["best", "control", "online_machines", "passive", "repeats"]

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


def learnt(model: Any, X: NDArray, y: NDArray, group: int = 1) -> Any:
    """Return a copy of the model that has learnt all samples once."""
    return learn(clone(model), X, y, group)


def control(run: Run) -> Iterator[Item]:
    """Draw the samples, with and without noise, and a machine that sees all at once."""
    X, y, X_test, y_test = stream(run)
    reference = SVC(kernel="linear").fit(X, y)
    score = percent(reference.predict(X_test), y_test)
    draw = DecisionRegionsDisplay.from_estimator
    panels = (
        plane_panel(draw, reference, X, y, title=f"{len(y)} training samples"),
        plane_panel(
            draw, reference, X_test, y_test, title=f"{len(y_test)} test samples"
        ),
    )
    yield Figure(
        "control",
        "The samples of the passive-aggressive machines; a tenth has a wrong label. "
        "The regions are those of a linear SVC that sees all training samples at once; "
        f"its test accuracy is {score:.1f} %.",
        panels,
        "passive",
    )


def passive(run: Run) -> Iterator[Item]:
    """Compare the three updates for several C, sample by sample and in groups."""
    X, y, X_test, y_test = stream(run)
    draw = DecisionRegionsDisplay.from_estimator
    panels: list[str] = []
    for variant, name in VARIANTS.items():
        for kernel in (None, "rbf"):
            fresh = PassiveAggressiveClassifier(0.1, variant, kernel, gamma=0.3)
            seconds, model = timed(learnt, fresh, X, y)
            grouped = learnt(fresh, X, y, GROUP)
            values = {
                "train": percent(model.predict(X), y),
                "test": percent(model.predict(X_test), y_test),
                "grouped": percent(grouped.predict(X_test), y_test),
            }
            label = f"{name}, {'linear' if kernel is None else 'Gaussian kernel'}"
            yield Row("passive", label, values, len(y_test), seconds=seconds)
            if kernel is None:
                for part, Z, t in (("training", X, y), ("test", X_test, y_test)):
                    panels.append(
                        plane_panel(draw, model, Z, t, title=f"{name}, {part}")
                    )
    yield Figure(
        "passive",
        f"Passive-aggressive machines after one pass over {len(y)} samples with C = "
        "0.1, on training and on test samples.",
        tuple(panels),
        "passive",
    )
    yield from effect_of_C(run)


def effect_of_C(run: Run) -> Iterator[Item]:
    """Draw what C does to the relaxed updates, and judge where they tend to."""
    X, y, X_test, y_test = stream(run)

    def after(C: float, variant: str) -> Any:
        return learn(PassiveAggressiveClassifier(C, variant), X, y, 1)

    draw = DecisionRegionsDisplay.from_estimator
    panels = [
        plane_panel(draw, after(C, "pa2"), X, y, title=f"second relaxation, C = {C:g}")
        for C in (0.01, 0.1, 1.0, 10.0)
    ]
    yield Figure(
        "passive-C", "The second relaxation for several C.", tuple(panels), "passive"
    )
    Cs = (0.001, 0.01, 0.1, 1.0, 10.0)[:: run.pick(1, 1, 4)]
    curves = {
        VARIANTS[variant]: (
            Cs,
            [percent(after(C, variant).predict(X_test), y_test) for C in Cs],
        )
        for variant in ("pa1", "pa2")
    }
    yield Figure(
        "passive-curve",
        f"Accuracy of both relaxations on {len(y_test)} test samples against C.",
        (curves_panel(curves, "C", "test %", "The effect of C", log_x=True),),
        "passive",
    )
    free, large = after(1.0, "pa"), after(1e9, "pa2")
    values = [model.decision_function(X_test) for model in (free, large)]
    apart = np.abs(values[0] - values[1]).max()
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
    ways: dict[str, tuple[str, float] | None] = {"SVC, all at once": None}
    ways |= {
        f"{title}, {start}": (method, part)
        for method, title in (("lasvm", "LASVM"), ("smo", "online SMO"))
        for start, part in (("from nothing", 0.0), ("half fitted first", 0.5))
    }
    train: dict[str, list[float]] = {name: [] for name in ways}
    infer: dict[str, list[float]] = {name: [] for name in ways}
    predicted: dict[str, NDArray] = {}
    y_test = np.zeros(0)
    for n in sizes:
        X, y, X_test, y_test = moons(run, n)
        for name, how in ways.items():
            if how is None:
                seconds, model = timed(SVC(C=1.0, gamma=1.0).fit, X, y)
            else:
                method, part = how
                seconds, model = timed(taught, X, y, int(part * len(y)), method)
            train[name].append(seconds)
            seconds, predicted[name] = timed(model.predict, X_test)
            infer[name].append(seconds)
            if n == sizes[-1]:
                held = len(model.support_) if how is None else len(model.samples_)
                values = {
                    "n": n,
                    "test": percent(predicted[name], y_test),
                    "held": held,
                    "infer": infer[name][-1],
                }
                seconds, gap = train[name][-1], relative_gap(model)
                yield Row("online", name, values, len(y_test), seconds, gap)
    words = ("training samples", "seconds")
    panels = tuple(
        curves_panel(
            {k: (sizes, v) for k, v in times.items()},
            *words,
            title,
            log_x=True,
            log_y=True,
        )
        for times, title in (
            (train, "Training, sample by sample"),
            (infer, "Inference, 1,000 samples"),
        )
    )
    caption = "Times of online machines on two noisy moons."
    yield Figure("online", caption, panels, "online")
    scores = {name: percent(found, y_test) for name, found in predicted.items()}
    whole = scores.pop("SVC, all at once")
    spread = max(abs(score - whole) for score in scores.values())
    yield Finding(
        "Online learning gives no significant results, because of badly fixed "
        "parameters.",
        spread > 2.0,
        "With the same parameters, LASVM and online SMO end within "
        f"{spread:.1f} points of the machine that saw all samples at once.",
        "A difference of at most two points, about two standard errors of 1,000 "
        "samples, counts as equal.",
    )


def taught(
    X: NDArray, y: NDArray, first: int = 0, method: str = "lasvm", **more: Any
) -> OnlineSVC:
    """Return a machine that fits the first samples at once, the rest one by one."""
    settings: dict[str, Any] = {"C": 1.0, "gamma": 1.0, **more}
    model = OnlineSVC(kernel="rbf", method=method, **settings)
    if first:
        model.fit(X[:first], y[:first])
    if first < len(y):
        learn(model, X[first:], y[first:], 1)
    return model.finish()


def repeats(run: Run) -> Iterator[Item]:
    """Show a batch that weighs more than single samples, and repeated samples."""
    n = run.pick(500, 500, 60)
    X, y, X_test, y_test = moons(run, n)
    half, twice = n // 2, np.tile(np.arange(n), 2)
    ways: dict[str, Any] = {
        f"{n} samples, half as a batch first": taught(X, y, half),
        "the same, the batch with weight 5": taught(X, y, half, batch_weight=5.0),
        "every sample twice, repetitions skipped": taught(X[twice], y[twice], half),
        "every sample twice, repetitions added": taught(
            X[twice], y[twice], half, duplicates="add"
        ),
    }
    base = next(iter(ways.values())).decision_function(X_test)
    for name, model in ways.items():
        values = {
            "test": percent(model.predict(X_test), y_test),
            "held": len(model.samples_),
            "apart": float(np.abs(model.decision_function(X_test) - base).max()),
        }
        yield Row("repeats", name, values, len(y_test), gap=relative_gap(model))


def best(run: Run) -> Iterator[Item]:
    """Go beyond the report: the online machine with C and γ chosen by folds."""
    X, y, X_test, y_test = moons(run, run.pick(1000, 1000, 100))
    grid: dict[str, list] = {"gamma": [0.3, 1.0, 3.0], "C": [0.3, 1, 10]}
    choice = choose(SVC(), grid, X, y, 5)
    seconds, model = timed(taught, X, y, **choice.settings)
    values = {
        "test": percent(model.predict(X_test), y_test),
        "setting": str(choice),
    }
    yield Row(
        "best",
        f"Two noisy moons, {len(y):,} samples one by one: LASVM, chosen by five folds",
        values,
        len(y_test),
        seconds,
        relative_gap(model),
    )
