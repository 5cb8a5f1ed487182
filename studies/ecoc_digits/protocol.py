"""The protocol of the study ``ecoc-digits``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from studies.ecoc_digits.published import N_TEST, PUBLISHED, SOURCE
from studies.features import CHOSEN_EARLIER
from studies.manifest import read_manifest
from studies.published import Late
from studies.study import Beside, ResultTable

__all__ = ["COLUMNS", "GRIDS", "MOST_SEARCHED", "N_TEST", "SIZES", "STATEMENT"]

SIZES = (500, 1000, 2000, 5000, 10_000)
COLUMNS = {
    "unique": "one-vs-all, unique %",
    "barycentre": "one-vs-all, barycentre %",
    "nearest": "or nearest of all %",
    "ecoc": "ECOC as printed %",
    "margin": "one-vs-all, largest margin %",
    "hadamard": "ECOC Hadamard %",
    "loss": "ECOC Hadamard, by loss %",
}
# The largest number of images on which parameters are searched.
MOST_SEARCHED = 5000
GRIDS: dict[str, dict[str, list]] = {
    "linear": {"C": [0.003, 0.01, 0.03, 0.1]},
    "Gaussian": {"gamma": [0.01, 0.02, 0.03, 0.04], "C": [1, 3, 10]},
}


BY_HAND = Late(
    "The grids of C and γ, and the limits of time and steps of the solvers",
    "Before these images were scored with them",
    "None",
)
STATEMENT: dict[str, Any] = {
    "name": "ecoc-digits",
    "title": "Error-correcting codes for digits",
    "about": (
        "One-vs-all and error-correcting output codes (ECOC) for ten digits on raw "
        "pixels, and what five textbook variants of SMO cost beside scikit-learn."
    ),
    "source": SOURCE,
    "protocol": (
        "There are 500 to 10,000 training images and 1,000 test images, drawn at "
        "random; the sample has 4,000 and 1,000.",
        "C and γ are chosen by three-fold cross-validation on the training images, for "
        "each kernel and size (at 10,000 images on the first 5,000). For one-vs-all "
        "the choice with the most uniquely right images is taken, for the codes the "
        "choice with the most images that are right by largest margin.",
        "“Unique” means that exactly one of ten machines says yes, and is right. "
        "“Barycentre” assigns images with several positive labels to the nearest class "
        "mean among these, as the report says; an image without a positive label has "
        "no answer then. “Or nearest of all” gives it the nearest of all ten means, as "
        "Mercer’s decoding does. ECOC has 15 columns and is decoded by Hamming "
        "distance.",
        "Solvers are compared on the first column of the code, even against odd. The "
        "five textbook solvers are compiled alike, keep the gradient of every sample, "
        "stop at the same KKT gap of 1e-3 and get kernel rows from the same function: "
        "either a row is computed once and kept (“cached”), or it is computed for "
        "every request (“no cache”). Times below a second are medians of three. A "
        "solver is not run at larger sizes once it has taken more than its limit of "
        "steps or time. A variable that reaches a bound is set to it exactly, so that "
        "rounding does not hide the bound; the report softened its index sets for "
        "that. The ratio to scikit-learn’s time is a fit over all common sizes, as the "
        "report’s is.",
    ),
    "beside": (
        Beside(
            "Images",
            "42,000 of Kaggle, 500 to 10,000 for training, 1,000 for testing",
            "The same sizes drawn from MNIST; the sample has 4,000 and 1,000",
        ),
        Beside(
            "Ambiguous images",
            "The nearest barycentre “out of the positive labels”; what happens without "
            "a positive label is not said",
            "Both: no answer then, beside the published numbers, and the nearest of "
            "all",
        ),
        Beside(
            "Parameters",
            "Tested systematically; neither grid nor choice is given",
            "By three folds, for each kernel, size and scheme",
        ),
        Beside(
            "Platt’s SMO",
            "Keeps F on I₀, computes the rest again",
            "Keeps F of all samples; claims take the variant that forgets rows",
        ),
        Beside("Language of the solvers", "Python", "Compiled by Numba, all alike"),
    ),
    "errata": (
        "The text swaps two cases: a sample with 0 < α < C lies on the margin, a sample"
        " with α = C lies inside it or on the wrong side.",
        "In the test on I₀, max and min are swapped.",
        "The code is said to have minimum distance 7; as printed it has 6 (classes 0 "
        "and 4, 4 and 6, 5 and 7, 5 and 8). We use the printed code, and beside it a "
        "Hadamard code, in which any two rows differ in 8 places.",
    ),
    "tables": (
        ResultTable(
            "best",
            "Beyond the report",
            {"test": "test %", "n": "training images"},
            ("test",),
            note="The published value is the best of the report: ECOC, Gaussian "
            "kernel, 10,000 images.",
        ),
        *(
            ResultTable(
                f"accuracy {k}",
                f"Percentage of correct answers, {k} kernel",
                COLUMNS,
                tuple(COLUMNS),
                note="The time is the sum of the three fits of a row.",
            )
            for k in GRIDS
        ),
        ResultTable(
            "code",
            "The printed code",
            {
                "word": "word",
                "distance": "least distance",
                "simplex": "the same in the Hadamard code",
            },
            note="A row for each class: the sign of each of the 15 machines, and in "
            "how many places its word differs from the nearest other word at least.",
        ),
        ResultTable(
            "schemes",
            "Ambiguous test images, Gaussian kernel",
            {"n": "images", "ambiguous": "ambiguous %", "none": "no answer %"},
            ("ambiguous", "none"),
            note="One against all: no machine or several say yes. One against one: "
            "several classes have the most votes.",
        ),
        ResultTable(
            "seconds",
            "Training time in seconds",
            {
                "ova": "one-vs-all",
                "ecoc": "ECOC as printed",
                "hadamard": "ECOC Hadamard",
                "times": "published over ours",
            },
            note=f"Published times are from the report. {SOURCE.computer}",
        ),
        *(
            ResultTable(
                f"solvers {k}",
                f"Textbook solvers, {k} kernel, at the largest size",
                {
                    "n": "images",
                    "steps": "steps",
                    "evaluations": "kernel values, millions",
                    "seconds": "seconds",
                    "order": "order of time in n",
                    "ratio": "time over scikit-learn’s",
                },
                note="Each row has the largest size at which the solver ran. Random "
                "pairs count draws as steps. A kernel value is one k(x, z); rows are "
                "computed whole. Time over scikit-learn’s is the geometric mean over "
                "all common sizes but the smallest. The order is the slope of log time "
                "over log n without "
                "the smallest size, and without runs that reached the limit of steps.",
            )
            for k in ("Gaussian", "linear")
        ),
        ResultTable(
            "files",
            "A model on disk",
            {"size": "MiB", "same": "same answers"},
            note="The time is that of saving and loading.",
        ),
    ),
    "published": PUBLISHED,
    "telling": ("digits", "accuracy", "solvers-Gaussian"),
    "late": (CHOSEN_EARLIER, BY_HAND),
    "manifest": read_manifest(Path(__file__).with_name("manifest.toml")),
}
