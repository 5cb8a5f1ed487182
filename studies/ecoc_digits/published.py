"""The report behind ``ecoc-digits``, and the numbers that it prints."""

from __future__ import annotations

from studies.published import Published, Source, printed

__all__ = ["N_TEST", "ORDER", "PUBLISHED", "RATIO", "SECONDS", "SOURCE"]

SOURCE = Source(
    "Digit Recognition with Support Vector Machines",
    "Lisa Gaedke-Merzhäuser, Paul Korsmeier, Lisa Mattrisch and Vanessa Schreck",
    "A project report of the course Mathematical Aspects of Machine Learning.",
    "Its programs are in Python; its times were measured on an Intel i5 with four "
    "cores at 4 GHz, 16 GB of memory and Windows 7.",
)
N_TEST = 1000
# Percentages of correct answers: one-vs-all unique, with barycentres, and ECOC.
ACCURACY = {
    "linear": {
        500: (65.9, 74.1, 74.2),
        1000: (68.2, 75.0, 78.0),
        2000: (70.2, 76.4, 77.8),
        5000: (70.0, 73.8, 82.0),
        10_000: (64.6, 67.5, 82.5),
    },
    "Gaussian": {
        500: (75.4, 83.3, 87.4),
        1000: (84.3, 89.0, 92.7),
        2000: (89.8, 91.9, 94.3),
        5000: (88.9, 91.6, 95.2),
        10_000: (88.0, 90.6, 95.4),
    },
}
# Seconds of ECOC training at 10,000 images.
SECONDS = {"linear": 4560.0, "Gaussian": 8760.0}
# The order of WSS1's time in n, and its time over that of scikit-learn.
ORDER, RATIO = 2.0, 5.8
PUBLISHED = {
    **{
        f"accuracy {kernel}": {
            f"n = {n:,}": printed(N_TEST, unique=unique, barycentre=near, ecoc=code)
            for n, (unique, near, code) in rows.items()
        }
        for kernel, rows in ACCURACY.items()
    },
    "seconds": {
        f"{kernel}, n = 10,000": {"ecoc": Published(seconds)}
        for kernel, seconds in SECONDS.items()
    },
    "solvers Gaussian": {
        "WSS1, cached": {"order": Published(ORDER), "ratio": Published(RATIO)}
    },
    # The best of all methods and sizes.
    "best": {"best": printed(N_TEST, test=95.4)},
}
