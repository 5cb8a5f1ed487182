"""The digits 3 and 8 by three kernels, tuned on validation images only."""

from studies.study import Study
from studies.three_vs_eight.protocol import STATEMENT
from studies.three_vs_eight.steps import make_steps

__all__ = ["STUDY"]

STUDY = Study(**STATEMENT, steps=make_steps)
