"""Precomputed base Gram matrices, given by the user."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, column_or_1d

__all__ = ["GivenMatrices", "check_matrices", "check_new_matrices"]


class GivenMatrices(NamedTuple):
    """One matrix for each kernel, all of the same shape."""

    matrices: list[NDArray]

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of each matrix."""
        return self.matrices[0].shape

    @property
    def dtype(self) -> np.dtype:
        """The floating-point type that holds the values of all matrices."""
        return np.result_type(*self.matrices)


def _each(X: Any) -> list[NDArray]:
    if sparse.issparse(X) or any(map(sparse.issparse, X if _is_many(X) else ())):
        raise TypeError("Sparse precomputed kernels are not supported.")
    if not _is_many(X) or np.ndim(X[0]) != 2:
        shape = f"an array of shape {np.shape(X)}" if hasattr(X, "shape") else repr(X)
        raise ValueError(
            "With kernels='precomputed', X must be a list of matrices or an array of "
            f"shape (n_kernels, n, n); got {shape:.200}. For one kernel pass [K]."
        )
    settings: dict[str, Any] = dict(dtype=[np.float64, np.float32], order="C")
    return [
        check_array(K, input_name=f"Kernel {k}", **settings) for k, K in enumerate(X)
    ]


def _is_many(X: Any) -> bool:
    return (
        isinstance(X, list | tuple | np.ndarray)
        and getattr(X, "ndim", 1) > 0
        and len(X) > 0
    )


def check_matrices(X: Any, y: Any) -> tuple[GivenMatrices, NDArray]:
    """Check that matrices are square and match each other and the targets."""
    matrices = _each(X)
    for k, K in enumerate(matrices):
        if K.shape[0] != K.shape[1] or K.shape != matrices[0].shape:
            raise ValueError(
                "Precomputed matrices must be square and have the same shape; matrix "
                f"{k} has shape {K.shape}, matrix 0 has shape {matrices[0].shape}."
            )
    if y is None:
        raise ValueError("This estimator requires y to be passed, but y is None.")
    y = column_or_1d(y, warn=True)
    check_consistent_length(matrices[0], y)
    return GivenMatrices(matrices), y


def check_new_matrices(X: Any, n_kernels: int, n: int) -> GivenMatrices:
    """Check matrices of kernel values between new samples and those of the fit."""
    matrices = _each(X)
    shape = (len(matrices[0]), n)
    if len(matrices) != n_kernels or any(K.shape != shape for K in matrices):
        raise ValueError(
            f"The machine was fitted with {n_kernels} kernels on {n} samples: X must "
            f"have shape ({n_kernels}, n_samples, {n}); got "
            f"{len(matrices)} matrices of shapes {sorted({K.shape for K in matrices})}."
        )
    return GivenMatrices(matrices)
