"""How parameters and data come into an estimator, and results out of it.

A constructor only stores its arguments.  A fit checks parameters, samples and targets,
and if a check or anything after it fails, the estimator is what it was before.  The
checks and their messages are scikit-learn's; :mod:`mercer.runtime.faults` finds the
value that is wrong.

Samples may be dense, sparse, things that are not numbers, or on a graphics card.
Machines compute with dense arrays in C order or CSR matrices in the main memory, and
what they return is of the kind that they were given.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import is_regressor
from sklearn.utils import validation

from mercer.runtime.faults import fault_in_samples, fault_in_targets
from mercer.runtime.scikit_learn import fit_context

__all__ = [
    "QUIET",
    "all_or_nothing",
    "as_dense",
    "as_in_fit",
    "check_classes",
    "check_finite",
    "check_square",
    "device_for",
    "fit_method",
    "frozen",
    "is_numeric",
    "is_on_card",
    "like",
    "refuse_other_things",
    "stores_parameters",
    "stores_parameters_of",
    "takes_card_arrays",
    "things",
    "to_host",
    "validate_data",
    "validate_new_samples",
    "validate_samples",
]

# The number by which DLPack names CUDA devices.
CUDA = 2
NOTHING = "no_validation"  # what scikit-learn passes for an argument that is not given


def all_or_nothing(method: Callable) -> Callable:
    """Decorate a method so that what it changes is seen at once, or not at all.

    It works on a draft of the estimator, whose attributes replace the old ones in one
    assignment.  If it fails or is interrupted, the estimator is what it was before; and
    until it ends, other threads may predict with the old model.  The method may set and
    delete attributes; it must replace their values rather than change them in place.

    Callbacks are told of the estimator itself.  If it has any, the method works on it,
    and its attributes are put back if the method fails.
    """

    @wraps(method)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        if before.get("_skl_callbacks"):
            try:
                return method(self, *args, **kwargs)
            except BaseException:
                # One assignment, so that a second interrupt cannot come in between.
                self.__dict__ = before
                raise
        draft = _with_state(self, before)
        result = method(draft, *args, **kwargs)
        self.__dict__ = vars(draft)
        return self if result is draft else result

    return whole


def _with_state(estimator: Any, state: dict[str, Any]) -> Any:
    """Return an estimator of the same class with these attributes."""
    other = object.__new__(type(estimator))
    other.__dict__ = state
    return other


def fit_method(fit: Callable) -> Callable:
    """Decorate ``fit``: check parameters, set up callbacks, fit all or nothing."""
    checked = fit_context(prefer_skip_nested_validation=True)(fit)

    @wraps(fit)
    def fitting(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        found = _on_their_device(checked, self, X, *args, **kwargs)
        if found is not self:  # it was fitted on a card
            self.__dict__ = {**vars(found), "device": self.device}
        return self

    return all_or_nothing(fitting)


def stores_parameters(init: Callable[..., None]) -> Callable[..., None]:
    """Decorate ``__init__`` so that it keeps each argument under its own name.

    The signature is the whole constructor; scikit-learn reads parameters from it.

    >>> class Machine:
    ...     @stores_parameters
    ...     def __init__(self, C: float = 1.0, *, tol: float = 1e-3): ...
    >>> vars(Machine(10, tol=0.1))
    {'C': 10, 'tol': 0.1}
    """
    _, *parameters = inspect.signature(init).parameters.values()
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}

    @wraps(init)
    def store(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)  # refuses what the signature does not have
        vars(self).update(defaults)
        vars(self).update(zip(names, args, strict=False))
        vars(self).update(kwargs)

    return store


def stores_parameters_of(
    kind: type, *without: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate ``__init__`` so that it takes the parameters of another class, too.

    The parameters that ``without`` names are left out. Those that ``__init__`` adds are
    keywords.

    >>> class Machine:
    ...     @stores_parameters
    ...     def __init__(self, C: float = 1.0, *, tol: float = 1e-3): ...
    >>> class Other:
    ...     @stores_parameters_of(Machine, "tol")
    ...     def __init__(self, *, client: object = None): ...
    >>> vars(Other(10))
    {'C': 10, 'client': None}
    """

    def taking(init: Callable[..., None]) -> Callable[..., None]:
        me, *own = inspect.signature(init).parameters.values()
        _, *theirs = inspect.signature(kind.__init__).parameters.values()  # type: ignore[misc]
        taken = [p for p in theirs if p.name not in without]
        signature = inspect.Signature([me, *taken, *own])

        @wraps(init)
        def store(self: Any, *args: Any, **kwargs: Any) -> None:
            try:
                given = signature.bind(self, *args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{init.__qualname__}(): {error}") from None
            given.apply_defaults()
            _, *values = given.arguments.items()
            vars(self).update(values)

        store.__signature__ = signature  # type: ignore[attr-defined]
        return store

    return taking


def validate_data(
    estimator: Any, X: Any = NOTHING, y: Any = NOTHING, **settings: Any
) -> Any:
    """Validate as scikit-learn does, with errors that say where the wrong value is."""
    try:
        valid = validation.validate_data(estimator, X, y, **settings)
    except (TypeError, ValueError) as error:
        where = None if _is_nothing(X) else fault_in_samples(X)
        if where is None and not (_is_nothing(y) or y is None):
            where = fault_in_targets(y, must_be_numbers=is_regressor(estimator))
        if where is None:
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{where}\n{error}") from error
    if isinstance(valid, tuple) and valid[1].dtype.kind in "OUS":
        # NumPy would fail later, when it sorts labels or converts them to numbers.
        where = fault_in_targets(valid[1], must_be_numbers=is_regressor(estimator))
        if where is not None:
            raise ValueError(where)
    return valid


def validate_samples(estimator: Any, X: Any, *y: Any, **settings: Any) -> Any:
    """Return samples, and targets if given, as C-ordered floats or a CSR matrix."""
    return validate_data(
        estimator,
        X,
        *y,
        dtype=[np.float64, np.float32],
        order="C",
        accept_sparse="csr",
        **settings,
    )


def validate_new_samples(estimator: Any, X: Any) -> Any:
    """Return samples that are not learnt from; they must have the features of the fit.

    The estimator must be fitted.
    """
    validation.check_is_fitted(estimator)
    return validate_samples(estimator, X, reset=False)


def as_in_fit(estimator: Any, X: Any, was_sparse: bool) -> Any:
    """Return samples in the form of those of the fit: sparse if these were sparse."""
    if was_sparse and not sparse.issparse(X):
        return sparse.csr_array(X)
    if sparse.issparse(X) and not was_sparse:
        raise ValueError(
            f"cannot use sparse input in {type(estimator).__name__!r} trained on dense "
            "data"
        )
    return X


def check_square(K: Any) -> None:
    """Refuse a precomputed kernel matrix that is sparse or not square."""
    if sparse.issparse(K):
        raise TypeError("Sparse precomputed kernels are not supported.")
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            "Precomputed matrix must be a square matrix."
            f" Input is a {K.shape[0]}x{K.shape[1]} matrix."
        )


# Overflow is allowed where this is used: :func:`check_finite` looks for it afterwards.
QUIET = np.errstate(over="ignore", invalid="ignore")


def check_classes(classes: NDArray) -> None:
    """Refuse labels of fewer than two classes."""
    if len(classes) < 2:
        found = f": {classes.tolist()[0]!r}" if len(classes) else ""
        raise ValueError(
            "The number of classes has to be greater than one; got "
            f"{len(classes)} class{found}. To learn what samples of one kind look "
            "like, use OneClassSVM or SVDD."
        )


def check_finite(what: str, *values: Any) -> None:
    """Refuse results that have overflowed; ``what`` names them, in the plural."""
    if not all(np.isfinite(part).all() for part in values):
        raise ValueError(
            f"The {what} are not finite: values of X, or parameters of the kernel, are "
            "too large. Scale X, for example with StandardScaler."
        )


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


def _is_nothing(value: Any) -> bool:
    return isinstance(value, str) and value == NOTHING


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
    with cupy.cuda.Device(_card_number(model)):
        found = cupy.asarray(values)
        if _library(model) in ("cupy", "cupyx"):
            return found
        if hasattr(model, "__array_namespace__"):
            return model.__array_namespace__().from_dlpack(found)
        return sys.modules[_library(model)].from_dlpack(found)


def device_for(device: str, *arrays: Any) -> str:
    """Return the device that computes: arrays on a card choose their card.

    A device other than the processor is not changed: results go back to where the
    arrays are.
    """
    for values in arrays:
        if device == "cpu" and is_on_card(values):
            return f"cuda:{_card_number(values)}"
    return device


def takes_card_arrays(method: Callable) -> Callable:
    """Decorate a method of a fitted estimator so that arrays may be on a card.

    They are copied to the main memory, where they are validated, and the estimator
    computes on their card, unless its ``device`` names another one. A result is of the
    kind of the samples, which are the first argument.

    The method sees the model as it is now, even if another thread fits it anew.
    """

    @wraps(method)
    def taking(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        now = _with_state(self, vars(self))
        return like(X, _on_their_device(method, now, X, *args, **kwargs))

    return taking


def _on_their_device(
    method: Callable, estimator: Any, X: Any, *args: Any, **kwargs: Any
) -> Any:
    """Call a method of an estimator, or of a copy of it on the card of the arrays."""
    given = (X, *args, *kwargs.values())
    if not any(map(is_on_card, given)):
        return method(estimator, X, *args, **kwargs)
    if not hasattr(estimator, "device"):
        raise ValueError(
            f"The data are on a graphics card, and {type(estimator).__name__} computes "
            "on the processor. Pass arrays in the main memory, such as X.get() of "
            "CuPy or X.cpu() of PyTorch."
        )
    device = device_for(estimator.device, *given)
    there = _with_state(estimator, {**vars(estimator), "device": device})
    others = {name: to_host(value) for name, value in kwargs.items()}
    return method(there, to_host(X), *map(to_host, args), **others)


def _card_number(values: Any) -> int:
    """Return the number of the card that an array is on."""
    if _library(values) == "cupyx":
        return values.data.device.id
    return values.__dlpack_device__()[1]


def _library(values: Any) -> str:
    """Return the name of the package that an object's class comes from."""
    return type(values).__module__.partition(".")[0]
