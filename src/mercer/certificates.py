"""How exact solutions are, rounding errors included."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.coefficients import coefficient_matrix
from mercer.core.decompose import Task
from mercer.core.problem import Solution, certify
from mercer.gram import TILES_PART, WholeGram, run_tiles
from mercer.kernels.base import Kernel
from mercer.kernels.operand import Operand, Pair
from mercer.memory import WORKERS, divide
from mercer.threads import Threads

__all__ = ["are_spoilt", "certifying_bytes", "rounding_errors", "to_solution"]

# Rows on which rounding errors are measured.
SAMPLED_ROWS = 64
# Support vectors that are looked at together.
PART = 512
LEAST_PART = 16


def are_spoilt(tasks: list[Task], errors: NDArray, tol: float) -> bool:
    """Tell whether rounding or overflow alone keep a task from being certified."""
    return any(
        not task.gap + error < np.inf or (task.done and task.gap + 2.0 * error > tol)
        for task, error in zip(tasks, errors, strict=True)
    )


def to_solution(task: Task, error: float, tol: float) -> Solution:
    """Return what a task has come to; it counts as solved if no error can undo that."""
    found = task.certificate or certify(task.problem, task.beta, task.f)
    converged = found.kkt_gap + 2.0 * error <= tol
    return Solution(
        task.beta, task.f, *found[:4], task.n_iter, converged, found[4], 2.0 * error
    )


def certifying_bytes(kernel: Kernel, budget: int | None) -> int:
    """Return the part of a budget that :func:`rounding_errors` takes."""
    wanted = WORKERS * _wanted(kernel)
    return wanted if budget is None else min(wanted, budget // TILES_PART)


def _wanted(kernel: Kernel) -> int:
    """Return the memory that one thread takes at most to look at a part."""
    n_leaves = sum(1 for _ in kernel.leaves())
    return SAMPLED_ROWS * PART * 8 * (2 + 2 * n_leaves)


def rounding_errors(
    kernel: Kernel,
    data: Operand | WholeGram,
    tasks: list[Task],
    threads: Threads,
    budget: int | None = None,
) -> NDArray:
    """Estimate, for each task, the largest error of ``f`` that rounding has left.

    ``f`` is computed anew on some rows, from kernel values in double precision, which
    take at most :func:`certifying_bytes` of the budget.
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

    room = divide(certifying_bytes(kernel, budget), _wanted(kernel))
    most = max(LEAST_PART, PART * room.each // _wanted(kernel))
    parts = [used[first : first + most] for first in range(0, len(used), most)]
    found = run_tiles([kernel], threads, products, parts, room.at_once)
    exact = sum(found, np.zeros((len(sample), len(tasks))))
    for t, task in enumerate(tasks):
        own = task.gram_rows(np.arange(len(task.f)))
        at = np.searchsorted(own, sample)
        here = (at < len(own)) & (own[np.minimum(at, len(own) - 1)] == sample)
        if here.any():
            errors[t] = np.abs(task.f[at[here]] - exact[here, t]).max()
    return errors
