"""Ten digits by kernels on pixels and on gradients, their products, and MKL."""

from studies.mnist_kernels.protocol import STATEMENT
from studies.mnist_kernels.steps import make_steps
from studies.study import Study

__all__ = ["STUDY"]

STUDY = Study(**STATEMENT, steps=make_steps)
