"""Linear machines, which are solved through the weights of the features."""

from mercer.machines.linear.bounds import l1_min_c
from mercer.machines.linear.classifier import LinearSVC
from mercer.machines.linear.regressor import LinearSVR

__all__ = ["LinearSVC", "LinearSVR", "l1_min_c"]
