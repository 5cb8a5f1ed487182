"""Multiple kernel learning: machines that learn the weights of several kernels."""

from mercer.mkl.classifier import MKLClassifier
from mercer.mkl.regressor import MKLRegressor

__all__ = ["MKLClassifier", "MKLRegressor"]
