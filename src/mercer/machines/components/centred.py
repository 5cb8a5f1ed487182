r"""Eigenvectors of a Gram matrix centred in feature space.

With :math:`H = I - 11^T / n` the centred matrix is :math:`H K H`.  The matrix is formed
only if it is small or if the solver needs it.  Otherwise a product with :math:`H K H`
is a product with :math:`K`, with a few vectors centred before and after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import svd_flip

from mercer.engines.cpu import eigen
from mercer.engines.cpu.products import GivenProduct, GramProduct, centred_times
from mercer.runtime.scikit_learn import check_psd_eigenvalues

__all__ = [
    "SMALL",
    "Decomposition",
    "EigenSettings",
    "choose_solver",
    "decompose",
    "work_bytes",
]

# Up to this many samples, the centred matrix is formed in double precision.
SMALL = 1024
# Up to this many samples, all eigenvectors take hardly more time than a few.
FEW = 400
# Largest number of passes over the matrix, unless the user sets max_iter.
MOST_PASSES = 300
# Lanczos starts from the eigenvectors of a small matrix, which has this many samples
# per vector of a block, and from RANDOM random vectors. The small matrix is worth its
# time if all samples are at least LEAST_FOR_START per vector of a block.
START_ROWS = 16
LEAST_START_ROWS = 4
LEAST_FOR_START = 100
RANDOM = 2


class EigenSettings(NamedTuple):
    """Parameters of a decomposition."""

    solver: str
    n_components: int
    tol: float
    max_iter: int | None
    iterated_power: int | str
    rng: np.random.RandomState
    room: int | None = None  #: bytes for all arrays beside the matrix


class Decomposition(NamedTuple):
    """Eigenvalues and eigenvectors of a centred Gram matrix, and their accuracy."""

    values: NDArray
    vectors: NDArray
    residuals: NDArray
    row_means: NDArray  #: means of the rows of the matrix before centring
    trace: float  #: trace of the centred matrix
    n_iter: int
    converged: bool

    def in_order(self, order: NDArray[np.intp] | None) -> Decomposition:
        """Undo the reordering of the samples by ``order``."""
        if order is None:
            return self
        place = np.argsort(order)
        vectors, means = self.vectors[place], self.row_means[place]
        return self._replace(vectors=vectors, row_means=means)


def choose_solver(solver: str, n: int, k: int) -> str:
    """Return the solver; "auto" means Lanczos for few components of many samples."""
    if solver != "auto":
        return solver
    return "dense" if n <= FEW or 8 * k > n else "lanczos"


def work_bytes(
    settings: EigenSettings, n: int, dtype: np.dtype, budget: int
) -> tuple[int, int]:
    """Return the memory that arrays beside the matrix need, and what they may take.

    The latter is half of the budget, or what is needed if that is more.
    """
    k, item = settings.n_components, dtype.itemsize
    solver = choose_solver(settings.solver, n, k)
    block = eigen.block_size(k, n)
    if solver == "lanczos":
        least, most = eigen.lanczos_bytes(k, n)
        start = START_ROWS * block * (n * item + START_ROWS * block * 32)
        # Products take a quarter.
        least, most = least * 4 // 3, max(most, start) * 4 // 3
    elif solver == "dense":
        # The matrix, the vectors twice, and their products in double precision.
        least = most = n * n * item + n * k * (2 * item + 40)
    elif solver == "arpack":
        least = most = 4 * n * max(2 * k + 1, 20) * item
    else:
        least = most = n * (k + eigen.OVERSAMPLES) * 8 * 10
    return least, max(least, min(most, budget // 2))


def _centre(matrix: NDArray, means: NDArray) -> NDArray:
    matrix -= means[:, None].astype(matrix.dtype)
    matrix -= (means - means.mean()).astype(matrix.dtype)
    return matrix


def decompose(
    product: GramProduct | GivenProduct,
    settings: EigenSettings,
    report: Callable[[str, float], Any],
) -> Decomposition:
    """Find the leading eigenvectors of the centred matrix, and their residuals."""
    n, k = product.n, settings.n_components
    solver = choose_solver(settings.solver, n, k)
    means = product.sums / n
    trace = float(product.diag.sum() - means.sum())
    is_small = n <= SMALL
    formed = _centre(product.whole(), means) if is_small or solver == "dense" else None

    def times(V: NDArray) -> NDArray:
        if formed is not None and is_small:
            return formed.astype(np.float64, copy=False) @ V
        return centred_times(product, V)

    ends = False

    def counted(V: NDArray) -> NDArray:
        nonlocal ends
        ends = bool(report("vectors multiplied", float(V.shape[1])))
        return times(V)

    found = _solve(solver, formed, counted, product, settings, lambda: ends)
    residuals = found.residuals
    if solver == "dense":
        V = found.vectors.astype(np.float64)
        residuals = np.linalg.norm(times(V) - V * found.values, axis=0)
    # Values that are within rounding errors of 0, in the precision of the matrix, are
    # set to 0.
    values = check_psd_eigenvalues(
        found.values.astype(product.dtype), enable_warnings=False
    ).astype(np.float64)
    order = np.argsort(-values, kind="stable")
    vectors, _ = svd_flip(u=found.vectors[:, order], v=None)
    return Decomposition(
        values[order],
        vectors,
        residuals[order],
        means,
        max(trace, 0.0),
        found.n_iter,
        found.converged,
    )


def _solve(
    solver: str,
    formed: NDArray | None,
    times: eigen.Times,
    product: GramProduct | GivenProduct,
    settings: EigenSettings,
    ended: Callable[[], bool],
) -> eigen.Eigen:
    n, dtype = product.n, product.dtype
    k, rng = settings.n_components, settings.rng
    if solver == "dense":
        assert formed is not None
        return eigen.dense(formed if n > SMALL else formed.copy(), k)
    if solver == "arpack":
        return eigen.arpack(times, n, k, dtype, settings.tol, settings.max_iter, rng)
    if solver == "randomized":
        power = settings.iterated_power
        if not isinstance(power, int | np.integer):
            power = 7 if k < 0.1 * n else 4
        return eigen.randomized(times, n, k, int(power), rng)
    passes = settings.max_iter or MOST_PASSES
    room = None if settings.room is None else settings.room * 3 // 4
    first = _start(product, k, rng, room)
    return eigen.lanczos(
        times, n, k, dtype, settings.tol, passes, rng, first, ended, room
    )


def _start(
    product: GramProduct | GivenProduct,
    k: int,
    rng: np.random.RandomState,
    room: int | None,
) -> NDArray | None:
    """Return vectors close to the wanted eigenvectors, to start Lanczos from.

    Some are random, lest anything be missed that these samples know nothing of. Where
    the columns of these samples do not fit into ``room`` bytes, there are fewer.
    """
    n, block = product.n, eigen.block_size(k, product.n)
    if n < LEAST_FOR_START * block:
        return None
    count = START_ROWS * block
    if room is not None:
        per_row = n * product.dtype.itemsize + 32 * count
        count = min(count, room // per_row)
    if count < LEAST_START_ROWS * block:
        return None
    chosen = np.sort(rng.permutation(n)[:count])
    columns = product.columns(chosen)
    square = columns[chosen].astype(np.float64)
    found = eigen.dense(_centre(square, square.mean(axis=0)), block - RANDOM).vectors
    first = columns @ (found - found.mean(axis=0)).astype(columns.dtype)
    more = rng.standard_normal((n, RANDOM))
    return np.hstack([first - first.mean(axis=0, dtype=np.float64), more])
