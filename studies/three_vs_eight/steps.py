"""The steps of the study ``three-vs-eight``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.metrics import roc_auc_score

from mercer import SVC
from mercer.plots import ImageGalleryDisplay, RocCurvesDisplay
from mercer.plots.rendering import inline_svg
from studies.features import pixels
from studies.measures import percent, timed_fit
from studies.recipes import DRAWING_CHANGES, DRAWINGS, choose_recipe
from studies.results import Figure, Item, Row
from studies.study import Run, Step
from studies.three_vs_eight.models import parts, tuned
from studies.three_vs_eight.protocol import KERNELS
from studies.verdicts import judge_accuracy

__all__ = ["make_steps"]


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
    train, _, test = map(pixels, data.images)
    params = {**found.fitted.model.get_params(), "solver": "simplified"}
    simple = timed_fit(SVC(**{**params, "random_state": run.seed}), train, data.y[0])
    for name, fitted in (("exact", found.fitted), ("simplified SMO", simple)):
        model = fitted.model
        yield Row(
            "solvers",
            f"{kernel}, {name}",
            {
                "test": percent(model.predict(test), data.y[2]),
                "steps": int(np.sum(model.n_iter_)),
                "kkt": float(np.max(model.kkt_gap_)),
            },
            len(data.y[2]),
            **fitted.facts,
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
    test = {kernel: tuned(run, kernel).test for kernel in KERNELS}
    rival = max(("RBF", "linear"), key=test.__getitem__)
    yield judge_accuracy(
        "The polynomial kernel does best on the test part (98.20 against 97.90).",
        tuned(run, "polynomial").scores > 0,
        tuned(run, rival).scores > 0,
        truth,
        f"With the dual solved exactly, polynomial has {test['polynomial']:.2f}, RBF "
        f"{test['RBF']:.2f} and linear {test['linear']:.2f}.",
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
        Step("digits and errors", digits),
        Step("ROC curves", roc),
        Step("best model", best),
    ]
