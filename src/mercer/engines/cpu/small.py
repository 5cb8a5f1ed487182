"""Small work: all of it is done at once, in the thread that called.

A fit of a hundred samples, or the decision values of one row, take less time than
waking a thread, planning tiles or limiting BLAS.  So the whole kernel matrix is
computed in one piece in double precision, and what prediction derives from the support
vectors is derived once for each machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import Solution, certify, is_feasible, layout
from mercer.core.smo import solve_and_polish
from mercer.core.tiles import mirror
from mercer.engines.cpu.pair import Operand, TilePair, scratch_of_thread
from mercer.engines.cpu.tiles import Weights
from mercer.engines.cpu.zeros import Run
from mercer.engines.plan import Certified, Plan, Settings, TaskSpec
from mercer.kernels.base import Definiteness, Kernel

__all__ = ["Expansion", "is_small", "solve_small"]

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


def solve_small(plan: Plan, settings: Settings, stop: NDArray) -> Certified | None:
    """Return certified solutions of a small plan.

    Return None if the plan needs more than that: many steps, a kernel that may not be
    definite, or values that overflow.
    """
    if plan.kernel.definiteness < Definiteness.CONDITIONAL:
        return None
    K = _matrix(plan)
    solutions = []
    for spec in plan.specs:
        solution = _solved(K, plan, spec, settings, stop)
        if not solution.converged and solution.n_iter != settings.max_iter:
            return None
        solutions.append(solution)
    return Certified(solutions, True) if np.isfinite(K).all() else None


def _matrix(plan: Plan) -> NDArray[np.float64]:
    """Return all kernel values, block by block, in double precision."""
    samples = Operand(plan.samples[plan.order].astype(np.float64, copy=False))
    K = np.empty((len(samples), len(samples)))
    values = plan.kernel.evaluate(TilePair(samples, samples))
    # Products of a matrix with itself need not be symmetric to the last digit.
    mirror(values, K, 0, 0)
    np.fill_diagonal(K, plan.kernel.diagonal(samples))
    return K


def _solved(
    K: NDArray, plan: Plan, spec: TaskSpec, settings: Settings, stop: NDArray
) -> Solution:
    """Solve one problem; its certificate is computed from a product with K."""
    problem, tol = spec.problem, settings.tol
    columns = np.array([plan.starts[b : b + 2] for b in spec.blocks], dtype=np.int64)
    rows = plan.gram_rows(spec)
    own = K if len(rows) == len(K) else K[np.ix_(rows, rows)]
    beta, f = problem.start.copy(), np.zeros(len(rows))
    if beta.any():
        f[:] = own @ np.bincount(problem.row, beta, len(f))
    most = MOST_STEPS if settings.max_iter < 0 else min(settings.max_iter, MOST_STEPS)
    outcome = solve_and_polish(
        K, layout(problem, columns), problem, beta, f, SAFETY * tol, most, stop, False
    )
    f[:] = own @ np.bincount(problem.row, beta, len(f))
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
        self.vectors = Operand(vectors)
        self.weights = weights
        self._is_warm = False
        parts = weights.dense_parts(slice(0, len(self.vectors)), np.dtype(np.float64))
        self._parts = [(part, weight) for part, _, weight in parts]
        #: where the columns of each part begin in the sums of all parts, then the end
        self._ends = np.cumsum([0, *(weight.shape[1] for _, weight in self._parts)])
        task = np.concatenate([used for _, used, _ in parts] or [[]]).astype(np.intp)
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
            self.vectors, self._is_warm = vectors, True
        return self.vectors

    def __call__(self, X: Any) -> NDArray[np.float64]:
        """Return the values of a few samples, shape (m, n_tasks)."""
        scratch = scratch_of_thread()
        pair = TilePair(Operand(X), self.vectors, scratch=scratch)
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
