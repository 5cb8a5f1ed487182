"""Mercer: kernel machines, fast, and certain of how exact they are.

What is public here is imported when it is first asked for: the command line can then
deal with an interrupt even while the larger modules are being imported.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_MODULES = {
    "PCA": "components",
    "SVC": "svc",
    "SVDD": "svdd",
    "SVR": "svr",
    "KMeans": "clusters",
    "KernelKMeans": "clusters",
    "KernelPCA": "components",
    "MKLClassifier": "mkl",
    "MKLRegressor": "mkl",
    "NuSVC": "nusvc",
    "NuSVR": "svr",
    "OneClassSVM": "novelty",
    "OnlineSVC": "online",
    "PassiveAggressiveClassifier": "passive",
    "export_libsvm": "libsvm",
    "gram_matrix": "gram",
    "load": "persistence",
    "save": "persistence",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for: a class or function, or a module of the package."""
    if name in _MODULES:
        value = getattr(import_module(f"mercer.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
    try:
        if not name.startswith("_"):
            return import_module(f"mercer.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"mercer.{name}":
            raise
    raise AttributeError(f"module 'mercer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
