"""From tasks to solutions: which solver runs on which kind of Gram matrix.

Whatever the solver, the answer is certified here in the same way: the gradient's
rounding errors are estimated from kernel values in double precision, and count against
the tolerance.  Where single precision is not enough for that, the fit goes on in double
precision from where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.decompose import Task, decompose
from mercer.core.problem import DualProblem, Solution, certify
from mercer.core.rows import add_rows
from mercer.core.smo import solve_whole
from mercer.core.textbook import BY_ROWS, IN_MEMORY
from mercer.gram import Demand, RowGram, WholeGram, budget_bytes
from mercer.kernels.base import Kernel
from mercer.kernels.given import Custom
from mercer.kernels.operand import Operand, Pair
from mercer.threads import Threads

__all__ = ["SOLVERS", "Settings", "TaskSpec", "solve_many"]

SOLVERS = ("auto", "smo", "decompose", *IN_MEMORY, *BY_ROWS)

# Solvers stop at this part of the tolerance; the rest is for rounding errors.
SAFETY = 0.9
# Up to this many samples the whole matrix costs less than choosing rows.
WHOLE_LIMIT = 8000
# Rows on which rounding errors are measured.
SAMPLED_ROWS = 64
# Working-set sizes: many problems at once fill the batches; a single one needs more.
SIZE_OF_MANY = 512
SIZE_OF_ONE = 1024


class Settings(NamedTuple):
    """How to solve."""

    solver: str = "auto"
    tol: float = 1e-3
    max_iter: int = -1
    cache_size: float | str = "auto"
    shrinking: bool = True
    seed: int = 0


class TaskSpec(NamedTuple):
    """A problem, and the blocks of samples that its rows are, in order."""

    problem: DualProblem
    blocks: tuple[int, ...]


Progress = Callable[[Sequence[Task]], None]


def solve_many(
    kernel: Kernel,
    data: Any,
    starts: Sequence[int],
    specs: Sequence[TaskSpec],
    settings: Settings,
    threads: Threads,
    progress: Progress | None = None,
) -> list[Solution]:
    """Solve all tasks on one Gram matrix, and certify the solutions.

    ``data`` are the samples in the order of their blocks, or a whole Gram matrix as
    :class:`WholeGram`; ``starts`` is where the blocks begin, then the end.
    """
    tasks = [Task(spec.problem, spec.blocks, list(starts)) for spec in specs]
    _solve(kernel, data, starts, tasks, settings, threads, progress)
    errors = _rounding_errors(kernel, data, tasks)
    fine = [task.gap + 2.0 * e <= settings.tol for task, e in zip(tasks, errors, strict=True)]
    rounding_is_to_blame = any(
        task.gap <= SAFETY * settings.tol and not ok
        for task, ok in zip(tasks, fine, strict=True)
    )
    if rounding_is_to_blame and not threads.stop[0] and data.dtype == np.float32:
        specs = [
            TaskSpec(spec.problem._replace(start=task.beta), spec.blocks)
            for spec, task in zip(specs, tasks, strict=True)
        ]
        counts = [task.n_iter for task in tasks]
        del tasks
        solutions = solve_many(
            kernel, data.astype(np.float64), starts, specs, settings, threads, progress
        )
        return [
            s._replace(n_iter=s.n_iter + n) for s, n in zip(solutions, counts, strict=True)
        ]
    return [
        _solution(task, ok, settings.tol) for task, ok in zip(tasks, fine, strict=True)
    ]


def _solution(task: Task, fine: bool, tol: float) -> Solution:
    bias, objective, kkt_gap, dual_gap = certify(task.problem, task.beta, task.f)
    converged = bool(fine and kkt_gap <= tol)
    return Solution(
        task.beta, task.f, bias, objective, kkt_gap, dual_gap, task.n_iter, converged
    )


def _solve(
    kernel: Kernel,
    data: Any,
    starts: Sequence[int],
    tasks: list[Task],
    settings: Settings,
    threads: Threads,
    progress: Progress | None,
) -> None:
    tol = SAFETY * settings.tol
    max_iter = np.iinfo(np.int64).max if settings.max_iter < 0 else settings.max_iter
    gram = _gram(kernel, data, starts, settings, threads)
    solver = settings.solver
    if solver == "auto":
        solver = "smo" if isinstance(gram, WholeGram) else "decompose"
    if solver == "decompose":
        size = SIZE_OF_ONE if len(tasks) == 1 else SIZE_OF_MANY
        decompose(gram, tasks, tol, max_iter, threads, size, progress)
        return

    def one(task: Task) -> None:
        _start_f(gram, task)
        seed = np.array([settings.seed], dtype=np.uint64)
        if solver == "smo":
            outcome = solve_whole(
                gram.matrix, task.layout(), task.problem, task.beta, task.f, tol,
                max_iter, threads.stop, settings.shrinking,
            )  # fmt: skip
        elif solver in IN_MEMORY:
            rows = task.gram_rows(np.arange(len(task.f)))
            K = np.ascontiguousarray(gram.matrix[np.ix_(rows, rows)])
            outcome = IN_MEMORY[solver](
                K, task.problem, task.beta, task.f, tol, max_iter, seed, threads.stop
            )
        else:
            outcome = _by_rows(gram, task, solver, tol, max_iter, threads)
        task.n_iter, task.gap, task.stalled = outcome
        task.gap = max(certify(task.problem, task.beta, task.f).kkt_gap, 0.0)
        task.done = task.gap <= tol

    def after_each() -> None:
        if progress is not None:
            progress(tasks)

    # Rows on demand come from a store that one task at a time may use.
    if solver in BY_ROWS:
        for task in tasks:
            one(task)
            after_each()
    else:
        threads.map(one, tasks, after_each)


def _gram(
    kernel: Kernel,
    data: Any,
    starts: Sequence[int],
    settings: Settings,
    threads: Threads,
) -> WholeGram | RowGram:
    if isinstance(data, WholeGram):
        return data
    operand = Operand(data)
    n = len(operand)
    budget = budget_bytes(settings.cache_size)
    # Shrinking copies at most a quarter of the matrix.
    needed = int(1.25 * n * n * operand.dtype.itemsize)
    solver = settings.solver
    if solver in IN_MEMORY or solver == "smo":
        if needed > budget and settings.cache_size != "auto":
            raise MemoryError(
                f"solver={solver!r} needs the whole Gram matrix, {needed / 2**20:.0f} MB "
                f"for {n} samples, but cache_size={settings.cache_size!r}. Raise "
                "cache_size, or use solver='decompose'."
            )
        return WholeGram.compute(kernel, operand, starts, threads)
    if solver == "auto" and n <= WHOLE_LIMIT and needed <= budget:
        return WholeGram.compute(kernel, operand, starts, threads)
    return RowGram(kernel, operand, starts, budget, threads)


def _start_f(gram: Any, task: Task) -> None:
    """Set ``f`` for a start that is not 0, from a whole matrix or from rows."""
    used = np.flatnonzero(task.problem.start)
    for first in range(0, len(used), gram.capacity):
        part = used[first : first + gram.capacity]
        rows = task.gram_rows(task.problem.row[part])
        weight = task.problem.start[part]
        gram.provide([Demand(block, rows) for block in task.blocks])
        for b, block in enumerate(task.blocks):
            pool, slot, column = gram.source(block)
            f = task.f[task.offsets[b] : task.offsets[b + 1]]
            add_rows(pool, slot[rows], weight, column, f)


def _by_rows(
    gram: Any, task: Task, solver: str, tol: float, max_iter: int, threads: Threads
) -> tuple:
    """Run a solver that asks for one row after the other."""
    rows = task.gram_rows(np.arange(len(task.f)))

    def row(r: int) -> NDArray:
        wanted = rows[r : r + 1]
        gram.provide([Demand(block, wanted) for block in task.blocks])
        parts = []
        for b, block in enumerate(task.blocks):
            pool, slot, column = gram.source(block)
            width = task.offsets[b + 1] - task.offsets[b]
            parts.append(pool[slot[wanted[0]], column : column + width])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    return BY_ROWS[solver](
        row, gram.diag[rows], task.problem, task.beta, task.f, tol, max_iter, threads.stop
    )


def _rounding_errors(kernel: Kernel, data: Any, tasks: list[Task]) -> NDArray:
    """Estimate, for each task, the largest error of ``f`` that rounding has left.

    ``f`` is computed anew on some rows, from kernel values in double precision.
    """
    errors = np.zeros(len(tasks))
    given = isinstance(data, WholeGram)
    if given or any(isinstance(leaf, Custom) for leaf in kernel.leaves()):
        return errors
    n = data.shape[0]
    sample = np.unique(np.linspace(0, n - 1, min(n, SAMPLED_ROWS)).astype(np.int64))
    coefficients = np.zeros((n, len(tasks)))
    for t, task in enumerate(tasks):
        rows = task.gram_rows(task.problem.row)
        np.add.at(coefficients[:, t], rows, task.beta)
    used = np.flatnonzero(coefficients.any(axis=1))
    left = Operand(data[sample].astype(np.float64))
    exact = np.zeros((len(sample), len(tasks)))
    for first in range(0, len(used), 1024):
        part = used[first : first + 1024]
        right = Operand(data[part].astype(np.float64))
        exact += kernel.evaluate(Pair(left, right)) @ coefficients[part]
    for t, task in enumerate(tasks):
        own = task.gram_rows(np.arange(len(task.f)))
        at = np.searchsorted(own, sample)
        here = (at < len(own)) & (own[np.minimum(at, len(own) - 1)] == sample)
        if here.any():
            errors[t] = np.abs(task.f[at[here]] - exact[here, t]).max()
    return errors
