"""The protocol of the study ``ecoc-digits``, and the published numbers."""

from __future__ import annotations

from typing import Any

from mercer.studies.study import ResultTable

__all__ = [
    "GRIDS",
    "MOST_SEARCHED",
    "N_TEST",
    "PUBLISHED",
    "PUBLISHED_SECONDS",
    "SIZES",
    "STATEMENT",
]

SIZES = (500, 1000, 2000, 5000, 10_000)
N_TEST = 1000
# Percentages of correct answers: unique, barycentre, ECOC.
PUBLISHED = {
    500: {"linear": (65.9, 74.1, 74.2), "Gaussian": (75.4, 83.3, 87.4)},
    1000: {"linear": (68.2, 75.0, 78.0), "Gaussian": (84.3, 89.0, 92.7)},
    2000: {"linear": (70.2, 76.4, 77.8), "Gaussian": (89.8, 91.9, 94.3)},
    5000: {"linear": (70.0, 73.8, 82.0), "Gaussian": (88.9, 91.6, 95.2)},
    10_000: {"linear": (64.6, 67.5, 82.5), "Gaussian": (88.0, 90.6, 95.4)},
}
# Seconds of ECOC training at 10,000 images.
PUBLISHED_SECONDS = {"linear": 4560.0, "Gaussian": 8760.0}
COLUMNS = {
    "unique": "OvA, unique %",
    "barycentre": "OvA, barycentre %",
    "ecoc": "ECOC as printed %",
    "margin": "OvA, largest margin %",
    "hadamard": "ECOC Hadamard %",
    "loss": "ECOC Hadamard, by loss %",
}
SOLVER_COLUMNS = {f"n{k}": f"s, size {k + 1}" for k in range(5)} | {
    "slope": "order in n",
    "ratio": "× scikit-learn",
}
# The largest number of images on which parameters are searched.
MOST_SEARCHED = 5000
GRIDS: dict[str, dict[str, list]] = {
    "linear": {"C": [0.003, 0.01, 0.03, 0.1]},
    "Gaussian": {"gamma": [0.01, 0.02, 0.03, 0.04], "C": [1, 3, 10]},
}


STATEMENT: dict[str, Any] = {
    "name": "ecoc-digits",
    "title": "Error-correcting codes for digits",
    "about": (
        "One-vs-all and error-correcting output codes for ten digits on raw pixels, "
        "and the run time of four SMO variants beside scikit-learn."
    ),
    "protocol": (
        "There are 500 to 10,000 training images and 1,000 test images, drawn at "
        "random; the sample has 4,000 and 1,000.",
        "C and γ are chosen by three-fold cross-validation on the training images, for "
        "each kernel and size (at 10,000 images on the first 5,000). The choice for "
        "one-vs-all has the most uniquely right images, the choice for the codes the "
        "most images that are right by largest margin.",
        "“Unique” means that exactly one of ten machines says yes, and is right. "
        "“Barycentre” assigns ambiguous images to the nearest class mean among the "
        "positive labels. ECOC has 15 columns and is decoded by Hamming distance.",
        "Solvers are compared on the first column of the code, even against odd, at "
        "the same tolerance of 1e-3; the shortest of up to three runs counts.",
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
        ),
        *(
            ResultTable(
                f"accuracy {k}",
                f"Percentage of correct answers, {k} kernel",
                COLUMNS,
                tuple(COLUMNS),
                note="Time and gap are the sums of the three fits of a row.",
            )
            for k in GRIDS
        ),
        ResultTable(
            "seconds",
            "Training time in seconds",
            {
                "ova": "OvA",
                "ecoc": "ECOC as printed",
                "hadamard": "ECOC Hadamard",
                "times": "faster",
            },
        ),
        *(
            ResultTable(
                f"solvers {k}",
                f"Solvers, {k} kernel: seconds by number of images",
                SOLVER_COLUMNS,
                note="The sizes are those of the figure: 500, 1,000, 2,000, 4,000 and, "
                "with full MNIST, 8,000. The order is the slope of log time over log "
                "n without the smallest size.",
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
}
