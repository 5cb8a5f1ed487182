"""Ten digits by one-vs-all and by error-correcting codes, and times of solvers."""

from studies.ecoc_digits.protocol import STATEMENT
from studies.ecoc_digits.steps import make_steps
from studies.study import Study

__all__ = ["STUDY"]

STUDY = Study(**STATEMENT, steps=make_steps)
