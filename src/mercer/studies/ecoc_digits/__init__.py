"""Ten digits by one-vs-all and by error-correcting codes, and times of solvers."""

from mercer.studies.ecoc_digits.protocol import STATEMENT
from mercer.studies.ecoc_digits.steps import make_steps
from mercer.studies.study import Study

__all__ = ["STUDY"]

STUDY = Study(**STATEMENT, steps=make_steps)
