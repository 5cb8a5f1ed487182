"""Checks that estimators share: of samples, before and after a fit, and of results."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from mercer.runtime.validation import validate_data

__all__ = [
    "QUIET",
    "as_in_fit",
    "check_finite",
    "check_square",
    "validate_new_samples",
    "validate_samples",
]

# Overflow is allowed where this is used: the results are checked for it.
QUIET = np.errstate(over="ignore", invalid="ignore")


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
    check_is_fitted(estimator)
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


def check_finite(what: str, *values: Any) -> None:
    """Refuse results that have overflowed; ``what`` names them, in the plural."""
    if not all(np.isfinite(part).all() for part in values):
        raise ValueError(
            f"The {what} are not finite: the values of X are too large. Scale X, for "
            "example with StandardScaler."
        )
