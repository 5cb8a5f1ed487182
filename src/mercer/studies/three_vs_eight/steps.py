"""The steps of the study ``three-vs-eight``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from mercer import SVC
from mercer.plots import RocCurvesDisplay
from mercer.plots.rendering import inline_svg
from mercer.studies.choices import choose, validate_on
from mercer.studies.features import digit_features, mean_distance, pixels
from mercer.studies.measures import percent, timed_fit
from mercer.studies.results import Figure, Item, Row
from mercer.studies.study import Run, Step
from mercer.studies.three_vs_eight.models import parts, tuned
from mercer.studies.three_vs_eight.protocol import KERNELS, N_PUBLISHED, PUBLISHED
from mercer.studies.verdicts import judge_accuracy

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
        PUBLISHED[kernel],
        len(truth),
        N_PUBLISHED,
        found.fitted.seconds,
        found.fitted.gap,
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
            seconds=fitted.seconds,
            gap=fitted.gap,
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
    """Go beyond the report: deskewed gradients, C and γ by the validation part."""
    data = parts(run)
    features = digit_features()
    train, validation, test = (features.fit_transform(X) for X in data.images)
    unit = 1 / mean_distance(train)
    grid: dict[str, list[Any]] = {"gamma": [unit, 2 * unit, 4 * unit], "C": [1, 5, 25]}
    X, y = np.concatenate([train, validation]), np.concatenate(data.y[:2])
    choice = choose(SVC(), grid, X, y, validate_on(len(train), len(validation)))
    fitted = timed_fit(SVC(**choice.settings), train, data.y[0])
    values = {
        "validation": choice.score,
        "test": percent(fitted.model.predict(test), data.y[2]),
        "setting": str(choice),
    }
    yield Row(
        "best",
        "3 against 8: RBF on deskewed HOG",
        values,
        {"test": 98.20},
        len(test),
        N_PUBLISHED,
        fitted.seconds,
        fitted.gap,
    )


def make_steps(run: Run) -> list[Step]:
    """Return the steps of the study."""
    return [
        *(Step(f"accuracy: {k}", accuracy, {"kernel": k}) for k in KERNELS),
        *(Step(f"simplified SMO: {k}", solvers, {"kernel": k}) for k in KERNELS),
        Step("ROC curves", roc),
        Step("best model", best),
    ]
