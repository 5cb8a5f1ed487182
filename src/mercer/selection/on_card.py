"""Searches on a graphics card: all folds and settings of one kernel at once.

The Gram matrix of all samples is computed on the card and stays there while its
candidates are evaluated. Each problem of each candidate on each fold gets a thread
block of its own, so that there is no chain from one C to the next: the card solves all
of them in the time that the slowest one takes. A copy of the matrix in the main memory
serves what is small.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import DualProblem, certify, is_feasible
from mercer.core.stacked import SAFETY, closer_goal, is_spoilt
from mercer.engines.cuda.card import Card
from mercer.engines.cuda.operand import CardOperand
from mercer.engines.cuda.pair import whole_gram
from mercer.engines.cuda.products import gather
from mercer.engines.cuda.whole import Member, PairSolver
from mercer.kernels.base import Kernel
from mercer.kernels.pair import dense_if_small
from mercer.runtime.threads import Threads
from mercer.selection.candidates import Samples
from mercer.selection.path import Course, SharedGram, sample
from mercer.selection.stored import exact_rows

__all__ = ["CardGrams", "CardMatrix"]

# A matrix may take so much of the memory of a card; the rest is for parts of it while
# they are computed, for copies of some rows, and for vectors.
LARGEST_PART = 0.5
# Bytes of a matrix that are computed at once, as a part of the memory for it.
PART = 16


class CardMatrix:
    """A Gram matrix on a card."""

    def __init__(self, card: Card, matrix: Any):
        self.card = card
        self.matrix = matrix

    def times(self, weights: NDArray, rows: NDArray, columns: NDArray) -> NDArray:
        """Return ``weights @ K[rows][:, columns].T``."""
        to_card = self.card.to_card
        with self.card.at_work():
            values = gather(self.card, self.matrix, rows, columns)
            return self.card.to_host(self.card.xp.matmul(to_card(weights), values.T))


class CardGrams:
    """Computes Gram matrices of the same samples on a card, and solves on them.

    Parameters
    ----------
    card : Card
    samples : Samples
    kernels : list of Kernel
        Those whose matrices will be asked for.
    dtype : dtype
        The precision of the matrices.
    threads : Threads
        They compute what is small.
    cache_size : float or "auto"
        Megabytes of the card that matrices may take.
    """

    def __init__(
        self,
        card: Card,
        samples: Samples,
        kernels: Sequence[Kernel],
        dtype: np.dtype,
        threads: Threads,
        cache_size: float | str,
    ):
        self._card, self._threads = card, threads
        self._cache_size, self._dtype = cache_size, dtype
        self._X, self._operand = samples.X, None
        if not samples.is_matrix:
            if not any(kernel.is_custom() for kernel in kernels):
                self._X = dense_if_small(samples.X)  # as a fit does
            self._operand = CardOperand(card, self._X.astype(dtype, copy=False))

    def why_no_room(self) -> str | None:
        """Return why a Gram matrix does not fit the card, or None if it does."""
        n = self._X.shape[0]
        needed = n * n * self._dtype.itemsize
        allowed = LARGEST_PART * self._card.memory(self._cache_size)
        if needed <= allowed:
            return None
        return (
            f"the Gram matrix of {n} samples takes {needed / 2**20:.0f} MB, and "
            f"cache_size={self._cache_size!r} allows {allowed / 2**20:.0f} MB for it "
            "on the card"
        )

    def make(self, kernel: Kernel) -> SharedGram:
        """Return the matrix of a bound kernel, on the card and in the main memory."""
        with self._card.at_work(self._cache_size):
            if self._operand is None:
                there = CardMatrix(self._card, self._card.to_card(self._X))
                return SharedGram.given(self._X)._replace(on_card=there)
            part_bytes = max(1, self._card.memory(self._cache_size) // PART)
            matrix = whole_gram(kernel, self._operand, part_bytes)
            here = self._card.to_host(matrix)
        rows = sample(len(here))
        exact = exact_rows(kernel, self._X, rows, self._threads)
        there = CardMatrix(self._card, matrix)
        return SharedGram(here, rows, exact, here.diagonal().copy(), there)

    def solve(self, courses: Sequence[Course], stop: NDArray) -> None:
        """Solve the problems of all courses, which are on one matrix, at once."""
        began = time.perf_counter()
        members = [member for course in courses for member in _members(course)]
        if not members:
            return
        gram = courses[0].gram
        with self._card.at_work(self._cache_size):
            solver = PairSolver(self._card, gram.on_card.matrix, gram.diag, stop)
            _solve(solver, gram, members)
        share = (time.perf_counter() - began) / len(courses)
        for course in courses:
            course.seconds += share


class _Problem(NamedTuple):
    """A problem on the card, and where its solution is put."""

    member: Member
    tol: float
    max_iter: int
    course: Course
    link: int
    chain: int


def _members(course: Course) -> Iterator[_Problem]:
    """Yield all problems of a course; they change its results in place."""
    chains, results = course.stated.chains, course.results
    for c in range(len(chains.begin) - 1):
        own = slice(chains.begin[c], chains.begin[c + 1])
        rows = slice(chains.begin_f[c], chains.begin_f[c + 1])
        for e in range(len(chains.lo)):
            p, lo, hi, start = (part[min(e, len(part) - 1), own] for part in chains[:4])
            row, group = chains.row[own], chains.group[own]
            problem = DualProblem(p, lo, hi, start, row, group)
            beta, f = results.beta[e, own], results.f[e, rows]
            beta[:] = start
            member = Member(problem, course.stated.rows[rows], beta, f)
            tol, most = float(course.tol[e]), int(course.max_iter[e])
            yield _Problem(member, tol, most, course, e, c)


def _solve(solver: PairSolver, gram: SharedGram, problems: Sequence[_Problem]) -> None:
    """Solve and certify all problems.

    The meaning is that of :func:`mercer.core.stacked.solve_chains`.
    """
    members = [problem.member for problem in problems]
    for member in members:
        solver.compute_f(member)
    places = gram.places()
    goals = np.array([SAFETY * problem.tol for problem in problems])
    most = np.array([problem.max_iter for problem in problems], dtype=np.int64)
    n_iter = np.zeros(len(problems), dtype=np.int64)
    pending = np.arange(len(problems))
    for is_last in (False, True):
        _take_steps(solver, members, pending, goals, most, n_iter)
        again = []
        for k in pending.tolist():
            tol, error = problems[k].tol, _error(members[k], places, gram.exact)
            gap = _certify(problems[k], int(n_iter[k]), error)
            if not is_spoilt(gap, error, goals[k], tol):
                continue
            closer = closer_goal(error, tol)
            if not closer > 0:
                _, _, _, course, e, c = problems[k]
                course.results.certificate[e, c, 3] = -1.0
            elif not is_last:
                goals[k] = closer
                again.append(k)
        pending = np.array(again, dtype=np.intp)
        if not again:
            break


def _take_steps(
    solver: PairSolver,
    members: Sequence[Member],
    pending: NDArray,
    goals: NDArray,
    most: NDArray,
    n_iter: NDArray,
) -> None:
    """Solve some problems, and count their steps."""
    some = [members[k] for k in pending]
    outcomes = solver.run(some, goals[pending], (most - n_iter)[pending])
    n_iter[pending] += outcomes.steps
    good = pending[outcomes.gap <= goals[pending]]
    solved = [members[k] for k in good]
    n_iter[good] += solver.polish(solved, goals[good], (most - n_iter)[good])


def _error(member: Member, places: NDArray, exact: NDArray) -> float:
    """Return the largest error of ``f`` on the sampled rows."""
    own = np.flatnonzero(places[member.rows] >= 0)
    values = exact[places[member.rows[own]][:, None], member.rows]
    by_row = np.bincount(member.problem.row, member.beta, len(member.f))
    return float(np.abs(values @ by_row - member.f[own]).max(initial=0.0))


def _certify(found: _Problem, n_iter: int, error: float) -> float:
    """Write the certificate of a problem, and return its gap."""
    (problem, _, beta, f), _, _, course, e, c = found
    _, objective, gap, dual_gap, multipliers = certify(problem, beta, f)
    holds = float(is_feasible(problem, beta))
    results = course.results
    results.certificate[e, c] = objective, gap, dual_gap, holds, 2.0 * error
    results.multipliers[e, c, : len(multipliers)] = multipliers
    results.n_iter[e, c] = n_iter
    return gap
