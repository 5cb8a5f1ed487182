"""Kernels of the inner product."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import (
    Definiteness,
    Kernel,
    is_number,
    resolve_gamma,
    scaled_by_both,
)
from mercer.kernels.pair import Pair, Samples, squared_norms
from mercer.runtime.public import public

__all__ = ["Cosine", "Linear", "Polynomial", "Sigmoid"]


def _squared_norms(operand: Samples) -> NDArray:
    return operand.keep("squared norms", lambda own: squared_norms(own.X))


def _check_coef0(coef0: float) -> float:
    if not is_number(coef0):
        raise ValueError(f"coef0 must be a finite number, got {coef0!r}.")
    return float(coef0)


def _affine(pair: Pair, gamma: float, coef0: float) -> NDArray:
    values = pair.elementwise(pair.xp.multiply, pair.dots(), gamma)
    return pair.elementwise(pair.xp.add, values, coef0) if coef0 else values


@public("mercer.kernels")
class Linear(Kernel):
    r"""The linear kernel, :math:`k(x, z) = x \cdot z`.

    It suits text, and data with more columns than samples.

    See Also
    --------
    Cosine : the same for rows of length 1.
    mercer.LinearSVC : a linear machine that needs no kernel values.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> Linear().block(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    takes_all_samples = True
    definiteness = Definiteness.POSITIVE

    def evaluate(self, pair: Pair) -> NDArray:
        return pair.own(pair.dots())

    def diagonal(self, operand: Samples) -> NDArray:
        return _squared_norms(operand)


@public("mercer.kernels")
class Polynomial(Kernel):
    r"""The polynomial kernel, :math:`k(x, z) = (\gamma \, x \cdot z + r)^d`.

    Parameters
    ----------
    degree : int, default=3
        The exponent d.
    gamma : {"scale", "auto"} or float, default="scale"
        "scale" is 1 / (n_features * X.var()), "auto" is 1 / n_features.
    coef0 : float, default=0.0
        The constant r. It decides how much products of few columns count; a negative
        one makes the kernel indefinite from degree 2 on.

    See Also
    --------
    Linear : degree 1.
    Power : a power of any kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Polynomial
    >>> k = Polynomial(degree=2, gamma=1.0, coef0=1.0)
    >>> k.block(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[144.]])
    """

    takes_all_samples = True

    def __init__(
        self, degree: int = 3, gamma: float | str = "scale", coef0: float = 0.0
    ):
        self.degree = degree
        self.gamma: Any = gamma  # a number once bound
        self.coef0 = coef0

    @property
    def definiteness(self) -> Definiteness:
        if self.coef0 >= 0 or self.degree == 0:
            return Definiteness.POSITIVE
        # A constant makes no difference where the coefficients sum to 0.
        is_affine = self.degree == 1
        return Definiteness.CONDITIONAL if is_affine else Definiteness.INDEFINITE

    def bind(self, X: Any) -> Kernel:
        if not (isinstance(self.degree, Integral) and self.degree >= 0):
            raise ValueError(
                f"degree must be a whole number >= 0, got {self.degree!r}."
            )
        gamma = resolve_gamma(self.gamma, X)
        return Polynomial(int(self.degree), gamma, _check_coef0(self.coef0))

    def evaluate(self, pair: Pair) -> NDArray:
        return pair.power(pair.dots(), self.degree, self.gamma, self.coef0)

    def diagonal(self, operand: Samples) -> NDArray:
        return (self.gamma * _squared_norms(operand) + self.coef0) ** self.degree


@public("mercer.kernels")
class Sigmoid(Kernel):
    r"""The sigmoid kernel, :math:`k(x, z) = \tanh(\gamma \, x \cdot z + r)`.

    It is not positive semi-definite: a fit ends at a stationary point, which may not be
    the best.

    Parameters
    ----------
    gamma : {"scale", "auto"} or float, default="scale"
        "scale" is 1 / (n_features * X.var()), "auto" is 1 / n_features.
    coef0 : float, default=0.0
        The constant r.

    See Also
    --------
    RBF : a better first choice, positive semi-definite.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Sigmoid
    >>> Sigmoid(gamma=0.1).block(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[0.80049902]])
    """

    takes_all_samples = True
    definiteness = Definiteness.INDEFINITE

    def __init__(self, gamma: float | str = "scale", coef0: float = 0.0):
        self.gamma: Any = gamma  # a number once bound
        self.coef0 = coef0

    def bind(self, X: Any) -> Kernel:
        return Sigmoid(resolve_gamma(self.gamma, X), _check_coef0(self.coef0))

    def evaluate(self, pair: Pair) -> NDArray:
        values = _affine(pair, self.gamma, self.coef0)
        return pair.elementwise(pair.xp.tanh, values)

    def diagonal(self, operand: Samples) -> NDArray:
        return np.tanh(self.gamma * _squared_norms(operand) + self.coef0)


@public("mercer.kernels")
class Cosine(Kernel):
    r"""The cosine of an angle, :math:`k(x, z) = x \cdot z / (\|x\| \, \|z\|)`.

    It is 0 where a norm is 0. It suits word counts of texts of different length.

    See Also
    --------
    Linear : without the norms.
    Normalized : does the same to any kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Cosine
    >>> Cosine().block(np.array([[1.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[0.6]])
    """

    takes_all_samples = True
    definiteness = Definiteness.POSITIVE

    @staticmethod
    def _inverse_norms(operand: Samples) -> NDArray:
        def make(own: Samples) -> NDArray:
            norms = np.sqrt(_squared_norms(own))
            return np.where(norms > 0, 1.0 / np.where(norms > 0, norms, 1.0), 0.0)

        return operand.keep("inverse norms", make)

    def evaluate(self, pair: Pair) -> NDArray:
        left, right = map(self._inverse_norms, (pair.left, pair.right))
        return scaled_by_both(pair, pair.dots(), left, right)

    def diagonal(self, operand: Samples) -> NDArray:
        return (_squared_norms(operand) > 0).astype(np.float64)
