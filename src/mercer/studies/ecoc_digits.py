"""Ten digits by one-vs-all and by error-correcting codes, and what solvers cost."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import mercer
from mercer import SVC
from mercer.datasets import make_moons, make_rings
from mercer.multiclass import dietterich15, hadamard, row_distances
from mercer.studies import figures
from mercer.studies.ecoc_protocol import (
    GRIDS,
    MOST_SEARCHED,
    N_TEST,
    PUBLISHED,
    PUBLISHED_SECONDS,
    SIZES,
    STATEMENT,
)
from mercer.studies.ecoc_solvers import compare_solvers
from mercer.studies.results import Figure, Finding, Item, Row, Unavailable
from mercer.studies.search import Choice, choose, digit_features, mean_distance, pixels
from mercer.studies.study import Plan, Step, Study, percent, timed_fit
from mercer.studies.verdicts import judge_accuracy

__all__ = ["STUDY"]


class Digits(NamedTuple):
    """Pixels and digits; the test images are the same for every size."""

    X: NDArray
    y: NDArray
    X_test: NDArray
    y_test: NDArray


def digits(plan: Plan) -> Digits:
    """Return training images in random order, and 1,000 others, as the report did."""

    def make() -> Digits:
        X, y, X_test, y_test = plan.data.mnist
        n = plan.pick(SIZES[-1], 4000, 400)
        if plan.data.is_full:
            rows = np.random.default_rng(plan.seed).permutation(len(y))[: n + N_TEST]
            X, y = X[rows], y[rows]
            X, X_test, y, y_test = X[:n], X[n:], y[:n], y[n:]
        return Digits(pixels(X[:n]), y[:n], pixels(X_test), y_test)

    return plan.share("digits", make)


def tuned(
    plan: Plan, kernel: str, n: int, scoring: Any = None
) -> tuple[dict[str, Any], Choice]:
    """Choose the kernel's parameters by three folds of ``n`` images, at most 5,000."""
    n = min(n, MOST_SEARCHED)

    def make() -> tuple[dict[str, Any], Choice]:
        data = digits(plan)
        name = {"linear": "linear", "Gaussian": "rbf"}[kernel]
        model = SVC(kernel=name, multiclass="ovr")
        choice = choose(model, GRIDS[kernel], data.X[:n], data.y[:n], 3, scoring)
        return {"kernel": name, **choice.settings}, choice

    return plan.share(f"tuned {kernel} {n} {scoring is None}", make)


def claims_alone(model: SVC, X: NDArray, y: NDArray) -> NDArray[np.bool_]:
    """Tell which samples the machine of their class claims, and no other does."""
    values = decide(model, X)
    single = (values > 0).sum(axis=1) == 1
    return single & (model.classes_[values.argmax(axis=1)] == y)


def share_alone(model: SVC, X: NDArray, y: NDArray) -> float:
    """Return the share of such samples: what the report counts as right."""
    return float(claims_alone(model, X, y).mean())


def search(plan: Plan) -> Iterator[Item]:
    """The systematic search, by cross-validation on training images."""
    choice = tuned(plan, "Gaussian", 2000)[1]
    gammas, Cs = GRIDS["Gaussian"]["gamma"], GRIDS["Gaussian"]["C"]
    by_place = {(s["gamma"], s["C"]): score for s, score in choice.table}
    values = np.array([[by_place[g, C] for C in Cs] for g in gammas])
    names = ([f"{g:g}" for g in gammas], [f"{C:g}" for C in Cs])
    drawn = figures.heat_map(values, *names, "Cross-validation, %", "C", "γ", "{:.2f}")
    yield Figure("search", f"The search over C and γ; chosen: {choice}.", (drawn,))


def decide(model: SVC, X: NDArray) -> NDArray:
    """Return the decision values of all machines of a model."""
    model.decision_function_shape = "ovo"
    return model.decision_function(X)


def classify(plan: Plan, n: int, kernel: str) -> Iterator[Item]:
    """One size and kernel: all ways to ten classes."""
    data = digits(plan)
    if n > len(data.y):
        plan.data.require_full()
        raise Unavailable(f"A quick run has {len(data.y)} training images, not {n}.")
    X, y = data.X[:n], data.y[:n]

    def fit(params: dict[str, Any], **more: Any) -> Any:
        return timed_fit(SVC(**params, solver="smo", **more), X, y)

    alone = tuned(plan, kernel, n, share_alone)[0]
    ova = fit(alone, multiclass="ovr", decode="barycentre")
    params = tuned(plan, kernel, n)[0]
    printed = fit(params, multiclass="ecoc", code="dietterich15", decode="hamming")
    simplex = fit(params, multiclass="ecoc", code="hadamard", decode="hamming")
    found = {
        "barycentre": percent(ova.model.predict(data.X_test), data.y_test),
        "ecoc": percent(printed.model.predict(data.X_test), data.y_test),
        "hadamard": percent(simplex.model.predict(data.X_test), data.y_test),
    }
    values = decide(ova.model, data.X_test)
    found["margin"] = percent(values.argmax(axis=1), data.y_test)
    found["unique"] = 100 * share_alone(ova.model, data.X_test, data.y_test)
    simplex.model.decode = "loss"
    found["loss"] = percent(simplex.model.predict(data.X_test), data.y_test)
    theirs = PUBLISHED.get(n, {}).get(kernel)
    published = (
        dict(zip(("unique", "barycentre", "ecoc"), theirs, strict=True))
        if theirs
        else {}
    )
    seconds = ova.seconds + printed.seconds + simplex.seconds
    gap = ova.gap + printed.gap + simplex.gap
    yield Row(
        f"accuracy {kernel}",
        f"n = {n:,}",
        found,
        published,
        len(data.y_test),
        N_TEST,
        seconds,
        gap,
    )
    hours = PUBLISHED_SECONDS[kernel] if n == SIZES[-1] else None
    yield Row(
        "seconds",
        f"{kernel}, n = {n:,}",
        {
            "ova": ova.seconds,
            "ecoc": printed.seconds,
            "hadamard": simplex.seconds,
            "times": f"{hours / printed.seconds:,.0f}×" if hours else "",
        },
        {"ecoc": hours} if hours else {},
        gap=gap,
    )


def claims(plan: Plan) -> Iterator[Item]:
    """What the report says of codes and of linear machines."""
    distances = row_distances(dietterich15())
    simplex = row_distances(hadamard(10))
    off = ~np.eye(10, dtype=bool)
    yield Finding(
        "Any two words of the code differ in at least seven places.",
        bool(distances[off].min() >= 7),
        f"As printed the least distance is {distances[off].min():.0f}, so that two "
        "wrong "
        f"machines are mended, not three; in the Hadamard code it is "
        f"{simplex[off].min():.0f}.",
    )
    data = digits(plan)
    few, many = (min(2000, len(data.y) // 2), len(data.y))
    model = SVC(**tuned(plan, "linear", 2000)[0], multiclass="ovr")
    found = [
        model.fit(data.X[:n], data.y[:n]).predict(data.X_test) for n in (few, many)
    ]
    scores = [percent(predicted, data.y_test) for predicted in found]
    yield judge_accuracy(
        "Linear one-vs-all gets worse beyond 2,000 images, as more data are harder to "
        "separate.",
        found[0],
        found[1],
        data.y_test,
        f"With C from cross-validation and every machine solved to its tolerance, "
        "linear "
        f"one-vs-all by largest margin has {scores[0]:.1f} % at {few:,} and "
        f"{scores[1]:.1f} % at {many:,} images.",
    )


def measure(plan: Plan, kernel: str) -> Iterator[Item]:
    """Times of the solvers over n on the code's first task: even against odd."""
    data = digits(plan)
    sizes = plan.pick(
        (500, 1000, 2000, 4000, 8000), (500, 1000, 2000, 4000), (60, 120, 240)
    )
    repeats = plan.pick(3, 3, 1)
    params = tuned(plan, kernel, 2000)[0]
    yield from compare_solvers(kernel, params, data.X, data.y % 2, sizes, repeats)


def files(plan: Plan) -> Iterator[Item]:
    """Models saved and read back."""
    data, n = digits(plan), plan.pick(2000, 2000, 300)
    params = tuned(plan, "Gaussian", n)[0]
    model = SVC(**params, multiclass="ecoc", code="dietterich15")
    model.fit(data.X[:n], data.y[:n])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.skops")
        started = time.perf_counter()
        mercer.save(model, path)
        again = mercer.load(path)
        seconds = time.perf_counter() - started
        size = path.stat().st_size
    same = np.array_equal(
        model.decision_function(data.X_test), again.decision_function(data.X_test)
    )
    values = {"size": round(size / 2**20, 2), "same": "yes" if same else "no"}
    yield Row("files", f"ECOC Gaussian, n = {n:,}", values, seconds=seconds)


def toys(plan: Plan) -> Iterator[Item]:
    """Pictures in the plane."""
    panels = []
    for name, (X, y) in {
        "moons": make_moons(200, noise=0.15, random_state=plan.seed),
        "rings": make_rings(200, noise=0.08, random_state=plan.seed),
    }.items():
        for kernel, model in (
            ("linear", SVC(kernel="linear")),
            ("Gaussian", SVC(gamma=2.0)),
        ):
            model.fit(X, y)
            panels.append(
                figures.plane(
                    X,
                    y,
                    model.decision_function,
                    f"{name}, {kernel}",
                    levels=(-1, 0, 1),
                    marked=model.support_,
                )
            )
    caption = "Toy sets: the boundary, the margins (dashed) and the support vectors."
    yield Figure("toys", caption, tuple(panels))


def best(plan: Plan) -> Iterator[Item]:
    """Beyond the report: the same pixels with a better code, and gradients."""
    data = digits(plan)
    X, y, X_test, y_test = data
    params = tuned(plan, "Gaussian", len(y))[0]
    model = SVC(**params, solver="smo", multiclass="ecoc", code="hadamard")
    fitted = timed_fit(model, X, y)
    values = {"test": percent(fitted.model.predict(X_test), y_test), "n": len(y)}
    yield Row(
        "best",
        "Ten digits, pixels: Gaussian, Hadamard code, decoded by loss",
        values,
        {"test": 95.4},
        len(y_test),
        N_TEST,
        fitted.seconds,
        fitted.gap,
    )
    features = digit_features()
    F, F_test = features.fit_transform(X * 255), features.transform(X_test * 255)
    n, unit = plan.pick(3000, 2000, 300), 1 / mean_distance(F)
    grid: dict[str, list] = {"gamma": [unit, 2 * unit], "C": [2, 5]}
    choice = choose(SVC(), grid, F[:n], y[:n], 3)
    fitted = timed_fit(
        SVC(**choice.settings, solver="smo", multiclass="ecoc", code="hadamard"), F, y
    )
    values = {"test": percent(fitted.model.predict(F_test), y_test), "n": len(y)}
    yield Row(
        "best",
        "Ten digits, deskewed HOG: Gaussian, Hadamard code",
        values,
        {"test": 95.4},
        len(y_test),
        N_TEST,
        fitted.seconds,
        fitted.gap,
    )


def steps(plan: Plan) -> list[Step]:
    """Return the steps of the study."""
    sizes = plan.pick(SIZES, (500, 1000, 2000, 4000, 10_000), (100, 400, 10_000))
    return [
        Step("search", search),
        *(
            Step(f"{kernel}, n = {n:,}", classify, {"n": n, "kernel": kernel})
            for kernel in GRIDS
            for n in sizes
        ),
        Step("claims", claims),
        *(
            Step(f"solvers, {kernel}", measure, {"kernel": kernel})
            for kernel in ("Gaussian", "linear")
        ),
        Step("model files", files),
        Step("toy sets", toys),
        Step("best model", best),
    ]


STUDY = Study(**STATEMENT, steps=steps)
