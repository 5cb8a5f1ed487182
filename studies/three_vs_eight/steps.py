"""The steps of the study ``three-vs-eight``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
from sklearn.metrics import roc_auc_score

from mercer import SVC
from mercer.plots import ImageGalleryDisplay, RocCurvesDisplay
from mercer.plots.rendering import inline_svg
from studies.features import pixels
from studies.measures import percent, timed_fit
from studies.recipes import DRAWING_CHANGES, DRAWINGS, choose_recipe
from studies.results import Figure, Finding, Item, Row
from studies.study import Run, Step
from studies.three_vs_eight.models import as_printed, parts, tuned
from studies.three_vs_eight.protocol import KERNELS
from studies.verdicts import all_of, judge_accuracy

__all__ = ["make_steps"]

# The tolerance of all machines.
TOL = 1e-3


def accuracy(run: Run, kernel: str) -> Iterator[Item]:
    """Score one kernel: the report's two accuracies, and the area under the curve."""
    found, truth = tuned(run, kernel), parts(run).y[2]
    yield Row(
        "accuracy",
        kernel,
        {
            "validation": found.choice.score,
            "test": found.test,
            "auc": roc_auc_score(truth, found.scores),
            "setting": str(found.choice),
        },
        {"validation": len(parts(run).y[1]), "test": len(truth)},
        **found.fitted.facts,
    )


def solvers(run: Run, kernel: str) -> Iterator[Item]:
    """Compare the simplified SMO of the report with the exact solver."""
    found, data = tuned(run, kernel), parts(run)
    train, validation, test = map(pixels, data.images)
    params = {**found.fitted.model.get_params(), "solver": "simplified"}
    simple = timed_fit(SVC(**{**params, "random_state": run.seed}), train, data.y[0])
    best = float(np.sum(found.fitted.model.objective_))
    for name, fitted in (("exact", found.fitted), ("simplified SMO", simple)):
        model = fitted.model
        lost = float(np.sum(model.objective_)) - best
        kkt = float(np.max(model.kkt_gap_))
        # No sample violates the conditions by more than the report's tolerance, at a
        # bias in the middle, if the gap is at most twice as large.
        facts = {**fitted.facts, "converged": kkt <= 2 * TOL}
        yield Row(
            "solvers",
            f"{kernel}, {name}",
            {
                "validation": percent(model.predict(validation), data.y[1]),
                "test": percent(model.predict(test), data.y[2]),
                "steps": int(np.sum(model.n_iter_)),
                "kkt": kkt,
                "lost": max(lost / abs(best), 0.0),
            },
            len(data.y[2]),
            **facts,
        )
    printed = as_printed(run, kernel)
    yield Row(
        "solvers",
        f"{kernel}, as printed",
        {
            "validation": percent(printed.scores["validation"] >= 0, data.y[1]),
            "test": percent(printed.scores["test"] >= 0, data.y[2]),
            "sweeps": printed.ended.sweeps,
            "steps": printed.ended.steps,
            "kkt": printed.kkt,
            "lost": max(printed.gap, 0.0),
        },
        len(data.y[2]),
        printed.seconds,
    )


def claims_on_smo(run: Run) -> Iterator[Item]:
    """Judge what the report says of its algorithm, by its own program."""
    truth = parts(run).y[2]
    printed = {kernel: as_printed(run, kernel) for kernel in KERNELS}
    exact = {kernel: tuned(run, kernel) for kernel in KERNELS}

    def told(words: Callable[[str], str]) -> str:
        return "; ".join(f"{kernel}: {words(kernel)}" for kernel in KERNELS)

    same = {
        k: 100
        * float(np.mean((printed[k].scores["test"] >= 0) == (exact[k].scores > 0)))
        for k in KERNELS
    }
    yield Finding(
        "The simplified SMO achieves the same result as the full SMO.",
        all(share >= 99 for share in same.values()),
        "The report says so of the data of its course. Here both give the same answer "
        "on "
        + told(lambda k: f"{same[k]:.2f} % of {len(truth):,} test images")
        + "; the objective is short of the optimum by "
        + told(lambda k: f"{max(printed[k].gap, 0):.1e} of it")
        + ".",
        "The same answers on at least 99 % of the images count as the same result.",
        "same result",
    )
    is_left = any(p.kkt > 10 * TOL for p in printed.values())
    yield Finding(
        "The simplified SMO is not guaranteed to reach the optimum.",
        True if is_left else None,
        "After ten sweeps without a change the largest violation of the optimality "
        "conditions is "
        + told(lambda k: f"{printed[k].kkt:.2g}")
        + f", where the tolerance is {TOL:g}.",
        "One run that ends with a violation of ten tolerances shows it. Runs that all "
        "reach the optimum would decide nothing.",
        "not guaranteed",
    )
    apart = max(p.ended.apart for p in printed.values())
    yield Finding(
        "If both variables end inside the box, b₁ and b₂ are equal.",
        apart <= 1e-6,
        f"In {sum(p.ended.steps for p in printed.values()):,} steps they differ by at "
        f"most {apart:.1e}.",
        "A difference of at most 1e-6 is rounding.",
        "thresholds agree",
    )
    gaps = {k: exact[k].fitted.gap for k in KERNELS}
    yield Finding(
        "α that satisfies the KKT conditions for all samples is optimal.",
        all(gap is not None and gap <= 0.01 for gap in gaps.values()),
        f"Where all conditions hold within {TOL:g}, the duality gap bounds the "
        "distance from the optimum: "
        + told(lambda k: f"{gaps[k] or 0:.1e} of the objective")
        + ".",
        "A gap of at most 1 % counts as optimal at this tolerance.",
        "conditions suffice",
    )
    steps = {
        k: printed[k].ended.steps / max(int(np.sum(exact[k].fitted.model.n_iter_)), 1)
        for k in KERNELS
    }
    yield Finding(
        "The choice of the pair is critical for the speed: some choices result in much "
        "less improvement than others.",
        all_of([ratio > 2 or None for ratio in steps.values()]),
        "With a random partner the printed program takes "
        + told(lambda k: f"{printed[k].ended.steps:,} steps, {steps[k]:.1f} times")
        + " those of the solver that chooses the pair by its gain.",
        "More than twice the steps for every kernel counts.",
        "choice of the pair",
    )


def digits(run: Run) -> Iterator[Item]:
    """Draw some of the images, and those that the best pixel kernel gets wrong."""
    data = parts(run)
    rows = [np.flatnonzero(data.y[0] == label)[:8] for label in (0, 1)]
    shown = np.concatenate(rows)
    panel = inline_svg(
        ImageGalleryDisplay.from_images,
        data.images[0][shown],
        n_columns=8,
        title="Training images",
        figsize=(4.4, 1.5),
    )
    yield Figure("digits", "Eight 3s and eight 8s of the training part.", (panel,))
    kernel = max(KERNELS, key=lambda k: tuned(run, k).test)
    found, truth = tuned(run, kernel).scores > 0, data.y[2]
    wrong = int((found != truth).sum())
    panel = inline_svg(
        ImageGalleryDisplay.from_predictions,
        data.images[2],
        np.where(truth == 1, 8, 3),
        np.where(found, 8, 3),
        max_images=12,
        n_columns=6,
        fontsize=7,
        title=f"{kernel}: misclassified",
        figsize=(4.4, 0.4 + 1.05 * max(1, -(-min(wrong, 12) // 6))),
    )
    yield Figure(
        "errors",
        f"The {kernel} kernel on pixels gets {wrong} of {len(truth):,} test images "
        f"wrong{'; twelve of them are shown' if wrong > 12 else ''}.",
        (panel,),
        "accuracy",
    )


def roc(run: Run) -> Iterator[Item]:
    """Draw the ROC curves of the three kernels, and judge the claim about them."""
    truth = parts(run).y[2]
    scores = {kernel: tuned(run, kernel).scores for kernel in KERNELS}
    panels = tuple(
        inline_svg(
            RocCurvesDisplay.from_scores,
            truth,
            scores,
            log=log,
            title=title,
            figsize=(4.4, 3.7),
        )
        for title, log in (("ROC", False), ("ROC, logarithmic axis", True))
    )
    yield Figure(
        "roc",
        "ROC curves of the three kernels on the test part; an 8 is positive. The "
        "logarithmic axis on the right spreads the curves where they are steep.",
        panels,
        "accuracy",
    )
    answers = {k: as_printed(run, k).scores["test"] >= 0 for k in KERNELS}
    order = ("polynomial", "RBF", "linear")
    pairs = list(pairwise(order))
    judged = [
        judge_accuracy("", answers[a], answers[b], truth, "").holds for a, b in pairs
    ]
    words = {True: "yes", False: "the other way", None: "chance can explain it"}
    yield Finding(
        "The printed test accuracies are in the order polynomial, RBF, linear (98.20, "
        "97.90, 94.14); the report draws no conclusion from it.",
        all_of(judged),
        "By the printed program "
        + ", ".join(f"{k} has {percent(answers[k], truth):.2f}" for k in order)
        + "; solved exactly "
        + ", ".join(f"{k} has {tuned(run, k).test:.2f}" for k in order)
        + ". "
        + "; ".join(
            f"{a} above {b}: {words[holds]}"
            for (a, b), holds in zip(pairs, judged, strict=True)
        )
        + ".",
        "McNemar’s test of neighbours, by the answers of the printed program.",
        "order of kernels",
    )


def best(run: Run) -> Iterator[Item]:
    """Go beyond the report by a recipe, chosen on the validation part."""
    data = parts(run)
    train, validation, test = data.images
    X, y = np.concatenate([train, validation]), np.concatenate(data.y[:2])
    rows = np.arange(len(y))
    split = (rows[: len(train)], rows[len(train) :])
    chosen = choose_recipe(DRAWINGS, DRAWING_CHANGES, X, y, [split], run.seed)
    fitted = timed_fit(chosen.recipe.machine(run.seed), train, data.y[0])
    label = f"3 against 8, {len(train):,} training images"
    scores = {"test": percent(fitted.model.predict(test), data.y[2])}
    yield chosen.row(label, scores, len(test), fitted, "best")


def make_steps(run: Run) -> list[Step]:
    """Return the steps of the study."""
    return [
        *(Step(f"accuracy: {k}", accuracy, {"kernel": k}) for k in KERNELS),
        *(Step(f"simplified SMO: {k}", solvers, {"kernel": k}) for k in KERNELS),
        Step("claims on SMO", claims_on_smo),
        Step("digits and errors", digits),
        Step("ROC curves", roc),
        Step("best model", best),
    ]
