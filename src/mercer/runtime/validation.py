"""How a fit begins, and what is left of it if it fails.

A fit checks its parameters, samples and targets, and if a check or anything after it
fails, the estimator is what it was before.  The checks and their messages are
scikit-learn's. An error about the data begins with the place of the first wrong value,
and with what to do about it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import is_regressor
from sklearn.utils import validation

from mercer.runtime.arrays import takes_card_arrays
from mercer.runtime.scikit_learn import fit_context

__all__ = [
    "QUIET",
    "all_or_nothing",
    "as_in_fit",
    "check_finite",
    "check_square",
    "fit_method",
    "validate_data",
    "validate_new_samples",
    "validate_samples",
]

NOTHING = "no_validation"  # what scikit-learn passes for an argument that is not given
# Values that are checked at a time, so that checking large data needs little memory.
AT_ONCE = 1 << 20


def all_or_nothing(method: Callable) -> Callable:
    """Decorate a method so that it changes nothing if it fails or is interrupted.

    The attributes from before the call are restored, so that the estimator is again
    what an earlier fit made of it, or not fitted.  The method may set and delete
    attributes; it must replace their values rather than change them in place.
    """

    @wraps(method)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            # A single assignment, so that a second interrupt cannot come in between.
            self.__dict__ = before
            raise

    return whole


def fit_method(fit: Callable) -> Callable:
    """Decorate ``fit``: check parameters, set up callbacks, fit all or nothing."""
    checked = fit_context(prefer_skip_nested_validation=True)(fit)
    return all_or_nothing(takes_card_arrays(checked))


def validate_data(
    estimator: Any, X: Any = NOTHING, y: Any = NOTHING, **settings: Any
) -> Any:
    """Validate as scikit-learn does, with errors that say where the wrong value is."""
    try:
        valid = validation.validate_data(estimator, X, y, **settings)
    except (TypeError, ValueError) as error:
        where = None if _is_nothing(X) else _fault_in_samples(X)
        if where is None and not (_is_nothing(y) or y is None):
            where = _fault_in_targets(y, must_be_numbers=is_regressor(estimator))
        if where is None:
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{where}\n{error}") from error
    if isinstance(valid, tuple) and valid[1].dtype.kind in "OUS":
        # NumPy would fail later, when it sorts labels or converts them to numbers.
        where = _fault_in_targets(valid[1], must_be_numbers=is_regressor(estimator))
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


def check_finite(what: str, *values: Any) -> None:
    """Refuse results that have overflowed; ``what`` names them, in the plural."""
    if not all(np.isfinite(part).all() for part in values):
        raise ValueError(
            f"The {what} are not finite: values of X, or parameters of the kernel, are "
            "too large. Scale X, for example with StandardScaler."
        )


def _is_nothing(value: Any) -> bool:
    return isinstance(value, str) and value == NOTHING


def _fault_in_samples(X: Any) -> str | None:
    """Say where X has a value that is not a finite number, if it has one."""
    if sparse.issparse(X):
        return _fault_in_sparse(X)
    if hasattr(X, "iloc"):
        columns = [np.asarray(X.iloc[:, j]) for j in range(X.shape[1])]
        named = [repr(name) for name in X.columns]
    else:
        try:
            values = np.asarray(X)
        except ValueError:
            return _uneven(X)
        if values.ndim != 2:
            return None
        columns, named = list(values.T), [str(j) for j in range(values.shape[1])]
    # The error names the first wrong row, in whatever column it is.
    found = [
        (fault[0], name, fault[1])
        for name, column in zip(named, columns, strict=True)
        if (fault := _fault_in_column(column))
    ]
    if not found:
        return None
    row, name, value = min(found, key=lambda fault: fault[0])
    where = f"row {row} (counted from 0), column {name}"
    return f"{where[0].upper()}{where[1:]} of X {_remedy(value)}"


def _fault_in_sparse(X: Any) -> str | None:
    entries = X.tocoo()
    if entries.data.dtype.kind not in "fc":
        return None
    wrong = np.flatnonzero(~np.isfinite(entries.data))
    if not len(wrong):
        return None
    k = wrong[np.argmin(entries.row[wrong])]
    where = f"Row {entries.row[k]} (counted from 0), column {entries.col[k]}"
    return f"{where} of X {_remedy(entries.data[k].item())}"


def _uneven(X: Any) -> str | None:
    """Say which row has another length than the first one, if there is such a row."""
    try:
        lengths = [len(row) for row in X]
    except TypeError:
        return None
    for i, length in enumerate(lengths):
        if length != lengths[0]:
            return (
                f"Row {i} (counted from 0) of X has {length} values, and row 0 has "
                f"{lengths[0]}. All rows must have the same columns."
            )
    return None


def _fault_in_column(column: NDArray) -> tuple[int, Any] | None:
    """Return the place and the value of the first entry that is not a finite number."""
    if column.dtype.kind in "mM" and len(column):
        return 0, column[0]
    if column.dtype.kind in "fc":
        for first in range(0, len(column), AT_ONCE):
            wrong = np.flatnonzero(~np.isfinite(column[first : first + AT_ONCE]))
            if len(wrong):
                at = first + int(wrong[0])
                return at, column[at].item()
        return None
    if column.dtype.kind in "OUS":
        for i, value in enumerate(column.tolist()):
            if not _is_finite(value):
                return i, value
    return None


def _is_finite(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False


def _is_missing(value: Any) -> bool:
    """Tell whether a value is missing: None, NaN, or NA of pandas."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # comparing NA gives NA, which is neither true nor false
        return True
    except ValueError:
        return False


def _remedy(value: Any) -> str:
    """Say what is wrong with a value, and what to do."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return (
            f"is a time, {value}, and samples must be numbers. Turn times into "
            "numbers, such as days since a date."
        )
    if _is_missing(value):
        return (
            f"is missing: it is {value!r}. Fill in a value, for example with "
            "sklearn.impute.SimpleImputer, or leave the row out."
        )
    if isinstance(value, float):
        return f"is {value}. Replace it with a finite number, or leave the row out."
    return (
        f"is {value!r}, and samples must be numbers. Encode text, for example with "
        "sklearn.preprocessing.OneHotEncoder, or leave the column out."
    )


def _fault_in_targets(y: Any, must_be_numbers: bool) -> str | None:
    """Say where y has a missing value, or values of two kinds, if it does."""
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.ravel()
    if values.ndim != 1 or values.dtype.kind not in "fcOUS":
        return None
    entries = values.tolist()
    for i, value in enumerate(entries):
        if _is_missing(value):
            return (
                f"y is missing at position {i} (counted from 0): it is {value!r}. "
                "Leave this sample out, or fill in its target."
            )
        if isinstance(value, float) and not np.isfinite(value):
            return (
                f"y is {value} at position {i} (counted from 0). Replace it with a "
                "finite number, or leave this sample out."
            )
        if must_be_numbers and not _is_finite(value):
            return (
                f"y is {value!r} at position {i} (counted from 0), and regression "
                "needs numbers. For classes, use a classifier such as SVC."
            )
    if must_be_numbers:
        return None
    texts = [isinstance(value, str) for value in entries]
    if values.dtype == object and entries and not any(texts):
        return (
            f"Unknown label type: y is an array of objects, such as {entries[0]!r}. "
            "Convert y to one type, for example with y.astype(int) or y.astype(str)."
        )
    if any(texts) and not all(texts):
        first, other = texts.index(True), texts.index(False)
        return (
            f"y mixes text and other labels: {entries[first]!r} at position {first} "
            f"and {entries[other]!r} at position {other} (counted from 0). Make all "
            "labels text, or all numbers."
        )
    return None
