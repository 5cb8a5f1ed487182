r"""Kernel weights: the norms of the problem, and the closed forms.

The weights satisfy :math:`d \ge 0` and :math:`\|d\|_p \le 1`, or have the penalty
:math:`\frac\lambda2\|d\|_p^2`.  With :math:`s_k = \sum_t \beta_t^T K_k \beta_t`, the
excess cost of weights over the best weights for these :math:`\beta` is

.. math:: \tfrac12\,(\|s\|_q - d^T s) \quad\text{or}\quad
    \tfrac{1}{8\lambda}\|s\|_q^2 + \tfrac\lambda2\|d\|_p^2 - \tfrac12 d^T s,

which is never negative by Hölder's inequality.  The duality gap of multiple kernel
learning is this excess plus the gaps of the machines with these weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from mercer.core.mkl import kernel_weights

__all__ = ["Ball", "Moments", "alignment_weights"]


class Ball(NamedTuple):
    """The constraint on the weights: the p-norm and, if not 0, its penalty."""

    p: float
    penalty: float = 0.0

    @property
    def q(self) -> float:
        """The conjugate exponent."""
        return np.inf if self.p == 1 else self.p / (self.p - 1.0)

    def norm(self, d: NDArray) -> float:
        """Return the norm of weights, safe from overflow for large p."""
        top = float(np.max(d, initial=0.0))
        return top * float(((d / top) ** self.p).sum() ** (1 / self.p)) if top else 0.0

    def dual_norm(self, s: NDArray) -> float:
        """Return the conjugate norm of the positive part of ``s``."""
        top = float(np.max(s, initial=0.0))
        if top <= 0 or self.p == 1:
            return max(top, 0.0)
        return top * float((np.maximum(s / top, 0) ** self.q).sum() ** (1 / self.q))

    def uniform(self, n_kernels: int) -> NDArray:
        """Return equal weights of norm 1."""
        return np.full(n_kernels, n_kernels ** (-1.0 / self.p))

    def price(self, d: NDArray) -> float:
        """Return the penalty of the weights in the primal objective."""
        size = self.norm(d)
        return 0.5 * self.penalty * size * size  # size**2 would raise an OverflowError

    def dual_term(self, s: NDArray) -> float:
        """Return the term of ``s`` in the dual: half its norm, or its scaled square."""
        size = self.dual_norm(s)
        return size * size / (8.0 * self.penalty) if self.penalty else 0.5 * size

    def excess(self, d: NDArray, s: NDArray) -> float:
        """Return the excess cost of the weights over the best weights for ``s``."""
        return max(0.0, self.dual_term(s) + self.price(d) - 0.5 * float(d @ s))

    def slope(self, d: NDArray, s: NDArray) -> NDArray:
        """Return the gradient of the objective by the weights.

        Without a penalty it is the gradient along the sphere of constant norm.
        """
        size = self.norm(d)
        if not size > 0:
            return -0.5 * s
        outwards = (d / size) ** (self.p - 1.0)
        pull = self.penalty * size if self.penalty else 0.5 * float(d @ s) / size
        return pull * outwards - 0.5 * s

    def best(self, s: NDArray) -> NDArray:
        """Return the best weights for ``s``; with p = 1 one kernel gets all weight."""
        if self.p == 1:
            d = np.zeros(len(s))
            top = self.dual_norm(s)
            d[np.argmax(s)] = top / (2.0 * self.penalty) if self.penalty else 1.0
            return d
        d = np.zeros(len(s))
        if self.penalty and not self.dual_norm(s) > 0:
            return d  # equal weights would have a penalty and no benefit
        kernel_weights(np.ascontiguousarray(s), self.q, self.penalty, d)
        return d

    def group_lasso(self, d: NDArray, s: NDArray) -> NDArray:
        r"""Return the best weights for the norms :math:`\|w_k\| = d_k\sqrt{s_k}`.

        :math:`d_k \propto \|w_k\|^{2/(p+1)}` (Xu et al. 2010), which for p = 1 is
        :math:`\|w_k\|` itself; with a penalty the norm r of d minimises
        :math:`A/2r + \lambda r^2/2`, where :math:`A/r = \sum_k \|w_k\|^2/d_k`.
        """
        square = d * d * np.maximum(s, 0.0)
        if not square.max(initial=0.0) > 0:
            return d
        shape = (square / square.max()) ** (1.0 / (self.p + 1.0))
        shape /= self.norm(shape)
        return self.scaled(shape, square)

    def scaled(self, shape: NDArray, square: NDArray) -> NDArray:
        """Scale weights of norm 1 to the norm that is best for the ``||w_k||^2``."""
        if not self.penalty:
            return shape
        used = shape > 0
        total = float((square[used] / shape[used]).sum())
        return shape * np.cbrt(total / (2.0 * self.penalty))


class Moments(NamedTuple):
    """Inner products of the base matrices K_k and a target matrix T, all n x n."""

    target: NDArray  #: <K_k, T>, shape (n_kernels,)
    gram: NDArray  #: <K_k, K_l>, shape (n_kernels, n_kernels), or only its diagonal
    size: float  #: <T, T>


def alignment_weights(moments: Moments, joint: bool) -> NDArray:
    r"""Return weights by alignment, which sum to 1.

    If not ``joint``, the weight of a kernel is proportional to
    :math:`\langle K_k, T\rangle_F / \sqrt{\langle K_k, K_k\rangle_F \langle T,
    T\rangle_F}`, or 0 if that is negative.
    If ``joint``, the weights are those whose sum of kernels is best aligned with the
    target: the minimum of :math:`v^T M v - 2 v^T a` over :math:`v \ge 0` (Cortes, Mohri
    & Rostamizadeh 2012).
    """
    if joint:
        scale = np.sqrt(np.maximum(np.diag(moments.gram), 0.0))
        scale[scale == 0] = 1.0
        values, vectors = np.linalg.eigh(moments.gram / np.outer(scale, scale))
        # Factor M = root' root, so that the problem becomes non-negative least squares.
        kept = values > 1e-10 * max(values.max(), 0.0)
        root = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
        right = (vectors[:, kept].T @ (moments.target / scale)) / np.sqrt(values[kept])
        weights = nnls(root, right)[0] / scale if kept.any() else np.zeros(len(scale))
    else:
        own = np.diag(moments.gram) if moments.gram.ndim == 2 else moments.gram
        size = np.sqrt(np.maximum(own, 0.0) * moments.size)
        safe = np.where(size > 0, size, 1.0)
        weights = np.maximum(moments.target / safe, 0.0) * (size > 0)
    total = weights.sum()
    if not total > 0:
        return np.full(len(weights), 1.0 / len(weights))
    return weights / total
