"""Learn the weights: group the machines that share weights, and choose the method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.certificates import rounding_errors, to_solution
from mercer.coefficients import Weights, coefficient_matrix
from mercer.gram import apply
from mercer.kernels.base import Kernel, as_operand
from mercer.kernels.operand import Operand
from mercer.machine import Tasks
from mercer.mkl.alternate import alternate
from mercer.mkl.base import BaseGrams, Solved
from mercer.mkl.chunks import Iteration, by_chunks
from mercer.mkl.pairs import minimise
from mercer.mkl.problem import Found, Problem, solve_fixed
from mercer.mkl.simple import descend
from mercer.mkl.weights import alignment_weights
from mercer.solvers import TaskSpec

__all__ = ["METHODS", "Part", "learn", "settled", "split"]

_ITERATIONS: dict[str, Iteration] = {
    "group-lasso": alternate,
    "simple": descend,
    "smo": minimise,
}
METHODS = ("uniform", "alignment", *_ITERATIONS)

# Products are only computed again for samples within this many rounding errors of the
# margin.
CLEARANCE = 20.0


class Part(NamedTuple):
    """Machines that share their weights, and the samples that they need."""

    machines: list[int]  #: the numbers of the machines
    samples: NDArray[np.intp]  #: the samples in the order of the store
    store: BaseGrams
    specs: list[TaskSpec]
    folds: list[TaskSpec]  #: the folds of all machines, for calibration


def split(store: BaseGrams, tasks: Tasks, per_machine: int, shared: bool) -> list[Part]:
    """Return the parts that share weights: all machines, or each machine on its own.

    Every machine has ``per_machine`` problems: the first is the machine itself, and the
    others are its folds.
    """
    mains = tasks.specs[::per_machine]
    if shared:
        folds = [s for i, s in enumerate(tasks.specs) if i % per_machine]
        return [Part(list(range(len(mains))), tasks.order, store, mains, folds)]
    return [_alone(store, tasks, per_machine, t) for t in range(len(mains))]


def _alone(store: BaseGrams, tasks: Tasks, per_machine: int, t: int) -> Part:
    own = tasks.specs[t * per_machine : (t + 1) * per_machine]
    ranges = [np.arange(*tasks.starts[b : b + 2]) for b in own[0].blocks]
    starts = np.append(0, np.cumsum([len(r) for r in ranges])).tolist()
    rows = np.concatenate(ranges)
    if len(rows) < store.n:
        blocks = tuple(range(len(ranges)))
        own = [spec._replace(blocks=blocks) for spec in own]
        store = store.restricted(rows, starts)
    return Part([t], tasks.order[rows], store, own[:1], own[1:])


def learn(
    problem: Problem,
    method: str,
    max_iter: int,
    alignment: str,
    target: Callable[[TaskSpec], NDArray],
) -> Found:
    """Find weights and machines.

    ``target`` returns the values, by row of a problem, with which kernels should be
    aligned; the target of several machines is :math:`\\sum_t y_t y_t^T`.
    """
    store = problem.store
    if method in _ITERATIONS:
        first = problem.ball.uniform(store.n_kernels)
        return by_chunks(problem, _ITERATIONS[method], max_iter, first)
    weights = np.full(store.n_kernels, 1.0 / store.n_kernels)
    if method == "alignment":
        Y = np.zeros((store.n, len(problem.specs)))
        for t, (spec, rows) in enumerate(zip(problem.specs, problem.rows, strict=True)):
            Y[rows, t] = target(spec)
        is_joint = alignment == "joint"
        moments = store.moments(Y, alignment != "plain", is_joint)
        weights = alignment_weights(moments, is_joint)
    problem.is_fixed = True
    return by_chunks(problem, solve_fixed, max_iter, weights)


def settled(
    problem: Problem, end: Found, kernel: Kernel, X: Any, samples: NDArray
) -> Found:
    """Certify once more, with the rounding errors of kernel values in the gap.

    The errors are estimated on a few samples.  If the gap is then too large, the
    products of all samples close to a margin are computed in double precision.
    """
    last = end.last
    for task, solution in zip(problem.tasks, last.solutions, strict=True):
        task.beta, task.f = solution.beta, solution.f
    data = Operand(X, order=samples) if len(samples) == X.shape[0] else X[samples]
    operand = as_operand(data)
    errors = rounding_errors(kernel, operand, problem.tasks, problem.store.threads)
    solutions = [
        s._replace(error=max(s.error, 2.0 * float(e)))
        for s, e in zip(last.solutions, errors, strict=True)
    ]
    problem.rounds.pop()
    now = problem.certified(last.weights, Solved(solutions, last.s, last.F))
    if not now.is_within(problem.tol) and not problem.store.is_double:
        near = problem.margins(now) <= CLEARANCE * errors.max()
        compute_products(problem, kernel, operand, np.flatnonzero(near))
        solutions = [to_solution(task, 0.0, problem.tol) for task in problem.tasks]
        problem.rounds.pop()
        now = problem.certified(last.weights, Solved(solutions, last.s, last.F))
    return problem.found(now)


def compute_products(
    problem: Problem, kernel: Kernel, data: Operand, samples: NDArray
) -> None:
    """Compute the products ``f`` of some samples again, in double precision."""
    tasks, store = problem.tasks, problem.store
    columns = [(task.gram_rows(task.problem.row), task.beta) for task in tasks]
    matrix = coefficient_matrix(store.n, columns)
    used = np.flatnonzero(np.diff(matrix.indptr))
    weights = Weights(matrix[used], np.searchsorted(used, store.starts).tolist())
    left, right = (
        Operand(data.raw_rows(rows).astype(np.float64)) for rows in (samples, used)
    )
    values = apply(kernel, left, right, weights, store.threads)
    for t, (task, own) in enumerate(zip(tasks, problem.rows, strict=True)):
        mine = np.isin(samples, own, assume_unique=True)
        task.f = task.f.copy()
        task.f[np.searchsorted(own, samples[mine])] = values[mine, t]
        task.certificate = None
