"""Kernels that the user brings: a matrix, or a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.kernels.base import Kernel
from mercer.kernels.pair import Pair, Samples
from mercer.runtime.public import public

__all__ = ["Custom", "Pairwise", "Precomputed", "call_function"]


@public("mercer.kernels")
class Precomputed(Kernel):
    """The data are the kernel matrix itself.

    A machine takes the square matrix of the training samples in ``fit``, and in
    ``predict`` the matrix of new samples (rows) with training samples (columns). It
    cannot be a part of a larger expression: combine the matrices instead.

    See Also
    --------
    Custom : a function of two matrices of samples.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> model = SVC(kernel="precomputed").fit(X @ X.T, [0, 0, 1, 1])
    >>> model.predict(np.array([[4.5]]) @ X.T)
    array([1])
    """

    def bind(self, X: Any) -> Kernel:
        return self

    def evaluate(self, pair: Pair) -> NDArray:
        raise ValueError(
            "A precomputed kernel has no formula to evaluate: it cannot be combined "
            "with other kernels. Combine the matrices and pass the result."
        )

    def diagonal(self, operand: Samples) -> NDArray:
        return np.asarray(operand.X.diagonal(), dtype=np.float64)


def call_function(function: Callable, X: Any, Z: Any, dtype: Any) -> NDArray:
    """Call a kernel function with two matrices of samples, and check its values.

    All functions of two matrices are called here.
    """
    values = function(X, Z)
    if sparse.issparse(values):
        values = values.toarray()
    shape = X.shape[0], Z.shape[0]
    if X is Z and np.shape(values) == (1, 1):
        # A function may return one constant when it is called with the training samples
        # twice, as scikit-learn's machines allow in fit but not in predict.
        values = np.full(shape, values[0][0])
    if np.shape(values) != shape:
        hint = ""
        if np.ndim(values) == 0:
            hint = " A function of two samples goes into kernels.Pairwise."
        raise ValueError(
            f"The kernel function returned shape {np.shape(values)} for {shape[0]} x "
            f"{shape[1]} samples; it must return {shape}.{hint}"
        )
    return _finite(values, dtype)


def _finite(values: Any, dtype: Any) -> NDArray:
    """Return a new matrix of the values; samples of any type have float64 values."""
    found = np.array(
        values, dtype=dtype if dtype == np.float32 else np.float64, order="C"
    )
    if not np.isfinite(found).all():
        raise ValueError(
            "The kernel function returned NaN or infinity. Its values must be finite: "
            "correct the function, or scale the samples."
        )
    return found


@public("mercer.kernels")
class Custom(Kernel):
    """A function of two matrices of samples, ``function(X, Z)`` -> (m, n).

    It is what estimators make of a function that they are given as ``kernel``, but as
    a Kernel it can be a part of sums and products.  It is called with blocks of rows,
    so it must treat pairs of rows one by one, without centring or scaling by other rows
    of the block.  It is called from one thread at a time.

    Parameters
    ----------
    function : callable
        Takes two arrays, or CSR matrices if the samples are, and returns the matrix of
        values, dense or sparse.

    See Also
    --------
    Pairwise : a function of two samples.
    Precomputed : a matrix in place of a function.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.kernels import RBF, Custom
    >>> def cubic(X, Z):
    ...     return (1 + X @ Z.T) ** 3
    >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> model = SVC(kernel=Custom(cubic) + RBF(gamma=1.0)).fit(X, [0, 0, 1, 1])
    >>> model.predict([[4.5]])
    array([1])
    """

    def __init__(self, function: Callable[[Any, Any], Any]):
        self.function = function

    def bind(self, X: Any) -> Kernel:
        if not callable(self.function):
            raise TypeError(
                f"{type(self).__name__} takes a function of two {self._takes}, got "
                f"{self.function!r}."
            )
        return self

    def is_custom(self) -> bool:
        return True

    #: what the function takes two of, for messages
    _takes = "matrices"

    def evaluate(self, pair: Pair) -> NDArray:
        left, right = pair.left.host.X, pair.right.host.X
        return pair.from_host(call_function(self.function, left, right, pair.dtype))

    def diagonal(self, operand: Samples) -> NDArray:
        def blocks() -> Iterator[NDArray]:
            for first in range(0, len(operand), 128):
                part = operand.rows(slice(first, first + 128))
                yield np.diagonal(self.evaluate(Pair(part, part)))

        return np.concatenate([np.empty(0), *blocks()]).astype(np.float64)


@public("mercer.kernels")
class Pairwise(Custom):
    """A function of two samples, ``function(x, z)`` -> a number.

    It is called for every pair, in Python: a function of two matrices, see
    :class:`Custom`, is many times faster.

    Parameters
    ----------
    function : callable
        Takes two rows: arrays of shape (n_features,), or CSR matrices of shape
        (1, n_features) if the samples are sparse.

    See Also
    --------
    Custom : a function of two matrices, many times faster.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Pairwise
    >>> k = Pairwise(lambda x, z: np.minimum(x, z).sum())
    >>> k.block(np.array([[0.5, 0.5]]), np.array([[0.25, 0.75]]))
    array([[0.75]])
    """

    _takes = "samples"

    def evaluate(self, pair: Pair) -> NDArray:
        left, right = (_samples(side.host) for side in (pair.left, pair.right))
        values = [[self._value(x, z) for z in right] for x in left]
        found = _finite(np.reshape(values, (len(left), len(right))), pair.dtype)
        return pair.from_host(found)

    def diagonal(self, operand: Samples) -> NDArray:
        values = [self._value(x, x) for x in _samples(operand)]
        return _finite(values, np.float64)

    def _value(self, x: Any, z: Any) -> float:
        value = self.function(x, z)
        if np.size(value) != 1:
            raise ValueError(
                f"The kernel function returned shape {np.shape(value)} for two "
                "samples; it must return a number. A function of two matrices goes "
                "into kernels.Custom."
            )
        return float(np.reshape(value, ())[()])


def _samples(operand: Samples) -> list[Any]:
    X = operand.X
    if sparse.issparse(X):
        return [X[[i]] for i in range(X.shape[0])]
    return list(X)
