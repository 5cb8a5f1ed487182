"""From plans to certified solutions: which solver runs on which kind of Gram matrix.

Solutions of all solvers are certified in the same way: the rounding errors of the
gradient are estimated from kernel values in double precision, and count against the
tolerance (:mod:`mercer.engines.precision`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.problem import DualProblem, Solution, layout
from mercer.core.smo import Rows, fill_rows, minimise_pairs, solve_and_polish
from mercer.core.textbook import (
    BY_ROWS,
    COMPILED,
    IN_MEMORY,
    by_rows,
    computed_rows,
    held_rows,
)
from mercer.engines.cpu.certificates import (
    certifying_bytes,
    exact_products,
    judged,
    kernel_values,
    products,
    rounding_errors,
    some_rows,
)
from mercer.engines.cpu.decompose import Task, decompose, refresh
from mercer.engines.cpu.gram import (
    RUN_COLUMNS,
    BlockGram,
    Demand,
    RowGram,
    WholeGram,
)
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.tiles import (
    USUAL,
    WORKERS,
    Tiling,
    budget_bytes,
    divide,
    plan_tiles,
)
from mercer.engines.engine import Certified, Plan, Settings, TaskSpec
from mercer.engines.precision import SAFETY, solve_to_certificates
from mercer.kernels.base import Kernel
from mercer.kernels.dot import Linear
from mercer.kernels.given import call_function
from mercer.kernels.radial import RBF
from mercer.runtime.threads import Threads

__all__ = [
    "MOST_STEPS",
    "SAFETY",
    "SOLVERS",
    "Progress",
    "Settings",
    "TaskSpec",
    "solve_many",
    "solve_plan",
    "tries_single",
]

SOLVERS = ("auto", "smo", "decompose", *IN_MEMORY, *BY_ROWS)

# From this tolerance and number of samples on, single precision is tried first.
LEAST_FOR_SINGLE = 1e-4
SINGLE_FROM = 2000
# Largest rounding error of a kernel value in single precision, in units of the
# tolerance.
MOST_SINGLE = 10.0
# Up to this many samples kernel values take less time than starting threads for them.
TINY = 256
# Up to this many samples the whole matrix costs hardly more than choosing rows, and up
# to so many more it costs less if all samples become support vectors.  If hardly any
# does, it would cost less up to half as many only.
WHOLE_LIMIT = 4000
WHOLE_LIMIT_MORE = 7000
# Samples on which it is tried out how many become support vectors. The usual share is
# assumed where a user's function computes kernel values, and is the least that is
# assumed of several problems: what is a support vector of any of them needs a row.
TRIED_ROWS = 512
USUAL_SHARE = 0.7
# Its tolerance, in units of that of the fit: a finer one takes more steps in both.
TRIAL_TOL = 10.0
TRIAL_STEPS = 20 * TRIED_ROWS
# Number of steps per support vector up to which kernel values are what counts.  Each
# step on the whole matrix looks at all samples, and a step on a working set at few, so
# that more steps speak for working sets.
USUAL_STEPS = 2.0
# Up to this many samples, a task on some of the samples gets a matrix of its own.
SMALL_TASK = 2000
# Limit on steps if the user sets none: badly scaled data could need 1e12 steps.
MOST_STEPS = 10_000_000
# Number of problems that are solved at once: enough for many threads.  A problem that
# is solved leaves its memory to the next one.
MOST_ACTIVE = 64
# Rounds for which a row is kept after it left the working sets; few rows come back.
PATIENCE = 0
# Largest working set: its Gram matrix should stay in a processor's cache.
LARGEST_SET = 1536


Progress = Callable[[Sequence[Task]], None]


def solve_plan(
    plan: Plan, settings: Settings, threads: Threads, progress: Any = None
) -> Certified:
    """Solve all problems of a plan, and certify the solutions.

    ``progress`` is called with the tasks as they are solved, and may stop the threads.
    """
    data = _arranged(plan, threads)
    solutions = solve_many(
        plan.kernel, data, plan.starts, plan.specs, settings, threads, progress
    )
    found = judged(plan, solutions, data, plan.X)
    return found._replace(stopped_early=getattr(progress, "stopped_early", False))


def _arranged(plan: Plan, threads: Threads) -> Operand | WholeGram:
    """Return the samples block by block, or the given matrix in that order."""
    X, order = plan.samples, plan.order
    in_order = bool((np.diff(order) == 1).all())
    if plan.function is not None:
        matrix = call_function(plan.function, X, X, X.dtype)
    elif plan.is_matrix:
        matrix = X
    else:
        rows = None if in_order else order
        if len(order) <= TINY:
            return Operand(X, order=rows)
        return Operand(X, order=rows, run=threads.map)
    matrix = matrix if in_order else matrix[np.ix_(order, order)]
    return WholeGram(matrix, np.array(matrix.diagonal(), dtype=np.float64), plan.starts)


def solve_many(
    kernel: Kernel,
    data: Operand | WholeGram,
    starts: Sequence[int],
    specs: Sequence[TaskSpec],
    settings: Settings,
    threads: Threads,
    progress: Progress | None = None,
) -> list[Solution]:
    """Solve all tasks on one Gram matrix, and certify the solutions.

    ``data`` are the samples in the order of their blocks, or a whole Gram matrix;
    ``starts`` is where the blocks begin, then the end.
    """
    tasks = [Task(spec.problem, spec.blocks, list(starts)) for spec in specs]
    work = _OnThreads(kernel, data, starts, tasks, settings, threads, progress)
    return solve_to_certificates(specs, tasks, settings.tol, work)


class _OnThreads:
    """Solves tasks on kernel values that threads compute."""

    def __init__(
        self,
        kernel: Kernel,
        data: Operand | WholeGram,
        starts: Sequence[int],
        tasks: list[Task],
        settings: Settings,
        threads: Threads,
        progress: Progress | None,
    ):
        first = data
        if isinstance(data, Operand) and tries_single(kernel, data, settings):
            first = data.astype(np.float32)
        self.is_single = first.dtype == np.float32 and isinstance(data, Operand)
        self.is_custom = kernel.is_custom()
        self._kernel, self._data, self._starts = kernel, data, starts
        self._tasks, self._settings = tasks, settings
        self._threads, self._progress = threads, progress
        self._budget = budget_bytes(settings.cache_size)
        # Set aside the memory of certificates.
        self._rest = self._budget - certifying_bytes(kernel, self._budget)
        self._solve: Callable[[float], None] | None = _prepare(
            kernel, first, starts, tasks, settings, threads, progress, self._rest
        )

    def solve(self, tol: float) -> None:
        assert self._solve is not None
        self._solve(tol)

    def errors(self) -> NDArray:
        # Threads compute kernel values, unless there are too few of them.
        helpers = self._threads if self._starts[-1] > TINY else None
        return rounding_errors(
            self._kernel, self._data, self._tasks, helpers, self._budget
        )

    def exact(self, some: Sequence[tuple[Task, NDArray]]) -> list[NDArray]:
        assert isinstance(self._data, Operand)
        return exact_products(self._kernel, self._data, some, self._threads, self._rest)

    def solve_in_double(self, specs: Sequence[TaskSpec]) -> list[Solution]:
        assert isinstance(self._data, Operand)
        self._solve = None
        precise = self._settings._replace(precise=True)
        double = self._data.astype(np.float64)
        return solve_many(
            self._kernel, double, self._starts, specs, precise, self._threads,
            self._progress,
        )  # fmt: skip


def tries_single(kernel: Kernel, data: Operand, settings: Settings) -> bool:
    """Decide whether to work on double-precision data in single precision first.

    Single precision takes half the time and memory, and its rounding errors are
    measured afterwards.
    """
    return (
        data.dtype == np.float64
        and not settings.precise
        and settings.tol >= LEAST_FOR_SINGLE
        and settings.solver in ("auto", "smo", "decompose")
        and len(data) >= SINGLE_FROM
        and not kernel.is_custom()
        and _fits_single(kernel, data, settings.tol)
    )


def _fits_single(kernel: Kernel, data: Operand, tol: float) -> bool:
    """Tell whether single precision can tell kernel values apart to the tolerance.

    Products of unscaled data are so large that solvers would only chase their rounding
    errors.
    """
    largest = float(np.abs(kernel.diagonal(data)).max(initial=0.0))
    return bool(np.finfo(np.float32).eps * largest <= MOST_SINGLE * tol)


def _prepare(
    kernel: Kernel,
    data: Operand | WholeGram,
    starts: Sequence[int],
    tasks: list[Task],
    settings: Settings,
    threads: Threads,
    progress: Progress | None,
    budget: int,
) -> Callable[[float], None]:
    """Choose the kind of Gram matrix and the solver.

    Return a function that solves all tasks to a given gap.
    """
    max_iter = settings.max_iter
    if max_iter < 0:
        max_iter = max(MOST_STEPS, 100 * max(len(task.beta) for task in tasks))
    tiling = USUAL
    if isinstance(data, Operand):
        tiling = plan_tiles([kernel], data, budget)
        if _wants_whole(kernel, data, tasks, settings, budget - tiling.n_bytes):
            data = WholeGram.compute(kernel, data, starts, threads, tiling)
            budget -= tiling.n_bytes + data.matrix.nbytes
        elif at_once := _blocks_at_once(
            kernel, data, starts, tasks, settings, tiling, budget
        ):
            blocks = BlockGram(kernel, data, starts, threads, at_once)
            return partial(
                _solve_small, blocks, tasks, max_iter, settings.shrinking, threads,
                progress, at_once,
            )  # fmt: skip
        else:
            budget -= tiling.n_bytes
    solver = settings.solver
    if solver == "auto":
        solver = "smo" if isinstance(data, WholeGram) else "decompose"
    n_active, size = _working_sets(len(tasks), data.dtype, budget)
    if isinstance(data, WholeGram):
        gram: WholeGram | RowGram = data
    else:
        squares = n_active * size * size * data.dtype.itemsize
        patience = PATIENCE if solver == "decompose" else None
        rest = budget - squares
        gram = RowGram(kernel, data, starts, rest, threads, patience, tiling)
    for task in tasks:
        if isinstance(gram, WholeGram):
            refresh(gram, task, threads)
        else:
            everything = np.arange(len(task.f))
            task.f = products(kernel, gram.operand, task, everything, threads, budget)

    def solve(tol: float) -> None:
        if solver == "decompose":
            decompose(gram, tasks, tol, max_iter, threads, size, n_active, progress)
            return
        after_each = None if progress is None else (lambda: progress(tasks))
        todo = [task for task in tasks if not task.is_settled]
        if isinstance(gram, WholeGram) and solver in ("smo", *COMPILED):
            room = divide(budget, _copy(gram, tasks, solver), min(len(tasks), WORKERS))
            threads.map(
                lambda task: _in_memory(
                    gram, task, solver, tol, max_iter, settings, threads.stop, room.each
                ),
                # The largest first, so that threads end at about the same time.
                sorted(todo, key=lambda task: -len(task.beta)),
                after_each,
                room.at_once if starts[-1] > TINY else 1,
            )
            return
        for task in todo:
            if isinstance(gram, RowGram) and solver in IN_MEMORY:
                _without_matrix(gram, task, settings, tol, max_iter, threads.stop)
            else:
                _by_rows(gram, task, solver, tol, max_iter, threads.stop)
            if after_each is not None:
                after_each()

    return solve


def _blocks_at_once(
    kernel: Kernel,
    data: Operand,
    starts: Sequence[int],
    tasks: list[Task],
    settings: Settings,
    tiling: Tiling,
    budget: int,
) -> int:
    """Return how many threads can give tasks a Gram matrix of their own; 0 for none.

    Each thread has the matrix of one task, and computes tiles of whole blocks. The
    memory must be enough for the usual number of threads, or for all tasks.
    """
    largest = max(len(task.f) for task in tasks)
    sizes = np.diff(starts)
    if (
        settings.solver != "auto"
        or largest > min(SMALL_TASK, len(data) // 2)
        or kernel.is_custom()
    ):
        return 0
    tile = int(sizes.max()) * max(RUN_COLUMNS, int(sizes.max()))
    # Shrinking copies at most a quarter of the matrix.
    own = largest**2 + largest**2 // 4
    each = own * data.dtype.itemsize + int(tile * tiling.bytes_per_value)
    left = budget - int((sizes.astype(np.int64) ** 2).sum()) * data.dtype.itemsize
    at_once = max(0, left) // each
    return at_once if at_once >= min(WORKERS, len(tasks)) else 0


def _copy(gram: WholeGram, tasks: list[Task], solver: str) -> int:
    """Return the memory that a solver would take to copy a part of the matrix."""
    if solver == "smo":  # shrinking copies at most half of the variables
        values = max(len(task.beta) for task in tasks) ** 2 // 4
    else:
        values = (
            max((len(task.f) for task in tasks if not _is_all(gram, task)), default=0)
            ** 2
        )
    return max(1, values * gram.dtype.itemsize)


def _is_all(gram: WholeGram, task: Task) -> bool:
    """Tell whether the rows of a task are all rows of the matrix, in their order."""
    return len(task.f) == len(gram.matrix) and bool((np.diff(task.blocks) == 1).all())


def _solve_small(
    gram: BlockGram,
    tasks: list[Task],
    max_iter: int,
    shrinking: bool,
    threads: Threads,
    progress: Progress | None,
    at_once: int,
    tol: float,
) -> None:
    """Solve each task on its own matrix; tasks on the same samples share a matrix."""
    together: dict[tuple[int, ...], list[Task]] = {}
    for task in tasks:
        if not task.is_settled:
            together.setdefault(tuple(task.blocks), []).append(task)

    def solve(run: list[tuple[int, ...]]) -> None:
        for blocks, square in gram.squares(run):
            for task in together[blocks]:
                _solve_on(square, task, tol, max_iter, shrinking, threads.stop)

    after_each = None if progress is None else (lambda: progress(tasks))
    threads.map(solve, gram.runs(together), after_each, at_once)


def _solve_on(
    square: NDArray | Rows,
    task: Task,
    tol: float,
    max_iter: int,
    shrinking: bool,
    stop: NDArray,
) -> None:
    """Solve a task on its own matrix."""
    problem, beta, f = task.problem, task.beta, task.f
    if beta.any() and not f.any():
        by_row = np.bincount(problem.row, beta, len(f))
        used = np.flatnonzero(by_row)
        if isinstance(square, Rows):
            fill_rows(square, used)
        matrix = square.square if isinstance(square, Rows) else square
        f[:] = by_row[used] @ matrix[used]
    steps = max_iter - task.n_iter
    outcome = solve_and_polish(
        square, layout(problem), problem, beta, f, tol, steps, stop, shrinking
    )
    task.note(outcome, tol)


def _wants_whole(
    kernel: Kernel, data: Operand, tasks: list[Task], settings: Settings, budget: int
) -> bool:
    """Decide whether to compute the whole matrix; raise an error if that cannot be."""
    n = len(data)
    if settings.solver in COMPILED:
        # These solvers work on a copy, unless a task has all samples.
        largest = max((len(task.f) for task in tasks if len(task.f) < n), default=0)
        values = n * n + largest * largest
    else:
        values = n * n * 5 // 4  # with room for shrinking
    needed = values * data.dtype.itemsize
    is_textbook = settings.solver in IN_MEMORY
    if needed > budget and is_textbook and _simple_gamma(kernel, data) is not None:
        return False  # rows are computed when they are needed, and then forgotten
    if settings.solver in ("smo", *IN_MEMORY):
        if needed > budget:
            raise MemoryError(
                f"solver={settings.solver!r} needs the whole Gram matrix, "
                f"{needed / 2**20:.3g} MB for {n} samples; cache_size="
                f"{settings.cache_size!r} leaves {budget / 2**20:.3g} MB for it. Raise "
                "cache_size, or use solver='decompose'."
            )
        return True
    if settings.solver in BY_ROWS:  # they need few rows of many samples
        return needed <= budget and n <= WHOLE_LIMIT
    if settings.solver != "auto" or needed > budget:
        return False
    least = USUAL_SHARE if len(tasks) > 1 or kernel.is_custom() else 0.0
    # Each step on the whole matrix looks at all variables; regression has two for each
    # sample.
    n_variables = max(n, *(len(task.beta) for task in tasks))
    if n_variables <= WHOLE_LIMIT or n <= _most_for_whole(least):
        return True
    if n > _most_for_whole(1.0) or kernel.is_custom():
        return False
    share = _share_of_support(kernel, data, tasks, TRIAL_TOL * settings.tol)
    return n <= _most_for_whole(share)


def _most_for_whole(share: float) -> float:
    """Return up to how many samples the whole matrix costs less than rows of it.

    ``share`` is the share of them that become support vectors.
    """
    half = WHOLE_LIMIT / 2
    return half + (half + WHOLE_LIMIT_MORE) * share


def _share_of_support(
    kernel: Kernel, data: Operand, tasks: list[Task], tol: float
) -> float:
    """Estimate which share of the samples become support vectors.

    It is found out on some of the samples of the largest problem.  If there are more
    samples, a smaller share of them become support vectors; the limits allow for that.
    If support vectors take more steps than usual, they count less.
    """
    task = max(tasks, key=lambda task: len(task.f))
    has_started = np.bincount(task.problem.row, task.beta != 0.0, len(task.f)) > 0
    if has_started.any():  # the mass of all coefficients is given
        return float(has_started.mean())
    rows = some_rows(np.arange(len(task.f)), TRIED_ROWS)
    tried = np.flatnonzero(np.isin(task.problem.row, rows))
    p, lo, hi, start = (values[tried] for values in task.problem[:4])
    row = np.searchsorted(rows, task.problem.row[tried])
    part = DualProblem(p, lo, hi, start, row, task.problem.group[tried])
    K = kernel_values(kernel, data)(task.gram_rows(rows)).astype(data.dtype)
    beta, f = start.copy(), np.zeros(len(rows))
    stop = np.zeros(1, dtype=np.uint8)
    n_steps, _, _ = minimise_pairs(
        K, layout(part), part, beta, f, tol, TRIAL_STEPS, stop
    )
    used = np.bincount(part.row, beta != 0.0, len(rows)) > 0
    each = n_steps / max(1, int(used.sum()))
    return float(used.mean()) * min(1.0, USUAL_STEPS / max(each, 1e-9))


def _working_sets(n_tasks: int, dtype: np.dtype, budget: int) -> tuple[int, int]:
    """Return how many tasks are solved at once, and the size of working sets."""
    quarter = budget // 4
    size = int(np.clip(np.sqrt(quarter / dtype.itemsize), 2, LARGEST_SET))
    n_active = int(np.clip(quarter // (size * size * dtype.itemsize), 1, MOST_ACTIVE))
    return min(n_active, n_tasks), size


def _in_memory(
    gram: WholeGram,
    task: Task,
    solver: str,
    tol: float,
    max_iter: int,
    settings: Settings,
    stop: NDArray,
    room: int,
) -> None:
    """Run a solver on the whole matrix, of which it may copy ``room`` bytes."""
    problem, beta, f = task.problem, task.beta, task.f
    steps = max_iter - task.n_iter
    outcome: tuple
    if solver == "smo":
        shrinking = settings.shrinking
        where = task.layout()
        outcome = solve_and_polish(
            gram.matrix, where, problem, beta, f, tol, steps, stop, shrinking, room
        )
    else:
        K = gram.matrix
        if not _is_all(gram, task):
            rows = task.gram_rows(np.arange(len(f)))
            K = np.ascontiguousarray(K[np.ix_(rows, rows)])
        seed = np.array([settings.seed], dtype=np.uint64)
        rows_of = held_rows(K)
        outcome = COMPILED[solver](rows_of, problem, beta, f, tol, steps, seed, stop)
    task.note(outcome, tol)


def _simple_gamma(kernel: Kernel, data: Operand) -> float | None:
    """Return what tells textbook solvers how to compute a row; None if they cannot.

    It is the Gaussian kernel's parameter, or 0 for the linear kernel.
    """
    if sparse.issparse(data.X):
        return None
    if isinstance(kernel, Linear):
        return 0.0
    return float(kernel.gamma) or None if type(kernel) is RBF else None


def _without_matrix(
    gram: RowGram,
    task: Task,
    settings: Settings,
    tol: float,
    max_iter: int,
    stop: NDArray,
) -> None:
    """Run a solver that computes each row that it asks for, and keeps none."""
    gamma = _simple_gamma(gram.kernel, gram.operand)
    assert gamma is not None
    X = gram.operand.raw_rows(task.gram_rows(np.arange(len(task.f))))
    seed = np.array([settings.seed], dtype=np.uint64)
    outcome = COMPILED[settings.solver](
        computed_rows(np.ascontiguousarray(X), gamma, keeps=False), task.problem,
        task.beta, task.f, tol, max_iter - task.n_iter, seed, stop,
    )  # fmt: skip
    task.note(outcome, tol)


def _by_rows(
    gram: WholeGram | RowGram,
    task: Task,
    solver: str,
    tol: float,
    max_iter: int,
    stop: NDArray,
) -> None:
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

    steps = max_iter - task.n_iter
    outcome = by_rows(
        solver, row, gram.diag[rows], task.problem, task.beta, task.f, tol, steps, stop
    )
    task.note(outcome, tol)
