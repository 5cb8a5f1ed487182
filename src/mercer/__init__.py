"""Mercer: kernel machines, fast, and certain of how exact they are."""

from mercer import datasets, kernels
from mercer.gram import gram_matrix
from mercer.svc import SVC

__all__ = ["SVC", "datasets", "gram_matrix", "kernels"]

__version__ = "0.1.0"
