"""Small problems, one after the other in the same arrays, solved in one compiled call.

With a hundred classes there are 4,950 pairs of them.  Each problem takes some
microseconds, less than a handful of calls from Python.  So the variables of many
problems lie one after the other in the same arrays, and a thread solves one problem
after the other, certificates included, before it comes back to Python.

A *chain* goes through problems of the same variables that differ in their bounds and
linear terms, as by another C.  Along ascending bounds the best multiple of one solution
is where the next problem begins (see :mod:`mercer.core.smo`).  Where sums are
prescribed (:math:`\\nu`), mass that the scaled solution lacks is added where the
gradient asks for it most.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit
from mercer.core.problem import (
    DualProblem,
    Layout,
    Solution,
    certify_one,
    cut_pieces,
    holds_bounds_and_sums,
)
from mercer.core.smo import (
    POLISH,
    POLISHED,
    POLISHING_STEPS,
    SHRINK_FROM,
    best_multiple,
    fill_row,
    minimise_pairs,
    multiply,
    part_of,
    shrink_and_solve,
)

__all__ = [
    "SAFETY",
    "Chains",
    "OwnBlocks",
    "Results",
    "Solutions",
    "Specs",
    "Stacked",
    "TaskSpec",
    "add_products",
    "begin_at",
    "betas",
    "closer_goal",
    "collect_weights",
    "column",
    "ends_of",
    "is_spoilt",
    "room_for",
    "room_for_chains",
    "solve_chains",
    "solve_class_pairs",
    "solve_stacked",
    "taken",
]

# Steps aim at this fraction of the tolerance; the rest is for rounding errors.
SAFETY = 0.9
# Largest fraction of the tolerance that single precision may lose to rounding errors.
MOST_FOR_ROUNDING = 0.6
# A chain begins anew if larger bounds release more than this share of a solution.
MOST_RELEASED = 0.8
# How often steps are taken until the gap of the product is within the tolerance.
MOST_RUNS = 3
ALL = slice(None)
WHOLE = (ALL, slice(None, None, 1))


class TaskSpec(NamedTuple):
    """A problem, and the blocks of samples that its rows are, in order."""

    problem: DualProblem
    blocks: tuple[int, ...]


class Stacked(NamedTuple):
    """Problems whose variables are stretches of the same arrays."""

    variables: DualProblem  #: the variables of all problems
    first: NDArray[np.int64]  #: where the variables of each problem begin
    stop: NDArray[np.int64]  #: where they end
    begin_f: NDArray[np.int64]  #: where each problem's rows begin, then the end


class Chains(NamedTuple):
    """Chains through problems of the same variables, stacked; a row for each link."""

    p: NDArray[np.float64]  #: one row if it is the same for all links
    lo: NDArray[np.float64]  #: shape (n_links, n_variables)
    hi: NDArray[np.float64]
    start: NDArray[np.float64]  #: one row if no sums are prescribed
    row: NDArray[np.int64]  #: the same for all links, as are all that follow
    group: NDArray[np.int64]
    begin: NDArray[np.int64]  #: where each chain's variables begin, then the end
    begin_f: NDArray[np.int64]  #: where each chain's rows begin, then the end

    @property
    def first(self) -> NDArray[np.int64]:
        """Where the variables of each chain begin."""
        return self.begin[:-1]

    @property
    def stop(self) -> NDArray[np.int64]:
        """Where they end."""
        return self.begin[1:]


class Results(NamedTuple):
    """What is found for stacked problems; arrays of chains have a row for each link."""

    beta: NDArray[np.float64]  #: the start, and then the solution
    f: NDArray[np.float64]  #: K beta, computed by a product
    n_iter: NDArray[np.int64]
    #: objective, KKT gap, dual gap, whether bounds and sums hold (-1: the precision was
    #: not enough), and the rounding errors in the gap
    certificate: NDArray[np.float64]
    multipliers: NDArray[np.float64]  #: a column for each group


class OwnBlocks(NamedTuple):
    """Kernel values of every class with itself, one block after the other."""

    values: NDArray[np.float64]  #: the blocks, flattened
    begin: NDArray[np.int64]  #: where the block of each class begins
    size: NDArray[np.int64]  #: the number of samples of each class


def ends_of(counts: NDArray | Sequence[int]) -> NDArray[np.int64]:
    """Return where stretches of such lengths begin, then the end of the last."""
    ends = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=ends[1:])
    return ends


def taken(values: NDArray, first: NDArray, stop: NDArray) -> NDArray:
    """Return stretches of an array one after the other; not copied if they are so."""
    if not len(first):
        return values[:0]
    if len(first) == 1 or (first[1:] == stop[:-1]).all():
        return values[first[0] : stop[-1]]
    ends = np.cumsum(stop - first)
    return values[np.arange(ends[-1]) + np.repeat(stop - ends, stop - first)]


class Specs(Sequence[TaskSpec]):
    """Problems with their blocks, as arrays: a plan may have half a million of them.

    An object for each would take more time than to solve it.  So one is made when it is
    asked for, and a part of the problems is a view of the same arrays.

    Parameters
    ----------
    variables : DualProblem
        The variables of all problems; rows are counted from 0 in every problem.
    first, stop : arrays of shape (n_problems,)
        Where the variables of each problem begin and end.
    blocks : array
        The blocks of all problems, one problem after the other.
    first_block, stop_block : arrays of shape (n_problems,)
        Where the blocks of each problem begin and end.
    """

    def __init__(
        self,
        variables: DualProblem,
        first: NDArray[np.int64],
        stop: NDArray[np.int64],
        blocks: NDArray[np.int64],
        first_block: NDArray[np.int64],
        stop_block: NDArray[np.int64],
    ):
        self.variables = variables
        self.first, self.stop = first, stop
        self.blocks = blocks
        self.first_block, self.stop_block = first_block, stop_block

    @classmethod
    def of(cls, specs: Sequence[TaskSpec]) -> "Specs":
        """Return problems as arrays, whatever they have been before."""
        if isinstance(specs, cls):
            return specs
        if len(specs) == 1:
            ((variables, own),) = specs
            ends, block_ends = np.array([[0, len(variables.p)], [0, len(own)]])
            blocks = np.array(own, dtype=np.int64)
            return cls(
                variables, ends[:1], ends[1:], blocks, block_ends[:1], block_ends[1:]
            )
        parts = zip(*(spec.problem for spec in specs), strict=True)
        variables = DualProblem(*(np.concatenate(part) for part in parts))
        ends = ends_of([len(spec.problem.p) for spec in specs])
        block_ends = ends_of([len(spec.blocks) for spec in specs])
        blocks = np.array([*chain.from_iterable(s.blocks for s in specs)], np.int64)
        return cls(
            variables, ends[:-1], ends[1:], blocks, block_ends[:-1], block_ends[1:]
        )

    def with_variables(self, variables: DualProblem) -> "Specs":
        """Return the same stretches of other variables."""
        return Specs(
            variables, self.first, self.stop,
            self.blocks, self.first_block, self.stop_block,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            if which in WHOLE:
                return self
            return Specs(
                self.variables, self.first[which], self.stop[which],
                self.blocks, self.first_block[which], self.stop_block[which],
            )  # fmt: skip
        v, w = int(self.first[which]), int(self.stop[which])
        p, lo, hi, start, row, group = self.variables
        blocks = self.blocks[self.first_block[which] : self.stop_block[which]]
        problem = DualProblem(
            p[v:w], lo[v:w], hi[v:w], start[v:w], row[v:w], group[v:w]
        )
        return TaskSpec(problem, tuple(blocks.tolist()))

    def all_variables(self) -> DualProblem:
        """Return the variables of these problems, one problem after the other."""
        parts = (taken(part, self.first, self.stop) for part in self.variables)
        return DualProblem(*parts)

    def all_blocks(self) -> NDArray[np.int64]:
        """Return the blocks of these problems, one problem after the other."""
        return taken(self.blocks, self.first_block, self.stop_block)

    def n_blocks(self) -> NDArray[np.int64]:
        """Return how many blocks each problem has."""
        return self.stop_block - self.first_block

    def stacked(self, n_rows: NDArray[np.int64]) -> Stacked:
        """Return what compiled code takes; the problems have so many rows each."""
        return Stacked(self.variables, self.first, self.stop, ends_of(n_rows))


def room_for(problems: Stacked) -> Results:
    """Return arrays for what is found; they hold the start of every problem."""
    count = len(problems.first)
    return Results(
        problems.variables.start.copy(),
        np.zeros(problems.begin_f[-1]),
        np.zeros(count, dtype=np.int64),
        np.zeros((count, 5)),
        np.zeros((count, int(problems.variables.group.max()) + 1)),
    )


def room_for_chains(chains: Chains) -> Results:
    """Return arrays for what is found along chains."""
    shape = len(chains.lo), len(chains.begin) - 1
    return Results(
        np.zeros(chains.lo.shape),
        np.zeros((len(chains.lo), chains.begin_f[-1])),
        np.zeros(shape, dtype=np.int64),
        np.zeros((*shape, 5)),
        np.zeros((*shape, int(chains.group.max()) + 1)),
    )


class Solutions(Sequence[Solution]):
    """The solutions of stacked problems; objects are made when they are asked for.

    A problem is solved if its bounds and sums hold and the gap, rounding errors
    included, is within ``tol``.  ``results`` are those of one link of chains.
    """

    def __init__(
        self,
        problems: Stacked | Chains,
        results: Results,
        tol: float,
        which: slice = ALL,
    ):
        self._of = problems, results, tol, which
        self._first, self._stop = problems.first[which], problems.stop[which]
        self._first_f = problems.begin_f[:-1][which]
        self._stop_f = problems.begin_f[1:][which]
        self._beta, self._f = results.beta, results.f
        self.multipliers = results.multipliers[which]
        certificate = results.certificate[which]
        self.objective, self.kkt_gap, self.dual_gap, holds, self.error = certificate.T
        self.converged = (holds > 0.0) & (self.kkt_gap + self.error <= tol)
        self.n_iter = results.n_iter[which]
        self.bias = -self.multipliers.sum(axis=1) / self.multipliers.shape[1]

    def __len__(self) -> int:
        return len(self._first)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            if which in WHOLE:
                return self
            problems, results, tol, own = self._of
            numbers = range(len(problems.first))[own][which]
            stop = numbers.stop if numbers.stop >= 0 else None
            some = slice(numbers.start, stop, numbers.step)
            return Solutions(problems, results, tol, some)
        k = which
        return Solution(
            self._beta[self._first[k] : self._stop[k]],
            self._f[self._first_f[k] : self._stop_f[k]],
            float(self.bias[k]),
            float(self.objective[k]),
            float(self.kkt_gap[k]),
            float(self.dual_gap[k]),
            int(self.n_iter[k]),
            bool(self.converged[k]),
            tuple(self.multipliers[k].tolist()),
            float(self.error[k]),
        )

    def betas(self) -> NDArray[np.float64]:
        """Return the coefficients of all problems, one problem after the other."""
        return taken(self._beta, self._first, self._stop)


def column(solutions: Sequence[Solution], name: str) -> NDArray:
    """Return one number of each solution, by its name."""
    if isinstance(solutions, Solutions):
        return getattr(solutions, name)
    return np.array([getattr(solution, name) for solution in solutions])


def betas(solutions: Sequence[Solution]) -> NDArray[np.float64]:
    """Return the coefficients of all solutions, one solution after the other."""
    if isinstance(solutions, Solutions):
        return solutions.betas()
    return np.concatenate([solution.beta for solution in solutions])


@jit
def solve_stacked(
    K: NDArray,
    problems: Stacked,
    spans: NDArray,
    begin_spans: NDArray,
    first: int,
    last: int,
    tol: float,
    max_iter: int,
    polish: bool,
    stop: NDArray,
    results: Results,
):
    """Solve the problems from ``first`` up to ``last`` on one kernel matrix.

    ``spans`` says where the rows of each problem lie in the matrix, as in a layout;
    those of problem k begin at ``begin_spans[k]``.  With ``polish``, each problem is
    solved more exactly than asked for, which hardly takes time.
    """
    for k in range(first, last):
        span = spans[begin_spans[k] : begin_spans[k + 1]]
        _solve_one(K, span, problems, k, tol, max_iter, polish, stop, results)


@jit
def solve_class_pairs(
    own: OwnBlocks,
    first: int,
    numbers: NDArray,
    second: NDArray,
    across: NDArray,
    column: NDArray,
    problems: Stacked,
    tol: float,
    max_iter: int,
    stop: NDArray,
    results: Results,
):
    """Solve some problems, those of the class ``first`` with some others.

    Problem ``numbers[k]`` is with the class ``second[k]``; ``across`` has the kernel
    values of both from column ``column[k]`` on.
    """
    a = own.size[first]
    square, span = np.empty((0, 0)), np.zeros((1, 3), dtype=np.int64)
    for k in range(len(second)):
        b = own.size[second[k]]
        if k == 0 or second[k] != second[k - 1]:
            if len(square) != a + b:
                square = np.empty((a + b, a + b))
            _put_together(own, first, second[k], across, column[k], square)
            span[0, 1] = a + b
        _solve_one(
            square, span, problems, numbers[k], tol, max_iter, False, stop, results
        )


@jit
def _put_together(own, first, second, across, column, square):
    """Fill the matrix of two classes."""
    a, b = own.size[first], own.size[second]
    at, other = own.begin[first], own.begin[second]
    for r in range(a):
        square[r, :a] = own.values[at + r * a : at + (r + 1) * a]
        square[r, a:] = across[r, column : column + b]
    for r in range(b):
        square[a + r, a:] = own.values[other + r * b : other + (r + 1) * b]
        for k in range(a):
            square[a + r, k] = across[k, column + r]


@jit
def _solve_one(K, span, problems, k, tol, max_iter, polish, stop, results):
    """Solve problem k, and certify the solution."""
    v, w = problems.first[k], problems.stop[k]
    whole = problems.variables
    problem = DualProblem(
        whole.p[v:w], whole.lo[v:w], whole.hi[v:w],
        whole.start[v:w], whole.row[v:w], whole.group[v:w],
    )  # fmt: skip
    piece, _, group_start = cut_pieces(problem.row, problem.group, span)
    where = Layout(piece, span, group_start)
    beta = results.beta[v:w]
    f = results.f[problems.begin_f[k] : problems.begin_f[k + 1]]
    f[:] = 0.0
    if np.any(beta != 0.0):
        multiply(K, span, problem.row, beta, f)
    n_iter, n_runs = 0, 0
    target, steps = SAFETY * tol, max_iter
    before_beta, before_f = beta, f
    is_polishing = False
    # There is one call of the pair solver, because each makes compiling slower.
    while True:
        more, gap, _ = minimise_pairs(K, where, problem, beta, f, target, steps, stop)
        n_iter += more
        n_runs += 1
        # The rounding errors of many steps add up, but a product has hardly any.
        multiply(K, span, problem.row, beta, f)
        objective, kkt_gap, dual_gap = certify_one(
            problem.p, problem.lo, problem.hi, problem.row, problem.group,
            beta, f, results.multipliers[k],
        )  # fmt: skip
        if is_polishing:
            if kkt_gap <= tol:
                break
            # Steps always decrease the objective, but not the gap.
            beta[:] = before_beta
            f[:] = before_f
            target, steps, polish, is_polishing = SAFETY * tol, 0, False, False
        elif kkt_gap <= tol:
            steps = min(max_iter - n_iter, POLISHING_STEPS * len(beta))
            if not polish or steps <= 0:
                break
            before_beta, before_f = beta.copy(), f.copy()
            target, is_polishing = POLISH * tol, True
        elif gap > SAFETY * tol or n_runs >= MOST_RUNS:
            break
        else:
            steps = max_iter - n_iter
    holds = holds_bounds_and_sums(
        problem.lo, problem.hi, problem.start, problem.group, beta
    )
    results.n_iter[k] = n_iter
    certificate = results.certificate[k]
    certificate[0], certificate[1], certificate[2] = objective, kkt_gap, dual_gap
    certificate[3] = 1.0 if holds else 0.0


@jit
def is_spoilt(gap: float, error: float, goal: float, tol: float):
    """Tell whether rounding or overflow is the only obstacle to a certificate."""
    return not gap + error < np.inf or (gap <= goal and gap + 2.0 * error > tol)


@jit
def closer_goal(error: float, tol: float):
    """Return a smaller gap, which makes up for rounding errors, or 0 if none can."""
    return tol - 2.5 * error if 2.5 * error <= MOST_FOR_ROUNDING * tol else 0.0


@jit
def solve_chains(
    K: NDArray,
    diag: NDArray,
    rows: NDArray,
    sampled: NDArray,
    exact: NDArray,
    chains: Chains,
    first: int,
    last: int,
    tol: NDArray,
    max_iter: NDArray,
    most: int | None,
    stop: NDArray,
    room: NDArray,
    results: Results,
):
    """Solve the chains from ``first`` up to ``last`` on parts of one kernel matrix.

    ``rows`` are the rows of the matrix K that belong to the rows of the chains.  Row r
    of K is row ``sampled[r]`` of ``exact`` in double precision, unless that is -1.
    Each link has its ``tol`` and ``max_iter``.  Shrinking copies at most ``most`` rows,
    and ``room`` is memory for the matrix of one chain.  If all chains are short enough
    to be polished, ``most`` may be None: then nothing is compiled for shrinking.
    """
    for c in range(first, last):
        if stop[0] != 0:
            break
        v, w = chains.begin[c], chains.begin[c + 1]
        r, s = chains.begin_f[c], chains.begin_f[c + 1]
        n, own = s - r, rows[r:s]
        source = part_of(K, diag, own, room[: n * n].reshape(n, n))
        row, group = chains.row[v:w], chains.group[v:w]
        span = np.zeros((1, 3), dtype=np.int64)
        span[0, 1] = n
        piece, _, group_start = cut_pieces(row, group, span)
        where = Layout(piece, span, group_start)
        is_polished = w - v <= POLISHED and K.itemsize == 8
        has_sums = False
        for k in range(len(chains.start)):
            has_sums = has_sums or _mass(chains.start[k, v:w]) > 0.0
        if is_polished or has_sums:
            for i in range(n):
                fill_row(source, i)
        before = -1
        for k in range(len(chains.lo)):
            p = chains.p[min(k, len(chains.p) - 1), v:w]
            start = chains.start[min(k, len(chains.start) - 1), v:w]
            lo, hi = chains.lo[k, v:w], chains.hi[k, v:w]
            problem = DualProblem(p, lo, hi, start, row, group)
            beta, f = results.beta[k, v:w], results.f[k, r:s]
            old_beta, old_f = results.beta[before, v:w], results.f[before, r:s]
            old_lo, old_hi = chains.lo[before, v:w], chains.hi[before, v:w]
            if before < 0 or _are_released(old_beta, old_lo, old_hi, lo, hi):
                beta[:] = start
                f[:] = 0.0
                if has_sums:
                    multiply(source.square, span, row, beta, f)
            else:
                begin_at(source.square, problem, old_beta, old_f, beta, f)
            goal, steps = SAFETY * tol[k], 0
            for _attempt in range(2):
                left = max_iter[k] - steps
                steps += _take_steps(
                    source, where, problem, beta, f, goal, left, stop, most,
                    is_polished,
                )  # fmt: skip
                objective, gap, dual_gap = certify_one(
                    p, lo, hi, row, group, beta, f, results.multipliers[k, c]
                )
                error = _rounding_error(own, sampled, exact, row, beta, f)
                is_lost = is_spoilt(gap, error, goal, tol[k])
                closer = closer_goal(error, tol[k])
                if not is_lost or not closer > 0.0:
                    break
                is_lost, goal = False, closer
            holds = holds_bounds_and_sums(lo, hi, start, group, beta)
            results.n_iter[k, c] = steps
            certificate = results.certificate[k, c]
            certificate[0], certificate[1], certificate[2] = objective, gap, dual_gap
            certificate[3] = -1.0 if is_lost else (1.0 if holds else 0.0)
            certificate[4] = 2.0 * error
            before = -1 if is_lost or not np.isfinite(objective) else k


@jit
def _take_steps(
    source, where, problem, beta, f, tol, max_iter, stop, most, is_polished
):
    """Solve a problem, and then more exactly if it is to be polished.

    Return the number of steps.  The meaning of polishing is that of
    :func:`mercer.core.smo.solve_and_polish`.
    """
    target, steps, n_iter = tol, max_iter, 0
    before_beta, before_f = beta, f
    # There is one call of a solver, because each makes compiling slower.
    for stage in range(3):
        if most is None:
            more, gap, _ = minimise_pairs(
                source.square, where, problem, beta, f, target, steps, stop
            )
        else:
            active = min(len(beta) // 2, most)
            if is_polished or len(beta) < SHRINK_FROM:
                active = 0
            more, gap, _ = shrink_and_solve(
                source, where, problem, beta, f, target, steps, stop, active
            )
        n_iter += more
        if stage == 0:
            if gap > tol or not is_polished:
                break
            before_beta, before_f = beta.copy(), f.copy()
            target = POLISH * tol
            steps = min(max_iter - n_iter, POLISHING_STEPS * len(beta))
        elif stage == 1:
            # The rounding errors of many steps add up, but a product has hardly any.
            multiply(source.square, where.span, problem.row, beta, f)
            target, steps = tol, max_iter - n_iter
        elif gap > tol:
            # Steps always decrease the objective, but not the gap.
            beta[:] = before_beta
            f[:] = before_f
    return n_iter


@jit
def _are_released(beta, old_lo, old_hi, lo, hi):
    """Tell whether new bounds release nearly all coefficients that are not 0.

    Most of them will then be smaller than the best multiple makes them, and finding
    that out one by one takes longer than to begin anew.
    """
    used, released = 0, 0
    for v in range(len(beta)):
        if beta[v] != 0.0:
            used += 1
            was_held = beta[v] == old_lo[v] or beta[v] == old_hi[v]
            if was_held and lo[v] < beta[v] < hi[v]:
                released += 1
    return released > MOST_RELEASED * used


@jit
def _rounding_error(rows, sampled, exact, row, beta, f):
    """Return the largest error of ``f`` on the rows that are known exactly."""
    by_row = np.zeros(len(f))
    for v in range(len(beta)):
        by_row[row[v]] += beta[v]
    largest = 0.0
    for i in range(len(rows)):
        if sampled[rows[i]] >= 0:
            values = exact[sampled[rows[i]]]
            total = 0.0
            for k in range(len(rows)):
                if by_row[k] != 0.0:
                    total += by_row[k] * values[rows[k]]
            error = abs(total - f[i])
            if not error <= largest:
                largest = error if error < np.inf else np.inf
    return largest


@jit
def begin_at(
    K: NDArray,
    problem: DualProblem,
    old_beta: NDArray,
    old_f: NDArray,
    beta: NDArray,
    f: NDArray,
):
    """Write the coefficients at which a problem begins after another, and their f."""
    p, lo, hi, start, row, group = problem
    mass = _mass(start)
    if mass == 0.0:
        best_multiple(p, lo, hi, row, old_beta, old_f, beta, f)
        return
    # If all bounds and masses are scaled (C of nu-SVR), the solution is scaled too.
    old = _mass(old_beta)
    scale = mass / old if old > 0.0 else 1.0
    for v in range(len(beta)):
        beta[v] = min(max(scale * old_beta[v], lo[v]), hi[v])
    first = 0
    while first < len(beta):
        last, lack = first, 0.0
        while last < len(beta) and group[last] == group[first]:
            lack += start[last] - beta[last]
            last += 1
        sign, left, most = (1.0 if lack > 0.0 else -1.0), abs(lack), -np.inf
        while left > 0.0 and most < np.inf:
            # The variable that gains most, after those that have been filled up.
            best, most_before = first, most
            most = np.inf
            for v in range(first, last):
                wish = sign * (old_f[row[v]] + p[v])
                if most_before < wish < most:
                    best, most = v, wish
            if most == np.inf:
                break
            for v in range(best, last):
                if sign * (old_f[row[v]] + p[v]) == most:
                    room = hi[v] - beta[v] if sign > 0.0 else beta[v] - lo[v]
                    share = min(left, room)
                    beta[v] = min(max(beta[v] + sign * share, lo[v]), hi[v])
                    left -= share
        first = last
    span = np.zeros((1, 3), dtype=np.int64)
    span[0, 1] = len(f)
    multiply(K, span, row, beta, f)


@jit
def _mass(values):
    """Return the sum of absolute values."""
    total = 0.0
    for value in values:
        total += abs(value)
    return total


@jit
def collect_weights(coefficients: NDArray, begin: NDArray, weights: NDArray):
    """Write stretches of rows of coefficients, each of which begins at ``begin[k]``."""
    length = weights.shape[1]
    for e in range(len(coefficients)):
        for k in range(len(begin)):
            source = coefficients[e, begin[k] : begin[k] + length]
            target = weights[e * len(begin) + k]
            for i in range(length):
                target[i] = source[i]


@jit
def add_products(products: NDArray, tasks: NDArray, sums: NDArray):
    """Add products (n_links * len(tasks), m) to ``sums`` (n_links, n_tasks, m)."""
    for e in range(len(sums)):
        for k in range(len(tasks)):
            target, source = sums[e, tasks[k]], products[e * len(tasks) + k]
            for i in range(len(target)):
                target[i] += source[i]
