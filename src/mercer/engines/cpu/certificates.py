"""Certificates: how exact solutions are, and whether their problems are convex."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.lapack import dpotrf

from mercer.core.problem import DualProblem, Solution, certify, is_feasible
from mercer.core.tiles import ranges
from mercer.engines.cpu.decompose import Task
from mercer.engines.cpu.gram import WholeGram
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.tiles import (
    MOST_WORKERS,
    TILES_PART,
    Tiles,
    Weights,
    Workers,
    apply,
    coefficient_matrix,
    count_workers,
    divide,
)
from mercer.engines.engine import Certified, Plan, certified
from mercer.kernels.base import Definiteness, Kernel
from mercer.runtime.validation import check_finite

__all__ = [
    "Values",
    "are_convex",
    "are_spoilt",
    "certifying_bytes",
    "coarse_part",
    "errors_on",
    "exact_products",
    "is_definite",
    "is_spoilt",
    "judged",
    "kernel_values",
    "near_rows",
    "products",
    "products_on_support",
    "refine",
    "rounding_errors",
    "sampled_products",
    "settle",
    "some_rows",
    "to_solution",
]

# Rows on which rounding errors are measured.
SAMPLED_ROWS = 64
# Rows matter to the gap whose gradients are within so many times the errors of it.
NEAR = 8.0
# How often values in single precision are renewed, and the fraction of the tolerance to
# which steps go on after that.
MOST_RENEWALS = 4
LEFT_TO_ROUNDING = 0.7
# Up to this many kernel values, products in double precision are work for one thread.
FEW_VALUES = 2**17
# Support vectors whose kernel values are computed at a time, at most and at least.
PART = 512
LEAST_PART = 16
# Tiles that are computed before their products are summed.
TILES_AT_ONCE = 64
# Number of rows of a kernel matrix that are tested for negative eigenvalues.
TESTED_ROWS = 512
# Eigenvalues of this size, in units of the rounding errors of a sum, count as 0.
ROUNDING = 16.0

#: gives the square of kernel values of some Gram rows
Values = Callable[[NDArray], NDArray]


def are_spoilt(tasks: list[Task], errors: NDArray, tol: float) -> bool:
    """Tell whether rounding or overflow is the only obstacle to a certificate."""
    return any(
        not task.gap + error < np.inf
        or is_spoilt(task, error, tol)
        or not is_feasible(task.problem, task.beta)
        for task, error in zip(tasks, errors, strict=True)
    )


def is_spoilt(task: Task, error: float, tol: float) -> bool:
    """Tell whether a task is solved, apart from its rounding errors."""
    return task.done and task.gap + 2.0 * error > tol


def to_solution(task: Task, error: float, tol: float) -> Solution:
    """Return the solution of a task.

    It has converged if its bounds and sums hold, and if its gap and its rounding errors
    together are within the tolerance.
    """
    found = task.certificate or certify(task.problem, task.beta, task.f)
    is_within = found.kkt_gap + 2.0 * error <= tol
    converged = is_within and is_feasible(task.problem, task.beta)
    return Solution(
        task.beta, task.f, *found[:4], task.n_iter, converged, found[4], 2.0 * error
    )


def certifying_bytes(kernel: Kernel, budget: int | None) -> int:
    """Return the part of a budget that :func:`rounding_errors` takes."""
    wanted = MOST_WORKERS * _wanted(kernel)
    return wanted if budget is None else min(wanted, budget // TILES_PART)


def _wanted(kernel: Kernel) -> int:
    """Return the memory that one thread needs for a full part."""
    n_leaves = sum(1 for _ in kernel.leaves())
    return SAMPLED_ROWS * PART * 8 * (2 + 2 * n_leaves)


def rounding_errors(
    kernel: Kernel,
    data: Operand | WholeGram,
    tasks: list[Task],
    threads: Workers | None,
    budget: int | None = None,
) -> NDArray:
    """Estimate, for each task, the largest error of ``f`` that rounding has left.

    ``f`` is computed anew on some rows, from kernel values in double precision, which
    take at most :func:`certifying_bytes` of the budget.
    """
    n = len(data.matrix) if isinstance(data, WholeGram) else len(data)
    sample, used, coefficients = sampled_products(tasks, n)
    tiles = Tiles(kernel, None, threads, shared=True)

    def products(where: slice) -> NDArray:
        part = used[where]
        if isinstance(data, WholeGram):
            values = data.matrix[np.ix_(sample, part)].astype(np.float64)
        else:
            values = tiles(_in_double(data, sample), _in_double(data, part))
        return (coefficients[where].T @ values.T).T

    total, wanted = certifying_bytes(kernel, budget), _wanted(kernel)
    least = wanted * LEAST_PART // PART
    room = divide(total, wanted, count_workers(total, least))
    most = max(LEAST_PART, PART * room.each // wanted)
    parts = ranges(0, len(used), most, even=False)
    found = tiles.run(products, parts, room.at_once)
    exact = sum(found, np.zeros((len(sample), len(tasks))))
    return errors_on(tasks, sample, exact)


def sampled_products(
    tasks: Sequence[Task], n: int
) -> tuple[NDArray, NDArray, sparse.csr_array]:
    """Return what to multiply to measure the rounding errors of ``f``.

    These are Gram rows on which to measure, Gram rows that have coefficients, and their
    coefficients (n_used, n_tasks).
    """
    sample = np.unique(np.linspace(0, n - 1, min(n, SAMPLED_ROWS)).astype(np.int64))
    coefficients = coefficient_matrix(
        n, [(task.gram_rows(task.problem.row), task.beta) for task in tasks]
    )
    used = np.flatnonzero(np.diff(coefficients.indptr))
    return sample, used, coefficients[used]


def errors_on(tasks: Sequence[Task], sample: NDArray, exact: NDArray) -> NDArray:
    """Return the largest error of each task's ``f`` on some Gram rows.

    ``exact`` has the values of all tasks on these rows, (n_rows, n_tasks).
    """
    errors = np.zeros(len(tasks))
    for t, task in enumerate(tasks):
        own = task.gram_rows(np.arange(len(task.f)))
        at = np.searchsorted(own, sample)
        here = (at < len(own)) & (own[np.minimum(at, len(own) - 1)] == sample)
        if here.any():
            errors[t] = np.abs(task.f[at[here]] - exact[here, t]).max()
    return errors


def near_rows(task: Task, margin: float) -> NDArray:
    """Return the rows whose values of ``f`` could matter to the KKT gap.

    These are the rows of variables that would violate if their gradient changed by the
    margin in the worst direction; free variables are always among them.
    """
    p, lo, hi, _, row, group = task.problem
    G = task.f[row] + p
    up, down = task.beta < hi, task.beta > lo
    least = np.full(group[-1] + 1, np.inf)
    most = np.full(group[-1] + 1, -np.inf)
    np.minimum.at(least, group[up], G[up])
    np.maximum.at(most, group[down], G[down])
    is_near = (up & (G <= most[group] + margin)) | (down & (G >= least[group] - margin))
    return np.unique(row[is_near])


def products(
    kernel: Kernel,
    data: Operand,
    task: Task,
    rows: NDArray,
    threads: Workers,
    budget: int | None = None,
    *,
    precise: bool = False,
) -> NDArray:
    """Return ``f = K beta`` on some rows of a task, tile by tile.

    Kernel values are computed in the precision of the data, or in double precision.
    """
    used, values = _coefficients(task)
    if not len(used):
        return np.zeros(len(rows))
    weights = Weights(sparse.csr_array(values[:, None]), [0, len(used)])
    left, right = (
        _in_double(data, own) if precise else data.rows(own)
        for own in (task.gram_rows(rows), task.gram_rows(used))
    )
    return apply(kernel, left, right, weights, threads, budget)[:, 0]


def _coefficients(task: Task) -> tuple[NDArray, NDArray]:
    """Return the rows of a task that have coefficients, and these."""
    by_row = np.bincount(task.problem.row, task.beta, len(task.f))
    used = np.flatnonzero(by_row)
    return used, by_row[used]


def exact_products(
    kernel: Kernel,
    data: Operand,
    some: Sequence[tuple[Task, NDArray]],
    threads: Workers,
    budget: int,
) -> list[NDArray]:
    """Return ``f = K beta`` of each task on the rows beside it, in double precision.

    A task of few values is work for one thread; the others go one after another, with
    all threads.
    """
    used = [_coefficients(task) for task, _ in some]
    n_leaves = sum(1 for _ in kernel.leaves())
    room = budget // (TILES_PART * 8 * (2 + 2 * n_leaves))
    most = min(FEW_VALUES, room)
    few = [k for k, (_, rows) in enumerate(some) if len(rows) * len(used[k][0]) <= most]
    tiles = Tiles(kernel, None, threads, shared=True)

    def at_once(k: int) -> NDArray:
        (task, rows), (own, values) = some[k], used[k]
        left, right = (_in_double(data, task.gram_rows(part)) for part in (rows, own))
        return tiles(left, right) @ values

    found = dict(
        zip(few, tiles.run(at_once, few, max(1, room // FEW_VALUES)), strict=True)
    )
    return [
        found[k]
        if k in found
        else products(kernel, data, *some[k], threads, budget, precise=True)
        for k in range(len(some))
    ]


def settle(
    tasks: list[Task],
    errors: NDArray,
    tol: float,
    solve: Callable[[float], None],
    exact: Callable[[Sequence[tuple[Task, NDArray]]], list[NDArray]],
) -> NDArray:
    """Bring ``f`` up to date in double precision, and go on in single precision.

    Kernel values in single precision are good enough for the steps, but the errors of
    ``f`` are those of all steps since the start.  So ``f`` is computed anew where it
    matters; what has to be solved after that is little, and so are its errors.  Return
    the errors that remain; if they do not become small enough, double precision is
    needed for the steps too.

    ``solve(tol)`` solves all tasks that need more steps, ``exact`` is given tasks with
    some of their rows, and returns ``f`` on these in double precision.
    """
    errors = errors.copy()
    margins = NEAR * errors + tol
    for _ in range(MOST_RENEWALS):
        late = [t for t in range(len(tasks)) if is_spoilt(tasks[t], errors[t], tol)]
        if not late:
            break
        renewed = {t: near_rows(tasks[t], margins[t]) for t in late}
        _renew([(tasks[t], rows) for t, rows in renewed.items()], exact)
        for t, task in enumerate(tasks):
            task.is_settled = t not in renewed
        solve(LEFT_TO_ROUNDING * tol)
        before = errors[late].max()
        # Steps may have brought other rows to where they matter.
        others = [
            (tasks[t], np.setdiff1d(near_rows(tasks[t], margins[t]), rows))
            for t, rows in renewed.items()
        ]
        others = [(task, rows) for task, rows in others if len(rows)]
        _renew(others, exact)
        for task, _ in others:
            task.done = task.gap <= tol
        samples = [
            (tasks[t], some_rows(rows, SAMPLED_ROWS)) for t, rows in renewed.items()
        ]
        for t, (task, rows), values in zip(late, samples, exact(samples), strict=True):
            errors[t] = np.abs(task.f[rows] - values).max(initial=0.0)
        if not errors[late].max() < 0.5 * before:
            break
    return errors


def _renew(
    some: Sequence[tuple[Task, NDArray]],
    exact: Callable[[Sequence[tuple[Task, NDArray]]], list[NDArray]],
) -> None:
    """Compute ``f`` of tasks anew on some rows, and what follows from it."""
    for (task, rows), values in zip(some, exact(some), strict=True):
        task.f[rows] = values
        task.certificate = certify(task.problem, task.beta, task.f)
        task.gap = task.certificate.kkt_gap


def coarse_part(
    problem: DualProblem, solution: Solution, samples: NDArray
) -> dict[str, NDArray]:
    """Return what :func:`refine` needs of a solution in single precision.

    These are its variables on support vectors; ``samples`` are those of its rows.
    """
    p, lo, hi, _, row, group = problem
    by_row = np.bincount(row, solution.beta, len(solution.f))
    used = np.flatnonzero(by_row[row])
    multipliers = np.asarray(solution.multipliers)
    return {
        "sample": samples[row[used]],
        "beta": solution.beta[used],
        "f": solution.f[row[used]],
        "linear": p[used],
        "multiplier": multipliers[group[used]],
        "lo": lo[used],
        "hi": hi[used],
    }


def refine(
    parts: Sequence[dict[str, NDArray]],
    kernel: Kernel,
    vectors: Any,
    support: NDArray,
    threads: Workers | None,
    budget: int | None = None,
    products: Callable[..., list[tuple[NDArray, NDArray]]] | None = None,
) -> list[tuple[float, float]]:
    """Return the objective of each machine, and what to add to its dual gap.

    Both come from ``f`` on the support vectors in double precision: ``vectors``, of
    which ``support`` are the indices.  The objective is then that of ``beta`` to the
    last digits, and so is the dual gap nearly: samples that are not support vectors
    hardly add to it.  Another device has its own ``products``, in the place of
    :func:`products_on_support`.
    """
    products = products_on_support if products is None else products
    order = np.argsort(support)
    tasks = []
    for part in parts:
        row = order[np.searchsorted(support, part["sample"], sorter=order)]
        nothing = np.zeros(len(row))
        group = np.zeros(len(row), dtype=np.int64)
        problem = DualProblem(nothing, nothing, nothing, part["beta"], row, group)
        tasks.append(Task(problem, (0,), [0, len(support)]))
    found = products([kernel], Operand(vectors), tasks, threads, budget)
    answers = []
    for part, task, (rows, values) in zip(parts, tasks, found, strict=True):
        task.f[rows] = values[0]
        f, beta, linear = task.f[task.problem.row], part["beta"], part["linear"]
        objective = float(0.5 * (beta @ f) + linear @ beta)
        terms = []
        for known in (f, part["f"]):
            slack = known + linear - part["multiplier"]
            above, below = slack * (beta - part["lo"]), slack * (beta - part["hi"])
            terms.append(float(np.maximum(above, below).sum()))
        answers.append((objective, terms[0] - terms[1]))
    return answers


def products_on_support(
    kernels: Sequence[Kernel],
    data: Operand,
    tasks: Sequence[Task],
    threads: Workers | None,
    budget: int | None = None,
) -> list[tuple[NDArray, NDArray]]:
    """Return, for each task, its support vectors and ``K_k beta`` on these.

    The support vectors are given as rows of the task. The values have the shape
    (n_kernels, n_rows), and are computed in double precision from one triangle of each
    kernel matrix.
    """
    by_row = [np.bincount(t.problem.row, t.beta, len(t.f)) for t in tasks]
    rows = [np.flatnonzero(values) for values in by_row]
    used = [task.gram_rows(own) for task, own in zip(tasks, rows, strict=True)]
    groups = []
    for together in _sharing(tasks, used):
        everything = np.unique(np.concatenate([used[t] for t in together]))
        weights = np.zeros((len(everything), len(together)))
        at = [np.searchsorted(everything, used[t]) for t in together]
        for column, t in enumerate(together):
            weights[at[column], column] = by_row[t][rows[t]]
        total = np.zeros((len(kernels), *weights.shape))
        groups.append((together, at, everything, weights, total))
    n_leaves = sum(1 for kernel in kernels for _ in kernel.leaves())
    wanted = PART * PART * 8 * (2 + 2 * n_leaves)
    least = wanted * LEAST_PART * LEAST_PART // (PART * PART)
    allowed = MOST_WORKERS * wanted if budget is None else budget
    room = divide(allowed, wanted, count_workers(allowed, least))
    part = max(LEAST_PART, PART * isqrt(1024 * room.each // wanted) // 32)
    tiles = Tiles(kernels, None, threads, shared=n_leaves > 1)
    jobs = []
    for g, group in enumerate(groups):
        parts = ranges(0, len(group[2]), part, even=False)
        for b, right in enumerate(parts):
            jobs += [(g, left, right) for left in parts[: b + 1]]

    def multiply(job: tuple[int, slice, slice]) -> tuple[NDArray, NDArray]:
        g, left, right = job
        _, _, everything, weights, _ = groups[g]
        anchor = _in_double(data, everything[right])
        other = anchor if left == right else _in_double(data, everything[left])
        above, below = [], []
        for _, values in tiles.each(other, anchor):
            above.append(values @ weights[right])
            below.append(values.T @ weights[left])
        return np.array(above), np.array(below)

    # Results are summed in order, so that sums do not depend on the threads, and after
    # a few tiles, because the results of all tiles would need much memory.
    for some in ranges(0, len(jobs), TILES_AT_ONCE, even=False):
        batch = jobs[some]
        results = tiles.run(multiply, batch, room.at_once)
        for (g, left, right), (above, below) in zip(batch, results, strict=True):
            total = groups[g][-1]
            total[:, left] += above
            if left != right:
                total[:, right] += below
    found = {
        t: total[:, at[column], column]
        for together, at, _, _, total in groups
        for column, t in enumerate(together)
    }
    return [(own, found[t]) for t, own in enumerate(rows)]


def _in_double(data: Operand, rows: NDArray) -> Operand:
    return Operand(data.raw_rows(rows).astype(np.float64, copy=False))


def _sharing(tasks: Sequence[Task], used: list[NDArray]) -> list[list[int]]:
    """Return groups of tasks that need fewer kernel values if they share them."""
    by_blocks: dict[tuple[int, ...], list[int]] = {}
    for t, task in enumerate(tasks):
        by_blocks.setdefault(tuple(task.blocks), []).append(t)
    groups = []
    for together in by_blocks.values():
        union = np.unique(np.concatenate([used[t] for t in together]))
        apart = sum(len(used[t]) ** 2 for t in together)
        groups += [together] if len(union) ** 2 <= apart else [[t] for t in together]
    return groups


def judged(
    plan: Plan, solutions: Sequence[Solution], data: Operand | WholeGram, X: Any
) -> Certified:
    """Say what is known of the solutions of a plan, on any device.

    ``data`` are the samples in their order, or the given matrix, in the main memory;
    ``X`` are the samples in the order in which they were given. Numbers that have
    overflowed are refused.
    """
    kernel = plan.kernel
    machines = [(spec.problem, plan.gram_rows(spec)) for spec in plan.machines]
    verdicts = are_convex(kernel, kernel_values(kernel, data), machines)
    found = certified(plan, solutions, verdicts)
    if solutions[0].is_single:
        parts = [
            coarse_part(spec.problem, solution, plan.rows(spec))
            for spec, solution in zip(
                plan.machines, solutions[:: plan.per_machine], strict=True
            )
        ]
        found = found._replace(coarse=parts)
    numbers: list[Any] = [[s.objective, s.kkt_gap] for s in found.solutions]
    if isinstance(data, Operand):
        numbers.append(kernel.diagonal(Operand(X)))
    check_finite("dual coefficients or intercepts", *numbers)
    return found


def are_convex(
    kernel: Kernel,
    values: Values,
    problems: Sequence[tuple[DualProblem, NDArray]],
) -> list[bool | None]:
    """Tell whether each problem is convex; None means that no test has failed.

    ``problems`` has each problem with its Gram rows.
    """
    if kernel.definiteness >= Definiteness.CONDITIONAL:
        return [True] * len(problems)
    everything = np.unique(np.concatenate([rows for _, rows in problems]))
    is_open = kernel.definiteness == Definiteness.UNKNOWN
    if is_open or len(everything) <= TESTED_ROWS:
        rows = some_rows(everything)
        if is_definite(values(rows), np.zeros(len(rows), dtype=np.intp)):
            return [True if len(rows) == len(everything) else None] * len(problems)
    return [_is_convex(values, *problem, is_open) for problem in problems]


def _is_convex(
    values: Values, problem: DualProblem, gram_rows: NDArray, is_open: bool
) -> bool | None:
    """Test one problem, or a part of it if it is large and the kernel is unknown."""
    can_move = problem.hi > problem.lo
    rows, at = np.unique(problem.row[can_move], return_index=True)
    chosen = some_rows(np.arange(len(rows)))
    if len(chosen) < len(rows) and not is_open:
        return False
    group = problem.group[can_move][at[chosen]]
    if len(rows) < can_move.sum():
        group[:] = 0  # each sample is in both groups, so only the sum of all is fixed
    if not is_definite(values(gram_rows[rows[chosen]]), group):
        return False
    return True if len(chosen) == len(rows) else None


def some_rows(rows: NDArray, most: int | None = None) -> NDArray:
    """Return as many rows as are tested, or ``most``, evenly spread over all rows."""
    count = min(len(rows), TESTED_ROWS if most is None else most)
    return rows[np.linspace(0, len(rows) - 1, count).astype(np.intp)]


def kernel_values(kernel: Kernel, data: Operand | WholeGram) -> Values:
    """Return a function that gives the square of kernel values of some Gram rows."""

    def values(rows: NDArray) -> NDArray:
        if isinstance(data, WholeGram):
            return data.matrix[np.ix_(rows, rows)]
        part = _in_double(data, rows)
        return Tiles(kernel, shared=True)(part, part).copy()

    return values


def is_definite(K: NDArray, group: NDArray) -> bool:
    """Tell whether ``c'Kc >= 0`` for all c whose sum in every group is 0.

    Rounding of the values, which a matrix of low rank would not survive otherwise, is
    allowed for.
    """
    if not np.isfinite(K).all():
        return False
    error = ROUNDING * np.finfo(K.dtype).eps * len(K) * np.abs(K).max(initial=0.0)
    centred = 0.5 * (K + K.T).astype(np.float64, copy=False)
    groups = np.unique(group)
    for g in groups:
        own = slice(None) if len(groups) == 1 else group == g
        centred[own] -= centred[own].mean(axis=0)
        centred[:, own] -= centred[:, own].mean(axis=1, keepdims=True)
    centred[np.diag_indices(len(K))] += max(float(error), 1e-300)
    # The transpose is the same matrix, in the memory order that needs no copy.
    _, info = dpotrf(centred.T, overwrite_a=True, clean=False)
    return info == 0
