"""Where data are wrong, and what to do about it.

An error about data names the place of the first wrong value, says what the value is
and what helps. scikit-learn's own message follows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["fault_in_samples", "fault_in_targets"]

# Values that are checked at a time, so that checking large data needs little memory.
AT_ONCE = 1 << 20


def fault_in_samples(X: Any) -> str | None:
    """Say where X has a value that is not a finite number, if it has one."""
    if sparse.issparse(X):
        return _fault_in_sparse(X)
    if hasattr(X, "iloc") and X.ndim == 2:
        columns = [np.asarray(X.iloc[:, j]) for j in range(X.shape[1])]
        named = [repr(name) for name in X.columns]
    elif hasattr(X, "get_column"):  # of polars
        columns = [np.asarray(X.get_column(name)) for name in X.columns]
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


def fault_in_targets(y: Any, must_be_numbers: bool) -> str | None:
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
