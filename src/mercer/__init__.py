"""Mercer: kernel machines, fast, and certain of how exact they are."""

from mercer import datasets, kernels
from mercer.gram import gram_matrix
from mercer.libsvm import export_libsvm
from mercer.persistence import load, save
from mercer.svc import SVC

__all__ = [
    "SVC",
    "datasets",
    "export_libsvm",
    "gram_matrix",
    "kernels",
    "load",
    "save",
]

__version__ = "0.1.0"
