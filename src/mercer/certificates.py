"""How exact solutions are, rounding errors included."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.coefficients import coefficient_matrix
from mercer.core.decompose import Task
from mercer.core.problem import Solution, certify, is_feasible
from mercer.gram import WholeGram, run_tiles
from mercer.kernels.base import Kernel
from mercer.kernels.operand import Operand, Pair
from mercer.threads import Threads

__all__ = ["are_spoilt", "rounding_errors", "to_solution"]

# Rows on which rounding errors are measured.
SAMPLED_ROWS = 64
# Support vectors that are looked at together.
PART = 512


def are_spoilt(tasks: list[Task], errors: NDArray, tol: float) -> bool:
    """Tell whether rounding or overflow alone keep a task from being certified."""
    return any(
        not task.gap + error < np.inf
        or (task.done and task.gap + 2.0 * error > tol)
        or not is_feasible(task.problem, task.beta)
        for task, error in zip(tasks, errors, strict=True)
    )


def to_solution(task: Task, error: float, tol: float) -> Solution:
    """Return what a task has come to.

    It counts as solved if bounds and sums hold, and rounding cannot undo the gap.
    """
    found = task.certificate or certify(task.problem, task.beta, task.f)
    is_within = found.kkt_gap + 2.0 * error <= tol
    converged = is_within and is_feasible(task.problem, task.beta)
    return Solution(
        task.beta, task.f, *found[:4], task.n_iter, converged, found[4], 2.0 * error
    )


def rounding_errors(
    kernel: Kernel, data: Operand | WholeGram, tasks: list[Task], threads: Threads
) -> NDArray:
    """Estimate, for each task, the largest error of ``f`` that rounding has left.

    ``f`` is computed anew on some rows, from kernel values in double precision.
    """
    errors = np.zeros(len(tasks))
    n = len(data.matrix) if isinstance(data, WholeGram) else len(data)
    sample = np.unique(np.linspace(0, n - 1, min(n, SAMPLED_ROWS)).astype(np.int64))
    coefficients = coefficient_matrix(
        n, [(task.gram_rows(task.problem.row), task.beta) for task in tasks]
    )
    used = np.flatnonzero(np.diff(coefficients.indptr))

    def products(part: NDArray) -> NDArray:
        if isinstance(data, WholeGram):
            values = data.matrix[np.ix_(sample, part)].astype(np.float64)
        else:
            both = [Operand(data.raw_rows(r).astype(float)) for r in (sample, part)]
            values = kernel.evaluate(Pair(*both))
        return (coefficients[part].T @ values.T).T

    parts = [used[first : first + PART] for first in range(0, len(used), PART)]
    found = run_tiles([kernel], threads, products, parts)
    exact = sum(found, np.zeros((len(sample), len(tasks))))
    for t, task in enumerate(tasks):
        own = task.gram_rows(np.arange(len(task.f)))
        at = np.searchsorted(own, sample)
        here = (at < len(own)) & (own[np.minimum(at, len(own) - 1)] == sample)
        if here.any():
            errors[t] = np.abs(task.f[at[here]] - exact[here, t]).max()
    return errors
