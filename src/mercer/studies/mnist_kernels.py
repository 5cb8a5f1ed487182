"""Ten digits by kernels on pixels and gradients, their products, and MKL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from sklearn.pipeline import Pipeline, make_pipeline

import mercer
from mercer import SVC, gram_matrix
from mercer.datasets import stratified_folds
from mercer.images import HOG, Rescale, Views
from mercer.kernels import parse
from mercer.studies import figures
from mercer.studies.data import Images
from mercer.studies.mnist_protocol import (
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
    STATEMENT,
    STEPS,
    Entry,
)
from mercer.studies.results import Figure, Item, Row
from mercer.studies.search import choose, digit_features, mean_distance
from mercer.studies.study import Plan, Step, Study, percent, timed_fit
from mercer.studies.verdicts import judge_accuracy

__all__ = ["STUDY"]


def images(plan: Plan) -> Images:
    """Return 5,000 images of even classes and the official test images, or fewer."""

    def make() -> Images:
        n_train, n_test = plan.pick((500, 10_000), (400, 100), (20, 10))
        return plan.data.balanced(n_train, n_test)

    return plan.share("images", make)


def cleaning(clean: tuple[str, ...]) -> Pipeline:
    """Return the clean-up with these switches on, and the two views."""
    views = Views(raw=Rescale(), hog=HOG(4, 1, 9, "L2", interpolation=True))
    return make_pipeline(*(STEPS[name] for name in clean), views)


def features(plan: Plan, clean: tuple[str, ...]) -> tuple[Any, Any]:
    """Return training and test images after clean-up, as pixels and HOG."""

    def make() -> tuple[Any, Any]:
        data, pipeline = images(plan), cleaning(clean)
        return pipeline.fit_transform(data.X), pipeline.transform(data.X_test)

    return plan.share(f"features {clean}", make)


def one_vs_rest(plan: Plan, beta: float, **more: Any) -> SVC:
    """Return the report's machine: C₊ = β C₋, the largest of Platt's probabilities."""
    chosen = {"multiclass": "ovr", "decode": "platt", "positive_weight": beta, **more}
    return SVC(C=C_MINUS, kernel="precomputed", random_state=plan.seed, **chosen)


def cross_validate(plan: Plan, model: Any, K: NDArray, y: NDArray) -> float:
    """Return Acc1: five folds of one Gram matrix."""
    found = np.empty_like(y)
    for train, test in stratified_folds(y, plan.pick(5, 5, 2), random_state=plan.seed):
        model.fit(K[np.ix_(train, train)], y[train])
        found[test] = model.predict(K[np.ix_(test, train)])
    return percent(found, y)


def kernel_row(plan: Plan, label: str, entry: Entry) -> Iterator[Item]:
    """One kernel: Acc1 by five folds, Acc2 on test images."""
    data = images(plan)
    X, X_test = features(plan, entry.clean)
    kernel = parse(entry.kernel)
    K, K_test = gram_matrix(kernel, X), gram_matrix(kernel, X_test, X)
    model = one_vs_rest(
        plan, entry.beta, **(LIMITS if entry.note is LINEAR_NOTE else {})
    )
    acc1 = cross_validate(plan, model, K, data.y)
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


def mkl_row(plan: Plan) -> Iterator[Item]:
    """MKL of the three kernels, p = 2, by SMO; Acc1 and Acc2."""
    data = images(plan)
    X, X_test = features(plan, PLAIN)
    model = mercer.MKLClassifier(
        [parse(K1), parse(K2), parse(K3)],
        method="smo",
        p=2,
        C=C_MINUS,
        positive_weight=3.0,
    )
    found = np.empty_like(data.y)
    for train, test in stratified_folds(
        data.y, plan.pick(5, 2, 2), random_state=plan.seed
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


def schemes(plan: Plan) -> Iterator[Item]:
    """One-vs-one by votes beside one-vs-rest by probabilities, at the best kernel."""
    data = images(plan)
    X, X_test = features(plan, FULL)
    kernel = parse(PRODUCT)
    K, K_test = gram_matrix(kernel, X), gram_matrix(kernel, X_test, X)
    found, scores = {}, {}
    for name, model in {
        "one-vs-one, votes": one_vs_rest(plan, 1.0, multiclass="ovo", decode="votes"),
        "one-vs-rest, Platt, β = 1": one_vs_rest(plan, 1.0),
        "one-vs-rest, Platt, β = 3": one_vs_rest(plan, 3.0),
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
        f"On {len(data.y_test):,} test images: one-vs-one {ovo:.2f} %, one-vs-rest "
        f"{ovr:.2f} %.",
    )


def clean_up(plan: Plan) -> Iterator[Item]:
    """What each switch of the clean-up is worth, and the report's claims about it."""
    data, kernel = images(plan), parse(PRODUCT)
    found, scores = {}, {}
    for name, clean in CLEANINGS.items():
        X, X_test = features(plan, clean)
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
        f"With the product kernel, one-vs-one, on test images: {told}.",
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


def pictures(plan: Plan) -> Iterator[Item]:
    """Clean-up before and after; confusion, classes and errors of the best model."""
    data = images(plan)
    few = data.X[:6]
    turned = STEPS["deskew"].fit_transform(few)
    trimmed = STEPS["trim"].fit_transform(turned)
    blurred = STEPS["blur"].fit_transform(trimmed)
    stages = {"before": few, "deskewed": turned, "trimmed": trimmed, "blurred": blurred}
    sheet = np.concatenate(list(stages.values()))
    words = [name if k == 0 else "" for name in stages for k in range(len(few))]
    yield Figure(
        "clean-up",
        "Six digits before and after each step of the clean-up.",
        (figures.grid_of_images(sheet, words),),
    )
    X, X_test = features(plan, FULL)
    kernel = parse(PRODUCT)
    model = one_vs_rest(plan, 3.0).fit(gram_matrix(kernel, X), data.y)
    found = model.predict(gram_matrix(kernel, X_test, X))
    matrix = confusion_matrix(data.y_test, found, labels=range(10))
    digits = [str(d) for d in range(10)]
    wrong = np.flatnonzero(found != data.y_test)[:24]
    labels = [
        f"{t} as {f}" for t, f in zip(data.y_test[wrong], found[wrong], strict=True)
    ]
    yield Figure(
        "confusion",
        f"{PRODUCT_NAME} on the test images: confusion matrix, and some of the "
        f"{(found != data.y_test).sum()} images that it takes for another digit.",
        (
            figures.heat_map(matrix, digits, digits, "Confusion", "found", "true"),
            figures.grid_of_images(data.X_test[wrong], labels, "Misclassified"),
        ),
    )
    scores = precision_recall_fscore_support(data.y_test, found, zero_division=0)
    for digit, (p, r, f, n) in enumerate(zip(*scores, strict=True)):
        values = {"precision": 100 * p, "recall": 100 * r, "f": 100 * f, "n": int(n)}
        yield Row("classes", str(digit), values)


def best(plan: Plan) -> Iterator[Item]:
    """Beyond the report: deskewed by moments, finer HOG, chosen by five folds."""
    data = images(plan)
    yield from tell_best(plan, "MNIST, 5,000 images", data, 97.26, None)


def best_of_all(plan: Plan) -> Iterator[Item]:
    """Beyond all: one model on the 60,000 images; chosen on 10,000 of them."""
    plan.data.require_full()
    label = "MNIST, all 60,000 images; published: the best kernel SVM"
    yield from tell_best(plan, label, plan.data.mnist, 99.44, 10_000)


def tell_best(
    plan: Plan, label: str, data: Images, published: float, n_search: int | None
) -> Iterator[Item]:
    """Choose C and γ on the last ``n_search`` training images, or all; then test."""
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


def steps(plan: Plan) -> list[Step]:
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


STUDY = Study(**STATEMENT, steps=steps)
