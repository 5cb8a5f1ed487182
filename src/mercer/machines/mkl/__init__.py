"""Multiple kernel learning: machines that learn the weights of several kernels."""

from mercer.machines.mkl.classifier import MKLClassifier
from mercer.machines.mkl.regressor import MKLRegressor

__all__ = ["MKLClassifier", "MKLRegressor"]
