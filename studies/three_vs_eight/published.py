"""The report behind ``three-vs-eight``, and the numbers that it prints."""

from __future__ import annotations

from studies.published import Source, printed

__all__ = ["N_LEAST", "PUBLISHED", "SOURCE"]

SOURCE = Source(
    "Assignment 7",
    "Maanas Vohra",
    "A course assignment: digits 3 and 8 of MNIST by the simplified SMO algorithm.",
)
# The report does not give its sizes. All its fractions are multiples of 1/666, so that
# validation and test part have 666, 1,332, 1,998 or 2,664 images each.
N_LEAST = 666
ACCURACY = {
    "RBF": printed(N_LEAST, False, validation=98.34834834834835, test=97.8978978978979),
    "linear": printed(
        N_LEAST, False, validation=95.1951951951952, test=94.14414414414415
    ),
    "polynomial": printed(
        N_LEAST, False, validation=97.44744744744744, test=98.1981981981982
    ),
}
PUBLISHED = {
    "accuracy": ACCURACY,
    # The best test accuracy of the report.
    "best": {"best": {"test": ACCURACY["polynomial"]["test"]}},
}
