"""Mercer: kernel machines, fast, and certain of how exact they are."""

from mercer import images, kernels
from mercer.gram import gram_matrix
from mercer.svc import SVC

__all__ = ["SVC", "gram_matrix", "images", "kernels"]

__version__ = "0.1.0"
