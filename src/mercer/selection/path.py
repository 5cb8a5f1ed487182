r"""Problems that differ in their bounds only, one after the other on one matrix.

Along ascending bounds (C, weights) the solution of one problem, scaled, is where the
next begins.  On the ray :math:`s\beta`, with :math:`f = K\beta` at hand, the objective
is :math:`\tfrac12 s^2 \beta^T f + s\, p^T\beta`, least at
:math:`s = -p^T\beta / \beta^T f`; bounds limit :math:`s` from above.  Where sums are
prescribed (:math:`\nu`), what the clipped solution lacks is filled up where the
gradient asks for it most.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import DualProblem, Layout, Solution, certify, layout
from mercer.core.rows import add_rows, gather_square
from mercer.selection.stored import SharedGram
from mercer.solvers import (
    MOST_FOR_ROUNDING,
    MOST_STEPS,
    SAFETY,
    solve_and_polish,
)

__all__ = ["Link", "gathered", "solve_chain"]


class Link(NamedTuple):
    """One problem of a chain, and how to solve it."""

    problem: DualProblem
    tol: float
    max_iter: int
    shrinking: bool

    @property
    def place(self) -> tuple[float, float, float]:
        """Where it stands among others: by its bounds, its masses, its linear term."""
        problem = self.problem
        bounds = float((problem.hi - problem.lo).sum())
        masses, linear = np.abs(problem.start).sum(), np.abs(problem.p).sum()
        return bounds, float(masses), float(linear)


class Solved(NamedTuple):
    """A solution, or None where the precision is not enough; and the time it took."""

    solution: Solution | None
    seconds: float


def gathered(matrix: NDArray, rows: NDArray, columns: NDArray) -> NDArray:
    """Return ``matrix[rows][:, columns]``."""
    part = np.empty((len(rows), len(columns)), dtype=matrix.dtype)
    gather_square(
        matrix, rows.astype(np.int64), columns.astype(np.uint64), 0, part
    )
    return part


def solve_chain(
    square: NDArray,
    gram: SharedGram,
    rows: NDArray,
    links: Sequence[Link],
    stop: NDArray,
) -> list[Solved]:
    """Solve problems on the samples ``rows`` of a Gram matrix; ``square`` is its part.

    The results are in the order of the links, whatever the order of solving.
    """
    results: list[Solved] = [Solved(None, 0.0)] * len(links)
    at = np.searchsorted(rows[np.argsort(rows)], gram.sampled)
    order = np.argsort(rows)
    at = order[np.minimum(at, len(rows) - 1)]
    here = rows[at] == gram.sampled
    exact = gram.exact[np.flatnonzero(here)][:, rows], at[here]
    before: tuple[DualProblem, NDArray, NDArray] | None = None
    where: Layout | None = None
    for k in sorted(range(len(links)), key=lambda k: links[k].place):
        began = time.perf_counter()
        problem = links[k].problem
        if before is None or not _is_alike(before[0], problem):
            before, where = None, layout(problem)
        beta, f = _begin(square, problem, before)
        solution = _solve(square, where, links[k], beta, f, exact, stop)
        is_good = solution is not None and np.isfinite(solution.objective)
        before = (problem, beta, f) if is_good else None
        results[k] = Solved(solution, time.perf_counter() - began)
    return results


def _is_alike(one: DualProblem, other: DualProblem) -> bool:
    """Tell whether two problems have the same variables."""
    return np.array_equal(one.row, other.row) and np.array_equal(one.group, other.group)


def _solve(
    square: NDArray,
    where: Layout | None,
    link: Link,
    beta: NDArray,
    f: NDArray,
    exact: tuple[NDArray, NDArray],
    stop: NDArray,
) -> Solution | None:
    """Solve one problem and certify it, rounding errors included."""
    problem, tol = link.problem, link.tol
    max_iter = link.max_iter
    if max_iter < 0:
        max_iter = max(MOST_STEPS, 100 * len(beta))
    n_iter, goal = 0, SAFETY * tol
    for _ in range(2):
        outcome = solve_and_polish(
            square, where, problem, beta, f, goal, max_iter - n_iter, stop,
            link.shrinking,
        )  # fmt: skip
        n_iter += outcome.n_iter
        found = certify(problem, beta, f)
        coefficients = np.bincount(problem.row, beta, len(f))
        values, own = exact
        error = float(np.abs(values @ coefficients - f[own]).max(initial=0.0))
        is_spoilt = not found.kkt_gap + error < np.inf or (
            found.kkt_gap <= goal and found.kkt_gap + 2.0 * error > tol
        )
        if not is_spoilt:
            break
        if not 2.5 * error <= MOST_FOR_ROUNDING * tol:
            return None
        goal = tol - 2.5 * error
    converged = found.kkt_gap + 2.0 * error <= tol
    return Solution(
        beta.copy(), f.copy(), *found[:4], n_iter, converged, found[4], 2.0 * error
    )


def _begin(
    square: NDArray,
    problem: DualProblem,
    before: tuple[DualProblem, NDArray, NDArray] | None,
) -> tuple[NDArray, NDArray]:
    """Return where to start, and its ``f``."""
    f = np.zeros(len(square))
    if before is None:
        beta = problem.start.copy()
        _add(square, problem.row, beta, f)
        return beta, f
    if not problem.start.any():
        return _along_ray(problem, *before[1:])
    return _fill_up(square, problem, *before[1:])


def _add(square: NDArray, row: NDArray, change: NDArray, f: NDArray) -> None:
    moved = np.flatnonzero(change)
    if len(moved):
        add_rows(square, row[moved].astype(np.int64), change[moved], 0, f)


def _along_ray(
    problem: DualProblem, beta: NDArray, f: NDArray
) -> tuple[NDArray, NDArray]:
    """Return the best feasible multiple of a former solution."""
    used = np.flatnonzero(beta)
    own = beta[used]
    room = np.where(own > 0, problem.hi[used], problem.lo[used]) / own
    quadratic = float(own @ f[problem.row[used]])
    slope = float(problem.p[used] @ own)
    s = -slope / quadratic if quadratic > 0 and slope < 0 else 0.0
    s = min(s, float(room.min(initial=np.inf)))
    if not (np.isfinite(s) and s > 0):
        return np.zeros(len(beta)), np.zeros(len(f))
    return np.clip(s * beta, problem.lo, problem.hi), s * f


def _fill_up(
    square: NDArray, problem: DualProblem, beta: NDArray, f: NDArray
) -> tuple[NDArray, NDArray]:
    """Return a former solution with the sums that the problem asks for."""
    _, lo, hi, start, row, group = problem
    # Bounds and masses that all scale (C of ν-SVR) take the solution along.
    old, new = np.abs(beta).sum(), np.abs(start).sum()
    scaled = np.clip(beta * (new / old) if old > 0 else beta, lo, hi)
    G = f[row] + problem.p
    for g in range(int(group[-1]) + 1):
        mine = np.flatnonzero(group == g)
        lack = start[mine].sum() - scaled[mine].sum()
        sign = 1.0 if lack > 0 else -1.0
        mine = mine[np.argsort(sign * G[mine], kind="stable")]
        room = hi[mine] - scaled[mine] if lack > 0 else scaled[mine] - lo[mine]
        share = np.clip(abs(lack) - (np.cumsum(room) - room), 0.0, room)
        scaled[mine] += sign * share
    new_beta = np.clip(scaled, lo, hi)
    fresh = np.zeros(len(f))
    _add(square, row, new_beta, fresh)
    return new_beta, fresh
