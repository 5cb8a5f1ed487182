"""Kernels of histograms: rows of non-negative numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import Definiteness, Kernel, resolve_gamma
from mercer.kernels.pair import Pair, Samples
from mercer.runtime.public import public

__all__ = ["AdditiveChi2", "Chi2", "Intersection"]


class _Histogram(Kernel):
    def bind(self, X: Any) -> Kernel:
        low = X.min() if X.shape[0] and X.shape[1] else 0.0
        if low < 0:
            raise ValueError(
                f"{type(self).__name__} is for histograms: all values must be >= 0, "
                f"the least is {low:g}. Shift or rescale the data, e.g. with "
                "MinMaxScaler."
            )
        return self


@public("mercer.kernels")
class AdditiveChi2(_Histogram):
    r"""The additive χ² kernel, :math:`k(x, z) = -\sum_k (x_k - z_k)^2 / (x_k + z_k)`.

    It is for values that are not negative, such as histograms. It is conditionally
    positive definite only; a machine may use it, since its coefficients sum to 0.

    See Also
    --------
    Chi2 : its exponential, positive definite.
    Intersection : another kernel for histograms.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import AdditiveChi2
    >>> AdditiveChi2().block(np.array([[0.5, 0.5]]), np.array([[0.2, 0.8]]))
    array([[-0.1978022]])
    """

    definiteness = Definiteness.CONDITIONAL

    def evaluate(self, pair: Pair) -> NDArray:
        return pair.elementwise(pair.xp.negative, pair.chi2())

    def diagonal(self, operand: Samples) -> NDArray:
        return np.zeros(len(operand))


@public("mercer.kernels")
class Chi2(_Histogram):
    r"""The χ² kernel, :math:`k(x, z) = e^{-\gamma \sum_k (x_k - z_k)^2 / (x_k + z_k)}`.

    It is for values that are not negative, such as histograms.

    Parameters
    ----------
    gamma : float, default=1.0
        How fast similarity falls.

    See Also
    --------
    AdditiveChi2 : without the exponential.
    Intersection : another kernel for histograms.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Chi2
    >>> Chi2().block(np.array([[0.5, 0.5]]), np.array([[0.5, 0.5], [0.2, 0.8]]))
    array([[1.        , 0.82053214]])
    """

    definiteness = Definiteness.POSITIVE

    def __init__(self, gamma: float | str = 1.0):
        self.gamma: Any = gamma  # a number once bound

    def bind(self, X: Any) -> Kernel:
        super().bind(X)
        return Chi2(resolve_gamma(self.gamma, X))

    def evaluate(self, pair: Pair) -> NDArray:
        return pair.exponential(pair.chi2(), self.gamma)

    def diagonal(self, operand: Samples) -> NDArray:
        return np.ones(len(operand))


@public("mercer.kernels")
class Intersection(_Histogram):
    r"""The histogram intersection, :math:`k(x, z) = \sum_k \min(x_k, z_k)`.

    It is for values that are not negative, such as histograms.

    See Also
    --------
    Chi2 : another kernel for histograms.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Intersection
    >>> Intersection().block(np.array([[0.5, 0.5]]), np.array([[0.2, 0.8]]))
    array([[0.7]])
    """

    definiteness = Definiteness.POSITIVE

    def evaluate(self, pair: Pair) -> NDArray:
        return pair.own(pair.minima())

    def diagonal(self, operand: Samples) -> NDArray:
        total = operand.keep(
            "row sums", lambda own: np.asarray(own.X.sum(axis=1, dtype=np.float64))
        )
        return total.ravel()
