"""Multiple kernel learning: machines that learn how to weigh several kernels."""

from mercer.mkl.classifier import MKLClassifier
from mercer.mkl.regressor import MKLRegressor

__all__ = ["MKLClassifier", "MKLRegressor"]
