"""The steps of the study ``mnist-kernels``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.metrics import precision_recall_fscore_support
from sklearn.pipeline import make_pipeline

import mercer
from mercer import SVC, gram_matrix
from mercer.datasets import stratified_folds
from mercer.kernels import parse
from mercer.plots import HeatMapDisplay, ImageGalleryDisplay
from mercer.plots.rendering import inline_svg
from mercer.studies.choices import choose
from mercer.studies.data import Images
from mercer.studies.features import digit_features, mean_distance
from mercer.studies.measures import percent, timed_fit
from mercer.studies.mnist_kernels.models import (
    cross_validate,
    features,
    images,
    one_vs_rest,
)
from mercer.studies.mnist_kernels.protocol import (
    C_MINUS,
    CLEANINGS,
    ENTRIES,
    FULL,
    K1,
    K2,
    K3,
    LIMITS,
    LINEAR_NOTE,
    MKL_ROW,
    N_PUBLISHED,
    PLAIN,
    PRODUCT,
    PRODUCT_NAME,
    STEPS,
    Entry,
)
from mercer.studies.results import Figure, Item, Row
from mercer.studies.study import Run, Step
from mercer.studies.verdicts import judge_accuracy

__all__ = ["make_steps"]


def kernel_row(run: Run, label: str, entry: Entry) -> Iterator[Item]:
    """Score one kernel: Acc1 by five folds, Acc2 on test images."""
    data = images(run)
    X, X_test = features(run, entry.clean)
    kernel = parse(entry.kernel)
    K, K_test = gram_matrix(kernel, X), gram_matrix(kernel, X_test, X)
    model = one_vs_rest(
        run, entry.beta, **(LIMITS if entry.note is LINEAR_NOTE else {})
    )
    acc1 = cross_validate(run, model, K, data.y)
    fitted = timed_fit(model, K, data.y)
    acc2 = percent(model.predict(K_test), data.y_test)
    published = {"acc1": entry.acc1, "acc2": entry.acc2}
    yield Row(
        "kernels",
        label,
        {"beta": entry.beta, "acc1": acc1, "acc2": acc2},
        {key: value for key, value in published.items() if value is not None},
        {"acc1": len(data.y), "acc2": len(data.y_test)},
        N_PUBLISHED,
        fitted.seconds,
        fitted.gap,
        entry.note,
    )


def mkl_row(run: Run) -> Iterator[Item]:
    """Score MKL of the three kernels with p = 2, by SMO."""
    data = images(run)
    X, X_test = features(run, PLAIN)
    model = mercer.MKLClassifier(
        [parse(K1), parse(K2), parse(K3)],
        method="smo",
        p=2,
        C=C_MINUS,
        positive_weight=3.0,
    )
    found = np.empty_like(data.y)
    for train, test in stratified_folds(
        data.y, run.pick(5, 2, 2), random_state=run.seed
    ):
        found[test] = model.fit(X[train], data.y[train]).predict(X[test])
    fitted = timed_fit(model, X, data.y)
    yield Row(
        "kernels",
        MKL_ROW,
        {
            "beta": 3.0,
            "acc1": percent(found, data.y),
            "acc2": percent(model.predict(X_test), data.y_test),
        },
        {"acc1": 97.20, "acc2": 96.90},
        {"acc1": len(data.y), "acc2": len(data.y_test)},
        N_PUBLISHED,
        fitted.seconds,
        fitted.gap,
    )
    weights = np.atleast_2d(model.weights_).mean(axis=0)
    values = {f"d{k + 1}": float(w) for k, w in enumerate(weights)}
    yield Row("weights", "ℓ2-MKL by SMO", values, gap=fitted.gap)


def schemes(run: Run) -> Iterator[Item]:
    """Compare one-vs-one by votes with one-vs-rest by probabilities."""
    data = images(run)
    X, X_test = features(run, FULL)
    kernel = parse(PRODUCT)
    K, K_test = gram_matrix(kernel, X), gram_matrix(kernel, X_test, X)
    found, scores = {}, {}
    for name, model in {
        "one-vs-one, votes": one_vs_rest(run, 1.0, multiclass="ovo", decode="votes"),
        "one-vs-rest, Platt, β = 1": one_vs_rest(run, 1.0),
        "one-vs-rest, Platt, β = 3": one_vs_rest(run, 3.0),
    }.items():
        fitted = timed_fit(model, K, data.y)
        found[name] = model.predict(K_test)
        scores[name] = percent(found[name], data.y_test)
        yield Row(
            "schemes",
            name,
            {"acc2": scores[name]},
            seconds=fitted.seconds,
            gap=fitted.gap,
        )
    ovo, _, ovr = scores.values()
    by_ovo, _, by_ovr = found.values()
    yield judge_accuracy(
        "One-vs-one is generally less accurate than one-vs-rest with Platt's scaling.",
        by_ovr,
        by_ovo,
        data.y_test,
        f"On {len(data.y_test):,} test images one-vs-one has {ovo:.2f} %, one-vs-rest "
        f"{ovr:.2f} %.",
    )


def clean_up(run: Run) -> Iterator[Item]:
    """Score each way of cleaning up, and judge the report's claims about them."""
    data, kernel = images(run), parse(PRODUCT)
    found, scores = {}, {}
    for name, clean in CLEANINGS.items():
        X, X_test = features(run, clean)
        model = SVC(C=C_MINUS, kernel=kernel)
        fitted = timed_fit(model, X, data.y)
        found[name] = model.predict(X_test)
        scores[name] = percent(found[name], data.y_test)
        values = {"acc2": scores[name]}
        yield Row("clean-up", name, values, seconds=fitted.seconds, gap=fitted.gap)
    told = ", ".join(f"{name} {score:.2f}" for name, score in scores.items())
    yield judge_accuracy(
        "Trimming the black border improves the classifier, from 94.90 to 97.10.",
        found["deskew, trim, blur"],
        found["deskew, blur"],
        data.y_test,
        f"With the product kernel, one-vs-one, the test images give: {told}.",
    )
    yield judge_accuracy(
        "Deskewing by the Hough transform and blurring improve it.",
        found["deskew, trim, blur"],
        found["trim"],
        data.y_test,
        f"{scores['deskew, trim, blur']:.2f} against {scores['trim']:.2f}. The "
        "dominant line of a digit is often not its stem; deskewing by moments, which "
        f"the report did not try, gives {scores['moments, trim, blur']:.2f}.",
    )
    yield judge_accuracy(
        "With the median filter the overall performance drops.",
        found["deskew, trim, blur"],
        found["deskew, trim, median"],
        data.y_test,
        f"{scores['deskew, trim, median']:.2f} against "
        f"{scores['deskew, trim, blur']:.2f}.",
    )


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
    )
    X, X_test = features(run, FULL)
    kernel = parse(PRODUCT)
    model = one_vs_rest(run, 3.0).fit(gram_matrix(kernel, X), data.y)
    found = model.predict(gram_matrix(kernel, X_test, X))
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
    )
    scores = precision_recall_fscore_support(data.y_test, found, zero_division=0)
    for digit, (p, r, f, n) in enumerate(zip(*scores, strict=True)):
        values = {"precision": 100 * p, "recall": 100 * r, "f": 100 * f, "n": int(n)}
        yield Row("classes", str(digit), values)


def best(run: Run) -> Iterator[Item]:
    """Go beyond the report: deskewing by moments, finer HOG, C and γ by five folds."""
    data = images(run)
    yield from tell_best(run, "MNIST, 5,000 images", data, 97.26, None)


def best_of_all(run: Run) -> Iterator[Item]:
    """Fit one model on the 60,000 images; C and γ are chosen on 10,000 of them."""
    run.data.require_full()
    label = "MNIST, all 60,000 images; published: the best kernel SVM"
    yield from tell_best(run, label, run.data.mnist, 99.44, 10_000)


def tell_best(
    run: Run, label: str, data: Images, published: float, n_search: int | None
) -> Iterator[Item]:
    """Choose C and γ on the last ``n_search`` training images, or on all; then test."""
    pipeline = digit_features()
    F, F_test = pipeline.fit_transform(data.X), pipeline.transform(data.X_test)
    unit = 1 / mean_distance(F)
    own = slice(-n_search if n_search else None, None)
    grid: dict[str, list] = {"gamma": [unit, 2 * unit], "C": [2, 5, 10]}
    choice = choose(SVC(), grid, F[own], data.y[own], 5)
    fitted = timed_fit(SVC(**choice.settings), F, data.y)
    values = {
        "validation": choice.score,
        "acc2": percent(fitted.model.predict(F_test), data.y_test),
        "n": len(data.y),
        "setting": str(choice),
    }
    yield Row(
        "best",
        f"{label}: RBF on deskewed HOG",
        values,
        {"acc2": published},
        len(data.y_test),
        None,
        fitted.seconds,
        fitted.gap,
    )


def make_steps(run: Run) -> list[Step]:
    """Return the steps of the study."""
    rows = [
        Step(label, kernel_row, {"label": label, "entry": entry})
        for label, entry in ENTRIES.items()
    ]
    return [
        *rows,
        Step("MKL", mkl_row),
        Step("one-vs-one and one-vs-rest", schemes),
        Step("clean-up", clean_up),
        Step("figures", pictures),
        Step("best model", best),
        Step("best model on 60,000 images", best_of_all),
    ]
