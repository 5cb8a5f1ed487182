"""The report behind ``svm-from-scratch``, and the numbers that it prints."""

from __future__ import annotations

from studies.published import Source, printed

__all__ = ["COMBINATIONS", "N_TEST", "PRECISION", "PUBLISHED", "SOURCE"]

SOURCE = Source(
    "Support Vector Machine From Scratch",
    "Xiangyuan Xue",
    "A project report of the course AI2611 Machine Learning, School of Electronic "
    "Information and Electrical Engineering.",
    "The report does not say on which computer or in which language its times were "
    "measured.",
)
N_TEST = 1000
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
# Training and test accuracy on MNIST by the first letters of the kernels.
COMBINATIONS = {
    "LP": (100.0, 93.60),
    "LG": (99.90, 91.00),
    "LS": (99.86, 89.70),
    "PG": (100.0, 93.80),
    "PS": (100.0, 93.90),
    "GS": (99.46, 94.50),
    "LPG": (100.0, 93.90),
    "LPS": (100.0, 93.80),
    "LGS": (99.88, 91.20),
    "PGS": (100.0, 94.00),
    "LPGS": (100.0, 93.80),
}
PUBLISHED = {
    **{
        name: {
            kernel: printed(N_TEST, train=train, test=test)
            for kernel, (train, test) in rows.items()
        }
        for name, rows in PRECISION.items()
    },
    "combinations": {
        letters: printed(N_TEST, train=train, test=test)
        for letters, (train, test) in COMBINATIONS.items()
    },
    # The best test accuracies of the report.
    "best": {
        "mnist": printed(N_TEST, test=94.80),
        "cifar10": printed(N_TEST, test=47.00),
    },
}
