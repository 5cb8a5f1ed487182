"""Small problems, one after the other in the same arrays, solved in one compiled call.

With a hundred classes there are 4,950 pairs of them.  Each problem takes some
microseconds, less than a handful of calls from Python.  So the variables of many
problems lie one after the other in the same arrays, and a thread solves one problem
after the other, certificates included, before it comes back to Python.
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
from mercer.core.smo import POLISH, POLISHING_STEPS, minimise_pairs, multiply

__all__ = [
    "OwnBlocks",
    "Results",
    "Solutions",
    "Specs",
    "Stacked",
    "TaskSpec",
    "betas",
    "column",
    "ends_of",
    "room_for",
    "solve_class_pairs",
    "solve_stacked",
    "taken",
]

# Steps aim at this fraction of the tolerance; the rest is for rounding errors.
SAFETY = 0.9
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


class Results(NamedTuple):
    """What is found, for all of the stacked problems."""

    beta: NDArray[np.float64]  #: the start, and then the solution
    f: NDArray[np.float64]  #: K beta, computed by a product
    n_iter: NDArray[np.int64]
    #: objective, KKT gap, dual gap, and whether bounds and sums hold
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
        np.zeros((count, 4)),
        np.zeros((count, int(problems.variables.group.max()) + 1)),
    )


class Solutions(Sequence[Solution]):
    """The solutions of stacked problems; objects are made when they are asked for.

    A problem is solved if bounds and sums hold and the gap is within ``tol``.
    """

    def __init__(
        self, problems: Stacked, results: Results, tol: float, which: slice = ALL
    ):
        self._of = problems, results, tol, which
        self._first, self._stop = problems.first[which], problems.stop[which]
        self._first_f = problems.begin_f[:-1][which]
        self._stop_f = problems.begin_f[1:][which]
        self._beta, self._f = results.beta, results.f
        self.multipliers = results.multipliers[which]
        certificate = results.certificate[which]
        self.objective, self.kkt_gap, self.dual_gap = certificate.T[:3]
        self.converged = (certificate[:, 3] > 0.0) & (self.kkt_gap <= tol)
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
