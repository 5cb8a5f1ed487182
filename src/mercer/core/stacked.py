"""Small problems, one after the other in the same arrays, solved in one compiled call.

With a hundred classes there are 4,950 pairs of them.  Each problem takes some
microseconds, less than a handful of calls from Python.  So the variables of many
problems lie one after the other in the same arrays, and a thread solves one problem
after the other, certificates included, before it comes back to Python.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

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
    "Stacked",
    "room_for",
    "solutions_of",
    "solve_class_pairs",
    "solve_stacked",
    "stack",
]

# Steps aim at this fraction of the tolerance; the rest is for rounding errors.
SAFETY = 0.9
# How often steps are taken until the gap of the product is within the tolerance.
MOST_RUNS = 3


class Stacked(NamedTuple):
    """Problems, one after the other in the same arrays."""

    variables: DualProblem  #: the variables of all problems
    begin: NDArray[np.int64]  #: where each problem's variables begin, then the end
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


def stack(problems: Sequence[DualProblem], n_rows: NDArray[np.int64]) -> Stacked:
    """Put problems, which have so many rows each, one after the other."""
    if len(problems) == 1:
        variables = problems[0]
    else:
        parts = zip(*problems, strict=True)
        variables = DualProblem(*(np.concatenate(part) for part in parts))
    begin = np.zeros(len(problems) + 1, dtype=np.int64)
    np.cumsum([len(problem.p) for problem in problems], out=begin[1:])
    begin_f = np.zeros(len(problems) + 1, dtype=np.int64)
    np.cumsum(n_rows, out=begin_f[1:])
    return Stacked(variables, begin, begin_f)


def room_for(problems: Stacked) -> Results:
    """Return arrays for what is found; they hold the start of every problem."""
    count = len(problems.begin) - 1
    return Results(
        problems.variables.start.copy(),
        np.zeros(problems.begin_f[-1]),
        np.zeros(count, dtype=np.int64),
        np.zeros((count, 4)),
        np.zeros((count, int(problems.variables.group.max()) + 1)),
    )


def solutions_of(
    problems: Stacked, results: Results, tol: float, first: int, last: int
) -> list[Solution]:
    """Return the solutions of the problems from ``first`` up to ``last``.

    They have converged if their bounds and sums hold and the gap is within ``tol``.
    """
    some = slice(first, last)
    begin = problems.begin[first : last + 1].tolist()
    begin_f = problems.begin_f[first : last + 1].tolist()
    found = zip(
        pairwise(begin),
        pairwise(begin_f),
        results.n_iter[some].tolist(),
        results.certificate[some].tolist(),
        results.multipliers[some].tolist(),
        strict=True,
    )
    solutions = []
    for (v, w), (r, s), n_iter, certificate, multipliers in found:
        objective, kkt_gap, dual_gap, holds = certificate
        bias = -sum(multipliers) / len(multipliers)
        converged = holds > 0.0 and kkt_gap <= tol
        beta, f = results.beta[v:w], results.f[r:s]
        numbers = bias, objective, kkt_gap, dual_gap, n_iter, converged
        solutions.append(Solution(beta, f, *numbers, tuple(multipliers)))
    return solutions


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
    second: NDArray,
    across: NDArray,
    column: NDArray,
    problems: Stacked,
    tol: float,
    max_iter: int,
    stop: NDArray,
    results: Results,
):
    """Solve the problems of the class ``first`` with some others.

    Problem k is with the class ``second[k]``; ``across`` has the kernel values of both
    from column ``column[k]`` on.
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
        _solve_one(square, span, problems, k, tol, max_iter, False, stop, results)


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
    v, w = problems.begin[k], problems.begin[k + 1]
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
