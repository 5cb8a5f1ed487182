"""Four kernels and their combinations on MNIST and CIFAR-10."""

from studies.study import Study
from studies.svm_from_scratch.protocol import STATEMENT
from studies.svm_from_scratch.steps import make_steps

__all__ = ["STUDY"]

STUDY = Study(**STATEMENT, steps=make_steps)
