"""Arrays of samples and coefficients: dense, sparse, of objects, or on a card."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = [
    "as_dense",
    "frozen",
    "is_numeric",
    "is_on_card",
    "like",
    "refuse_cards",
    "refuse_other_things",
    "takes_card_arrays",
    "things",
    "to_host",
]

# The number by which DLPack names CUDA devices.
CUDA = 2


def is_numeric(X: Any) -> bool:
    """Tell whether samples are numbers; other samples need a kernel function."""
    if sparse.issparse(X) or (hasattr(X, "dtypes") and X.ndim == 2):
        return True
    try:
        return np.asarray(X).dtype.kind in "fiubc"
    except ValueError:
        return False


def things(X: Any) -> NDArray:
    """Return samples that are not numbers as an array of objects."""
    if isinstance(X, np.ndarray) and X.ndim > 1:
        return X.astype(object)
    result = np.empty(len(X), dtype=object)
    for i, thing in enumerate(X):
        result[i] = thing
    return result


def refuse_other_things(estimator: Any, X: Any) -> None:
    """Refuse samples that are not numbers, for an estimator with a kernel function."""
    if is_numeric(X):
        return
    try:
        np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        name = type(estimator).__name__
        raise TypeError(
            f"{name} needs samples that are numbers here. A kernel function of other "
            "samples, such as strings, works as kernel=function in SVC, NuSVC, SVR, "
            "NuSVR, OneClassSVM and SVDD. For other estimators turn the samples into "
            "numbers, or pass the kernel matrix where kernel='precomputed' is allowed."
        ) from None


def frozen(values: Any) -> Any:
    """Return dense or sparse values after making them read-only."""
    (values.data if sparse.issparse(values) else values).flags.writeable = False
    return values


def as_dense(values: Any) -> NDArray:
    """Return a sparse matrix or an array as an array."""
    return values.toarray() if sparse.issparse(values) else np.asarray(values)


def is_on_card(values: Any) -> bool:
    """Tell whether values are an array, dense or sparse, on a graphics card."""
    if isinstance(values, np.ndarray):
        return False
    if _library(values) == "cupyx":  # its sparse matrices do not know DLPack
        return True
    try:
        return values.__dlpack_device__()[0] == CUDA
    except (AttributeError, TypeError, ValueError, RuntimeError, BufferError):
        return False


def to_host(values: Any) -> Any:
    """Return an array on a card as an array in the main memory; others as they are."""
    if not is_on_card(values):
        return values
    if _library(values) in ("cupy", "cupyx"):
        return values.get()
    if hasattr(values, "detach"):  # tensors of PyTorch may carry gradients
        values = values.detach()
    return importlib.import_module("cupy").from_dlpack(values).get()


def like(model: Any, values: Any) -> Any:
    """Return computed values as the kind of array that ``model`` is.

    For an array on a card that is an array of the same library on the same card. What
    is not an array of numbers, such as names of classes, stays as it is.
    """
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiub":
        return values
    if not is_on_card(model):
        return values
    cupy = importlib.import_module("cupy")
    is_sparse = _library(model) == "cupyx"
    number = model.data.device.id if is_sparse else model.__dlpack_device__()[1]
    with cupy.cuda.Device(number):
        found = cupy.asarray(values)
        if _library(model) in ("cupy", "cupyx"):
            return found
        if hasattr(model, "__array_namespace__"):
            return model.__array_namespace__().from_dlpack(found)
        return sys.modules[_library(model)].from_dlpack(found)


def refuse_cards(name: str, device: str, *arrays: Any) -> None:
    """Refuse arrays on a card for something that computes on the processor."""
    if device == "cpu" and any(map(is_on_card, arrays)):
        raise ValueError(
            f"The data are on a graphics card, and {name} computes on the processor. "
            "Set device='cuda' if it has this parameter, or pass arrays in the main "
            "memory, such as X.get() of CuPy or X.cpu() of PyTorch."
        )


def takes_card_arrays(method: Callable) -> Callable:
    """Decorate a method of an estimator so that arrays may be on a card.

    They are copied to the main memory, where they are validated; a result is of the
    kind of the samples, which are the first argument.
    """

    @wraps(method)
    def taking(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        given = (X, *args, *kwargs.values())
        if not any(map(is_on_card, given)):
            return method(self, X, *args, **kwargs)
        refuse_cards(type(self).__name__, getattr(self, "device", "cpu"), *given)
        others = {name: to_host(value) for name, value in kwargs.items()}
        found = method(self, to_host(X), *map(to_host, args), **others)
        return found if found is self else like(X, found)

    return taking


def _library(values: Any) -> str:
    """Return the name of the package that an object's class comes from."""
    return type(values).__module__.partition(".")[0]
