r"""The simplified SMO as the reports print it, line by line.

:mod:`mercer.core.textbook` has the same method with exact bounds, a test on the KKT gap
and a step for every pair that violates.  The printed program does less: a sweep takes
each sample :math:`i` that violates the conditions at the present :math:`b` by more than
``tol``, draws one partner :math:`j`, and passes over the pair if :math:`L = H`, if
:math:`\eta \geq 0` or if :math:`\alpha_j` would move by less than ``least``.  It ends
after ``max_passes`` sweeps in which nothing moved, or after ``max_sweeps`` in all.
That is no test of optimality, so that the KKT gap at the end is what chance leaves.

The errata of the reports are mended: :math:`\alpha_i' = \alpha_i + y_iy_j(\alpha_j -
\alpha_j')`, :math:`E` has :math:`b` once, and a violator may shrink if
:math:`\alpha_i > 0`.

:class:`ManyKernels` is the first report's program for several kernels.  With :math:`s_k
= \alpha^\top H_k \alpha` its weights are :math:`d_k = s_k / 2\lambda`, and a step of
:math:`\Delta` changes :math:`s_k` by :math:`2\Delta B_k + \Delta^2 A_k`.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit
from mercer.core.mkl import cubic_root

__all__ = ["Ended", "Handout", "ManyKernels", "Pairs", "Rest", "kkt_gap", "objective"]

SHIFTS = np.uint64(13), np.uint64(7), np.uint64(17)
HALF_WORD = np.uint64(32)
LEFT, RIGHT, AGAIN = SHIFTS


class Ended(NamedTuple):
    """How a run of the printed program stands."""

    sweeps: int
    steps: int
    idle: int  #: sweeps at the end in which nothing moved
    apart: float  #: largest \|b₁ − b₂\| of a step that ended inside the box twice


@jit
def _another(state, i, m):
    """Draw one of ``m`` samples, but not ``i``."""
    x = state[0]
    x ^= x << LEFT
    x ^= x >> RIGHT
    x ^= x << AGAIN
    state[0] = x
    j = np.int64(((x >> HALF_WORD) * np.uint64(m - 1)) >> HALF_WORD)
    return j + 1 if j >= i else j


@jit
def _sweep(
    K: NDArray,
    y: NDArray,
    C: NDArray,
    tol: float,
    least: float,
    alpha: NDArray,
    f: NDArray,
    b: NDArray,
    state: NDArray,
):
    """Go over all samples once; return the steps, and how far b₁ and b₂ were apart."""
    m = len(y)
    steps, apart = 0, 0.0
    for i in range(m):
        Ei = f[i] + b[0] - y[i]
        if not (
            (y[i] * Ei < -tol and alpha[i] < C[i]) or (y[i] * Ei > tol and alpha[i] > 0)
        ):
            continue
        j = _another(state, i, m)
        Ej = f[j] + b[0] - y[j]
        if y[i] == y[j]:
            total = alpha[i] + alpha[j]
            low, high = max(0.0, total - C[i]), min(C[j], total)
        else:
            total = alpha[j] - alpha[i]
            low, high = max(0.0, total), min(C[j], C[i] + total)
        if high - low <= 1e-12 * C[j]:
            continue
        eta = 2.0 * K[i, j] - K[i, i] - K[j, j]
        if eta >= 0.0:
            continue
        new = min(max(alpha[j] - y[j] * (Ei - Ej) / eta, low), high)
        if new < 1e-12 * C[j]:
            new = 0.0
        elif new > (1 - 1e-12) * C[j]:
            new = C[j]
        if abs(new - alpha[j]) < least:
            continue
        at_i = alpha[i] + y[i] * y[j] * (alpha[j] - new)
        # Rounding must not keep a variable from its bound.
        if at_i < 1e-12 * C[i]:
            at_i = 0.0
        elif at_i > (1 - 1e-12) * C[i]:
            at_i = C[i]
        by_i, by_j = y[i] * (at_i - alpha[i]), y[j] * (new - alpha[j])
        b1 = b[0] - Ei - by_i * K[i, i] - by_j * K[i, j]
        b2 = b[0] - Ej - by_i * K[i, j] - by_j * K[j, j]
        inside_i, inside_j = 0.0 < at_i < C[i], 0.0 < new < C[j]
        if inside_i and inside_j:
            apart = max(apart, abs(b1 - b2))
        b[0] = b1 if inside_i else b2 if inside_j else 0.5 * (b1 + b2)
        alpha[i], alpha[j] = at_i, new
        Ki, Kj = K[i], K[j]
        for t in range(m):
            f[t] += by_i * Ki[t] + by_j * Kj[t]
        steps += 1
    return steps, apart


@jit
def _sweep_of_many(
    K: NDArray,
    y: NDArray,
    C: NDArray,
    tol: float,
    penalty: float,
    alpha: NDArray,
    F: NDArray,
    s: NDArray,
    b: NDArray,
    state: NDArray,
):
    """Go over all samples once with several kernels; return the number of steps."""
    m, n_kernels = len(y), len(s)
    A, B, d = np.empty(n_kernels), np.empty(n_kernels), np.empty(n_kernels)
    steps = 0
    for i in range(m):
        fi = 0.0
        for k in range(n_kernels):
            d[k] = 0.5 * s[k] / penalty
            fi += d[k] * F[k, i]
        Ei = fi + b[0] - y[i]
        if not (
            (y[i] * Ei < -tol and alpha[i] < C[i]) or (y[i] * Ei > tol and alpha[i] > 0)
        ):
            continue
        j = _another(state, i, m)
        sign = -y[i] * y[j]
        if sign > 0:
            low = max(-alpha[i], -alpha[j])
            high = min(C[j] - alpha[j], C[i] - alpha[i])
        else:
            low = max(-alpha[i], alpha[j] - C[j])
            high = min(C[i] - alpha[i], alpha[j])
        if high - low < tol:
            continue
        for k in range(n_kernels):
            A[k] = K[k, i, i] + K[k, j, j] - 2.0 * K[k, i, j]
            B[k] = y[i] * (F[k, i] - F[k, j])
        step = min(max(cubic_root(-(1.0 + sign), s, B, A, penalty), low), high)
        if abs(step) < tol:
            continue
        at_i, at_j = alpha[i] + step, alpha[j] + sign * step
        if at_i < 1e-12 * C[i]:
            at_i = 0.0
        elif at_i > (1 - 1e-12) * C[i]:
            at_i = C[i]
        if at_j < 1e-12 * C[j]:
            at_j = 0.0
        elif at_j > (1 - 1e-12) * C[j]:
            at_j = C[j]
        alpha[i], alpha[j] = at_i, at_j
        fi, fj = 0.0, 0.0
        for k in range(n_kernels):
            s[k] += 2.0 * step * B[k] + step * step * A[k]
            Fk, Ki, Kj = F[k], K[k, i], K[k, j]
            for t in range(m):
                Fk[t] += y[i] * step * (Ki[t] - Kj[t])
            fi += 0.5 * s[k] / penalty * Fk[i]
            fj += 0.5 * s[k] / penalty * Fk[j]
        b1, b2 = y[i] - fi, y[j] - fj
        inside_i, inside_j = 0.0 < at_i < C[i], 0.0 < at_j < C[j]
        b[0] = b1 if inside_i else b2 if inside_j else 0.5 * (b1 + b2)
        steps += 1
    return steps


class Handout:
    """A run of the printed program on one binary problem, which can be continued.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The Gram matrix.
    y : ndarray of shape (n,)
        Labels −1 and 1.
    C : float or ndarray of shape (n,)
    tol : float, default=1e-3
    least : float, default=1e-5
        A smaller change of α is none.
    seed : int, default=0
    """

    def __init__(
        self,
        K: NDArray,
        y: NDArray,
        C: Any,
        tol: float = 1e-3,
        least: float = 1e-5,
        seed: int = 0,
    ):
        n = len(y)
        self.K = np.ascontiguousarray(K)
        self.y = np.asarray(y, dtype=np.float64)
        self.C = np.broadcast_to(np.asarray(C, dtype=np.float64), n).copy()
        self.tol, self.least = tol, least
        self.alpha, self.f, self.b = np.zeros(n), np.zeros(n), np.zeros(1)
        self.state = np.array([2 * seed + 88172645463325253], dtype=np.uint64)
        self.ended = Ended(0, 0, 0, 0.0)

    def run(self, max_sweeps: int, max_passes: int = 10) -> Ended:
        """Go on up to so many sweeps in all, or to so many without a step."""
        sweeps, steps, idle, apart = self.ended
        while sweeps < max_sweeps and idle < max_passes:
            moved, far = _sweep(
                *(self.K, self.y, self.C, self.tol, self.least),
                *(self.alpha, self.f, self.b, self.state),
            )
            sweeps, steps, apart = sweeps + 1, steps + moved, max(apart, far)
            idle = 0 if moved else idle + 1
        self.ended = Ended(sweeps, steps, idle, apart)
        return self.ended

    def decide(self, K_new: NDArray) -> NDArray:
        """Return f for new samples; ``K_new`` has their kernel values by row."""
        return K_new @ (self.alpha * self.y) + self.b[0]


class Pairs:
    """The printed program for several classes: a run for each two, and votes.

    The smaller label is the negative one.  ``K`` is the Gram matrix of all samples, or
    a list of such matrices, of which a pair takes the sum with its row of ``weights``.
    """

    def __init__(
        self,
        K: NDArray | list[NDArray],
        y: NDArray,
        C: float,
        tol: float = 1e-3,
        weights: NDArray | None = None,
        **more: Any,
    ):
        self.classes, self.weights = np.unique(y), weights
        self.runs = []
        for k, (low, high) in enumerate(combinations(self.classes, 2)):
            rows = np.flatnonzero((y == low) | (y == high))
            own = np.where(y[rows] == high, 1.0, -1.0)
            part = self._part(K, k, np.ix_(rows, rows))
            self.runs.append((low, high, rows, Handout(part, own, C, tol, **more)))

    def _part(self, K: NDArray | list[NDArray], pair: int, where: Any) -> NDArray:
        """Return the kernel values of a pair of classes."""
        if self.weights is None:
            return np.asarray(K)[where]
        terms = zip(self.weights[pair], K, strict=True)
        return np.sum([np.float32(w) * own[where] for w, own in terms], axis=0)

    def run(self, max_sweeps: int, max_passes: int = 10) -> list[Ended]:
        """Continue all runs; return how they stand."""
        return [program.run(max_sweeps, max_passes) for _, _, _, program in self.runs]

    def predict(self, K_new: NDArray | list[NDArray]) -> NDArray:
        """Return the class with most votes; ``K_new`` has a column per sample."""
        parts = [np.asarray(K_new)] if self.weights is None else K_new
        coefficients = np.zeros((parts[0].shape[1], len(self.runs)), parts[0].dtype)
        for k, (_, _, rows, program) in enumerate(self.runs):
            coefficients[rows, k] = program.alpha * program.y
        values = np.array([program.b[0] for _, _, _, program in self.runs])
        for k, part in enumerate(parts):
            share = 1.0 if self.weights is None else self.weights[:, k]
            values = values + (part @ coefficients) * share
        votes = np.zeros((len(values), len(self.classes)), dtype=int)
        for k, (low, high, _, _) in enumerate(self.runs):
            wins = values[:, k] >= 0
            votes[wins, np.searchsorted(self.classes, high)] += 1
            votes[~wins, np.searchsorted(self.classes, low)] += 1
        return self.classes[votes.argmax(axis=1)]


class Rest:
    """The printed program for each class against the rest, decided by the margin.

    The positive side has ``beta`` times the C of the others.
    """

    def __init__(
        self, K: NDArray, y: NDArray, C: float, beta: float = 1.0, **more: Any
    ):
        self.classes = np.unique(y)
        self.runs = [
            Handout(K, own, np.where(own > 0, beta * C, C), **more)
            for own in (np.where(y == label, 1.0, -1.0) for label in self.classes)
        ]

    def run(self, max_sweeps: int, max_passes: int = 10) -> list[Ended]:
        """Continue all runs; return how they stand."""
        return [program.run(max_sweeps, max_passes) for program in self.runs]

    def predict(self, K_new: NDArray) -> NDArray:
        """Return the class with the largest f; ``K_new`` has a column per sample."""
        values = np.stack([program.decide(K_new) for program in self.runs])
        return self.classes[values.argmax(axis=0)]


class ManyKernels:
    """A run of the first report's program for several kernels on a binary problem.

    Parameters are those of :class:`Handout`; ``K`` has a matrix for each kernel, and
    ``penalty`` is λ.
    """

    def __init__(
        self,
        K: NDArray,
        y: NDArray,
        C: Any,
        penalty: float,
        tol: float = 1e-3,
        seed: int = 0,
    ):
        n = len(y)
        self.K = np.ascontiguousarray(K, dtype=np.float64)
        self.y = np.asarray(y, dtype=np.float64)
        self.C = np.broadcast_to(np.asarray(C, dtype=np.float64), n).copy()
        self.penalty, self.tol = penalty, tol
        self.alpha, self.b = np.zeros(n), np.zeros(1)
        self.F, self.s = np.zeros((len(K), n)), np.zeros(len(K))
        self.state = np.array([2 * seed + 88172645463325253], dtype=np.uint64)
        self.ended = Ended(0, 0, 0, 0.0)

    @property
    def weights(self) -> NDArray:
        """The weights d of the kernels."""
        return 0.5 * self.s / self.penalty

    @property
    def objective(self) -> float:
        """Σα − ‖s‖² / 8λ, which is to be maximised."""
        return float(self.alpha.sum() - (self.s @ self.s) / (8 * self.penalty))

    def run(self, max_sweeps: int, max_passes: int = 10) -> Ended:
        """Go on up to so many sweeps in all, or to so many without a step."""
        sweeps, steps, idle, apart = self.ended
        while sweeps < max_sweeps and idle < max_passes:
            moved = _sweep_of_many(
                *(self.K, self.y, self.C, self.tol, self.penalty),
                *(self.alpha, self.F, self.s, self.b, self.state),
            )
            sweeps, steps = sweeps + 1, steps + moved
            idle = 0 if moved else idle + 1
        self.ended = Ended(sweeps, steps, idle, apart)
        return self.ended

    def decide(self, K_new: NDArray) -> NDArray:
        """Return f for new samples; ``K_new`` has a matrix for each kernel."""
        return np.tensordot(self.weights, K_new @ (self.alpha * self.y), 1) + self.b[0]


def kkt_gap(program: Handout) -> float:
    """Return the largest violation of the optimality conditions, for the best b."""
    F = program.f - program.y
    y, alpha, C = program.y, program.alpha, program.C
    may_grow = np.where(y > 0, alpha < C, alpha > 0)
    may_shrink = np.where(y > 0, alpha > 0, alpha < C)
    if not (may_grow.any() and may_shrink.any()):
        return 0.0
    return float(F[may_shrink].max() - F[may_grow].min())


def objective(program: Handout) -> float:
    """Return the dual objective, Σα − ½ αᵀHα, which is to be maximised."""
    alpha, y = program.alpha, program.y
    return float(alpha.sum() - 0.5 * (alpha * y) @ program.f)
