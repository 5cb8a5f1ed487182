"""Searches on a graphics card: all folds and settings of one kernel at once.

The Gram matrix of all samples is computed on the card and stays there while its
candidates are evaluated. Each problem of each candidate on each fold gets a thread
block of its own, so that there is no chain from one C to the next: the card solves all
of them in the time that the slowest one takes. A copy of the matrix in the main memory
serves what is small.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import Solution, certify, is_feasible
from mercer.engines.cuda.card import Card
from mercer.engines.cuda.operand import CardOperand
from mercer.engines.cuda.pair import whole_gram
from mercer.engines.cuda.products import gather
from mercer.engines.cuda.whole import Member, PairSolver
from mercer.engines.precision import MOST_FOR_ROUNDING, SAFETY
from mercer.kernels.base import Kernel
from mercer.kernels.pair import dense_if_small
from mercer.runtime.threads import Threads
from mercer.selection.candidates import Samples
from mercer.selection.path import (
    Answers,
    Job,
    Link,
    Solved,
    is_spoilt,
    link_of,
    sampled,
)
from mercer.selection.stored import SharedGram, exact_rows, sample

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

    def solve(self, jobs: Sequence[Job], stop: NDArray) -> Answers:
        """Solve the problems of all jobs, which are on one matrix, at once."""
        began = time.perf_counter()
        keys, links, members, exact = [], [], [], []
        for job in jobs:
            values = sampled(job.gram, job.rows)
            for entry, t in (pair for chain in job.chains for pair in chain):
                link = link_of(entry, t)
                beta, f = link.problem.start.copy(), np.zeros(len(job.rows))
                keys.append((id(entry), t))
                links.append(link)
                members.append(Member(link.problem, job.rows, beta, f))
                exact.append(values)
        if not keys:
            return {}
        gram = jobs[0].gram
        with self._card.at_work(self._cache_size):
            solver = PairSolver(self._card, gram.on_card.matrix, gram.diag, stop)
            found = _solve(solver, links, members, exact)
        share = (time.perf_counter() - began) / len(keys)
        return {
            key: Solved.of(one, share) for key, one in zip(keys, found, strict=True)
        }


def _solve(
    solver: PairSolver,
    links: Sequence[Link],
    members: Sequence[Member],
    exact: Sequence[tuple[NDArray, NDArray]],
) -> list[Solution | float]:
    """Return the solution of each problem, or the rounding error that prevents one.

    The meaning is that of :func:`mercer.selection.path.solve_chain`.
    """
    for member in members:
        solver.compute_f(member)
    results: list[Solution | float] = [np.inf] * len(links)
    goals = np.array([SAFETY * link.tol for link in links])
    most = np.array([link.most for link in links], dtype=np.int64)
    n_iter = np.zeros(len(links), dtype=np.int64)
    pending = np.arange(len(links))
    for is_last in (False, True):
        _take_steps(solver, members, pending, goals, most, n_iter)
        again = []
        for k in pending.tolist():
            error = _error(members[k], exact[k])
            results[k] = _certified(links[k], members[k], int(n_iter[k]), error)
            gap = results[k].kkt_gap  # type: ignore[union-attr]
            if not is_spoilt(gap, error, goals[k], links[k].tol):
                continue
            if not 2.5 * error <= MOST_FOR_ROUNDING * links[k].tol:
                results[k] = error
            elif not is_last:
                # A smaller gap makes up for larger rounding errors.
                goals[k] = links[k].tol - 2.5 * error
                again.append(k)
        pending = np.array(again, dtype=np.intp)
        if not again:
            break
    return results


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


def _error(member: Member, exact: tuple[NDArray, NDArray]) -> float:
    """Return the largest error of ``f`` on the sampled rows."""
    values, own = exact
    by_row = np.bincount(member.problem.row, member.beta, len(member.f))
    return float(np.abs(values @ by_row - member.f[own]).max(initial=0.0))


def _certified(link: Link, member: Member, n_iter: int, error: float) -> Solution:
    problem, _, beta, f = member
    found = certify(problem, beta, f)
    is_within = found.kkt_gap + 2.0 * error <= link.tol
    converged = is_within and is_feasible(problem, beta)
    return Solution(beta, f, *found[:4], n_iter, converged, found[4], 2.0 * error)
