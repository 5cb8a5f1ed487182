"""Mercer: kernel machines, fast, and certain of how exact they are.

What is public here is imported when it is first asked for: the command line can then
deal with an interrupt even while the larger modules are being imported.
"""

from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer import datasets, images, kernels, selection
    from mercer.engines.engine import gram_matrix
    from mercer.files.liblinear import export_liblinear
    from mercer.files.libsvm import export_libsvm
    from mercer.files.model_files import load, save
    from mercer.machines.clusters import KernelKMeans, KMeans
    from mercer.machines.components import PCA, KernelPCA
    from mercer.machines.linear import LinearSVC, LinearSVR, l1_min_c
    from mercer.machines.mkl import MKLClassifier, MKLRegressor
    from mercer.machines.nusvc import NuSVC
    from mercer.machines.one_class import OneClassSVM
    from mercer.machines.online import OnlineSVC
    from mercer.machines.passive import PassiveAggressiveClassifier
    from mercer.machines.svc import SVC
    from mercer.machines.svdd import SVDD
    from mercer.machines.svr import SVR, NuSVR

__all__ = [
    "PCA",
    "SVC",
    "SVDD",
    "SVR",
    "KMeans",
    "KernelKMeans",
    "KernelPCA",
    "LinearSVC",
    "LinearSVR",
    "MKLClassifier",
    "MKLRegressor",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OnlineSVC",
    "PassiveAggressiveClassifier",
    "datasets",
    "export_liblinear",
    "export_libsvm",
    "gram_matrix",
    "images",
    "kernels",
    "l1_min_c",
    "load",
    "save",
    "selection",
]

__version__ = "0.1.0"

_MODULES = {
    "PCA": "machines.components",
    "SVC": "machines.svc",
    "SVDD": "machines.svdd",
    "SVR": "machines.svr",
    "KMeans": "machines.clusters",
    "KernelKMeans": "machines.clusters",
    "KernelPCA": "machines.components",
    "LinearSVC": "machines.linear",
    "LinearSVR": "machines.linear",
    "MKLClassifier": "machines.mkl",
    "MKLRegressor": "machines.mkl",
    "NuSVC": "machines.nusvc",
    "NuSVR": "machines.svr",
    "OneClassSVM": "machines.one_class",
    "OnlineSVC": "machines.online",
    "PassiveAggressiveClassifier": "machines.passive",
    "export_liblinear": "files.liblinear",
    "export_libsvm": "files",
    "gram_matrix": "engines.engine",
    "l1_min_c": "machines.linear",
    "load": "files",
    "save": "files",
    # Named by the files of models that `to_sklearn` has made.
    "KernelFunction": "machines.base.export",
}


# Two threads that import modules which need each other may find one of them half made.
_one_at_a_time = RLock()


def __getattr__(name: str) -> Any:
    """Import what is asked for: a class or function, or a module of the package."""
    if name in _MODULES:
        with _one_at_a_time:
            value = getattr(import_module(f"mercer.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
    try:
        if not name.startswith("_"):
            with _one_at_a_time:
                return import_module(f"mercer.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"mercer.{name}":
            raise
    raise AttributeError(f"module 'mercer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
