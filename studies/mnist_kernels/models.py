"""Images, features and machines of the study ``mnist-kernels``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline, make_pipeline

import mercer
from mercer import SVC, gram_matrix
from mercer.datasets import stratified_folds
from mercer.images import HOG, Rescale, Views
from mercer.kernels import parse
from studies.data import Images
from studies.measures import Fitted, percent, timed_fit
from studies.mnist_kernels.protocol import (
    C_MINUS,
    CELLS,
    CHI2_GAMMAS,
    CHOSEN,
    CLEAN_CANDIDATES,
    ENTRIES,
    K1,
    K2,
    K3,
    LIMITS,
    LINEAR_NOTE,
    PENALTIES,
    STEPS,
    TIGHT,
)
from studies.study import Run, shared

__all__ = [
    "Chosen",
    "Scored",
    "chosen",
    "chosen_penalty",
    "cross_validate",
    "features",
    "images",
    "many_kernels",
    "one_vs_rest",
    "scored",
]


@shared
def images(run: Run) -> Images:
    """Return 500 images of each digit and the official test images, or fewer."""
    n_train, n_test = run.pick((500, 10_000), (400, 100), (20, 10))
    return run.data.balanced(n_train, n_test)


class Chosen(NamedTuple):
    """What the report leaves open: clean-up, cells of HOG, and every score of them."""

    clean: tuple[str, ...]
    cells: tuple[int, int]
    blur: str  #: the name of the blur in full clean-up
    chi2: float  #: γ of the exponential χ² kernel
    table: list[tuple[str, float, bool]]


@shared
def chosen(run: Run) -> Chosen:
    """Choose clean-up, cells and γ of χ² by three folds of training images."""
    data = images(run)
    n = run.pick(2000, 2000, 100)
    rows = np.random.default_rng(run.seed).permutation(len(data.y))[:n]
    y = data.y[rows]

    def score(kernel: str, clean: tuple[str, ...], cells: tuple[int, int]) -> float:
        F = cleaning(clean, cells).fit_transform(data.X[rows])
        K = gram_matrix(parse(kernel), F)
        model = SVC(C=C_MINUS, kernel="precomputed")
        return percent(cross_validate(run, model, K, y, 3), y)

    cleans = {clean: score(K1, clean, CELLS[0]) for clean in CLEAN_CANDIDATES}
    best = max(cleans, key=cleans.__getitem__)
    sizes = {cells: score(K2, best, cells) for cells in CELLS}
    finest = max(sizes, key=sizes.__getitem__)
    table = [
        (f"clean-up: {', '.join(clean) or 'none'}", value, clean == best)
        for clean, value in cleans.items()
    ]
    table += [
        (f"HOG: cells of {side} pixels, {bins} directions", value, cells == finest)
        for cells, value in sizes.items()
        for side, bins in [cells]
    ]
    full = [clean for clean in CLEAN_CANDIDATES if {"deskew", "trim"} < set(clean)]
    blur = max(full, key=cleans.__getitem__)[-1]
    # A power of exp(−Σ(x−y)²/(x+y)) is the kernel with another γ.
    hog = cleaning(best, finest).fit_transform(data.X[rows])
    E = gram_matrix(parse("chi2(gamma=1)@hog"), hog).astype(np.float64)
    model = SVC(C=C_MINUS, kernel="precomputed")
    powers = {
        gamma: percent(cross_validate(run, model, E**gamma, y, 3), y)
        for gamma in CHI2_GAMMAS
    }
    gamma = max(powers, key=powers.__getitem__)
    table += [
        (f"exponential χ²: γ = {value:g}", score_, value == gamma)
        for value, score_ in powers.items()
    ]
    return Chosen(best, finest, blur, gamma, table)


def cleaning(clean: tuple[str, ...], cells: tuple[int, int]) -> Pipeline:
    """Return a pipeline with these steps of the clean-up and the two views."""
    side, bins = cells
    views = Views(raw=Rescale(), hog=HOG(side, 1, bins, "L2", interpolation=True))
    return make_pipeline(*(STEPS[name] for name in clean), views)


def features(run: Run, clean: tuple[str, ...]) -> tuple[Any, Any]:
    """Return training and test images after clean-up, as pixels and as HOG."""
    picked = chosen(run)
    if clean == CHOSEN:
        return _cleaned(run, picked.clean)
    return _cleaned(run, tuple(picked.blur if c == "blur" else c for c in clean))


@shared
def _cleaned(run: Run, clean: tuple[str, ...]) -> tuple[Any, Any]:
    data, pipeline = images(run), cleaning(clean, chosen(run).cells)
    return pipeline.fit_transform(data.X), pipeline.transform(data.X_test)


def one_vs_rest(run: Run, beta: float, **more: Any) -> SVC:
    """Return the report's machine: C₊ = β C₋, decided by Platt's probabilities."""
    chosen = {"multiclass": "ovr", "decode": "platt", "positive_weight": beta, **more}
    return SVC(C=C_MINUS, kernel="precomputed", random_state=run.seed, **chosen)


def cross_validate(
    run: Run, model: Any, K: NDArray, y: NDArray, n_folds: int = 5
) -> NDArray:
    """Return predictions by folds of one Gram matrix; five folds give Acc1."""
    n_folds = run.pick(n_folds, n_folds, 2)
    found = np.empty_like(y)
    for train, test in stratified_folds(y, n_folds, random_state=run.seed):
        model.fit(K[np.ix_(train, train)], y[train])
        found[test] = model.predict(K[np.ix_(test, train)])
    return found


class Scored(NamedTuple):
    """A kernel of the report's table: its accuracies, predictions and fit."""

    acc1: float
    acc2: float
    folds: NDArray  #: what is predicted for the training images, by five folds
    predicted: NDArray
    fitted: Fitted


@shared
def scored(run: Run, label: str) -> Scored:
    """Score one kernel: Acc1 by five folds, Acc2 on test images."""
    entry, data = ENTRIES[label], images(run)
    X, X_test = features(run, entry.clean)
    kernel = parse(entry.kernel.replace("CHI2", f"{chosen(run).chi2:g}"))
    K, K_test = gram_matrix(kernel, X), gram_matrix(kernel, X_test, X)
    limits = LIMITS if entry.note is LINEAR_NOTE else {}
    model = one_vs_rest(run, entry.beta, **limits)
    folds = cross_validate(run, model, K, data.y)
    if not limits:
        model.set_params(tol=TIGHT)  # so that the gap of the final machines is small
    fitted = timed_fit(model, K, data.y)
    found = model.predict(K_test)
    # The model is left out: its kernel matrix is large.
    kept = fitted._replace(model=None)
    acc1, acc2 = percent(folds, data.y), percent(found, data.y_test)
    return Scored(acc1, acc2, folds, found, kept)


def many_kernels(run: Run, penalty: float, **more: Any) -> mercer.MKLClassifier:
    """Return the report's MKL: each machine has weights of its own with a penalty."""
    how: dict[str, Any] = {"decode": "platt", **more}
    return mercer.MKLClassifier(
        [parse(K1), parse(K2), parse(K3)],
        method="smo",
        p=2,
        penalty=penalty,
        normalize=None,
        weights="per-task",
        C=C_MINUS,
        multiclass="ovr",
        positive_weight=3.0,
        random_state=run.seed,
        **how,
    )


@shared
def chosen_penalty(run: Run) -> tuple[float, dict[float, float]]:
    """Choose λ of MKL by three folds of training images; return it and all scores."""
    data, (X, _) = images(run), features(run, CHOSEN)
    n = run.pick(1500, 1000, 60)
    rows = np.random.default_rng(run.seed).permutation(len(data.y))[:n]
    y, scores = data.y[rows], {}
    for penalty in PENALTIES:
        found = np.empty_like(y)
        for train, test in stratified_folds(y, 3, random_state=run.seed):
            model = many_kernels(run, penalty, decode="margin")
            model.fit(X[rows[train]], y[train])
            found[test] = model.predict(X[rows[test]])
        scores[penalty] = percent(found, y)
    return max(scores, key=scores.__getitem__), scores
