"""Machines that learn online, in the study ``kernel-methods``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mercer import SVC, OnlineSVC, PassiveAggressiveClassifier
from mercer.datasets import make_moons, make_rings, noisy_stream
from mercer.plots import DecisionRegionsDisplay
from studies.choices import choose
from studies.measures import percent, relative_gap, timed
from studies.panels import curves_panel, plane_panel
from studies.results import Figure, Finding, Item, Row
from studies.study import Run

__all__ = [
    "best",
    "control",
    "online_claims",
    "online_machines",
    "passive",
    "passive_claims",
    "repeats",
]

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


def machine(variant: str, C: float, kernel: Any = None) -> Any:
    """Return a passive-aggressive machine of the report: it has no intercept."""
    return PassiveAggressiveClassifier(
        C, variant, kernel, gamma=0.3, fit_intercept=False
    )


def steps_of(X: NDArray, side: NDArray, w: NDArray, variant: str, C: float) -> NDArray:
    """Return τ of the report's updates at the weights w; ``side`` is −1 or 1."""
    loss = np.maximum(0.0, 1.0 - side * (X @ w))
    norm = (X**2).sum(axis=1)
    if variant == "pa2":
        return loss / (norm + 0.5 / C)
    step = loss / norm
    return np.minimum(C, step) if variant == "pa1" else step


def signs(y: NDArray) -> NDArray:
    """Return the labels as −1 and 1."""
    return np.where(y == np.max(y), 1.0, -1.0)


def in_groups(
    X: NDArray, y: NDArray, variant: str, C: float, group: int = GROUP
) -> NDArray:
    """Return the weights after one pass in which a group makes one update.

    It is the mean of the updates of its samples, all at the weights before the group.
    """
    w = np.zeros(X.shape[1])
    side = signs(y)
    for k in range(0, len(y), group):
        own = slice(k, k + group)
        tau = steps_of(X[own], side[own], w, variant, C)
        w = w + (tau * side[own]) @ X[own] / len(tau)
    return w


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
    """Compare the three updates, sample by sample and in groups."""
    X, y, X_test, y_test = stream(run)
    draw = DecisionRegionsDisplay.from_estimator
    panels: list[str] = []
    for variant, name in VARIANTS.items():
        for kernel in (None, "rbf"):
            fresh = machine(variant, 0.1, kernel)
            seconds, model = timed(learnt, fresh, X, y)
            values = {
                "train": percent(model.predict(X), y),
                "test": percent(model.predict(X_test), y_test),
            }
            if kernel is None:
                w = in_groups(X, y, variant, 0.1)
                values["grouped"] = percent(X_test @ w > 0, y_test)
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
    """Draw what C does to the relaxed updates."""
    X, y, X_test, y_test = stream(run)

    def after(C: float, variant: str) -> Any:
        return learn(machine(variant, C), X, y, 1)

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
        "badly fixed",
    )
    by_one, by_two = (
        predicted[f"{title}, from nothing"] for title in ("LASVM", "online SMO")
    )
    same = 100 * float(np.mean(by_one == by_two))
    yield Finding(
        "The two approaches, online SMO and LASVM, are very similar.",
        same >= 98,
        f"After {len(y):,} samples both give the same answer for {same:.1f} % of the "
        "test samples.",
        "At least 98 % counts: two points, as above, are two standard errors.",
        "online similar",
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
    apart: dict[str, float] = {}
    for name, model in ways.items():
        values = {
            "test": percent(model.predict(X_test), y_test),
            "held": len(model.samples_),
            "apart": float(np.abs(model.decision_function(X_test) - base).max()),
        }
        yield Row("repeats", name, values, len(y_test), gap=relative_gap(model))
        apart[name] = values["apart"]
    skipped, added = list(apart.values())[2:]
    yield Finding(
        "Skipping samples that are known avoids changes of what is learnt.",
        skipped <= 0.05 < added,
        f"If every sample comes twice, decision values change by {skipped:.2g} at most "
        f"where repetitions are skipped, and by {added:.2g} where they are added. A "
        "sample that LASVM has removed is new when it comes again.",
        "At most 0.05, and more without it, count.",
        "repetitions",
    )


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


def passive_claims(run: Run) -> Iterator[Item]:
    """Judge what the report says of passive-aggressive machines."""
    X, y, X_test, y_test = stream(run)
    made = {variant: learnt(machine(variant, 0.1), X, y) for variant in VARIANTS}
    apart = {
        VARIANTS[k]: percent(m.predict(X), y) - percent(m.predict(X_test), y_test)
        for k, m in made.items()
    }
    yield Finding(
        "There is little variance between training and test.",
        max(map(abs, apart.values())) <= 5,
        "Training minus test accuracy: "
        + ", ".join(f"{k} {v:+.1f}" for k, v in apart.items())
        + " points.",
        "At most five points for each update count as little; the standard error of "
        "100 samples is four.",
        "little variance",
    )
    free = learnt(machine("pa", 1.0), X, y).coef_
    far = {
        VARIANTS[k]: float(
            np.abs(learnt(machine(k, 1e9), X, y).coef_ - free).max()
            / np.abs(free).max()
        )
        for k in ("pa1", "pa2")
    }
    yield Finding(
        "When C tends to infinity the relaxed updates tend to the classic one.",
        max(far.values()) < 1e-3,
        "At C = 1e9 the weights differ from those of the classic update by "
        + ", ".join(f"{v:.1e} ({k})" for k, v in far.items())
        + " of the largest.",
        "Less than 1e-3 counts as the same.",
        "C to infinity",
    )
    small, w = 0.01, np.zeros(X.shape[1])
    taus = {k: steps_of(X, signs(y), w, k, small) for k in ("pa1", "pa2")}
    at_bound = 100 * float(np.mean(taus["pa1"] >= small * (1 - 1e-12)))
    yield Finding(
        "For low C the first relaxation has a threshold.",
        at_bound >= 90,
        f"At C = {small:g} the first step has the size C for {at_bound:.0f} % of the "
        "samples, whatever their loss.",
        "At least 90 % at the threshold count.",
        "small C, first",
    )
    spread = {k: float(v.std() / v.mean()) for k, v in taus.items()}
    yield Finding(
        "For low C the second relaxation is a finer adjustment of the sensitivity.",
        spread["pa2"] > spread["pa1"],
        f"At C = {small:g} the first steps vary by {100 * spread['pa1']:.2f} % of "
        f"their mean with the first relaxation, and by {100 * spread['pa2']:.2f} % "
        "with the second, which follows loss and norm.",
        "The larger variation is the finer adjustment.",
        "small C, second",
    )

    def wobble(variant: str) -> float:
        model, scores = machine(variant, 0.01), []
        for k in range(len(y)):
            model.partial_fit(X[k : k + 1], y[k : k + 1], classes=np.unique(y))
            if k >= len(y) // 2:
                scores.append(percent(model.predict(X_test), y_test))
        return float(np.std(scores))

    classic, relaxed = wobble("pa"), wobble("pa2")
    yield Finding(
        "With a bad updater the algorithm can be too sensitive.",
        classic >= 1.5 * relaxed,
        "Over the second half of the stream the test accuracy has a standard deviation "
        f"of {classic:.1f} points with the classic update, and {relaxed:.1f} with the "
        "second relaxation (C = 0.01).",
        "A factor of at least 1.5 counts.",
        "too sensitive",
    )
    losses = np.array([_poisoned(run.seed + k) for k in range(run.pick(20, 20, 3))])
    online, batch = losses.mean(axis=0)
    error = float(np.std(losses[:, 0] - losses[:, 1]) / np.sqrt(len(losses)))
    yield Finding(
        "Fed sample by sample the algorithm is more prone to data poisoning.",
        True
        if online - batch > 2 * error
        else False
        if batch - online > 2 * error
        else None,
        f"Ten wrong samples at the end of 200 cost the classic update {online:.1f} "
        f"points of test accuracy, and a machine that sees all at once {batch:.1f}, in "
        f"the mean of {len(losses)} draws.",
        f"The difference must exceed twice its standard error of {error:.1f}.",
        "poisoning",
    )


def _poisoned(seed: int) -> tuple[float, float]:
    """Return what ten wrong samples at the end cost online and all at once."""
    ((X, y),) = noisy_stream(
        1200, chunk_size=1200, separation=3.0, flip=0.05, random_state=seed
    )
    X_test, y_test, X, y = X[200:], y[200:], X[:200], y[:200]
    rows = np.flatnonzero(y == y.max())[:10]
    bad = np.full(len(rows), y.min())
    more, labels = np.concatenate([X, X[rows]]), np.concatenate([y, bad])

    def scores(model: Any, learns: Any) -> float:
        clean = learns(model, X, y)
        dirty = learns(model, more, labels)
        return percent(clean.predict(X_test), y_test) - percent(
            dirty.predict(X_test), y_test
        )

    once = scores(SVC(kernel="linear"), lambda m, A, b: clone(m).fit(A, b))
    return scores(machine("pa", 1.0), learnt), once


def online_claims(run: Run) -> Iterator[Item]:
    """Judge what the report says of batches first, and of kernels online."""
    spreads: dict[str, list[float]] = {"batch": [], "nothing": []}
    for k in range(run.pick(5, 5, 2)):
        n = 100
        X, y = make_moons(n + 500, noise=0.25, random_state=run.seed + k)
        order = np.random.default_rng(run.seed + k).permutation(len(y))
        X, y = X[order], y[order]
        for start, first in (("batch", 50), ("nothing", 0)):
            model = OnlineSVC(kernel="rbf", C=1.0, gamma=1.0)
            if first:
                model.fit(X[:first], y[:first])
            scores = []
            for at in range(first, n, 5):
                part = slice(at, at + 5)
                model.partial_fit(X[part], y[part], classes=np.unique(y))
                scores.append(percent(model.predict(X[n:]), y[n:]))
            spreads[start].append(float(np.std(scores[: n // 10])))
    batch, nothing = (float(np.mean(spreads[k])) for k in ("batch", "nothing"))
    yield Finding(
        "A whole data set at the start gives a better stability.",
        batch < nothing,
        f"Over the first 50 single samples the test accuracy of LASVM has a standard "
        f"deviation of {batch:.1f} points after a batch of 50, and {nothing:.1f} from "
        "nothing.",
        "The smaller deviation is the better stability.",
        "batch first",
    )
    X, y = make_rings(400, random_state=run.seed)
    order = np.random.default_rng(run.seed).permutation(len(y))
    X, y = X[order], y[order]
    scores = [
        percent(
            learnt(OnlineSVC(C=1.0, kernel=kernel, gamma=1.0), X[:200], y[:200])
            .finish()
            .predict(X[200:]),
            y[200:],
        )
        for kernel in ("linear", "rbf")
    ]
    yield Finding(
        "Online machines with a kernel can solve problems that are not linearly "
        "separable.",
        scores[1] >= 95 > scores[0],
        f"On rings LASVM has {scores[0]:.1f} % with the linear and {scores[1]:.1f} % "
        "with the Gaussian kernel.",
        "At least 95 % with the kernel, and less without, count.",
        "online kernels",
    )
