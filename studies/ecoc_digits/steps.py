"""The steps of the study ``ecoc-digits``."""

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
from mercer.multiclass.codes import (
    dietterich15,
    hadamard,
    row_distances,
)
from mercer.plots import (
    DecisionRegionsDisplay,
    HeatMapDisplay,
    ImageGalleryDisplay,
)
from mercer.plots.rendering import inline_svg
from studies.choices import choose
from studies.ecoc_digits.models import (
    decide,
    digits,
    settings,
    share_alone,
    tuned,
)
from studies.ecoc_digits.protocol import GRIDS, SIZES
from studies.ecoc_digits.published import SECONDS
from studies.ecoc_digits.solvers import compare_solvers
from studies.features import digit_features, feature_words, mean_distance
from studies.measures import Fitted, percent, timed_fit
from studies.panels import curves_panel, plane_panel
from studies.results import Figure, Finding, Item, Row, Unavailable
from studies.study import Run, Step, shared
from studies.verdicts import all_of, judge_accuracy

__all__ = ["make_steps"]


def search(run: Run) -> Iterator[Item]:
    """Draw the search by cross-validation on training images."""
    choice = tuned(run, "Gaussian", 2000)
    gammas, Cs = GRIDS["Gaussian"]["gamma"], GRIDS["Gaussian"]["C"]
    by_place = {(s["gamma"], s["C"]): score for s, score in choice.table}
    values = np.array([[by_place[g, C] for C in Cs] for g in gammas])
    drawn = inline_svg(
        HeatMapDisplay.from_arrays,
        values,
        rows=gammas,
        columns=Cs,
        xlabel="C",
        ylabel="γ",
        zlabel="accuracy, %",
        values_format=".2f",
        title="Cross-validation",
    )
    caption = f"The accuracy of cross-validation by C and γ; the choice is {choice}."
    yield Figure("search", caption, (drawn,))


def pictures(run: Run) -> Iterator[Item]:
    """Draw eight digits, as the report's first figure does."""
    data = digits(run)
    drawn = inline_svg(
        ImageGalleryDisplay.from_images,
        data.X[:8],
        data.y[:8],
        n_columns=8,
        shape=(28, 28),
        title="Eight digits",
        figsize=(8.8, 1.6),
    )
    yield Figure("digits", "Eight of the training images and their classes.", (drawn,))


class Compared(NamedTuple):
    """All ways from two to ten classes, for one size and one kernel."""

    found: dict[str, float]  #: percentages, by column
    ova: NDArray  #: what one-vs-all predicts
    ecoc: NDArray  #: what the printed code predicts
    fits: tuple[Fitted, ...]  #: one-vs-all, the printed code and the Hadamard code


@shared
def compared(run: Run, n: int, kernel: str) -> Compared:
    """Fit and score all ways, for one size and one kernel."""
    data = digits(run)
    X, y = data.X[:n], data.y[:n]

    def fit(params: dict[str, Any], **more: Any) -> Any:
        return timed_fit(SVC(**params, solver="smo", **more), X, y)

    alone = settings(run, kernel, n, share_alone)
    ova = fit(alone, multiclass="ovr", decode="barycentre")
    params = settings(run, kernel, n)
    printed = fit(params, multiclass="ecoc", code="dietterich15", decode="hamming")
    simplex = fit(params, multiclass="ecoc", code="hadamard", decode="hamming")
    fits = (ova, printed, simplex)
    by_ova, by_printed, by_simplex = (f.model.predict(data.X_test) for f in fits)
    simplex.model.decode = "loss"
    found = {
        "barycentre": percent(by_ova, data.y_test),
        "ecoc": percent(by_printed, data.y_test),
        "hadamard": percent(by_simplex, data.y_test),
        "margin": percent(decide(ova.model, data.X_test).argmax(axis=1), data.y_test),
        "unique": 100 * share_alone(ova.model, data.X_test, data.y_test),
        "loss": percent(simplex.model.predict(data.X_test), data.y_test),
    }
    # The models are large, and are left out.
    kept = tuple(fitted._replace(model=None) for fitted in fits)
    return Compared(found, by_ova, by_printed, kept)


def classify(run: Run, n: int, kernel: str) -> Iterator[Item]:
    """Score all ways from two to ten classes, for one size and one kernel."""
    data = digits(run)
    if n > len(data.y):
        run.data.require_full()
        raise Unavailable(f"There are {len(data.y):,} training images, not {n:,}.")
    found, _, _, fits = compared(run, n, kernel)
    ova, printed, simplex = fits
    yield Row(
        f"accuracy {kernel}",
        f"n = {n:,}",
        found,
        len(data.y_test),
        seconds=sum(fit.seconds for fit in fits),
        gap=max(fit.gap or 0.0 for fit in fits),
        converged=all(fit.converged for fit in fits),
    )
    hours = SECONDS[kernel] if n == SIZES[-1] else None
    yield Row(
        "seconds",
        f"{kernel}, n = {n:,}",
        {
            "ova": ova.seconds,
            "ecoc": printed.seconds,
            "hadamard": simplex.seconds,
            "times": f"{hours / printed.seconds:,.0f}×" if hours else "",
        },
    )


def every_size(run: Run, sizes: tuple[int, ...]) -> Iterator[Item]:
    """Draw all accuracies over n, and judge whether ECOC always beats one-vs-all."""
    data = digits(run)
    sizes = tuple(n for n in sizes if n <= len(data.y))
    kept = {(n, k): compared(run, n, k) for n in sizes for k in GRIDS}
    panels = []
    for kernel in GRIDS:
        curves = {
            words: (sizes, [kept[n, kernel].found[column] for n in sizes])
            for column, words in (
                ("unique", "one-vs-all, unique"),
                ("barycentre", "one-vs-all, barycentre"),
                ("ecoc", "ECOC as printed"),
                ("loss", "ECOC Hadamard, by loss"),
            )
        }
        panels.append(
            curves_panel(curves, "training images", "test %", kernel, log_x=True)
        )
    yield Figure(
        "accuracy",
        f"Accuracy on {len(data.y_test):,} test images over the number of training "
        "images.",
        tuple(panels),
        f"accuracy {list(GRIDS)[-1]}",
    )
    judged = [
        judge_accuracy("", own.ecoc, own.ova, data.y_test, "").holds
        for own in kept.values()
    ]
    told = "; ".join(
        f"{kernel}: "
        + ", ".join(
            f"{kept[n, kernel].found['ecoc']:.1f} against "
            f"{kept[n, kernel].found['barycentre']:.1f} at {n:,}"
            for n in sizes
        )
        for kernel in GRIDS
    )
    yield Finding(
        "ECOC performs better than one-vs-all for training sets of any size.",
        all_of(judged),
        f"ECOC as printed against one-vs-all with barycentres, {told}.",
        f"McNemar’s test at each size: {judged.count(True)} of {len(judged)} "
        f"comparisons favour ECOC with p < 0.05, {judged.count(False)} favour "
        "one-vs-all. The claim holds if all favour ECOC, and does not hold if one "
        "favours one-vs-all.",
    )


def claims(run: Run) -> Iterator[Item]:
    """Judge the report's claims about codes and about linear machines."""
    distances = row_distances(dietterich15())
    simplex = row_distances(hadamard(10))
    off = ~np.eye(10, dtype=bool)
    yield Finding(
        "Any two words of the code differ in at least seven places.",
        bool(distances[off].min() >= 7),
        f"The smallest distance in the printed code is {distances[off].min():.0f}, so "
        "that the code corrects two wrong machines, not three; in the Hadamard code "
        f"the smallest distance is {simplex[off].min():.0f}.",
    )
    data = digits(run)
    few, many = (min(2000, len(data.y) // 2), len(data.y))
    model = SVC(**settings(run, "linear", 2000), multiclass="ovr")
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
        "With C from cross-validation and every machine solved to its tolerance, "
        f"linear one-vs-all by largest margin has {scores[0]:.1f} % at {few:,} and "
        f"{scores[1]:.1f} % at {many:,} images.",
    )


def measure(run: Run, kernel: str) -> Iterator[Item]:
    """Measure the solvers over n on the first column of the code: even against odd."""
    data = digits(run)
    sizes = run.pick((500, 1000, 2000, 4000), (250, 500, 1000, 2000), (60, 120, 240))
    params = settings(run, kernel, 2000)
    even = data.y % 2 == 0
    yield from compare_solvers(kernel, params, data.X, even, sizes, run.seed)


def files(run: Run) -> Iterator[Item]:
    """Save a model, load it, and compare its answers."""
    data, n = digits(run), run.pick(2000, 2000, 300)
    params = settings(run, "Gaussian", n)
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


def toys(run: Run) -> Iterator[Item]:
    """Draw linear and Gaussian machines on two toy sets."""
    panels = []
    for name, (X, y) in {
        "moons": make_moons(200, noise=0.15, random_state=run.seed),
        "rings": make_rings(200, noise=0.08, random_state=run.seed),
    }.items():
        for kernel, model in (
            ("linear", SVC(kernel="linear")),
            ("Gaussian", SVC(gamma=2.0)),
        ):
            model.fit(X, y)
            panels.append(
                plane_panel(
                    DecisionRegionsDisplay.from_estimator,
                    model,
                    X,
                    y,
                    title=f"{name}, {kernel}",
                )
            )
    caption = (
        "Toy sets with the boundary, the margins (dashed) and the support vectors "
        "(ringed; thick rings are at their bound C)."
    )
    yield Figure("toys", caption, tuple(panels))


def best(run: Run) -> Iterator[Item]:
    """Go beyond the report: the same pixels with a better code, and gradients."""
    data = digits(run)
    y, features = data.y, digit_features()
    F = features.fit_transform(data.X * 255)
    F_test = features.transform(data.X_test * 255)
    n, unit = run.pick(3000, 2000, 300), 1 / mean_distance(F)
    grid: dict[str, list] = {"gamma": [unit, 2 * unit], "C": [2, 5]}
    by_gradients = choose(SVC(), grid, F[:n], y[:n], 3).settings
    for words, params, X, X_test in (
        ("pixels", settings(run, "Gaussian", len(y)), data.X, data.X_test),
        (feature_words(features), by_gradients, F, F_test),
    ):
        model = SVC(**params, solver="smo", multiclass="ecoc", code="hadamard")
        fitted = timed_fit(model, X, y)
        yield Row(
            "best",
            f"Ten digits, {words}: Gaussian, Hadamard code, decoded by loss",
            {"test": percent(model.predict(X_test), data.y_test), "n": len(y)},
            len(data.y_test),
            **fitted.facts,
            key="best",
        )


def make_steps(run: Run) -> list[Step]:
    """Return the steps of the study."""
    sizes = run.pick(SIZES, (500, 1000, 2000, 4000, 10_000), (100, 400, 10_000))
    return [
        Step("eight digits", pictures),
        Step("search", search),
        *(
            Step(f"{kernel}, n = {n:,}", classify, {"n": n, "kernel": kernel})
            for kernel in GRIDS
            for n in sizes
        ),
        Step("every size", every_size, {"sizes": sizes}),
        Step("claims", claims),
        *(
            Step(f"solvers, {kernel}", measure, {"kernel": kernel})
            for kernel in ("Gaussian", "linear")
        ),
        Step("model files", files),
        Step("toy sets", toys),
        Step("best model", best),
    ]
