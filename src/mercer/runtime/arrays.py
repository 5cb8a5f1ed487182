"""Arrays of samples and coefficients: dense, sparse, or of objects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = [
    "as_dense",
    "frozen",
    "is_numeric",
    "refuse_other_things",
    "things",
]


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
