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

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import Solution, certify, is_feasible, layout
from mercer.core.smo import multiply, solve_and_polish
from mercer.engines.cpu.pair import Operand, TilePair, scratch_of_thread
from mercer.engines.cpu.tiles import Weights
from mercer.engines.cpu.zeros import Run
from mercer.engines.plan import Certified, Plan, Settings, TaskSpec
from mercer.kernels.base import Definiteness, Kernel
from mercer.kernels.histogram import AdditiveChi2, Chi2, Intersection
from mercer.kernels.pair import Pair, Samples

__all__ = ["Expansion", "is_small", "is_tiny", "solve_small", "whole_matrix"]

# Up to this many samples, a fit is small.
MOST_SAMPLES = 256
# Bytes that a small fit may take for each kernel value: the matrix, what it is computed
# from, and the part that a problem multiplies with its coefficients.
BYTES_PER_VALUE = 32
# A small fit that needs more steps is not small: it must show progress, and end early
# when the user interrupts it.
MOST_STEPS = 50_000
# The rest of the tolerance is for rounding errors, as in large fits.
SAFETY = 0.9
# Up to this many multiplications, decision values are small work.
MOST_WORK = 1_000_000
# Up to this many differences of entries, the plain pair is quicker than that of tiles.
MOST_DIFFERENCES = 100_000
SUMS_OVER_COLUMNS = (AdditiveChi2, Chi2, Intersection)


def is_small(plan: Plan, settings: Settings) -> bool:
    """Tell whether a plan is small and can be solved by the pair solver."""
    n = len(plan.order)
    return (
        n <= MOST_SAMPLES
        and settings.solver in ("auto", "smo")
        and (
            settings.cache_size == "auto"
            or n * n * BYTES_PER_VALUE <= float(settings.cache_size) * 2**20
        )
    )


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
    the plan needs more than that: many steps, a kernel that may not be definite, or
    values that overflow.
    """
    if plan.kernel.definiteness < Definiteness.CONDITIONAL:
        return None
    K = whole_matrix(plan.kernel, plan.samples[plan.order])
    if not np.isfinite(K).all():
        return None
    states = [Solved(np.inf, False, 0)] * len(plan.specs)
    solutions = []
    for t, spec in enumerate(plan.specs):
        solution = _solved(K, plan, spec, settings, stop)
        solutions.append(solution)
        if progress is not None and not stop[0]:
            states[t] = Solved(solution.kkt_gap, solution.converged, solution.n_iter)
            progress(states)
        if not (solution.converged or stop[0] or solution.n_iter == settings.max_iter):
            return None
    return Certified(solutions, True, bool(stop[0]))


def is_tiny(X: Any, n: int) -> bool:
    """Tell whether the plain pair is the quickest for samples beside n others."""
    return X.shape[0] * X.shape[1] * n <= MOST_DIFFERENCES


def _sums_over_columns(kernel: Kernel) -> bool:
    """Tell whether a kernel needs sums that NumPy computes column by column."""
    return any(isinstance(leaf, SUMS_OVER_COLUMNS) for leaf in kernel.leaves())


def whole_matrix(kernel: Kernel, X: Any) -> NDArray[np.float64]:
    """Return all kernel values of samples in one piece, in double precision."""
    X = X.astype(np.float64, copy=False)
    pair: Pair
    if is_tiny(X, X.shape[0]) and not _sums_over_columns(kernel):
        samples = Samples(X)
        pair = Pair(samples, samples)
    else:
        samples = operand = Operand(X)
        pair = TilePair(operand, operand)
    values = kernel.evaluate(pair)
    # Products of a matrix with itself need not be symmetric to the last digit.
    K = 0.5 * (values + values.T)
    np.fill_diagonal(K, kernel.diagonal(samples))
    return K


def _solved(
    K: NDArray, plan: Plan, spec: TaskSpec, settings: Settings, stop: NDArray
) -> Solution:
    """Solve one problem; its certificate is computed from a product with K."""
    problem, tol = spec.problem, settings.tol
    where = layout(problem, np.array([plan.starts[b : b + 2] for b in spec.blocks]))
    beta = problem.start.copy()
    f = np.zeros(int(where.span[-1, :2].sum()))
    if beta.any():
        multiply(K, where.span, problem.row, beta, f)
    most = MOST_STEPS if settings.max_iter < 0 else min(settings.max_iter, MOST_STEPS)
    outcome = solve_and_polish(
        K, where, problem, beta, f, SAFETY * tol, most, stop, shrinking=False
    )
    multiply(K, where.span, problem.row, beta, f)
    found = certify(problem, beta, f)
    converged = found.kkt_gap <= tol and is_feasible(problem, beta)
    return Solution(beta, f, *found[:4], outcome.n_iter, converged, found[4])


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
        #: the sums of all parts, task by task, and where each task begins
        self._order = np.argsort(task, kind="stable")
        self._tasks, self._first = np.unique(task[self._order], return_index=True)

    def is_small(self, X: Any) -> bool:
        """Tell whether decision values of these samples are small work."""
        work = X.shape[0] * len(self.vectors) * X.shape[1]
        return 0 < work <= MOST_WORK

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
        pair: Pair
        if is_tiny(X, len(self.vectors)) and not self._sums_over_columns:
            pair = Pair(Samples(X), self.vectors)
        else:
            if self._operand is None:
                self._operand = Operand(self.vectors.X)
            pair = TilePair(Operand(X), self._operand, scratch=scratch_of_thread())
        values = self.kernel.evaluate(pair)
        sums = np.empty((len(values), self._ends[-1]))
        for (part, weight), first, stop in zip(
            self._parts, self._ends, self._ends[1:], strict=False
        ):
            np.matmul(values[:, part], weight, out=sums[:, first:stop])
        result = np.zeros((len(values), self.weights.matrix.shape[1]))
        if len(self._tasks):
            result[:, self._tasks] = np.add.reduceat(
                sums[:, self._order], self._first, axis=1
            )
        return result
