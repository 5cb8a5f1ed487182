"""Small problems, stacked for compiled code, and the solutions that come back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import DualProblem, Solution
from mercer.core.stacked import Results, Stacked

__all__ = ["Solved", "room_for", "solutions_of", "stack"]


class Solved(NamedTuple):
    """What reports on progress know of a problem."""

    gap: float
    done: bool
    n_iter: int


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
