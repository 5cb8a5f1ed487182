r"""Leading eigenvectors of a symmetric matrix, given by its products with vectors.

*Block Lanczos* is used in a form that is robust to rounding.  It keeps an orthonormal
basis :math:`Q` and the products :math:`AQ`.  The eigenvectors of :math:`Q^T A Q` give
the best approximations in the span of :math:`Q` (Rayleigh–Ritz), and their residuals
:math:`r = A v - \theta v` are the directions to add.  In exact arithmetic the basis
spans the Krylov space.  A basis that has grown too large is reduced to its best
vectors.

Each :math:`r` is also a certificate: some eigenvalue lies within :math:`\|r\|` of
:math:`\theta`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

__all__ = [
    "OVERSAMPLES",
    "Eigen",
    "arpack",
    "block_size",
    "dense",
    "lanczos",
    "lanczos_bytes",
    "randomized",
]

Times = Callable[[NDArray], NDArray]

# Number of vectors that one pass over the matrix multiplies. With fewer, the time would
# be spent waiting for memory.
LEAST_BLOCK, MOST_BLOCK = 8, 32
# Number of vectors beyond the wanted ones: more vectors need fewer passes.
MORE = 8
# A matrix of so few rows stays in a cache, and passes over it cost little beside the
# work on the vectors: fewer of them do, but enough for eigenvalues that are equal.
SMALL, LEAST_OF_SMALL, MORE_OF_SMALL = 1024, 4, 2
# A basis of m vectors is decomposed in every pass if m³ is at most this multiple of the
# multiplications of a pass; otherwise, in every fourth.
MOST_TO_DECOMPOSE = 0.1
# Largest number of blocks in a basis before it is reduced.
MOST_BLOCKS = 12
# Number of blocks that are added to the wanted vectors before the basis is reduced,
# where memory is short.
LEAST_BLOCKS = 3
# Number of arrays beside a basis and its products, each with the wanted vectors and a
# block.
OTHERS = 8
# Number of rounds in which the residuals must halve; otherwise only rounding is left.
PATIENCE = 4
OVERSAMPLES = 10
# Columns of norm 1 count as far from dependent if each has a part of this length that
# is orthogonal to those before it. The rounding error of their Gram matrix then costs
# four digits of sixteen, which the second orthogonalisation gains back.
INDEPENDENT = 1e-2


class Eigen(NamedTuple):
    """Eigenvalues in descending order, eigenvectors, and their accuracy."""

    values: NDArray
    vectors: NDArray  #: eigenvectors as columns
    residuals: NDArray  #: ‖Av − θv‖ for each eigenvector
    n_iter: int  #: number of passes over the matrix
    converged: bool


def _orthonormal(V: NDArray, Q: NDArray, rng: np.random.RandomState) -> NDArray:
    """Return an orthonormal basis of the part of ``V`` orthogonal to ``Q``."""
    norms = np.linalg.norm(V, axis=0)
    V = V / np.where(norms > 0, norms, 1.0)
    for _ in range(3):
        V -= Q @ (Q.T @ V)
        V, diagonal = _factored(V)
        lost = diagonal < 1e-10
        if not lost.any():
            # Repeat until the vectors hardly change any more.
            if diagonal.min() > 0.5:
                break
            continue
        V[:, lost] = rng.standard_normal((len(V), int(lost.sum())))
    return V


def _factored(V: NDArray) -> tuple[NDArray, NDArray]:
    """Factor V = QR; return Q and the absolute values on the diagonal of R.

    The Cholesky factor of VᵀV is R.  It is found several times faster than by
    reflections, and as accurately where the columns of V are far from dependent.
    """
    R, failed = linalg.lapack.dpotrf(V.T @ V, lower=0, clean=1)
    diagonal = np.abs(np.diagonal(R))
    if failed or diagonal.min() < INDEPENDENT:
        V, R = linalg.qr(V, mode="economic", check_finite=False)
        return V, np.abs(np.diagonal(R))
    inverse, _ = linalg.lapack.dtrtri(R, lower=0)
    return V @ inverse, diagonal


def noise(dtype: np.dtype, n: int) -> float:
    """Return the smallest relative residual that can be reached despite rounding."""
    return 20.0 * float(np.finfo(dtype).eps) * np.sqrt(np.log2(max(n, 2)))


def block_size(k: int, n: int) -> int:
    """Return the number of vectors in a block if ``k`` eigenvectors are wanted."""
    least, more = LEAST_BLOCK, MORE
    if n <= SMALL:
        least, more = LEAST_OF_SMALL, MORE_OF_SMALL
    return min(int(np.clip(k + more, least, MOST_BLOCK)), n)


def _basis_size(k: int, n: int, n_blocks: int) -> int:
    """Return how many vectors a basis of so many blocks has at most."""
    block = block_size(k, n)
    if n_blocks == LEAST_BLOCKS:
        return min(n, k + n_blocks * block)
    return min(n, max(n_blocks * block, 2 * k + 4 * block))


def lanczos_bytes(k: int, n: int) -> tuple[int, int]:
    """Return the memory that Lanczos needs, and the memory that it makes use of."""
    others = OTHERS * (k + block_size(k, n))
    least, most = (
        8 * n * (2 * _basis_size(k, n, blocks) + others)
        for blocks in (LEAST_BLOCKS, MOST_BLOCKS)
    )
    return least, most


def lanczos(
    times: Times,
    n: int,
    k: int,
    dtype: np.dtype,
    tol: float,
    max_iter: int,
    rng: np.random.RandomState,
    first: NDArray | None = None,
    ended: Callable[[], bool] = lambda: False,
    room: int | None = None,
) -> Eigen:
    """Find the ``k`` largest eigenvalues with residuals below ``tol`` of the largest.

    The basis has at most as many vectors as fit into ``room`` bytes, but no fewer than
    :func:`lanczos_bytes` says are needed.

    ``dtype`` is the precision of the products: no smaller ``tol`` is asked for than
    it allows.  A residual that rounding keeps from falling further ends the search, and
    so does ``ended`` once there are ``k``.
    """
    block = block_size(k, n)
    most = _basis_size(k, n, MOST_BLOCKS)
    if room is not None:
        fits = (room // (8 * n) - OTHERS * (k + block)) // 2
        most = max(_basis_size(k, n, LEAST_BLOCKS), min(most, fits))
    goal = max(tol, noise(dtype, n))
    basis = _Basis(n, most)
    new = rng.standard_normal((n, block)) if first is None else first
    best, waited, n_iter = np.inf, 0, 0
    while True:
        new = _orthonormal(new[:, : n - basis.size], basis.Q, rng)
        products = times(new)
        basis.add(new, products)
        n_iter += 1
        is_costly = basis.size**3 > MOST_TO_DECOMPOSE * n * n * block
        goes_on = basis.size + block <= min(most, n) and n_iter < max_iter
        if is_costly and goes_on and n_iter % 4 and not ended():
            # The products span the same directions as the residuals would.
            new = products
            continue
        theta, S = basis.solve()
        kept = min(len(theta), k + block)
        R = basis.AQ @ S[:, :kept] - basis.Q @ (S[:, :kept] * theta[:kept])
        residuals = np.linalg.norm(R, axis=0)
        scale = max(abs(theta[0]), abs(theta[-1]), np.finfo(np.float64).tiny)
        worst = residuals[:k].max() / scale if kept >= k else np.inf
        waited = waited + 1 if worst > 0.5 * best else 0
        best = min(best, worst)
        is_done = worst <= goal or basis.size >= n
        stalled = waited >= PATIENCE and worst <= 1e3 * goal
        if is_done or stalled or n_iter >= max_iter or (kept >= k and ended()):
            good = is_done or stalled
            vectors = basis.Q @ S[:, :k]
            return Eigen(theta[:k], vectors, residuals[:k], n_iter, bool(good))
        # The new directions are the residuals that are still too large, in the order of
        # the eigenvalues, and then the others.
        order = np.argsort(residuals <= goal * scale, kind="stable")
        new = R[:, order[:block]]
        if basis.size + block > most and most < n:
            basis.cut(theta[:kept], S[:, :kept])


class _Basis:
    """An orthonormal basis Q, the products AQ, and the matrix QᵀAQ."""

    def __init__(self, n: int, most: int):
        # In column-major order, added columns follow the old ones in memory.
        self._Q = np.empty((n, most), order="F")
        self._AQ = np.empty((n, most), order="F")
        self._H = np.empty((most, most))
        self.size = 0

    @property
    def Q(self) -> NDArray:
        return self._Q[:, : self.size]

    @property
    def AQ(self) -> NDArray:
        return self._AQ[:, : self.size]

    def add(self, V: NDArray, AV: NDArray) -> None:
        old, self.size = self.size, self.size + V.shape[1]
        self._Q[:, old : self.size] = V
        self._AQ[:, old : self.size] = AV
        cross = self.Q.T @ AV
        self._H[: self.size, old : self.size] = cross
        self._H[old : self.size, : self.size] = cross.T
        square = cross[old:]
        self._H[old : self.size, old : self.size] = (square + square.T) / 2

    def solve(self) -> tuple[NDArray, NDArray]:
        """Return the eigenvalues of QᵀAQ in descending order, and its eigenvectors."""
        H = self._H[: self.size, : self.size]
        theta, S = linalg.eigh(H, check_finite=False)
        return theta[::-1], S[:, ::-1]

    def cut(self, theta: NDArray, S: NDArray) -> None:
        """Reduce the basis to the span of some eigenvectors."""
        Q, AQ = self.Q @ S, self.AQ @ S
        self.size = S.shape[1]
        self._Q[:, : self.size], self._AQ[:, : self.size] = Q, AQ
        self._H[: self.size, : self.size] = np.diag(theta)


def dense(matrix: NDArray, k: int) -> Eigen:
    """Decompose a matrix in memory, in its own precision; the matrix is overwritten."""
    n = len(matrix)
    diagonal = matrix.diagonal().copy()
    # The transpose is in the order of LAPACK, which would copy the matrix otherwise.
    theta, V = linalg.eigh(
        matrix.T,
        lower=False,
        subset_by_index=(n - k, n - 1),
        overwrite_a=True,
        check_finite=False,
    )
    if len(theta) < k:
        # Where eigenvalues are equal, LAPACK may find none of a part of them. It has
        # overwritten the upper triangle and the diagonal only.
        np.fill_diagonal(matrix, diagonal)
        theta, V = linalg.eigh(
            matrix.T, driver="ev", overwrite_a=True, check_finite=False
        )
        theta, V = theta[-k:], V[:, -k:]
    return Eigen(theta[::-1], V[:, ::-1], np.zeros(k), 1, True)


def arpack(
    times: Times,
    n: int,
    k: int,
    dtype: np.dtype,
    tol: float,
    max_iter: int | None,
    rng: np.random.RandomState,
) -> Eigen:
    """Run ARPACK on the products, one vector at a time.

    ARPACK cannot find all eigenvectors; if all are wanted, the matrix is formed.
    """
    if k >= n:
        matrix = times(np.eye(n))
        found = dense(matrix.astype(np.float64), k)
        V = found.vectors
        residuals = np.linalg.norm(matrix @ V - V * found.values, axis=0)
        return found._replace(residuals=residuals)
    count = 0

    def one(v: NDArray) -> NDArray:
        nonlocal count
        count += 1
        return times(v.reshape(n, 1)).ravel().astype(dtype)

    operator = LinearOperator((n, n), matvec=one, dtype=dtype)
    v0 = rng.uniform(-1, 1, n).astype(dtype)
    converged = True
    try:
        theta, V = eigsh(operator, k, which="LA", tol=tol, maxiter=max_iter, v0=v0)
    except ArpackNoConvergence as failure:
        theta, V, converged = failure.eigenvalues, failure.eigenvectors, False
        if not len(theta):
            raise
    order = np.argsort(theta)[::-1]
    theta, V = theta[order].astype(np.float64), V[:, order].astype(np.float64)
    residuals = np.linalg.norm(times(V) - V * theta, axis=0)
    return Eigen(theta, V, residuals, count + 1, converged)


def randomized(
    times: Times, n: int, k: int, n_power: int, rng: np.random.RandomState
) -> Eigen:
    """Iterate a random subspace, and return the eigenvalues of largest modulus.

    There is no tolerance; the residuals show the accuracy of the result.
    """
    Q = rng.standard_normal((n, min(n, k + OVERSAMPLES)))
    for _ in range(n_power + 1):
        Q, _ = linalg.qr(times(Q), mode="economic", check_finite=False)
    AQ = times(Q)
    H = Q.T @ AQ
    theta, S = linalg.eigh((H + H.T) / 2, check_finite=False)
    order = np.argsort(-np.abs(theta), kind="stable")[:k]
    order = order[np.argsort(-theta[order], kind="stable")]
    theta, S = theta[order], S[:, order]
    V = Q @ S
    residuals = np.linalg.norm(AQ @ S - V * theta, axis=0)
    return Eigen(theta, V, residuals, n_power + 2, True)
