"""Mercer: kernel machines, fast, and certain of how exact they are."""

from mercer import datasets, images, kernels, selection
from mercer.clusters import KernelKMeans, KMeans
from mercer.components import PCA, KernelPCA
from mercer.gram import gram_matrix
from mercer.libsvm import export_libsvm
from mercer.mkl import MKLClassifier, MKLRegressor
from mercer.novelty import OneClassSVM
from mercer.nusvc import NuSVC
from mercer.online import OnlineSVC
from mercer.passive import PassiveAggressiveClassifier
from mercer.persistence import load, save
from mercer.svc import SVC
from mercer.svdd import SVDD
from mercer.svr import SVR, NuSVR

__all__ = [
    "PCA",
    "SVC",
    "SVDD",
    "SVR",
    "KMeans",
    "KernelKMeans",
    "KernelPCA",
    "MKLClassifier",
    "MKLRegressor",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OnlineSVC",
    "PassiveAggressiveClassifier",
    "datasets",
    "export_libsvm",
    "gram_matrix",
    "images",
    "kernels",
    "load",
    "save",
    "selection",
]

__version__ = "0.1.0"
