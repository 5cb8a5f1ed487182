"""Fits on one matrix of kernel values: solutions, and decision values.

Candidates on the same fold whose problems have the same variables make up a *course*.
Each of their problems is a chain through the candidates, which compiled code solves on
the kernel values of its samples (:mod:`mercer.core.stacked`).  Threads take portions of
the chains.  Decision values of the samples that a fold leaves out come from the same
matrix.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import Solution
from mercer.core.smo import POLISHED, same_type
from mercer.core.stacked import (
    Chains,
    Results,
    Solutions,
    Specs,
    add_products,
    betas,
    collect_weights,
    ends_of,
    room_for_chains,
    solve_chains,
)
from mercer.core.tiles import gather_square
from mercer.engines.cpu.certificates import are_convex
from mercer.engines.cpu.small import whole_matrix
from mercer.engines.cpu.solve import MOST_STEPS
from mercer.engines.engine import Plan, samples_of
from mercer.kernels.base import Definiteness, Kernel
from mercer.runtime.threads import memory_of_thread
from mercer.runtime.validation import QUIET
from mercer.selection.candidates import Fold, Samples

__all__ = [
    "Course",
    "Entry",
    "Portion",
    "SharedGram",
    "Unit",
    "courses_of",
    "decide",
    "is_coarse",
    "portions_of",
    "repair",
    "sample",
    "small_gram",
    "solve_portion",
    "verdicts",
]

# Number of rows on which rounding errors are measured.
SAMPLED_ROWS = 64
# Samples of the chains that a thread solves in one go, about.
PORTION = 2000
# Columns in at most so many stretches are copied stretch by stretch.
MOST_STRETCHES = 16
# Arrays of so many values are quickly made anew.
LITTLE = 2**16
# The number of rows that shrinking may copy if memory is no question.
NO_LIMIT = 2**30


class SharedGram(NamedTuple):
    """The kernel values of all samples, and some of them in double precision."""

    matrix: NDArray  #: shape (n, n)
    sampled: NDArray[np.intp]  #: rows on which rounding errors are measured
    exact: NDArray[np.float64]  #: their kernel values, shape (len(sampled), n)
    diag: NDArray  #: the diagonal of the matrix
    on_card: Any = None  #: the matrix on a graphics card, if one computes

    @classmethod
    def given(cls, matrix: NDArray) -> SharedGram:
        """Take a matrix of the user's as exact."""
        matrix = matrix if matrix.flags.writeable else same_type(matrix)
        sampled = sample(len(matrix))
        exact = matrix[sampled].astype(np.float64)
        return cls(matrix, sampled, exact, matrix.diagonal().copy())

    def places(self) -> NDArray[np.int64]:
        """Return for each row of the matrix which of ``exact`` it is, or -1."""
        places = np.full(len(self.matrix), -1)
        places[self.sampled] = np.arange(len(self.sampled))
        return places

    def times(self, weights: NDArray, rows: NDArray, columns: NDArray) -> NDArray:
        """Return ``weights @ matrix[rows][:, columns].T``."""
        if self.on_card is not None:
            return self.on_card.times(weights, rows, columns)
        cuts = np.flatnonzero(np.diff(columns) != 1) + 1
        if len(cuts) == 0:
            values = self.matrix[rows, columns[0] : columns[-1] + 1]
        else:
            values = np.empty((len(rows), len(columns)), dtype=self.matrix.dtype)
            if len(cuts) < MOST_STRETCHES:
                for first, stop in pairwise([0, *cuts.tolist(), len(columns)]):
                    begin = columns[first]
                    stretch = self.matrix[rows, begin : begin + stop - first]
                    values[:, first:stop] = stretch
            else:
                gather_square(self.matrix, rows, columns.astype(np.uint64), 0, values)
        return weights @ values.T


def sample(n: int) -> NDArray[np.intp]:
    """Return the rows on which rounding errors are measured."""
    return np.unique(np.linspace(0, n - 1, min(n, SAMPLED_ROWS)).astype(np.intp))


@QUIET
def small_gram(X: Any, kernel: Kernel) -> SharedGram:
    """Return the matrix of a few samples, computed at once in double precision."""
    return SharedGram.given(whole_matrix(kernel, X))


@dataclass(eq=False)
class Entry:
    """One candidate on one split."""

    candidate: int
    split: int
    model: Any  #: the machine, to be fitted
    whole: Any  #: the candidate, of which the machine may be the last step only
    fold: Fold
    plan: Any = None  #: the problems that the machine states
    weights: Any = None  #: coefficients of the rows of all machines
    is_coarse: bool = False  #: whether single precision is too coarse to decide by
    seconds: float = 0.0
    failure: Exception | None = None  #: why the shared fit did not come to an end

    @property
    def has_failed(self) -> bool:
        """Tell whether the shared fit did not come to an end."""
        return self.failure is not None


@dataclass(eq=False)
class Unit:
    """Entries with one kernel on the same samples."""

    samples: Samples
    kernel: Kernel
    entries: list[Entry] = field(default_factory=list)
    gram: Any = None  #: the shared kernel values, while they are there


class Block(NamedTuple):
    """A block of the training samples, and the machines that it takes part in."""

    samples: NDArray[np.intp]  #: rows of the Gram matrix
    machines: NDArray[np.int64]  #: numbers of machines
    begin: NDArray[np.int64]  #: where the block begins in the coefficients of each


class Stated(NamedTuple):
    """The problems of the entries of a course, which do not depend on the kernel."""

    chains: Chains
    order: list[int]  #: the entries from small bounds to large ones
    rows: NDArray[np.intp]  #: rows of the Gram matrix, for all rows of the chains
    blocks: list[Block]
    machine_row: NDArray | None  #: the rows of machines' variables; None if in order
    plans: list[Plan]  #: kept, so that their identities stay their own


@dataclass(eq=False)
class Course:
    """Entries of one fold whose problems have the same variables, from small bounds."""

    gram: SharedGram
    entries: list[Entry]
    stated: Stated
    results: Results
    tol: NDArray[np.float64]
    max_iter: NDArray[np.int64]
    shrinking: bool
    seconds: float = 0.0  #: that solving has taken

    def lost(self, e: int) -> NDArray[np.intp]:
        """Return the problems for which the precision of the matrix is not enough."""
        return np.flatnonzero(self.results.certificate[e, :, 3] < 0.0)

    def solutions(self, e: int) -> Solutions:
        """Return the solutions of all problems of an entry."""
        mine = Results(*(array[e] for array in self.results))
        return Solutions(self.stated.chains, mine, float(self.tol[e]))

    def coefficients(self, machines: Sequence[Solution]) -> NDArray:
        """Return the coefficients of the rows of all machines of an entry."""
        beta = betas(machines)
        row = self.stated.machine_row
        if row is None:
            return beta
        return np.bincount(row, beta, sum(len(machine.f) for machine in machines))


class Portion(NamedTuple):
    """Some chains of a course."""

    course: Course
    first: int
    last: int


def courses_of(unit: Unit) -> list[Course]:
    """Bring together entries of a unit whose problems have the same variables."""
    alike: dict[tuple, list[Entry]] = {}
    for entry in unit.entries:
        if not entry.has_failed:
            key = entry.split, type(entry.model), _blocks_of(entry)
            alike.setdefault(key, []).append(entry)
    courses = []
    for together in alike.values():
        stated = _stated(together)
        chains = stated.chains
        entries = [together[e] for e in stated.order]
        most = max(MOST_STEPS, 100 * int(np.diff(chains.begin).max()))
        steps = [entry.model.max_iter for entry in entries]
        courses.append(
            Course(
                unit.gram,
                entries,
                stated,
                room_for_chains(chains),
                np.array([entry.model.tol for entry in entries], dtype=np.float64),
                np.array([most if n < 0 else n for n in steps], dtype=np.int64),
                all(entry.model.shrinking for entry in entries),
            )
        )
    return courses


def _blocks_of(entry: Entry) -> tuple:
    """Return the blocks of each problem of an entry, which are found once."""
    plan, known = entry.plan, entry.fold.stated
    key = "blocks", id(plan.specs)
    if key not in known:
        blocks = tuple(spec.blocks for spec in plan.specs)
        # What is kept refers to the plan, so that its identity stays its own.
        known[key] = (tuple(plan.starts), blocks), plan
    return known[key][0]


def _stated(entries: list[Entry]) -> Stated:
    """Put the problems of entries one after the other; kernels share what is made."""
    known = entries[0].fold.stated
    key = tuple(id(entry.plan.specs) for entry in entries)
    if key not in known:
        known[key] = _stacked(entries[0].fold, [entry.plan for entry in entries])
    return known[key]


def _stacked(fold: Fold, plans: list[Plan]) -> Stated:
    plan, specs = plans[0], Specs.of(plans[0].specs)
    samples, begin_f = samples_of(
        plan.order, plan.starts, specs.all_blocks(), specs.n_blocks()
    )

    def size(e: int) -> tuple[float, float, float]:
        """Order by the bounds, then by the masses, then by the linear terms."""
        p, lo, hi, start, *_ = parts[e]
        return float(hi.sum() - lo.sum()), float(start @ start), float(p @ p)

    parts = [Specs.of(one.specs).all_variables() for one in plans]
    order = sorted(range(len(plans)), key=size)
    p, lo, hi, start = (np.array([parts[e][i] for e in order]) for i in range(4))
    p = p[:1].copy() if (p == p[0]).all() else p
    chains = Chains(
        p,
        lo,
        hi,
        start if start.any() else start[:1].copy(),
        parts[0].row,
        parts[0].group,
        ends_of(specs.stop - specs.first),
        begin_f.astype(np.int64),
    )
    machines = slice(None, None, plan.per_machine)
    n_rows = np.diff(begin_f)[machines]
    first = np.append(0, np.cumsum(n_rows))
    row = np.concatenate(
        [
            spec.problem.row + at
            for spec, at in zip(plan.machines, first.tolist(), strict=False)
        ]
    )
    machine_row = None if np.array_equal(row, np.arange(first[-1])) else row
    blocks = _blocks(fold, plan, first)
    rows = fold.train[samples]
    return Stated(chains, order, rows, blocks, machine_row, plans)


def _blocks(fold: Fold, plan: Plan, first: NDArray) -> list[Block]:
    """Return the blocks of samples; ``first`` is where each machine's rows begin."""
    sizes = np.diff(plan.starts).tolist()
    begins: list[list[tuple[int, int]]] = [[] for _ in sizes]
    for t, (spec, at) in enumerate(zip(plan.machines, first.tolist(), strict=False)):
        for block in spec.blocks:
            begins[block].append((t, at))
            at += sizes[block]
    return [
        Block(fold.train[plan.order[a:b]], *np.array(own, dtype=np.int64).T.copy())
        for (a, b), own in zip(pairwise(plan.starts), begins, strict=True)
        if own
    ]


def portions_of(courses: Sequence[Course]) -> list[Portion]:
    """Divide chains into portions, those of the same samples after each other.

    Folds of the same classes have most kernel values in common, which are then in the
    cache of a processor.  Large portions come first, so that threads end together.
    """
    order = []
    for course in courses:
        begin_f = course.stated.chains.begin_f
        first = 0
        for last in range(1, len(begin_f)):
            size = int(begin_f[last] - begin_f[first])
            if size >= PORTION or last == len(begin_f) - 1:
                largest = int(np.diff(begin_f[first : last + 1]).max())
                portion = Portion(course, first, last)
                order.append((-(largest // PORTION), first, portion))
                first = last
    return [portion for *_, portion in sorted(order, key=lambda item: item[:2])]


def solve_portion(portion: Portion, stop: NDArray, room: int | None = None) -> None:
    """Solve some chains; shrinking may copy ``room`` bytes."""
    began = time.perf_counter()
    course, first, last = portion
    gram, chains = course.gram, course.stated.chains
    matrix = gram.matrix
    most: int | None = 0
    if course.shrinking:
        most = NO_LIMIT if room is None else isqrt(max(room, 0) // matrix.itemsize)
    if matrix.dtype == np.float64 and np.diff(chains.begin).max() <= POLISHED:
        most = None
    largest = int(np.diff(chains.begin_f[first : last + 1]).max())
    solve_chains(
        matrix, gram.diag, course.stated.rows, gram.places(), gram.exact, chains,
        first, last, course.tol, course.max_iter, most, stop,
        room_of_thread(largest**2, matrix.dtype), course.results,
    )  # fmt: skip
    course.seconds += time.perf_counter() - began


def room_of_thread(size: int, dtype: np.dtype) -> NDArray:
    """Return an array, valid until the next call of the thread."""
    if size <= LITTLE:
        return np.empty(size, dtype=dtype)
    memory = memory_of_thread()
    room = memory.get("room of a path")
    if room is None or room.dtype != dtype or room.size < size:
        room = memory["room of a path"] = np.empty(size, dtype=dtype)
    return room


def repair(course: Course, kernel: Kernel, X: Any, stop: NDArray, room: int) -> None:
    """Solve again what single precision was not enough for, in double precision.

    Each such problem gets a matrix of its own, if that fits into ``room`` bytes.
    """
    certificate, chains = course.results.certificate, course.stated.chains
    for c in np.flatnonzero((certificate[:, :, 3] < 0.0).any(axis=0)).tolist():
        own = slice(chains.begin[c], chains.begin[c + 1])
        rows = slice(chains.begin_f[c], chains.begin_f[c + 1])
        n = rows.stop - rows.start
        if 3 * n * n * 8 > room:
            continue
        gram = SharedGram.given(whole_matrix(kernel, X[course.stated.rows[rows]]))
        if not np.isfinite(gram.matrix).all():
            continue
        again = np.flatnonzero(certificate[:, c, 3] < 0.0)
        p, lo, hi, start = (
            part[again if len(part) > 1 else [0], own] for part in chains[:4]
        )
        alone = Chains(
            p,
            lo,
            hi,
            start,
            chains.row[own],
            chains.group[own],
            np.array([0, own.stop - own.start]),
            np.array([0, n]),
        )
        results = room_for_chains(alone)
        solve_chains(
            gram.matrix, gram.diag, np.arange(n), gram.places(), gram.exact, alone,
            0, 1, course.tol[again], course.max_iter[again],
            isqrt(room // 24) if course.shrinking else 0, stop,
            room_of_thread(n * n, gram.matrix.dtype), results,
        )  # fmt: skip
        course.results.beta[again, own] = results.beta
        course.results.f[again, rows] = results.f
        course.results.n_iter[again, c] += results.n_iter[:, 0]
        certificate[again, c] = results.certificate[:, 0]
        course.results.multipliers[again, c] = results.multipliers[:, 0]


def verdicts(gram: SharedGram, entry: Entry) -> list[bool | None]:
    """Tell which of the machines' problems are convex."""
    plan, fold = entry.plan, entry.fold
    if plan.kernel.definiteness >= Definiteness.CONDITIONAL:
        return [True] * len(plan.machines)
    # Problems that differ in the size of their bounds only are alike in this.
    moves = [(s.blocks, (s.problem.hi > s.problem.lo).tobytes()) for s in plan.specs]
    key = (plan.kernel.key(), *moves)
    if key not in fold.convex:
        samples = fold.train[plan.order]
        fold.convex[key] = are_convex(
            plan.kernel,
            lambda rows: gram.matrix[np.ix_(samples[rows], samples[rows])],
            [(spec.problem, plan.gram_rows(spec)) for spec in plan.machines],
        )
    return fold.convex[key]


def is_coarse(course: Course, entry: Entry) -> bool:
    """Tell whether rounding in single precision could matter beside ``tol``."""
    gram = course.gram
    if gram.matrix.dtype == np.float64 or entry.model._is_precomputed():
        return False
    chains, step = course.stated.chains, entry.plan.per_machine
    first = np.append(0, np.cumsum(np.diff(chains.begin_f)[::step]))[:-1]
    spread = np.sqrt(np.add.reduceat(entry.weights**2, first).max(initial=0.0))
    eps = np.finfo(np.float32).eps
    largest = np.abs(gram.diag).max(initial=0.0)
    return bool(eps * largest * spread > 0.1 * entry.model.tol)


def decide(course: Course, entries: list[Entry], *, on_train: bool = False) -> None:
    """Let machines of a course know their decision values, without the bias.

    The kernel values of a block with the new samples are multiplied with the
    coefficients of all machines in which the block takes part.
    """
    gram, fold = course.gram, entries[0].fold
    new = (fold.train if on_train else fold.test).astype(np.int64)
    X = fold.valid.X if on_train else fold.X_test
    coefficients = np.array([entry.weights for entry in entries])
    shape = len(entries), len(entries[0].plan.machines), len(new)
    sums = np.zeros(shape, dtype=gram.matrix.dtype)
    for block in course.stated.blocks:
        n_weights = len(entries) * len(block.machines)
        weights = np.empty((n_weights, len(block.samples)), dtype=gram.matrix.dtype)
        collect_weights(coefficients, block.begin, weights)
        products = gram.times(weights, new, block.samples)
        add_products(products, block.machines, sums)
    for entry, own in zip(entries, sums, strict=True):
        entry.model._known = (*entry.model._known, (X, own.T))
