"""Small work: all of it is done at once, in the thread that called.

A fit of a hundred samples, or the decision values of one row, take less time than
waking a thread, planning tiles or limiting BLAS.  So the whole kernel matrix is
computed in one piece in double precision, and what prediction derives from the support
vectors is derived once for each machine.  Up to a certain size the plain pair of
:mod:`mercer.kernels.pair` is quicker than the pair of tiles, which prepares samples
for products of matrices; but sums over columns that are not products or distances are
always quicker in compiled code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.stacked import Solutions, Specs, ends_of, room_for, solve_stacked
from mercer.core.tiles import mirror, ranges
from mercer.engines.cpu.certificates import are_convex
from mercer.engines.cpu.pair import Operand, TilePair, scratch_of_thread
from mercer.engines.cpu.tiles import Tiles, Weights
from mercer.engines.cpu.zeros import Run
from mercer.engines.engine import Certified, Plan, Settings, certified
from mercer.kernels.base import Definiteness, Kernel
from mercer.kernels.histogram import AdditiveChi2, Chi2, Intersection
from mercer.kernels.pair import Pair, Samples
from mercer.runtime.threads import one_blas_thread

__all__ = [
    "Expansion",
    "Solved",
    "few_products",
    "is_brief",
    "is_small",
    "is_tiny",
    "solve_small",
    "whole_matrix",
]

# Up to this many samples, a fit is small if the products of all pairs of them take no
# more than so many multiplications.  Beyond that, threads are worth waking.
MOST_SAMPLES = 1024
MOST_PRODUCTS = 2**25
# Up to this many samples, a fit is small whatever the number of features, and problems
# are solved more exactly than asked for.
FEW_SAMPLES = 256
# Number of problems that are solved in one go.
AT_ONCE = 64
# Number of rows of the kernel matrix that are computed at a time.
ROWS_OF_TILE = 128
# Bytes that small work may take for each kernel value: the matrix, what it is computed
# from, and the part that a problem multiplies with its coefficients.
BYTES_PER_VALUE = 32
# A small fit that needs more steps is not small: it must show progress, and end early
# when the user interrupts it.
MOST_STEPS = 50_000
# Up to this many multiplications, and kernel values, decision values are small work.
MOST_WORK = 2**25
MOST_VALUES = 2**19
# Number of sums over classes that are added up at a time.
SUMS_AT_ONCE = 2**18
# Up to this many differences of entries, the plain pair is quicker than that of tiles.
MOST_DIFFERENCES = 100_000
SUMS_OVER_COLUMNS = (AdditiveChi2, Chi2, Intersection)


def is_small(plan: Plan, settings: Settings) -> bool:
    """Tell whether a plan is small and can be solved by the pair solver."""
    n = len(plan.order)
    return (
        n <= MOST_SAMPLES
        and (n <= FEW_SAMPLES or n * n * plan.samples.shape[1] <= MOST_PRODUCTS)
        and settings.solver in ("auto", "smo")
        and _fits(n * n, settings.cache_size)
    )


def _fits(n_values: int, cache_size: float | str) -> bool:
    """Tell whether so many kernel values keep to the memory that the user allows."""
    if cache_size == "auto":
        return True
    return n_values * BYTES_PER_VALUE <= float(cache_size) * 2**20


class Solved(NamedTuple):
    """What reports on progress know of a problem."""

    gap: float
    done: bool
    n_iter: int


def solve_small(
    plan: Plan, settings: Settings, stop: NDArray, progress: Any = None
) -> Certified | None:
    """Return certified solutions of a small plan.

    ``progress`` is called after each problem, and may set ``stop[0]``. Return None if
    the plan needs more than that: many steps, kernel values that are given or come from
    a function, or values that overflow.
    """
    is_known = plan.kernel.definiteness >= Definiteness.CONDITIONAL
    is_open = plan.kernel.definiteness == Definiteness.UNKNOWN
    if is_open or (not is_known and plan.kernel.is_custom()):
        return None
    K = whole_matrix(plan.kernel, plan.samples[plan.order])
    if not np.isfinite(K).all():
        return None
    specs = Specs.of(plan.specs)
    spans, begin_spans, n_rows = _spans(specs, plan.starts)
    problems = specs.stacked(n_rows)
    results = room_for(problems)
    max_iter, tol, count = settings.max_iter, settings.tol, len(specs)
    most = MOST_STEPS if max_iter < 0 else min(max_iter, MOST_STEPS)
    states = [Solved(np.inf, False, 0)] * (0 if progress is None else count)
    step = AT_ONCE if progress is None else 1
    # Python sees an interrupt between two calls of compiled code.
    for first in range(0, count, step):
        last = min(first + step, count)
        solve_stacked(
            K, problems, spans, begin_spans, first, last, tol, most,
            len(K) <= FEW_SAMPLES, stop, results,
        )  # fmt: skip
        found = Solutions(problems, results, tol, slice(first, last))
        if progress is not None and not stop[0]:
            states[first:last] = [
                Solved(s.kkt_gap, s.converged, s.n_iter) for s in found
            ]
            progress(states)
        if not (stop[0] or (found.converged | (found.n_iter == max_iter)).all()):
            return None
    solutions = found if count <= step else Solutions(problems, results, tol)
    if is_known:
        return Certified(solutions, True, bool(stop[0]))
    if not np.isfinite(results.certificate).all():
        return None
    machines = [(spec.problem, plan.gram_rows(spec)) for spec in plan.machines]
    verdicts = are_convex(plan.kernel, lambda rows: K[np.ix_(rows, rows)], machines)
    return certified(plan, solutions, verdicts)._replace(stopped_early=bool(stop[0]))


def _spans(specs: Specs, starts: Sequence[int]) -> tuple[NDArray, NDArray, NDArray]:
    """Return where the rows of each problem lie in the matrix.

    These are stretches (first row, length, first column) one after the other, where
    those of each problem begin, then the end, and the number of its rows.
    """
    if len(starts) == 2:  # every problem has all rows
        n, count = starts[1], len(specs)
        spans = np.array([[0, n, 0]] * count, dtype=np.int64)
        return spans, np.arange(count + 1), np.full(count, n)
    blocks, where = specs.all_blocks(), np.asarray(starts, dtype=np.int64)
    begin = ends_of(specs.n_blocks())
    spans = np.empty((len(blocks), 3), dtype=np.int64)
    spans[:, 2] = where[blocks]
    spans[:, 1] = where[blocks + 1] - spans[:, 2]
    # Rows are counted from the first stretch of each problem on.
    rows = ends_of(spans[:, 1])
    own = rows[begin]
    n_rows = own[1:] - own[:-1]
    spans[:, 0] = rows[:-1] - np.repeat(own[:-1], begin[1:] - begin[:-1])
    return spans, begin, n_rows


def is_tiny(X: Any, n: int) -> bool:
    """Tell whether the plain pair is the quickest for samples beside n others."""
    return X.shape[0] * X.shape[1] * n <= MOST_DIFFERENCES


def _sums_over_columns(kernel: Kernel) -> bool:
    """Tell whether a kernel needs sums that NumPy computes column by column."""
    return any(isinstance(leaf, SUMS_OVER_COLUMNS) for leaf in kernel.leaves())


def whole_matrix(kernel: Kernel, X: Any) -> NDArray[np.float64]:
    """Return all kernel values of samples in one piece, in double precision."""
    X = X.astype(np.float64, copy=False)
    n = X.shape[0]
    if is_tiny(X, n) and not _sums_over_columns(kernel):
        samples = Samples(X)
        values = kernel.evaluate(Pair(samples, samples))
        # Products of a matrix with itself need not be symmetric to the last digit.
        K = 0.5 * (values + values.T)
        np.fill_diagonal(K, kernel.diagonal(samples))
        return K
    operand = Operand(X)
    tiles = Tiles(kernel, operand)
    K = np.empty((n, n))
    # Where other programs are at work, a second thread of BLAS would come late, and the
    # product of a millisecond would take fifty.
    with one_blas_thread():
        for rows in ranges(0, n, ROWS_OF_TILE, even=False):
            right = operand.rows(slice(rows.start, n))
            mirror(tiles(operand.rows(rows), right), K, rows.start, rows.start)
    np.fill_diagonal(K, kernel.diagonal(operand))
    return K


def is_brief(shape: tuple[int, int], n: int, budget: int | None = None) -> bool:
    """Tell whether kernel values of samples of such a shape and n others are brief.

    They must fit into ``budget`` bytes.
    """
    n_values = shape[0] * n
    return (
        n_values <= MOST_VALUES
        and 0 < n_values * shape[1] <= MOST_WORK
        and (budget is None or n_values * BYTES_PER_VALUE <= budget)
    )


def few_products(kernel: Kernel, X: Any, Z: Any, V: NDArray) -> NDArray[np.float64]:
    """Return ``K(X, Z) @ V`` of a few samples."""
    V = V.astype(np.float64, copy=False)
    if is_tiny(X, Z.shape[0]) and not _sums_over_columns(kernel):
        return kernel.evaluate(Pair(Samples(X), Samples(Z))) @ V
    pair = TilePair(Operand(X), Operand(Z), scratch=scratch_of_thread())
    with one_blas_thread():
        return kernel.evaluate(pair) @ V


class Expansion:
    """The function :math:`f_t(x) = \\sum_j k(x, z_j) w_{jt}`, ready for new samples.

    Norms and centred copies of the support vectors, and the coefficients class by
    class, are derived once and serve every call.

    Parameters
    ----------
    kernel : Kernel
        Bound to data.
    vectors : array or CSR matrix of shape (n, d)
        The support vectors :math:`z_j`.
    weights : Weights
        Their coefficients :math:`w_{jt}`.
    """

    def __init__(self, kernel: Kernel, vectors: Any, weights: Weights):
        self.kernel = kernel
        self.vectors = Samples(vectors)
        self.weights = weights
        self._operand: Operand | None = None
        self._is_warm = False
        self._sums_over_columns = _sums_over_columns(kernel)
        parts = weights.dense_parts(slice(0, len(self.vectors)), np.dtype(np.float64))
        self._parts = [(part, weight) for part, _, weight in parts]
        #: where the columns of each part begin in the sums of all parts, then the end
        self._ends = np.cumsum([0, *(weight.shape[1] for _, weight in self._parts)])
        task = np.array([t for _, used, _ in parts for t in used], dtype=np.intp)
        #: which tasks have a first sum, a second one, and so on, and which sums these
        #: are; a task of two classes has two
        self._layers = _layers(task)

    def is_small(self, X: Any, cache_size: float | str = "auto") -> bool:
        """Tell whether decision values of these samples are small work.

        Their kernel values must fit into ``cache_size`` megabytes.
        """
        n = len(self.vectors)
        return is_brief(X.shape, n) and _fits(X.shape[0] * n, cache_size)

    def warmed_up(self, run: Run) -> Operand:
        """Return the support vectors; threads derive what the kernel needs of them."""
        if not self._is_warm:
            vectors = Operand(self.vectors.X, run=run)
            self.kernel.evaluate(TilePair(vectors.rows(slice(0, 1)), vectors))
            # The threads end with the call, but the vectors stay.
            vectors.run_alone()
            self._operand, self._is_warm = vectors, True
        assert self._operand is not None
        return self._operand

    def __call__(self, X: Any) -> NDArray[np.float64]:
        """Return the values of a few samples, shape (m, n_tasks)."""
        if is_tiny(X, len(self.vectors)) and not self._sums_over_columns:
            return self._summed(self.kernel.evaluate(Pair(Samples(X), self.vectors)))
        if self._operand is None:
            self._operand = Operand(self.vectors.X)
        pair = TilePair(Operand(X), self._operand, scratch=scratch_of_thread())
        with one_blas_thread():
            return self._summed(self.kernel.evaluate(pair))

    def _summed(self, values: NDArray) -> NDArray[np.float64]:
        """Return kernel values times coefficients, class by class."""
        result = np.zeros((len(values), self.weights.matrix.shape[1]))
        n_sums = int(self._ends[-1])
        # Many classes have many sums for each sample, so that few fit into a cache.
        step = min(len(values), max(1, SUMS_AT_ONCE // max(1, n_sums)))
        room = np.empty((step, n_sums))
        for row in range(0, len(values), max(1, step)):
            rows = slice(row, row + step)
            some = values[rows]
            sums = room[: len(some)]
            for (part, weight), first, stop in zip(
                self._parts, self._ends, self._ends[1:], strict=False
            ):
                np.matmul(some[:, part], weight, out=sums[:, first:stop])
            for tasks, columns in self._layers:
                result[rows, tasks] += np.take(sums, columns, axis=1)
        return result


def _layers(task: NDArray[np.intp]) -> list[tuple[NDArray | slice, NDArray]]:
    """Return, for the first sum of every task, the second, ..., tasks and columns.

    ``task`` says for each column of sums which task it belongs to.  Tasks that follow
    each other without a gap are a slice.
    """
    order = np.argsort(task, kind="stable")
    tasks, first, counts = np.unique(task[order], return_index=True, return_counts=True)
    layers: list[tuple[NDArray | slice, NDArray]] = []
    for k in range(int(counts.max(initial=0))):
        more = counts > k
        which = tasks[more]
        is_run = bool((np.diff(which) == 1).all())
        where = slice(int(which[0]), int(which[-1]) + 1) if is_run else which
        layers.append((where, order[first[more] + k]))
    return layers
