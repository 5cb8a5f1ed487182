"""The steps of the study ``svm-from-scratch``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from mercer import SVC
from mercer.datasets import stratified_folds
from studies.choices import describe
from studies.data import Images
from studies.measures import Fitted, percent, timed, timed_fit
from studies.recipes import (
    DRAWING_CHANGES,
    DRAWINGS,
    PHOTOGRAPH_CHANGES,
    PHOTOGRAPHS,
    choose_recipe,
)
from studies.results import Item, Row
from studies.study import Run, Step
from studies.svm_from_scratch.ablations import ablation
from studies.svm_from_scratch.claims import (
    ablation_claims,
    combination_claims,
    mkl_claims,
    photograph_claims,
    precision_claims,
    programs,
    schemes,
)
from studies.svm_from_scratch.figures import (
    clouds,
    convergence,
    efficiency,
)
from studies.svm_from_scratch.models import combined_fit, images, mkl, settings
from studies.svm_from_scratch.printed import answers
from studies.svm_from_scratch.protocol import KERNELS
from studies.svm_from_scratch.published import COMBINATIONS, PRECISION

__all__ = ["make_steps"]


def precision(run: Run, kernel: str, name: str) -> Iterator[Item]:
    """Score one kernel on one data set: training and test accuracy."""
    data = images(run, name)
    chosen = settings(run, kernel, name)
    words = describe({k: v for k, v in chosen.items() if k != "kernel"})
    fitted = timed_fit(SVC(**chosen), data.X, data.y)
    yield _scores(run, name, (kernel,), fitted, words)


def combined(run: Run, name: str) -> Iterator[Item]:
    """Score all four kernels with alignment weights on one data set."""
    fitted = combined_fit(run, name, tuple(KERNELS))
    yield _scores(run, name, tuple(KERNELS), fitted, "weights by alignment")


def _scores(
    run: Run, table: str, kernels: tuple[str, ...], fitted: Fitted, words: str
) -> Row:
    """Return the accuracies of a model, its time of inference, and the program's."""
    data, model = images(run, table), fitted.model
    inference, found = timed(model.predict, data.X_test)
    values = {
        "train": percent(model.predict(data.X), data.y),
        "test": percent(found, data.y_test),
        "printed": answers(run, table, kernels).test,
        "inference": inference,
        "setting": words,
    }
    label = kernels[0] if len(kernels) == 1 else "combined"
    return Row(table, label, values, len(data.y_test), **fitted.facts)


def combination(run: Run, letters: str) -> Iterator[Item]:
    """Score one of the eleven combinations on MNIST."""
    data = images(run, "mnist")
    kernels = tuple(k for k in KERNELS if k[0].upper() in letters)
    fitted = combined_fit(run, "mnist", kernels)
    weights = np.atleast_2d(fitted.model.weights_).mean(axis=0)
    values = {
        "train": percent(fitted.model.predict(data.X), data.y),
        "test": percent(fitted.model.predict(data.X_test), data.y_test),
        "printed": answers(run, "mnist", kernels).test,
        "weights": ", ".join(f"{w:.2f}" for w in weights),
    }
    yield Row("combinations", letters, values, len(data.y_test), **fitted.facts)


def group_lasso(run: Run) -> Iterator[Item]:
    """Compare the weights of the methods of MKL: four kernels, all ten digits."""
    data = images(run, "mnist")
    for method, p in (
        ("uniform", None),
        ("alignment", None),
        ("group-lasso", 1),
        ("group-lasso", 2),
    ):
        model = mkl(run, "mnist", tuple(KERNELS))
        model.set_params(method=method, p=p, normalize="variance")
        fitted = timed_fit(model, data.X, data.y)
        weights = np.atleast_2d(fitted.model.weights_).mean(axis=0)
        values = {k: float(w) for k, w in zip(KERNELS, weights, strict=True)}
        values["test"] = percent(model.predict(data.X_test), data.y_test)
        name = method if p is None else f"{method}, p = {p}"
        yield Row("methods", name, values, len(data.y_test), **fitted.facts)


def best(run: Run, name: str) -> Iterator[Item]:
    """Go beyond the report by a recipe, chosen on training images."""
    start, changes = DRAWINGS, DRAWING_CHANGES
    if name == "mnist":
        data = run.data.balanced(*run.pick((500, 100), (400, 100), (20, 10)))
    else:
        data, start, changes = run.data.cifar10, PHOTOGRAPHS, PHOTOGRAPH_CHANGES
        if run.quick:
            data = Images(*(array[:: len(array) // 200] for array in data))
    title = {"mnist": "MNIST", "cifar10": "CIFAR-10"}[name]
    n = len(data.y) // len(np.unique(data.y))
    # Two of three folds must do: features take long.
    folds = islice(stratified_folds(data.y, 3, random_state=run.seed), 2)
    chosen = choose_recipe(start, changes, data.X, data.y, folds, run.seed)
    fitted = timed_fit(chosen.recipe.machine(run.seed), data.X, data.y)
    scores = {"test": percent(fitted.model.predict(data.X_test), data.y_test)}
    label = f"{title}, {n:,} of each class"
    yield chosen.row(label, scores, len(data.y_test), fitted, name)


def make_steps(run: Run) -> list[Step]:
    """Return the steps of the study."""
    return [
        Step("two clouds", clouds),
        *(
            Step(f"{name}: {kernel}", precision, {"kernel": kernel, "name": name})
            for name in PRECISION
            for kernel in KERNELS
        ),
        *(Step(f"{name}: combined", combined, {"name": name}) for name in PRECISION),
        *(Step(f"combination {c}", combination, {"letters": c}) for c in COMBINATIONS),
        Step("MKL methods", group_lasso),
        Step("convergence", convergence),
        *(
            Step(f"ablation: {kernel}", ablation, {"kernel": kernel})
            for kernel in KERNELS
        ),
        Step("efficiency", efficiency),
        Step("programs as printed", programs),
        Step("pairs and rest as printed", schemes),
        Step("claims on ablations", ablation_claims),
        Step("claims on precision", precision_claims),
        *(
            Step(f"claims on {name}", photograph_claims, {"name": name})
            for name in PRECISION
            if name != "mnist"
        ),
        Step("claims on combinations", combination_claims),
        Step("claims on MKL", mkl_claims),
        Step("best model: MNIST", best, {"name": "mnist"}),
        Step("best model: CIFAR-10", best, {"name": "cifar10"}),
    ]
