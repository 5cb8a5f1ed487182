"""Kernels of the distance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import Definiteness, Kernel, is_number, resolve_gamma
from mercer.kernels.pair import Pair, Samples
from mercer.runtime.public import public

__all__ = ["RBF", "Laplacian"]


@public("mercer.kernels")
class RBF(Kernel):
    r"""The Gaussian kernel, :math:`k(x, z) = e^{-\gamma \|x - z\|^2}`.

    It suits numbers on one scale, and is a good first choice.

    Parameters
    ----------
    gamma : {"scale", "auto"} or float, default=None
        How fast similarity falls with the distance. "scale", which None means too, is
        1 / (n_features * X.var()), and "auto" is 1 / n_features.
    sigma : float, default=None
        The width in place of ``gamma``: :math:`\gamma = 1/2\sigma^2`.

    See Also
    --------
    Laplacian : falls with the sum of absolute differences.
    Chi2 : the same for histograms.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> RBF(gamma=0.5).block(np.array([[0.0, 0.0]]), np.array([[0.0, 0.0], [1.0, 1.0]]))
    array([[1.        , 0.36787944]])
    """

    takes_all_samples = True
    definiteness = Definiteness.POSITIVE

    def __init__(self, gamma: float | str | None = None, sigma: float | None = None):
        self.gamma: Any = gamma  # a number once bound
        self.sigma = sigma

    def bind(self, X: Any) -> Kernel:
        if self.sigma is None:
            return RBF(resolve_gamma("scale" if self.gamma is None else self.gamma, X))
        if self.gamma is not None:
            raise ValueError(
                f"RBF takes gamma or sigma, not both; got gamma={self.gamma!r} and "
                f"sigma={self.sigma!r}."
            )
        if not (is_number(self.sigma) and self.sigma > 0):
            raise ValueError(f"sigma must be a finite number > 0, got {self.sigma!r}.")
        sigma = float(self.sigma)
        return RBF(resolve_gamma(0.5 / sigma / sigma, X))

    def evaluate(self, pair: Pair) -> NDArray:
        return pair.gaussian(self.gamma)

    def diagonal(self, operand: Samples) -> NDArray:
        return np.ones(len(operand))


@public("mercer.kernels")
class Laplacian(Kernel):
    r"""The Laplacian kernel, :math:`k(x, z) = e^{-\gamma \sum_k |x_k - z_k|}`.

    It is less sensitive to single large differences than the Gaussian kernel.

    Parameters
    ----------
    gamma : {"scale", "auto"} or float, default="scale"
        "scale" is 1 / (n_features * X.var()), "auto" is 1 / n_features.

    See Also
    --------
    RBF : falls with the squared distance, and is smooth.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Laplacian
    >>> k = Laplacian(gamma=0.5)
    >>> k.block(np.array([[0.0, 0.0]]), np.array([[0.0, 0.0], [1.0, 1.0]]))
    array([[1.        , 0.36787944]])
    """

    takes_all_samples = True
    definiteness = Definiteness.POSITIVE

    def __init__(self, gamma: float | str = "scale"):
        self.gamma: Any = gamma  # a number once bound

    def bind(self, X: Any) -> Kernel:
        return Laplacian(resolve_gamma(self.gamma, X))

    def evaluate(self, pair: Pair) -> NDArray:
        return pair.exponential(pair.manhattan(), self.gamma)

    def diagonal(self, operand: Samples) -> NDArray:
        return np.ones(len(operand))
