"""Reads ``printed.toml``: what the reports print, typed from their texts by hand."""

import tomllib
from pathlib import Path

PRINTED = tomllib.loads(Path(__file__).with_name("printed.toml").read_text("utf-8"))

# The names of rows on the page, in the order of the report's table.
MNIST_ROWS = (
    "Raw linear",
    "Raw poly d=3",
    "Raw poly d=5",
    "Raw RBF σ=4",
    "Raw RBF σ=7",
    "Raw RBF σ=10",
    "HOG linear",
    "HOG intersection",
    "HOG RBF σ=2",
    "HOG RBF σ=4",
    "K1⊙K2",
    "K1⊙(K2+K3+K2⊙K3); blur, deskew",
    "same, no blur nor deskew",
    "same, no trimming",
    "MKL {K1, K2, K3}",
)


def mnist_kernels():
    """Return β, Acc1 and Acc2 by the names of the rows on the page."""
    rows = PRINTED["mnist-kernels"]["rows"]
    return {
        name: [None if cell == "-" else cell for cell in row[2:]]
        for name, row in zip(MNIST_ROWS, rows, strict=True)
    }


def precision():
    """Return training and test accuracy by data set and kernel."""
    study = PRINTED["svm-from-scratch"]
    found = {}
    for kernel, part, *cells in study["precision"]:
        name = kernel if kernel == "Gaussian" else kernel.lower()
        for data, cell in zip(study["precision_columns"], cells, strict=True):
            table = found.setdefault(data.lower(), {})
            table.setdefault(name, {})[part.lower()] = cell
    return found


def combinations():
    """Return training and test accuracy by the letters of the kernels."""
    return {
        "".join(
            letter for letter, mark in zip("LPGS", row, strict=False) if mark == "x"
        ): {
            "train": row[4],
            "test": row[5],
        }
        for row in PRINTED["svm-from-scratch"]["combinations"]
    }


def ecoc():
    """Return unique, barycentre and ECOC by kernel and number of images."""
    found = {"linear": {}, "Gaussian": {}}
    for n, *cells in PRINTED["ecoc-digits"]["accuracy"]:
        alone, near, alone_g, near_g, code, code_g = cells
        found["linear"][n] = {"unique": alone, "barycentre": near, "ecoc": code}
        found["Gaussian"][n] = {"unique": alone_g, "barycentre": near_g, "ecoc": code_g}
    return found


def three_vs_eight():
    """Return validation and test accuracy by kernel."""
    return {
        name if name == "RBF" else name.lower(): {"validation": first, "test": second}
        for name, first, second in PRINTED["three-vs-eight"]["rows"]
    }
