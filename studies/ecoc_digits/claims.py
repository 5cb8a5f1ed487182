"""What the report ``ecoc-digits`` claims of codes, of sizes and of ambiguous images."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mercer import SVC, gram_matrix
from mercer.multiclass import dietterich15, hadamard, row_distances
from studies.ecoc_digits.models import (
    Compared,
    compared,
    decide,
    digits,
    settings,
)
from studies.ecoc_digits.protocol import GRIDS
from studies.measures import timed_fit
from studies.results import Finding, Item, Row
from studies.study import Run
from studies.verdicts import all_of, judge_accuracy

__all__ = ["ambiguity_claims", "code", "dual_claims", "size_claims"]

# Steps of the solver that does not set variables to their bounds.
MOST_NAIVE = 20_000


def code(run: Run) -> Iterator[Item]:
    """Show the printed code, and judge what the report says of its distances."""
    printed = dietterich15()
    off = ~np.eye(10, dtype=bool)
    distances, simplex = row_distances(printed), row_distances(hadamard(10))
    for label, word in enumerate(printed):
        others = off[label]
        values = {
            "word": " ".join("+" if side > 0 else "−" for side in word),
            "distance": int(distances[label][others].min()),
            "simplex": int(simplex[label][others].min()),
        }
        yield Row("code", str(label), values)
    yield Finding(
        "Any two words differ in at least seven places, so that any three machines may "
        "be wrong.",
        bool(distances[off].min() >= 7),
        f"The smallest distance in the printed code is {distances[off].min():.0f}, so "
        "that the code corrects two wrong machines, not three; in the Hadamard code "
        f"the smallest distance is {simplex[off].min():.0f}.",
        "Counted over all pairs of words.",
        "distance",
    )


def _table(
    kept: dict[tuple[int, str], Compared], sizes: tuple[int, ...], column: str
) -> str:
    return "; ".join(
        f"{kernel}: "
        + ", ".join(f"{kept[n, kernel].found[column]:.1f} at {n:,}" for n in sizes)
        for kernel in GRIDS
    )


def size_claims(run: Run, sizes: tuple[int, ...]) -> Iterator[Item]:
    """Judge what the report says of its table, over all sizes and both kernels."""
    data = digits(run)
    truth = data.y_test
    sizes = tuple(n for n in sizes if n <= len(data.y))
    kept = {(n, k): compared(run, n, k) for n in sizes for k in GRIDS}
    last = sizes[-1]
    judged = [
        judge_accuracy("", own.ecoc, own.near, truth, "").holds for own in kept.values()
    ]
    yield Finding(
        "ECOC performs better than one-vs-all for training sets of any size.",
        all_of(judged),
        f"ECOC as printed, {_table(kept, sizes, 'ecoc')}; one-vs-all with barycentres, "
        f"{_table(kept, sizes, 'barycentre')}; with the nearest of all means, "
        f"{_table(kept, sizes, 'nearest')}.",
        f"McNemar’s test against barycentres of positive labels at each size: "
        f"{judged.count(True)} of {len(judged)} comparisons favour ECOC with p < 0.05, "
        f"{judged.count(False)} favour one-vs-all. The claim holds if all favour ECOC, "
        "and does not hold if one favours one-vs-all.",
        "ECOC better",
    )
    judged = [
        judge_accuracy("", own.near, own.unique, truth, "").holds
        for own in kept.values()
    ]
    yield Finding(
        "The closest barycentre of the positive labels improves the results.",
        all_of(judged),
        f"With barycentres, {_table(kept, sizes, 'barycentre')}; uniquely classified, "
        f"{_table(kept, sizes, 'unique')}.",
        f"McNemar’s test at each size: {judged.count(True)} of {len(judged)} "
        "comparisons favour barycentres with p < 0.05.",
        "barycentres",
    )
    for claim, slow, fast, key in (
        (
            "ECOC has longer run times than one-vs-all.",
            [own.fits[1].seconds for own in kept.values()],
            [own.fits[0].seconds for own in kept.values()],
            "ECOC slower",
        ),
        (
            "The computation with the Gaussian kernel takes longer than with the "
            "linear one.",
            [kept[n, "Gaussian"].fits[k].seconds for n in sizes for k in (0, 1)],
            [kept[n, "linear"].fits[k].seconds for n in sizes for k in (0, 1)],
            "Gaussian slower",
        ),
    ):
        longer = [a > 1.1 * b for a, b in zip(slow, fast, strict=True)]
        yield Finding(
            claim,
            True if all(longer) else None if any(longer) else False,
            "Seconds of training: "
            + "; ".join(f"{a:.3g} and {b:.3g}" for a, b in zip(slow, fast, strict=True))
            + ".",
            "Longer is by more than a tenth. The claim holds if it is so for all "
            "sizes, and does not hold if for none.",
            key,
        )
    scores = {
        (kernel, column): [kept[n, kernel].found[column] for n in sizes]
        for kernel in GRIDS
        for column in ("unique", "barycentre", "ecoc")
    }
    middle = min(2, len(sizes) - 1)
    rises = [own[middle] > own[0] for own in scores.values()]
    yield Finding(
        "With more training images the results first increase across the board.",
        all(rises),
        f"From {sizes[0]:,} to {sizes[middle]:,} images {sum(rises)} of {len(rises)} "
        "columns of the report’s table increase.",
        "All must increase.",
        "first increase",
    )
    few = sizes[middle]
    ways = {
        "unique": (kept[few, "linear"].unique, kept[last, "linear"].unique),
        "barycentre": (kept[few, "linear"].near, kept[last, "linear"].near),
    }
    judged = [judge_accuracy("", a, b, truth, "").holds for a, b in ways.values()]
    yield Finding(
        "Linear one-vs-all gets worse, often drastically, from 2,000 images on.",
        all_of(judged) if last > few else None,
        f"In the report’s two columns: unique {_table(kept, sizes, 'unique')}; "
        f"barycentre {_table(kept, sizes, 'barycentre')}. C is chosen anew for each "
        "size, and every machine is solved to its tolerance.",
        f"McNemar’s test of {few:,} against {last:,} images, in both columns.",
        "linear gets worse",
    )
    trained = [kept[n, "linear"].train_unique for n in sizes]
    yield Finding(
        "The more training images, the harder it gets to separate them linearly.",
        trained[-1] < trained[0],
        "Training images that are uniquely right: "
        + ", ".join(f"{v:.1f} % of {n:,}" for v, n in zip(trained, sizes, strict=True))
        + ".",
        "The percentage must be smaller at the largest size.",
        "harder to separate",
    )
    previous = sizes[-2] if len(sizes) > 1 else last
    better = {
        f"{way}, {kernel}": judge_accuracy(
            "",
            getattr(kept[last, kernel], field),
            getattr(kept[previous, kernel], field),
            truth,
            "",
        ).holds
        for kernel in GRIDS
        for way, field in (("one-vs-all", "near"), ("ECOC", "ecoc"))
    }
    found = [name for name, holds in better.items() if holds]
    yield Finding(
        "More training data would not improve the results considerably, or might "
        "worsen them.",
        not found,
        f"From {previous:,} to {last:,} images "
        + (f"{' and '.join(found)} improve" if found else "none improves")
        + f" with p < 0.05: ECOC {_table(kept, sizes[-2:], 'ecoc')}; barycentres "
        f"{_table(kept, sizes[-2:], 'barycentre')}.",
        "McNemar’s test for both schemes and kernels; one that improves refutes it.",
        "more data",
    )
    score = kept[last, "Gaussian"].found["barycentre"]
    yield Finding(
        "One-vs-all with the Gaussian kernel works surprisingly well.",
        score >= 90,
        f"With barycentres it has {score:.1f} % at {last:,} images, the report 90.6 % "
        "at 10,000.",
        "At least 90 % counts as well.",
        "Gaussian works",
    )
    alone = [kept[n, "linear"].found["unique"] for n in sizes]
    yield Finding(
        "Linear machines work at all, even where no ambiguity is resolved.",
        min(alone) >= 50,
        f"Uniquely right are {min(alone):.1f} to {max(alone):.1f} %.",
        "At least half of the images at every size count as working.",
        "linear works",
    )
    score = max(kept[n, "Gaussian"].found["ecoc"] for n in sizes)
    yield Finding(
        "The success rate is over 95 %.",
        score > 95,
        f"ECOC with the Gaussian kernel has {score:.1f} % at best.",
        "Over 95 % on the test images.",
        "over 95",
    )


def ambiguity_claims(run: Run) -> Iterator[Item]:
    """Judge what the report says of images that are not uniquely classified."""
    data = digits(run)
    n = run.pick(2000, 2000, 400)
    own = {kernel: compared(run, n, kernel) for kernel in GRIDS}
    shares = {k: 100 * float(np.mean(v.n_positive != 1)) for k, v in own.items()}
    none = {k: 100 * float(np.mean(v.n_positive == 0)) for k, v in own.items()}
    yield Row(
        "schemes",
        "one against all",
        {"n": n, "ambiguous": shares["Gaussian"], "none": none["Gaussian"]},
        len(data.y_test),
    )
    model = SVC(**settings(run, "Gaussian", n), multiclass="ovo")
    fitted = timed_fit(model, data.X[:n], data.y[:n])
    values = decide(model, data.X_test)
    votes = np.zeros((len(values), 10), dtype=int)
    column = 0
    for a in range(10):
        for b in range(a + 1, 10):
            votes[:, a] += values[:, column] > 0
            votes[:, b] += values[:, column] <= 0
            column += 1
    ties = 100 * float(np.mean((votes == votes.max(axis=1)[:, None]).sum(axis=1) > 1))
    yield Row(
        "schemes",
        "one against one, votes",
        {"n": n, "ambiguous": ties, "none": 0.0},
        len(data.y_test),
        **fitted.facts,
    )
    told = ", ".join(f"{k} {v:.1f} %" for k, v in shares.items())
    yield Finding(
        "New samples are generally not uniquely classified by one-vs-all.",
        min(shares.values()) > 0,
        f"At {n:,} training images no machine or several say yes for so many test "
        f"images: {told}.",
        "With both kernels there must be such images.",
        "ambiguous",
    )
    several = {k: shares[k] - none[k] for k in shares}
    yield Finding(
        "With one to nine the machines neglect the positive label.",
        all(none[k] > several[k] for k in shares),
        "No machine says yes for "
        + ", ".join(f"{none[k]:.1f} % ({k})" for k in shares)
        + " of the test images, several for "
        + ", ".join(f"{several[k]:.1f} %" for k in shares)
        + ".",
        "With both kernels “no machine” must be more frequent than “several”.",
        "unbalanced",
    )
    yield Finding(
        "With one-vs-one the issue of ambiguities gets even worse.",
        ties > shares["Gaussian"],
        f"With the Gaussian kernel several classes have the most votes for {ties:.1f} "
        f"% of the test images; one-vs-all is ambiguous for {shares['Gaussian']:.1f} "
        "%. The report did not implement one-vs-one.",
        "The percentages are compared.",
        "one-vs-one ambiguities",
    )


def dual_claims(run: Run) -> Iterator[Item]:
    """Judge what the report says of solutions of the dual problem, even against odd."""
    data, n = digits(run), run.pick(1000, 1000, 200)
    X, y = data.X[:n], np.where(data.y[:n] % 2 == 0, 1.0, -1.0)
    params = {**settings(run, "Gaussian", n), "C": 1.0}
    model = SVC(**params, tol=1e-6).fit(X, y)
    alpha = np.zeros(n)
    alpha[model.support_] = np.abs(np.ravel(model.dual_coef_))
    side = y * model.decision_function(X)
    at_bound, free = alpha >= 1 - 1e-9, (alpha > 1e-9) & (alpha < 1 - 1e-9)
    on_margin = np.abs(side - 1) <= 1e-4
    yield Finding(
        "A sample with α = C lies on the margin, one with 0 < α < C inside it or on "
        "the wrong side.",
        bool(on_margin[at_bound].all() and not on_margin[free].any()),
        f"Of {int(at_bound.sum())} samples with α = C {int(on_margin[at_bound].sum())} "
        f"lie on the margin, of {int(free.sum())} with 0 < α < C "
        f"{int(on_margin[free].sum())}: the two cases are swapped.",
        "On the margin is |y f(x) − 1| ≤ 1e-4.",
        "cases of α",
    )
    b = y[free] - (model.decision_function(X[free]) - model.intercept_[0])
    yield Finding(
        "yᵢ f(xᵢ) = 1 on the margin gives the parameter b.",
        bool(free.any()) and float(np.ptp(b)) <= 1e-4,
        f"From each of {int(free.sum())} samples on the margin b follows alike, within "
        f"{float(np.ptp(b)) if free.any() else 0:.1e}.",
        "The values must agree within 1e-4.",
        "margin gives b",
    )
    gap = float(np.max(model.dual_gap_)) / abs(float(np.sum(model.objective_)))
    yield Finding(
        "The conditions are equivalent to b_up ≥ b_low.",
        float(np.max(model.kkt_gap_)) <= 1e-6 and gap <= 1e-4,
        f"Where b_low − b_up is {float(np.max(model.kkt_gap_)):.1e}, the duality gap "
        f"is {gap:.1e} of the objective.",
        "A duality gap of at most 1e-4 counts as optimal.",
        "pairwise condition",
    )
    K = np.asarray(gram_matrix(model.kernel_, X[:300]), dtype=np.float64)
    # C is no binary fraction, so that α + (C − α) may differ from C.
    runs = [_naive(K, y[:300], C) for C in (0.1, 0.3, 0.7, 1.1)]
    stuck, steps = max(runs)
    yield Finding(
        "WSS1 can get stuck on a single violating pair by rounding.",
        stuck or None,
        "WSS1 that adds steps and does not set variables to their bounds "
        + (
            f"takes the same pair again without a change after {steps:,} steps."
            if stuck
            else f"ended after {steps:,} steps without taking a pair in vain."
        ),
        "One run that takes a pair without a change shows it; others decide nothing.",
        "stuck",
    )


def _naive(K: NDArray, y: NDArray, C: float) -> tuple[bool, int]:
    """Run WSS1 with bounds that rounding may miss; return if it is stuck, and steps."""
    alpha, F = np.zeros(len(y)), -y.copy()
    for step in range(MOST_NAIVE):
        up = np.where(y > 0, alpha < C, alpha > 0)
        low = np.where(y > 0, alpha > 0, alpha < C)
        i = int(np.where(up, F, np.inf).argmin())
        j = int(np.where(low, F, -np.inf).argmax())
        if F[j] - F[i] <= 1e-3:
            return False, step
        t = (F[j] - F[i]) / (K[i, i] + K[j, j] - 2 * K[i, j])
        t = min(
            t,
            C - alpha[i] if y[i] > 0 else alpha[i],
            alpha[j] if y[j] > 0 else C - alpha[j],
        )
        before = alpha[i], alpha[j]
        alpha[i] += y[i] * t
        alpha[j] -= y[j] * t
        if before == (alpha[i], alpha[j]):
            return True, step
        F += t * (K[i] - K[j])
    return False, MOST_NAIVE
