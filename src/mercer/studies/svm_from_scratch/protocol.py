"""The protocol of the study ``svm-from-scratch``, and the published numbers."""

from __future__ import annotations

from typing import Any

from mercer.studies.study import ResultTable

__all__ = [
    "ABLATIONS",
    "COMBINATIONS",
    "GRIDS",
    "KERNELS",
    "N_PUBLISHED",
    "PRECISION",
    "STATEMENT",
]

N_PUBLISHED = 1000
KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "polynomial": {"kernel": "poly", "coef0": 1.0},
    "Gaussian": {"kernel": "rbf"},
    "sigmoid": {"kernel": "sigmoid", "coef0": -1.0},
}
# The grids of the search; γ is in units of 1 / mean squared distance.
GRIDS: dict[str, dict[str, list]] = {
    "linear": {"C": [0.0003, 0.001, 0.01, 0.1]},
    "polynomial": {"degree": [2, 3], "gamma": [0.3, 1.0, 3.0], "C": [0.1, 1]},
    "Gaussian": {"gamma": [0.5, 1.0, 2.0, 4.0], "C": [1, 3, 10]},
    "sigmoid": {"gamma": [0.05, 0.2, 0.5], "C": [1, 10, 100]},
}
# Training and test accuracy in per cent.
PRECISION = {
    "mnist": {
        "linear": (96.96, 90.70),
        "polynomial": (100.0, 94.00),
        "Gaussian": (99.68, 94.80),
        "sigmoid": (95.42, 92.10),
        "combined": (100.0, 94.10),
    },
    "cifar10": {
        "linear": (76.14, 33.60),
        "polynomial": (99.86, 37.70),
        "Gaussian": (99.14, 34.10),
        "sigmoid": (7.96, 7.40),
        "combined": (99.86, 37.80),
    },
    "cifar10-hog": {
        "linear": (77.58, 39.50),
        "polynomial": (100.0, 44.10),
        "Gaussian": (94.54, 47.00),
        "sigmoid": (59.82, 44.70),
        "combined": (100.0, 43.50),
    },
}
# Test accuracy on MNIST by the first letters of the kernels.
COMBINATIONS = {
    "LP": 93.60,
    "LG": 91.00,
    "LS": 89.70,
    "PG": 93.80,
    "PS": 93.90,
    "GS": 94.50,
    "LPG": 93.90,
    "LPS": 93.80,
    "LGS": 91.20,
    "PGS": 94.00,
    "LPGS": 93.80,
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
        "over −1 … 1.",
    ),
    "errata": (
        "In algorithm 1, line 18, the sign is wrong: αᵢ′ = αᵢ + yᵢyⱼ(αⱼ − αⱼ′).",
        "In the group-lasso loop the weights in K and in gₖ must be the same: with dₖ "
        "the weights, ‖wₖ‖ = dₖ √((α∘y)ᵀKₖ(α∘y)), then dₖ ← ‖wₖ‖ / Σ‖wᵢ‖ for p = 1.",
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
            {"test": "test %", "weights": "mean weights"},
            ("test",),
            note="The letters mean linear, polynomial, Gaussian and sigmoid. The gap "
            "is that of the machines at fixed weights, because alignment is a "
            "heuristic.",
        ),
        ResultTable(
            "methods",
            "Weights by method: 3 against 8",
            {
                "linear": "linear",
                "polynomial": "polynomial",
                "Gaussian": "Gaussian",
                "test": "test %",
            },
            ("test",),
        ),
        ResultTable(
            "ablation",
            "The effect of one parameter, on MNIST",
            {"best": "best test %", "at": "at", "worst": "worst"},
            ("best",),
        ),
    ),
}
