"""Learn the weights: group the machines that share weights, and choose the method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import certify
from mercer.engines.cpu.certificates import (
    is_definite,
    products_on_support,
    rounding_errors,
    some_rows,
    to_solution,
)
from mercer.engines.cpu.pair import Operand, as_operand
from mercer.engines.cpu.tiles import (
    TILES_PART,
    Weights,
    apply,
    coefficient_matrix,
    given_budget,
)
from mercer.engines.engine import Plan, TaskSpec
from mercer.kernels.base import Definiteness, Kernel
from mercer.machines.mkl.chunks import Iteration, by_chunks
from mercer.machines.mkl.grams import BaseGrams, Solved, weighted_sum
from mercer.machines.mkl.iterations import alternate, descend, solve_fixed
from mercer.machines.mkl.joint_problem import SAFETY, JointProblem, JointSolution, Round
from mercer.machines.mkl.pairs import minimise
from mercer.machines.mkl.weights import alignment_weights

__all__ = ["METHODS", "WeightGroup", "is_convex", "learn", "settled", "split"]

# Rounds of the group-lasso iteration after which "auto" goes on with another method.
PATIENCE = 25


def go_on(
    problem: JointProblem,
    max_iter: int,
    weights: NDArray,
    before: Round | None = None,
) -> JointSolution:
    """Solve the problem by the method that suits it.

    The group-lasso iteration comes close to the solution in the fewest rounds.  Where
    it has not arrived after some of them (many kernels that are alike, a small
    tolerance), another method goes on from where it is: pair steps for p > 1, or the
    reduced gradient for p = 1.
    """
    limit = min(max_iter, len(problem.rounds) + PATIENCE)
    end = alternate(problem, limit, weights, before)
    if end.last.is_within(SAFETY * problem.tol) or problem.is_over(max_iter):
        return end
    if problem.ball.p > 1:
        return minimise(problem, max_iter, weights, end.last)
    # The reduced gradient is not made for a penalty.
    other = alternate if problem.ball.penalty else descend
    return other(problem, max_iter, weights, end.last)


_ITERATIONS: dict[str, Iteration] = {
    "auto": go_on,
    "group-lasso": alternate,
    "simple": descend,
    "smo": minimise,
}
METHODS = ("uniform", "alignment", *_ITERATIONS)

# Products are only computed again for samples within this many rounding errors of the
# margin.
CLEARANCE = 20.0


class WeightGroup(NamedTuple):
    """Machines that share their weights, and the samples that they need."""

    machines: list[int]  #: the numbers of the machines
    samples: NDArray[np.intp]  #: the samples in the order of the store
    store: BaseGrams
    specs: list[TaskSpec]
    folds: list[TaskSpec]  #: the folds of all machines, for calibration


def split(store: BaseGrams, plan: Plan, shared: bool) -> list[WeightGroup]:
    """Return the parts that share weights: all machines, or each machine on its own."""
    mains = list(plan.machines)
    if shared:
        folds = [s for i, s in enumerate(plan.specs) if i % plan.per_machine]
        return [WeightGroup(list(range(len(mains))), plan.order, store, mains, folds)]
    return [_alone(store, plan, t) for t in range(len(mains))]


def _alone(store: BaseGrams, plan: Plan, t: int) -> WeightGroup:
    own = list(plan.specs[t * plan.per_machine : (t + 1) * plan.per_machine])
    ranges = [np.arange(*plan.starts[b : b + 2]) for b in own[0].blocks]
    starts = np.append(0, np.cumsum([len(r) for r in ranges])).tolist()
    rows = np.concatenate(ranges)
    if len(rows) < store.n:
        blocks = tuple(range(len(ranges)))
        own = [spec._replace(blocks=blocks) for spec in own]
        store = store.restricted(rows, starts)
    return WeightGroup([t], plan.order[rows], store, own[:1], own[1:])


def learn(
    problem: JointProblem,
    method: str,
    max_iter: int,
    alignment: str,
    target: Callable[[TaskSpec], NDArray],
) -> JointSolution:
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


def is_convex(
    problem: JointProblem, kernels: list[Kernel], weights: NDArray
) -> bool | None:
    """Tell whether a problem is convex; None if it is not known.

    Every kernel must be positive semi-definite or, if the weights are fixed, their
    weighted sum must be.  ``kernels`` is empty if the matrices are precomputed.
    """
    store = problem.store
    if problem.is_fixed:
        kernels = [k for k, weight in zip(kernels, weights, strict=False) if weight > 0]
    known = [kernel.definiteness for kernel in kernels] or [Definiteness.UNKNOWN]
    if min(known) >= Definiteness.CONDITIONAL:
        return True
    everything = np.unique(
        np.concatenate(
            [
                own[spec.problem.row[spec.problem.hi > spec.problem.lo]]
                for spec, own in zip(problem.specs, problem.rows, strict=True)
            ]
        )
    )
    rows = some_rows(everything)
    is_whole = len(rows) == len(everything)
    if min(known) == Definiteness.INDEFINITE and not is_whole:
        return False
    squares = store.squares(rows)
    if problem.is_fixed:
        squares = np.tensordot(weights, squares, 1)[None].astype(squares.dtype)
    group = np.zeros(len(rows), dtype=np.intp)
    if not all(is_definite(K, group) for K in squares):
        return False
    return True if is_whole else None


def settled(
    problem: JointProblem,
    end: JointSolution,
    kernels: list[Kernel],
    factors: NDArray,
    X: Any,
    samples: NDArray,
) -> JointSolution:
    """Certify the result again, with the rounding errors of kernel values in the gap.

    The rounding errors are estimated on a few samples.  If they are too large, the
    products of all samples that could matter are computed in double precision.  The
    products of support vectors always are, so that the objective is exact.  The kernels
    are multiplied by ``factors``.
    """
    last = end.last
    kernel = weighted_sum(kernels, last.weights * factors)
    for task, solution in zip(problem.tasks, last.solutions, strict=True):
        task.beta, task.f = solution.beta, solution.f.copy()
    data = Operand(X, order=samples) if len(samples) == X.shape[0] else X[samples]
    operand = as_operand(data)
    budget = given_budget(problem.settings.cache_size)
    errors = rounding_errors(
        kernel, operand, problem.tasks, problem.store.threads, budget
    )
    s = last.s
    if not problem.store.is_double and not any(
        kernel.is_custom() for kernel in kernels
    ):
        products = products_on_support(
            kernels,
            operand,
            problem.tasks,
            problem.store.threads,
            # The base matrices still take their part of the budget.
            None if budget is None else budget // TILES_PART,
        )
        s = np.zeros(len(kernels))
        for task, (rows, values) in zip(problem.tasks, products, strict=True):
            beta = np.bincount(task.problem.row, task.beta, len(task.f))
            task.f[rows] = (last.weights * factors) @ values
            s += factors * (values @ beta[rows])
    solutions = [
        solution._replace(
            f=task.f,
            bias=found.bias,
            objective=found.objective,
            dual_gap=found.dual_gap,
            multipliers=found.multipliers,
            error=max(solution.error, 2.0 * float(error)),
        )
        for solution, task, error in zip(
            last.solutions, problem.tasks, errors, strict=True
        )
        for found in [certify(task.problem, task.beta, task.f)]
    ]
    problem.rounds.pop()
    now = problem.certified(last.weights, Solved(solutions, s, last.F))
    if not now.is_within(problem.tol) and not problem.store.is_double:
        near = problem.margins(now) <= CLEARANCE * errors.max()
        compute_products(problem, kernel, operand, np.flatnonzero(near))
        solutions = [to_solution(task, 0.0, problem.tol) for task in problem.tasks]
        problem.rounds.pop()
        now = problem.certified(last.weights, Solved(solutions, s, last.F))
    return problem.found(now)


def compute_products(
    problem: JointProblem, kernel: Kernel, data: Operand, samples: NDArray
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
    budget = given_budget(problem.settings.cache_size)
    values = apply(kernel, left, right, weights, store.threads, budget)
    for t, (task, own) in enumerate(zip(tasks, problem.rows, strict=True)):
        mine = np.isin(samples, own, assume_unique=True)
        task.f = task.f.copy()
        task.f[np.searchsorted(own, samples[mine])] = values[mine, t]
        task.certificate = None
