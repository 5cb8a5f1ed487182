"""The steps of the study ``mnist-kernels``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
from sklearn.metrics import precision_recall_fscore_support
from sklearn.pipeline import make_pipeline

from mercer import SVC, gram_matrix
from mercer.datasets import per_class_split, stratified_folds
from mercer.kernels import parse
from mercer.plots import DotsDisplay, HeatMapDisplay, ImageGalleryDisplay
from mercer.plots.rendering import inline_svg
from studies.data import Images
from studies.measures import percent, timed_fit
from studies.mnist_kernels.claims import (
    clean_up_claims,
    kernel_claims,
    mkl_folds,
    mkl_programs,
    programs,
    scheme_claims,
)
from studies.mnist_kernels.models import (
    chosen,
    chosen_penalty,
    features,
    images,
    many_kernels,
    one_vs_rest,
    scored,
)
from studies.mnist_kernels.protocol import (
    C_MINUS,
    CHOSEN,
    CLEANINGS,
    ENTRIES,
    FULL,
    MKL_ROW,
    PRODUCT,
    PRODUCT_NAME,
    STEPS,
    TIGHT,
)
from studies.recipes import DRAWING_CHANGES, DRAWINGS, choose_recipe
from studies.results import Figure, Item, Row
from studies.study import Run, Step

__all__ = ["make_steps"]


def choices(run: Run) -> Iterator[Item]:
    """Tell what was chosen where the report says nothing, and among what."""
    for label, score, is_chosen in chosen(run).table:
        yield Row("choices", label, {"folds": score, "chosen": "yes" * is_chosen})
    best, scores = chosen_penalty(run)
    for penalty, score in scores.items():
        values = {"folds": score, "chosen": "yes" * (penalty == best)}
        yield Row("choices", f"MKL: λ = {penalty:g}", values)


def kernel_row(run: Run, label: str) -> Iterator[Item]:
    """Score one kernel: Acc1 by five folds, Acc2 on test images."""
    data, entry, found = images(run), ENTRIES[label], scored(run, label)
    yield Row(
        "kernels",
        label,
        {"beta": entry.beta, "acc1": found.acc1, "acc2": found.acc2},
        {"acc1": len(data.y), "acc2": len(data.y_test)},
        **found.fitted.facts,
        note=entry.note,
    )


def mkl_row(run: Run) -> Iterator[Item]:
    """Score the report's MKL of three kernels."""
    data = images(run)
    X, X_test = features(run, CHOSEN)
    penalty, _ = chosen_penalty(run)
    model, found = many_kernels(run, penalty), mkl_folds(run)
    fitted = timed_fit(model, X, data.y)
    yield Row(
        "kernels",
        MKL_ROW,
        {
            "beta": 3.0,
            "acc1": percent(found, data.y),
            "acc2": percent(model.predict(X_test), data.y_test),
        },
        {"acc1": len(data.y), "acc2": len(data.y_test)},
        **fitted.facts,
        note=f"With the penalty λ/2 ‖d‖², λ = {penalty:g}, solved by SMO.",
    )
    for digit, weights in enumerate(np.atleast_2d(model.weights_)):
        shares = weights / weights.max()
        values = {f"d{k + 1}": float(w) for k, w in enumerate(shares)}
        yield Row("weights", f"{digit} against the rest", values)


def overview(run: Run) -> Iterator[Item]:
    """Draw the accuracies of all kernels of the table."""
    labels = list(ENTRIES)
    values = [
        [scored(run, k).acc1 for k in labels],
        [scored(run, k).acc2 for k in labels],
    ]
    n = len(images(run).y)
    drawn = inline_svg(
        DotsDisplay.from_values,
        values,
        labels,
        sets=["Acc1, five folds", "Acc2, test images"],
        xlabel="accuracy, %",
        title="Kernels",
        figsize=(5.2, 4.6),
    )
    caption = (
        f"Accuracy of all kernels with {n:,} training images. K1 is RBF on pixels, K2 "
        "RBF on HOG, K3 linear on HOG."
    )
    yield Figure("kernels", caption, (drawn,), "kernels")


def schemes(run: Run) -> Iterator[Item]:
    """Compare one-vs-one by votes with one-vs-rest by probabilities."""
    data = images(run)
    X, X_test = features(run, FULL)
    kernel = parse(PRODUCT)
    K, K_test = gram_matrix(kernel, X), gram_matrix(kernel, X_test, X)
    for name, model in {
        "one-vs-one, votes": one_vs_rest(
            run, 1.0, multiclass="ovo", decode="votes", tol=TIGHT
        ),
        "one-vs-rest, Platt, β = 1": one_vs_rest(run, 1.0, tol=TIGHT),
        "one-vs-rest, Platt, β = 3": one_vs_rest(run, 3.0, tol=TIGHT),
    }.items():
        fitted = timed_fit(model, K, data.y)
        yield Row(
            "schemes",
            name,
            {"acc2": percent(model.predict(K_test), data.y_test)},
            len(data.y_test),
            **fitted.facts,
        )


def clean_up(run: Run) -> Iterator[Item]:
    """Score each way of cleaning up."""
    data, kernel = images(run), parse(PRODUCT)
    for name, clean in CLEANINGS.items():
        X, X_test = features(run, clean)
        model = SVC(C=C_MINUS, kernel=kernel, tol=TIGHT)
        fitted = timed_fit(model, X, data.y)
        values = {"acc2": percent(model.predict(X_test), data.y_test)}
        yield Row("clean-up", name, values, len(data.y_test), **fitted.facts)


def pictures(run: Run) -> Iterator[Item]:
    """Draw the clean-up, and the confusion and the errors of the best model."""
    data = images(run)
    deskew, trim, blur = (STEPS[name] for name in FULL)
    stages = {
        "deskewed": deskew,
        "trimmed": make_pipeline(deskew, trim),
        "blurred": make_pipeline(deskew, trim, blur),
    }
    yield Figure(
        "clean-up",
        "Six digits before the clean-up and after each of its steps.",
        (
            inline_svg(
                ImageGalleryDisplay.from_transformers,
                stages,
                data.X[:6],
                figsize=(4.4, 2.6),
            ),
        ),
        "clean-up",
    )
    found = scored(run, f"{PRODUCT_NAME}; blur, deskew").predicted
    shown = min(24, int((found != data.y_test).sum()))
    yield Figure(
        "confusion",
        f"{PRODUCT_NAME} on the test images: the confusion matrix, and some of the "
        f"{(found != data.y_test).sum()} misclassified images.",
        (
            inline_svg(
                HeatMapDisplay.from_predictions,
                data.y_test,
                found,
                labels=np.arange(10),
                colorbar=False,
                title="Confusion",
                figsize=(4.4, 3.7),
            ),
            inline_svg(
                ImageGalleryDisplay.from_predictions,
                data.X_test,
                data.y_test,
                found,
                max_images=24,
                n_columns=6,
                fontsize=7,
                title="Misclassified",
                figsize=(4.4, 0.4 + 1.05 * max(1, -(-shown // 6))),
            ),
        ),
        "classes",
    )
    scores = precision_recall_fscore_support(data.y_test, found, zero_division=0)
    for digit, (p, r, f, n) in enumerate(zip(*scores, strict=True)):
        values = {"precision": 100 * p, "recall": 100 * r, "f": 100 * f, "n": int(n)}
        yield Row("classes", str(digit), values)


def best(run: Run) -> Iterator[Item]:
    """Go beyond the report with 500 images of each digit, drawn three times."""
    sets = [images(run)]
    if run.data.is_full and not run.quick:
        sets = [_drawn(run, run.seed + k) for k in range(3)]
    folds = stratified_folds(sets[0].y, 3, random_state=run.seed)
    yield tell_best(run, "5,000", sets, islice(folds, run.pick(3, 1, 1)))


def _drawn(run: Run, seed: int) -> Images:
    """Return 500 training images of each digit at random, and all test images."""
    X, y, X_test, y_test = run.data.mnist
    n = min(500, np.bincount(y).min())
    (rows,) = per_class_split(y, (int(n),), random_state=seed)
    return Images(X[rows], y[rows], X_test, y_test)


def best_of_all(run: Run) -> Iterator[Item]:
    """Go beyond the best kernel machine with all images, and choose on two thirds."""
    run.data.require_full()
    data = run.data.mnist
    n = len(data.y) // 3
    train, validation = np.arange(len(data.y))[-2 * n :].reshape(2, n)
    yield tell_best(run, "60,000", [data], [(train, validation)])


def tell_best(run: Run, key: str, sets: Sequence[Images], splits: Iterable) -> Row:
    """Choose a recipe on the first set of training images; then fit and test all."""
    data = sets[0]
    chosen = choose_recipe(DRAWINGS, DRAWING_CHANGES, data.X, data.y, splits, run.seed)
    scores = []
    for own in sets:
        fitted = timed_fit(chosen.recipe.machine(run.seed), own.X, own.y)
        scores.append(percent(fitted.model.predict(own.X_test), own.y_test))
    drawn = f", mean of {len(sets)} draws" if len(sets) > 1 else ""
    label = f"MNIST, {len(data.y):,} images{drawn}"
    values = {"acc2": float(np.mean(scores)), "n": len(data.y)}
    return chosen.row(label, values, len(data.y_test), fitted, key)


def make_steps(run: Run) -> list[Step]:
    """Return the steps of the study."""
    rows = [Step(label, kernel_row, {"label": label}) for label in ENTRIES]
    return [
        Step("choices by folds", choices),
        *rows,
        Step("MKL", mkl_row),
        Step("programs as printed", programs),
        Step("MKL as printed", mkl_programs),
        Step("claims on clean-up", clean_up_claims),
        Step("claims on kernels", kernel_claims),
        Step("claims on schemes", scheme_claims),
        Step("all kernels", overview),
        Step("one-vs-one and one-vs-rest", schemes),
        Step("clean-up", clean_up),
        Step("figures", pictures),
        Step("best model", best),
        Step("best model on 60,000 images", best_of_all),
    ]
