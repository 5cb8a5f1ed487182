"""The steps of the study ``ecoc-digits``."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import mercer
from mercer import SVC
from mercer.datasets import make_moons, make_rings
from mercer.plots import (
    DecisionRegionsDisplay,
    HeatMapDisplay,
    ImageGalleryDisplay,
)
from mercer.plots.rendering import inline_svg
from studies.choices import choose
from studies.ecoc_digits.claims import (
    ambiguity_claims,
    code,
    dual_claims,
    size_claims,
)
from studies.ecoc_digits.models import compared, digits, settings, tuned
from studies.ecoc_digits.protocol import GRIDS, SIZES
from studies.ecoc_digits.published import SECONDS
from studies.ecoc_digits.solvers import compare_solvers
from studies.features import digit_features, feature_words, mean_distance
from studies.measures import percent, timed_fit
from studies.panels import curves_panel, plane_panel
from studies.results import Figure, Item, Row, Unavailable
from studies.study import Run, Step

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


def classify(run: Run, n: int, kernel: str) -> Iterator[Item]:
    """Score all ways from two to ten classes, for one size and one kernel."""
    data = digits(run)
    if n > len(data.y):
        run.data.require_full()
        raise Unavailable(f"There are {len(data.y):,} training images, not {n:,}.")
    own = compared(run, n, kernel)
    found, fits = own.found, own.fits
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
    """Draw all accuracies over n."""
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
        Step("code", code),
        Step("claims on sizes", size_claims, {"sizes": sizes}),
        Step("claims on ambiguities", ambiguity_claims),
        Step("claims on the dual problem", dual_claims),
        *(
            Step(f"solvers, {kernel}", measure, {"kernel": kernel})
            for kernel in ("Gaussian", "linear")
        ),
        Step("model files", files),
        Step("toy sets", toys),
        Step("best model", best),
    ]
