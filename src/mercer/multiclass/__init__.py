"""Several classes: codes that divide them into tasks, decoding, and probabilities."""

from mercer.multiclass.codes import (
    dietterich15,
    exhaustive,
    hadamard,
    one_vs_one,
    one_vs_rest,
    random_code,
    row_distances,
)

__all__ = [
    "dietterich15",
    "exhaustive",
    "hadamard",
    "one_vs_one",
    "one_vs_rest",
    "random_code",
    "row_distances",
]
