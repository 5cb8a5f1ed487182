"""Inner products between the rows of two sparse matrices, as a dense block."""

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = ["dot_rows"]

# One multiplication with gathered entries costs about as much as this many
# multiplications in a dense matrix product.
DENSE_ADVANTAGE = 40


def dot_rows(X, Z, dtype) -> NDArray:
    """Return ``X @ Z.T`` (m, n), where each of the two tiles is dense or CSR.

    The two tiles are made dense for a matrix product if they have enough non-zeros for
    that to be faster.  Otherwise each row of ``X`` is written to a dense row once, and
    the non-zeros of every row of ``Z`` are multiplied with its entries.
    """
    d = X.shape[1]
    both_sparse = hasattr(X, "indptr") and hasattr(Z, "indptr")
    if not both_sparse or d * Z.shape[0] <= DENSE_ADVANTAGE * Z.nnz:
        return np.matmul(_dense(X, dtype), _dense(Z, dtype).T)
    out = np.empty((X.shape[0], Z.shape[0]), dtype=dtype)
    scratch = np.zeros(d, dtype=dtype)
    _gathered(_parts(X, dtype), _parts(Z, dtype), scratch, out)
    return out


def _dense(X, dtype) -> NDArray:
    if hasattr(X, "toarray"):
        X = X.toarray()
    return X.astype(dtype, copy=False)


def _parts(X, dtype) -> tuple[NDArray, NDArray, NDArray]:
    indices = X.indices.astype(np.int64, copy=False)
    indptr = X.indptr.astype(np.int64, copy=False)
    return X.data.astype(dtype, copy=False), indices, indptr


@jit
def _gathered(left, right, scratch, out):
    x_data, x_index, x_start = left
    z_data, z_index, z_start = right
    for i in range(out.shape[0]):
        for k in range(x_start[i], x_start[i + 1]):
            scratch[x_index[k]] += x_data[k]
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(z_start[j], z_start[j + 1]):
                total += scratch[z_index[k]] * z_data[k]
            out[i, j] = total
        for k in range(x_start[i], x_start[i + 1]):
            scratch[x_index[k]] = 0.0
