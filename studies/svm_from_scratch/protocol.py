"""The protocol of the study ``svm-from-scratch``."""

from __future__ import annotations

from typing import Any

from studies.features import CHOSEN_EARLIER
from studies.study import ResultTable
from studies.svm_from_scratch.published import PUBLISHED, SOURCE

__all__ = ["ABLATIONS", "DEFAULTS", "GRIDS", "KERNELS", "STATEMENT"]

KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "polynomial": {"kernel": "poly", "coef0": 1.0},
    "Gaussian": {"kernel": "rbf"},
    "sigmoid": {"kernel": "sigmoid", "coef0": -1.0},
}
# Parameters at scikit-learn's default values; the report does not give its own.
DEFAULTS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "polynomial": {"kernel": "poly"},
    "Gaussian": {"kernel": "rbf"},
    "sigmoid": {"kernel": "sigmoid"},
}
# The grids of the search; γ is in units of 1 / mean squared distance.
GRIDS: dict[str, dict[str, list]] = {
    "linear": {"C": [0.0003, 0.001, 0.01, 0.1]},
    "polynomial": {"degree": [2, 3], "gamma": [0.3, 1.0, 3.0], "C": [0.1, 1]},
    "Gaussian": {"gamma": [0.5, 1.0, 2.0, 4.0], "C": [1, 3, 10]},
    "sigmoid": {"gamma": [0.05, 0.2, 0.5], "C": [1, 10, 100]},
}
HALVES = [2.0**-k for k in range(8)]
# The parameters, their symbols, and the values of the report.
ABLATIONS: dict[str, list[tuple[str, str, list]]] = {
    "linear": [("C", "C", HALVES), ("tol", "ε", [1e-3, 1e-4, 1e-5, 1e-6])],
    "polynomial": [("gamma", "γ", HALVES), ("degree", "d", [1, 2, 3, 4, 5])],
    "Gaussian": [("C", "C", HALVES), ("gamma", "γ", HALVES)],
    "sigmoid": [
        ("gamma", "γ", HALVES),
        ("coef0", "r", [-1.0, -0.5, 0.0, 0.5, 1.0]),
    ],
}
COLUMNS = {
    "train": "training %",
    "test": "test %",
    "inference": "inference, s",
    "setting": "chosen",
}
STATEMENT: dict[str, Any] = {
    "name": "svm-from-scratch",
    "title": "Support vector machines from scratch",
    "about": "Linear, polynomial, Gaussian and sigmoid kernels on MNIST and CIFAR-10, "
    "one-vs-one, and the effects of their parameters, their combination and the "
    "solver.",
    "source": SOURCE,
    "protocol": (
        "There are 500 training and 100 test images of each class (400 and 100 of each "
        "digit on the sample).",
        "CIFAR-10 is used as raw pixels, and in grey as HOG with 4 × 4 cells of 8 "
        "pixels and 9 directions; the report does not give its numbers.",
        "Machines are one-vs-one and decide by votes. The parameters of each kernel "
        "are chosen by three-fold cross-validation on training images.",
        "In combinations the weights for each pair of classes are the kernels' "
        "alignments with yyᵀ, normalised to sum 1; C is that of the Gaussian kernel.",
        "Ablations vary C and γ over 2⁰ … 2⁻⁷, ε over 1e-3 … 1e-6, d over 1 … 5 and r "
        "over −1 … 1. The other parameters have their tuned values, and in a second "
        "curve scikit-learn's default values, because the report does not give its "
        "defaults. The captions say how many training images there are.",
    ),
    "errata": (
        "In algorithm 1, line 18, the sign is wrong: αᵢ′ = αᵢ + yᵢyⱼ(αⱼ − αⱼ′).",
        "In the group-lasso loop the weights in K and in gₖ must be the same: with dₖ "
        "the weights, ‖wₖ‖ = dₖ √((α∘y)ᵀKₖ(α∘y)), then dₖ ← ‖wₖ‖ / Σ‖wᵢ‖ for p = 1.",
        "“Combined” in table II and the combination of all four kernels (LPGS) in "
        "table III are the same model, with test accuracies of 94.10 and 93.80.",
        "The combination of Gaussian and sigmoid kernel is said to defeat the single "
        "Gaussian kernel, but the tables have 94.50 against 94.80.",
    ),
    "tables": (
        ResultTable(
            "best",
            "Beyond the report",
            {"validation": "folds %", "test": "test %", "setting": "chosen"},
            ("validation", "test"),
        ),
        *(
            ResultTable(
                name,
                f"Precision on {title}",
                COLUMNS,
                ("train", "test"),
                ("train",),
                "Training accuracy is shown but not compared: a parameter that suits "
                "test images better may suit training images less.",
            )
            for name, title in (
                ("mnist", "MNIST"),
                ("cifar10", "CIFAR-10, raw pixels"),
                ("cifar10-hog", "CIFAR-10, HOG of grey images"),
            )
        ),
        ResultTable(
            "combinations",
            "Combinations of kernels on MNIST, by alignment",
            {"train": "training %", "test": "test %", "weights": "mean weights"},
            ("train", "test"),
            ("train",),
            note="L is linear, P polynomial, G Gaussian and S sigmoid. The gap is that "
            "of the machines at fixed weights, because alignment is a heuristic. LPGS "
            "is the model “combined” of the table above: the report has 94.10 there "
            "and 93.80 here.",
        ),
        ResultTable(
            "methods",
            "Mean kernel weights by method, all ten digits",
            {
                "linear": "linear",
                "polynomial": "polynomial",
                "Gaussian": "Gaussian",
                "sigmoid": "sigmoid",
                "test": "test %",
            },
            ("test",),
            note="Each pair of digits has weights of its own; the table has their "
            "means. Kernels are scaled to the same variance of the samples.",
        ),
        ResultTable(
            "ablation",
            "The effect of one parameter, on MNIST",
            {"best": "best test %", "at": "at", "worst": "worst"},
            ("best",),
        ),
        ResultTable(
            "efficiency",
            "Training and inference time on MNIST",
            {"train": "training, s", "inference": "inference, s"},
            note="Medians of three runs in turn. " + SOURCE.computer,
        ),
    ),
    "published": PUBLISHED,
    "telling": ("convergence", "efficiency", "ablation-Gaussian"),
    "late": (CHOSEN_EARLIER,),
}
