"""Ten digits by kernels on pixels and on gradients, their products, and MKL."""

from mercer.studies.mnist_kernels.protocol import STATEMENT
from mercer.studies.mnist_kernels.steps import make_steps
from mercer.studies.study import Study

__all__ = ["STUDY"]

STUDY = Study(**STATEMENT, steps=make_steps)
