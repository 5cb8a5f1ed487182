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
    r""":math:`k(x, z) = e^{-\gamma \|x - z\|^2}`, where :math:`\gamma = 1/2\sigma^2`.

    Give ``gamma`` or ``sigma``, not both.
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
    r""":math:`k(x, z) = e^{-\gamma \sum_k |x_k - z_k|}`."""

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
