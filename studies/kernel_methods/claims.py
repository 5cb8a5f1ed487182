"""What the report ``kernel-methods`` claims, apart from its online machines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline

import mercer
from mercer import SVC, SVDD
from mercer.datasets import make_clouds, make_moons, make_rings, make_sheet
from mercer.images import GaussianProjection
from studies.kernel_methods.clusters import GAMMA, data_sets, disagreement
from studies.kernel_methods.one_class import SOFT, WIDTH
from studies.kernel_methods.pca import kernel_share, measured, share
from studies.kernel_methods.protocol import GAMMAS
from studies.measures import percent, times_in_turn
from studies.results import Finding, Item
from studies.study import Run
from studies.verdicts import judge_accuracy, judge_time

__all__ = ["cluster_claims", "one_class_claims", "pca_claims", "projection_claim"]


def _agreed(verdicts: list[bool]) -> bool | None:
    """Return what all data sets say; None if they do not agree."""
    return verdicts[0] if len(set(verdicts)) == 1 else None


def pca_claims(run: Run) -> Iterator[Item]:
    """Judge what the report says of PCA, with its own projection."""
    X, _ = make_sheet(500, random_state=run.seed)
    by_svd, by_eigen = (
        mercer.PCA(2, solver=solver).fit_transform(X) for solver in ("svd", "eigh")
    )
    apart = float(
        np.abs(np.abs(by_svd) - np.abs(by_eigen)).max() / np.abs(by_svd).max()
    )
    yield Finding(
        "The singular value decomposition and the eigenvalues give the same result.",
        apart <= 1e-6,
        f"But for signs, the two components of 500 points differ by {apart:.1e} of the "
        "largest value.",
        "A difference of at most 1e-6 is rounding.",
        "SVD and eigenvalues",
    )
    kept = {
        n: share(mercer.PCA(2).fit(make_sheet(n, random_state=run.seed)[0]))
        for n in (50, 500)
    }
    yield Finding(
        "The variance in two components is very high, because the data lie close to a "
        "plane.",
        min(kept.values()) >= 95,
        ", ".join(f"{v:.1f} % for {n} points" for n, v in kept.items())
        + " near a plane in three dimensions.",
        "At least 95 % counts as very high.",
        "close to a plane",
    )
    found = measured(run)
    plain, projected, true = ("PCA", "Gaussian projection, PCA", "kernel PCA")
    ratios = [
        b / a for a, b in zip(found.times[plain], found.times[projected], strict=True)
    ]
    n = found.sizes[-1]
    yield Finding(
        "The execution times with and without the kernel are of the same order.",
        max(ratios) < 10,
        "With the report’s pointwise projection PCA takes "
        f"{min(ratios):.1f} to {max(ratios):.1f} times as long as without. True kernel "
        f"PCA needs the n × n matrix: at n = {n:,} it takes "
        f"{found.times[true][-1]:.3f} s, and PCA {found.times[plain][-1]:.4f} s.",
        "Medians of three runs; less than ten times counts as the same order.",
        "same order of time",
    )
    pairs = list(zip(found.kept[plain], found.kept[projected], strict=True))
    ratios = [max(a, b) / min(a, b) for a, b in pairs]
    yield Finding(
        "The variances with and without the kernel are of the same order.",
        max(ratios) < 3,
        "Two of ten components keep "
        + ", ".join(f"{a:.0f} and {b:.0f} %" for a, b in pairs)
        + " without and with the projection, for growing n.",
        "A ratio below three counts as the same order.",
        "same order of variance",
    )
    rng = np.random.default_rng(run.seed)
    few = {
        n: share(mercer.PCA(2).fit(rng.normal(size=(n, 10)))) for n in (3, 5, 20, 500)
    }
    yield Finding(
        "With a small number of samples the variance is close to 1.",
        few[3] >= 90 and few[3] > few[5] > few[20] > few[500],
        "Two of ten components keep "
        + ", ".join(f"{v:.0f} % of {n} samples" for n, v in few.items())
        + ".",
        "At least 90 % for three samples, falling with n.",
        "variance at small n",
    )
    isotropic = share(mercer.PCA(2).fit(rng.normal(size=(2000, 12))))
    sheet, _ = make_sheet(2000, n_features=12, random_state=run.seed)
    flat = share(mercer.PCA(2).fit(sheet))
    near = [abs(value - 200 / 3) <= 10 for value in (isotropic, flat)]
    sides = [value > 200 / 3 for value in (isotropic, flat)]
    yield Finding(
        "In 12 features two components lose only about a third of the information.",
        True
        if all(near)
        else False
        if not any(near) and len(set(sides)) == 1
        else None,
        f"Of 2,000 samples two of 12 components keep {isotropic:.0f} % if all "
        f"directions are alike, and {flat:.0f} % if the samples lie near a plane. The "
        "report does not say what its data are, and these are on either side.",
        "Two thirds ± 10 % of the variance count; data that differ decide nothing.",
        "a third lost",
    )
    slower = found.time_by_gamma[projected][-1] / found.time_by_gamma[projected][0]
    yield Finding(
        "There is a slight increase in time for high γ, which is not decisive.",
        None if 0.9 <= slower <= 1.1 else 1.1 < slower <= 2,
        f"From γ = {GAMMAS[0]:g} to {GAMMAS[-1]:g} the time of projection and PCA is "
        f"multiplied by {slower:.2f}.",
        "A factor of 1.1 to 2 counts as slight; within a tenth is not decided.",
        "time and γ",
    )
    by_n = found.times[projected][-1] / found.times[projected][0]
    yield Finding(
        "The contribution of γ to the time is negligible beside that of the samples.",
        max(slower, 1 / slower) < by_n,
        f"From {found.sizes[0]:,} to {n:,} samples the time is multiplied by "
        f"{by_n:.1f}, over γ by {slower:.2f}.",
        "The larger factor counts.",
        "samples and γ",
    )
    shares = found.by_gamma[projected]
    width = max(shares) - min(shares)
    yield Finding(
        "The variance is significantly impacted by γ.",
        width >= 5,
        f"Over γ two of ten components keep {min(shares):.0f} to {max(shares):.0f} % "
        f"after the projection; with true kernel PCA {min(found.by_gamma[true]):.0f} "
        f"to {max(found.by_gamma[true]):.0f} %.",
        "A range of at least five points counts.",
        "variance and γ",
    )
    last = abs(shares[-1] - shares[-2])
    yield Finding(
        "The variance decays with γ and converges towards a value (around 30).",
        shares[-1] < shares[0] and last <= 1,
        f"From γ = {GAMMAS[0]:g} to {GAMMAS[-1]:g} it goes from {shares[0]:.1f} to "
        f"{shares[-1]:.1f} %, the last step by {last:.2f} points. Whether the report "
        "means 30 % or γ = 30 it does not say.",
        "It must fall, and by at most a point in the last step.",
        "γ to 30",
    )
    rbf = [
        kernel_share(mercer.KernelPCA(2, kernel="rbf", gamma=g).fit(X), X)
        for g in (0.5, 2, 7, 13)
    ]
    poly = [
        kernel_share(
            mercer.KernelPCA(2, kernel="poly", degree=d, gamma=1.0, coef0=1).fit(X), X
        )
        for d in (1, 2, 3, 5)
    ]
    ranges = {"Gaussian": max(rbf) - min(rbf), "polynomial": max(poly) - min(poly)}
    yield Finding(
        "The Gaussian kernel offers the greatest diversity of projections.",
        ranges["Gaussian"] > ranges["polynomial"],
        "Over γ two components of true kernel PCA keep "
        f"{min(rbf):.0f} to {max(rbf):.0f} %, over the degree of the polynomial kernel "
        f"{min(poly):.0f} to {max(poly):.0f} %; the cosine kernel has no parameter.",
        "The larger range counts as diversity.",
        "diversity",
    )


def _projected(X: NDArray, gamma: float) -> NDArray:
    return GaussianProjection(gamma=gamma).fit_transform(X)


def cluster_claims(run: Run) -> Iterator[Item]:
    """Judge what the report says of k-means, on data of several scales."""
    sets = data_sets(run)
    starts = [
        mercer.KMeans(3, init="random", n_init=1, random_state=seed).fit(
            sets["blobs"][0]
        )
        for seed in range(20)
    ]
    most = max(int(model.n_iter_) for model in starts)
    yield Finding(
        "k-means is guaranteed to converge.",
        most < 300 or None,
        f"From 20 random starts it ended after at most {most} rounds of 300.",
        "A start that reaches the limit would decide nothing.",
        "k-means converges",
    )

    def error(X: NDArray, y: NDArray) -> float:
        model = mercer.KMeans(
            len(np.unique(y)), init="random", n_init=10, random_state=run.seed
        )
        return disagreement(model.fit_predict(X), y)

    X, y = sets["blobs"]
    small = X / np.abs(X - X.mean(axis=0)).max()
    errors = {
        "as they are": error(_projected(X, GAMMA), y),
        "scaled to 1": error(_projected(small, GAMMA), y),
    }
    yield Finding(
        "In figure 13 the segmentation by the kernel is identical, but for the numbers "
        "of labels.",
        _agreed([value <= 1 for value in errors.values()]),
        f"At γ = {GAMMA:g} the projection gives blobs other labels for "
        + ", ".join(f"{v:.0f} % ({k})" for k, v in errors.items())
        + ". exp(−γ(x − mean)²) is 0 wherever a coordinate is more than a unit from "
        "the mean, and does not tell left from right: blobs several units apart fall "
        "together. The report does not give the scale of its data.",
        "Other labels for at most 1 %; not decided if it depends on the scale.",
        "identical",
    )
    plain = {name: error(*own) for name, own in sets.items()}
    yield Finding(
        "k-means segments linear problems efficiently.",
        plain["blobs"] <= 5,
        f"On blobs {plain['blobs']:.1f} % of the labels differ.",
        "At most 5 % counts.",
        "linear problems",
    )
    yield Finding(
        "On rings, which are not linearly separable, it is not efficient.",
        plain["rings"] >= 25,
        f"On rings {plain['rings']:.1f} % of the labels differ.",
        "At least 25 % counts.",
        "rings by k-means",
    )
    n = len(sets["rings"][1])
    rings = {
        "rings": sets["rings"],
        "rings of 0.45 their size": make_rings(n, random_state=run.seed),
        "the same with noise 0.15": make_rings(n, noise=0.15, random_state=run.seed),
    }
    rings = {
        name: (own if name == "rings" else (0.45 * own[0], own[1]))
        for name, own in rings.items()
    }
    curves = {
        name: [error(_projected(X, gamma), y) for gamma in GAMMAS]
        for name, (X, y) in rings.items()
    }
    told = "; ".join(
        f"{name}: "
        + ", ".join(f"γ = {g:g} {e:.0f} %" for g, e in zip(GAMMAS, own, strict=True))
        for name, own in curves.items()
    )
    yield Finding(
        "With the projection the result is more than satisfying.",
        all(min(own) <= 5 for own in curves.values()),
        f"Errors of the projection before k-means, {told}.",
        "On each set some γ must have at most 5 %.",
        "rings by projection",
    )
    at = {g: k for k, g in enumerate(GAMMAS)}
    yield Finding(
        "From γ = 7 the result is good.",
        _agreed([own[at[7]] <= 5 and max(own[: at[7]]) > 5 for own in curves.values()]),
        f"{told}. The best γ depends on the scale of the rings and on the noise, which "
        "the report does not give.",
        "At γ = 7 at most 5 %, and more at some smaller γ; not decided if the sets "
        "differ.",
        "from 7",
    )
    yield Finding(
        "Beyond γ = 13 the errors increase.",
        _agreed([max(own[at[13] + 1 :]) >= own[at[13]] + 2 for own in curves.values()]),
        f"{told}.",
        "Two points more than at 13 count; not decided if the sets differ.",
        "beyond 13",
    )
    X, y = rings["rings of 0.45 their size"]
    scores = [
        percent(SVC(kernel="linear", C=100.0).fit(Z, y).predict(Z), y)
        for Z in (X, _projected(X, GAMMA))
    ]
    yield Finding(
        "In the space of the projection the problem is simpler.",
        scores[1] >= 95 > scores[0],
        f"A line separates {scores[0]:.1f} % of the rings (0.45 their size), and "
        f"{scores[1]:.1f} % after the projection with γ = {GAMMA:g}.",
        "At least 95 % after, and less before, count.",
        "simpler as projected",
    )
    X, y = sets["rings"]
    tuned = mercer.KernelKMeans(
        2, kernel="rbf", gamma="tune", random_state=run.seed, n_init=10
    )
    wrong = disagreement(tuned.fit_predict(X), y)
    yield Finding(
        "A search for the best γ supposes labels.",
        wrong > 5,
        f'Without labels (gamma="tune") Mercer takes γ = {tuned.gamma_:.3g} on the '
        f"rings, with {wrong:.1f} % of other labels.",
        "An error of at most 5 % without labels refutes it.",
        "γ without labels",
    )


def _area(model: Any, half: float = 4.0, n: int = 161) -> tuple[float, float]:
    """Return the area of a boundary, and how round it is: 1 for a disc."""
    grid = np.linspace(-half, half, n)
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    inside = points[model.decision_function(points) >= 0]
    cell = (grid[1] - grid[0]) ** 2
    if not len(inside):
        return 0.0, 0.0
    area = cell * len(inside)
    moment = cell * float(((inside - inside.mean(axis=0)) ** 2).sum())
    return area, area**2 / (2 * np.pi * moment)


def one_class_claims(run: Run) -> Iterator[Item]:
    """Judge what the report says of machines of one class and of two."""
    X, y = make_moons(run.pick(200, 200, 80), noise=0.12, random_state=run.seed)
    X_new, y_new = make_moons(2000, noise=0.12, random_state=run.seed + 1)
    own, n = X[y == 0], int((y == 0).sum())
    C = 1 / (SOFT * n)
    hard = SVDD(gamma=WIDTH, tol=1e-6).fit(own)
    soft = SVDD(gamma=WIDTH, C=C, tol=1e-6).fit(own)
    two = SVC(kernel="rbf", gamma=WIDTH).fit(X, y)
    at = np.abs(hard.decision_function(hard.support_vectors_))
    yield Finding(
        "The boundary points delineate the boundary of the data.",
        bool(at.max() <= 1e-4),
        f"Without slack all {len(at)} support vectors are within {at.max():.1e} of the "
        f"boundary; R = {hard.radius_:.3f}.",
        "Decision values of at most 1e-4 are on the boundary.",
        "boundary points",
    )
    outside = {
        name: int((model.decision_function(own) < -1e-4).sum())
        for name, model in (("hard", hard), ("soft", soft))
    }
    yield Finding(
        "With slack variables samples of the set may be outside the boundary.",
        outside["hard"] == 0 < outside["soft"],
        f"Outside are {outside['hard']} of {n} samples without slack, and "
        f"{outside['soft']} with it.",
        "None without slack, and some with it.",
        "slack",
    )
    areas = {
        offset: _area(SVDD(gamma=WIDTH, C=C, offset=offset).fit(own))[0]
        for offset in (-0.02, 0.0, 0.02)
    }
    yield Finding(
        "A threshold in the computation of R increases or decreases the boundary.",
        areas[-0.02] < areas[0.0] < areas[0.02],
        "With thresholds of −0.02, 0 and 0.02 the boundary encloses an area of "
        + ", ".join(f"{area:.2f}" for area in areas.values())
        + ".",
        "The area must grow with the threshold.",
        "threshold",
    )
    round_ = [
        _area(SVDD(gamma=WIDTH, C=bound).fit(own))[1]
        for bound in (1.0, C, 1 / (0.5 * n), 1 / (0.9 * n))
    ]
    yield Finding(
        "The stronger the constraint, the more the boundary tends to a circle.",
        all(a < b for a, b in pairwise(round_)),
        "With C = 1 (no slack), and so small that a tenth, half and nine tenths of the "
        "samples are at the bound, the roundness of the enclosed set is "
        + ", ".join(f"{value:.2f}" for value in round_)
        + ", where a disc has 1.",
        "C is taken for the constraint. It must grow with each smaller C.",
        "circle",
    )
    inside = {
        name: model.decision_function(X_new) >= 0
        for name, model in (("hard", hard), ("soft", soft))
    }
    inside["two"] = two.predict(X_new) == 0
    inner = y_new == 0
    precision = {
        k: 100 * float((v & inner).sum() / max(v.sum(), 1)) for k, v in inside.items()
    }
    recall = {
        k: 100 * float((v & inner).sum() / inner.sum()) for k, v in inside.items()
    }
    told = ", ".join(
        f"{words} {precision[k]:.1f} and {recall[k]:.1f} %"
        for k, words in (("hard", "hard"), ("soft", "soft"), ("two", "two classes"))
    )
    told = f"Precision and recall on 2,000 new samples: {told}."
    let_in = int((inside["hard"] & ~inner).sum())
    yield Finding(
        "A machine of one class lets the other class in.",
        let_in > 0,
        f"Without slack {let_in} of {int((~inner).sum())} new samples of the other "
        "class are inside.",
        "One sample shows it.",
        "other class",
    )
    yield Finding(
        "With slack variables there is less precision.",
        precision["soft"] < precision["hard"],
        told,
        "The percentages are compared.",
        "slack and precision",
    )
    yield Finding(
        "With slack variables there is less recall, as the boundary is narrower.",
        recall["soft"] < recall["hard"],
        told,
        "The percentages are compared.",
        "slack and recall",
    )
    yield judge_accuracy(
        "A two-class machine demarcates the two labels better.",
        *(inside["two"], inside["soft"], inner),
        told,
        "two classes",
    )
    yield Finding(
        "The two-class machine increases the precision while having little recall.",
        precision["two"] > precision["soft"] and recall["two"] < recall["soft"],
        told,
        "More precision and less recall than with slack count.",
        "two classes, recall",
    )
    straight = SVC(kernel="linear").fit(X, y)
    yield judge_accuracy(
        "By the kernel a linear tool separates what is not linearly separable.",
        *(two.predict(X_new), straight.predict(X_new), y_new),
        f"The Gaussian kernel has {percent(two.predict(X_new), y_new):.2f} % on new "
        f"samples, a line {percent(straight.predict(X_new), y_new):.2f} %.",
        "kernel separates",
    )
    grid = np.linspace(-3, 3, 200)
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    times = times_in_turn(
        {
            "drawing": lambda: soft.decision_function(points),
            "deciding": lambda: soft.decision_function(X),
        },
        repeats=5,
    )
    yield judge_time(
        "To display the boundary costs computing time, which a decision does not need.",
        *(times["drawing"], times["deciding"]),
        f"The boundary needs the values of {len(points):,} points, the decision those "
        f"of {len(X)} samples.",
        "drawing costs",
    )


def projection_claim(run: Run) -> Iterator[Item]:
    """Judge whether the projection is negligible beside a classification."""
    X, _ = make_clouds(2000, n_classes=3, separation=6.0, random_state=run.seed)
    flat = _projected(X, 1.0)
    times = times_in_turn(
        {
            "k-means": lambda: mercer.KMeans(
                3, init="random", n_init=10, random_state=run.seed
            ).fit(flat),
            "projection": lambda: make_pipeline(GaussianProjection(gamma=1.0)).fit(X),
        },
        repeats=5,
    )
    yield judge_time(
        "The time of the projection is negligible beside that of a classification.",
        *(times["k-means"], times["projection"]),
        "On 2,000 samples, beside k-means from ten starts.",
        "projection negligible",
    )
