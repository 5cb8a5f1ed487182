r"""Fits on one matrix of kernel values: solutions, and decision values.

A job gathers the kernel values of the samples of some problems, and solves on them all
problems that differ in their bounds only: chains through the candidates.  Along
ascending bounds (C, weights) the best multiple of one solution is where the next
problem begins (see :mod:`mercer.core.smo`).  Where sums are prescribed (:math:`\nu`),
mass that the clipped solution lacks is added where the gradient asks for it most.
Decision values of the samples that a fold leaves out come from the same matrix.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import (
    DualProblem,
    Layout,
    Solution,
    certify,
    certify_chain,
    is_feasible,
    layout,
)
from mercer.core.smo import (
    POLISHED,
    Rows,
    best_multiple,
    fill_rows,
    minimise_chain,
    most_active,
    solve_and_polish,
)
from mercer.core.tiles import add_rows
from mercer.engines.cpu.certificates import are_convex
from mercer.engines.cpu.solve import (
    MOST_FOR_ROUNDING,
    MOST_STEPS,
    SAFETY,
)
from mercer.engines.engine import Plan
from mercer.kernels.base import Definiteness, Kernel
from mercer.runtime.threads import memory_of_thread
from mercer.selection.candidates import Fold, Samples
from mercer.selection.stored import SharedGram

__all__ = [
    "Answers",
    "Entry",
    "Job",
    "Link",
    "Solved",
    "Unit",
    "by_fold",
    "coefficients",
    "decide",
    "is_coarse",
    "is_spoilt",
    "jobs_of",
    "link_of",
    "sampled",
    "solve_chain",
    "solve_job",
    "verdicts",
]

# Chains that one job solves on a matrix that it gathers.
CHAINS_PER_JOB = 4


class Link(NamedTuple):
    """One problem of a chain, and how to solve it."""

    problem: DualProblem
    tol: float
    max_iter: int
    shrinking: bool

    @property
    def most(self) -> int:
        """The largest number of steps."""
        if self.max_iter >= 0:
            return self.max_iter
        return max(MOST_STEPS, 100 * len(self.problem.p))

    @property
    def place(self) -> tuple[float, float, float]:
        """The place in a chain: by the bounds, the masses, and the linear term."""
        problem = self.problem
        bounds = float(problem.hi.sum() - problem.lo.sum())
        return (
            bounds,
            float(problem.start @ problem.start),
            float(problem.p @ problem.p),
        )


class Solved(NamedTuple):
    """A solution, or the rounding error that was too large for one.

    One of ``solution`` and ``error`` is None.
    """

    solution: Solution | None
    error: float | None  #: of decision values, in the precision of the matrix
    seconds: float

    @classmethod
    def of(cls, found: Solution | float, seconds: float) -> Solved:
        """Take what :func:`_solve` returns."""
        if isinstance(found, Solution):
            return cls(found, None, seconds)
        return cls(None, found, seconds)


def room_of_thread(n: int, dtype: np.dtype) -> NDArray:
    """Return an array of shape (n, n), valid until the next call of the thread."""
    memory = memory_of_thread()
    room = memory.get("room of a path")
    if room is None or room.dtype != dtype or room.size < n * n:
        room = memory["room of a path"] = np.empty(n * n, dtype=dtype)
    return room[: n * n].reshape(n, n)


def part_of(gram: SharedGram, rows: NDArray) -> Rows:
    """Return the part ``matrix[rows][:, rows]``, valid until the thread's next call."""
    square = room_of_thread(len(rows), gram.matrix.dtype)
    return Rows.of_matrix(square, gram.diag[rows], gram.matrix, rows)


def sampled(gram: SharedGram, rows: NDArray) -> tuple[NDArray, NDArray]:
    """Return exact kernel values of those rows that are sampled, and their places."""
    ascends = bool((np.diff(rows) > 0).all())
    order = None if ascends else np.argsort(rows)
    at = np.searchsorted(rows, gram.sampled, sorter=order)
    at = np.minimum(at, len(rows) - 1)
    at = at if order is None else order[at]
    here = np.flatnonzero(rows[at] == gram.sampled)
    return gram.exact[here[:, None], rows], at[here]


def solve_chain(
    part: NDArray | Rows,
    exact: tuple[NDArray, NDArray],
    links: Sequence[Link],
    stop: NDArray,
    room: int | None = None,
) -> list[Solved]:
    """Solve problems of the same variables on a part of a Gram matrix.

    ``exact`` are some rows of it in double precision, and which these are. The results
    are in the order of the links, whatever the order of solving. Shrinking copies at
    most ``room`` bytes.
    """
    results: list[Solved] = [Solved(None, np.inf, 0.0)] * len(links)
    where = layout(links[0].problem)
    order = sorted(range(len(links)), key=lambda k: links[k].place)
    if isinstance(part, Rows) and all(_is_simple(part, link) for link in links):
        began = time.perf_counter()
        ordered = [links[k] for k in order]
        found = _solve_at_once(part, where, ordered, exact, stop, room)
        share = (time.perf_counter() - began) / len(links)
        for k, one in zip(order, found, strict=True):
            results[k] = Solved.of(one, share)
        return results
    square = _whole(part)
    before: tuple[NDArray, NDArray] | None = None
    for k in order:
        began = time.perf_counter()
        beta, f = _begin(square, links[k].problem, before)
        one = _solve(square, where, links[k], beta, f, exact, stop, room=room)
        is_good = isinstance(one, Solution) and np.isfinite(one.objective)
        before = (beta, f) if is_good else None
        results[k] = Solved.of(one, time.perf_counter() - began)
    return results


def _whole(part: NDArray | Rows) -> NDArray:
    """Return a part of a Gram matrix with all of its rows."""
    if not isinstance(part, Rows):
        return part
    fill_rows(part, np.arange(len(part.square)))
    return part.square


def _is_simple(part: Rows, link: Link) -> bool:
    """Tell whether pair steps are enough: no polish, and sums of 0."""
    is_polished = len(link.problem.p) <= POLISHED and part.dtype == np.float64
    return not (is_polished or link.problem.start.any())


def _solve_at_once(
    part: Rows,
    where: Layout,
    links: Sequence[Link],
    exact: tuple[NDArray, NDArray],
    stop: NDArray,
    room: int | None,
) -> list[Solution | float]:
    """Solve all problems of a chain in compiled code, then certify them."""
    problems = [link.problem for link in links]
    first, n_rows = problems[0], len(part.square)
    p, lo, hi = (np.array([problem[i] for problem in problems]) for i in range(3))
    beta, f = np.zeros(p.shape), np.zeros((len(links), n_rows))
    tol = np.array([SAFETY * link.tol for link in links])
    most = np.array([link.most for link in links], dtype=np.int64)
    n_iter = np.zeros(len(links), dtype=np.int64)
    shrinking = all(link.shrinking for link in links)
    active = most_active(p.shape[1], shrinking, room, part.dtype)
    minimise_chain(
        part, where, first, p, lo, hi, beta, f, tol, most, stop, n_iter, active
    )
    values, own = exact
    by_row = np.array([np.bincount(first.row, b, n_rows) for b in beta])
    errors = np.abs(by_row @ values.T - f[:, own]).max(axis=1, initial=0.0)
    certified = certify_chain(first, p, lo, hi, beta, f)
    solutions: list[Solution | float] = []
    for k, (link, (found, holds)) in enumerate(zip(links, certified, strict=True)):
        error, steps = float(errors[k]), int(n_iter[k])
        if is_spoilt(found.kkt_gap, error, SAFETY * link.tol, link.tol):
            solutions.append(
                _solve(part, where, link, beta[k], f[k], exact, stop, steps, room)
            )
            continue
        is_within = found.kkt_gap + 2.0 * error <= link.tol
        numbers = (*found[:4], steps, is_within and holds, found[4], 2.0 * error)
        solutions.append(Solution(beta[k], f[k], *numbers))
    return solutions


def is_spoilt(gap: float, error: float, goal: float, tol: float) -> bool:
    """Tell whether rounding or overflow is the only obstacle to a certificate."""
    return not gap + error < np.inf or (gap <= goal and gap + 2.0 * error > tol)


def _solve(
    square: NDArray | Rows,
    where: Layout,
    link: Link,
    beta: NDArray,
    f: NDArray,
    exact: tuple[NDArray, NDArray],
    stop: NDArray,
    n_iter: int | None = None,
    room: int | None = None,
) -> Solution | float:
    """Solve one problem and certify it, rounding errors included.

    If rounding errors are too large for the tolerance, the result is their size. With
    ``n_iter`` given, the problem has been solved already, in so many steps.
    """
    problem, tol, max_iter = link.problem, link.tol, link.most
    is_solved, n_iter, goal = n_iter is not None, n_iter or 0, SAFETY * tol
    for _ in range(2):
        if not is_solved:
            outcome = solve_and_polish(
                square, where, problem, beta, f, goal, max_iter - n_iter, stop,
                link.shrinking, room,
            )  # fmt: skip
            n_iter += outcome.n_iter
        is_solved = False
        found = certify(problem, beta, f)
        coefficients = np.bincount(problem.row, beta, len(f))
        values, own = exact
        error = float(np.abs(values @ coefficients - f[own]).max(initial=0.0))
        if not is_spoilt(found.kkt_gap, error, goal, tol):
            break
        if not 2.5 * error <= MOST_FOR_ROUNDING * tol:
            return error
        goal = tol - 2.5 * error
    is_within = found.kkt_gap + 2.0 * error <= tol
    converged = is_within and is_feasible(problem, beta)
    return Solution(beta, f, *found[:4], n_iter, converged, found[4], 2.0 * error)


def _begin(
    square: NDArray,
    problem: DualProblem,
    before: tuple[NDArray, NDArray] | None,
) -> tuple[NDArray, NDArray]:
    """Return the coefficients to start from, and their ``f``."""
    if before is None:
        f = np.zeros(len(square))
        beta = problem.start.copy()
        _add(square, problem.row, beta, f)
        return beta, f
    if problem.start.any():
        return _fill_up(square, problem, *before)
    beta, f = np.empty_like(before[0]), np.empty_like(before[1])
    best_multiple(problem.p, problem.lo, problem.hi, problem.row, *before, beta, f)
    return beta, f


def _add(square: NDArray, row: NDArray, change: NDArray, f: NDArray) -> None:
    moved = np.flatnonzero(change)
    if len(moved):
        add_rows(square, row[moved].astype(np.int64), change[moved], 0, f)


def _fill_up(
    square: NDArray, problem: DualProblem, beta: NDArray, f: NDArray
) -> tuple[NDArray, NDArray]:
    """Return a former solution with the sums that the problem asks for."""
    _, lo, hi, start, row, group = problem
    # If all bounds and masses are scaled (C of ν-SVR), the solution is scaled too.
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


Answers = dict[tuple[int, int], Solved]  #: by entry (its id) and problem


@dataclass(eq=False)
class Entry:
    """One candidate on one split."""

    candidate: int
    split: int
    model: Any  #: the machine, to be fitted
    whole: Any  #: the candidate, of which the machine may be the last step only
    fold: Fold
    plan: Any = None  #: the problems that the machine states
    weights: Any = None  #: coefficients of each machine, in the order of its rows
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


class Job(NamedTuple):
    """Chains of problems on the same samples."""

    gram: SharedGram
    rows: NDArray[np.intp]  #: of the Gram matrix
    chains: list[list[tuple[Entry, int]]]

    @property
    def size(self) -> int:
        """A measure of the work."""
        return len(self.rows) * sum(map(len, self.chains))


def jobs_of(unit: Unit) -> list[Job]:
    """Bring together the problems of a unit that are about the same samples."""
    if unit.gram is None:
        return []
    chains: dict[tuple, dict[tuple, list[tuple[Entry, int]]]] = {}
    for entry in unit.entries:
        if entry.has_failed:
            continue
        plan = entry.plan
        for t, spec in enumerate(plan.specs):
            # The blocks are the classes, or one block has all samples.
            key = (entry.split, len(plan.starts), spec.blocks)
            # Problems of one kind have the same variables.
            kind = (type(entry.model), len(plan.specs), t)
            chains.setdefault(key, {}).setdefault(kind, []).append((entry, t))
    jobs = []
    for alike in chains.values():
        lists = list(alike.values())
        entry, t = lists[0][0]
        rows = entry.fold.train[entry.plan.rows(entry.plan.specs[t])]
        for first in range(0, len(lists), CHAINS_PER_JOB):
            part = lists[first : first + CHAINS_PER_JOB]
            jobs.append(Job(unit.gram, rows, part))
    return jobs


def link_of(entry: Entry, t: int) -> Link:
    """Return a problem of an entry, and how to solve it."""
    model = entry.model
    problem = entry.plan.specs[t].problem
    return Link(problem, model.tol, model.max_iter, model.shrinking)


def solve_job(job: Job, stop: NDArray, room: int | None = None) -> Answers:
    """Solve all problems of a job; shrinking may copy ``room`` bytes."""
    exact = sampled(job.gram, job.rows)
    chains = [[link_of(entry, t) for entry, t in chain] for chain in job.chains]
    part = part_of(job.gram, job.rows)
    answers: Answers = {}
    for chain, links in zip(job.chains, chains, strict=True):
        found = solve_chain(part, exact, links, stop, room)
        for (entry, t), solved in zip(chain, found, strict=True):
            answers[id(entry), t] = solved
    return answers


def by_fold(units: list[Unit]) -> list[tuple[SharedGram, list[Entry]]]:
    """Bring entries of the same fold and Gram matrix together."""
    groups: dict[Any, tuple[SharedGram, list[Entry]]] = {}
    for unit in units:
        for entry in unit.entries:
            together = groups.setdefault((id(unit), entry.split), (unit.gram, []))
            together[1].append(entry)
    return list(groups.values())


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


def coefficients(plan: Plan, machines: list[Solution]) -> list[NDArray]:
    """Return the coefficients of each machine's samples, in the order of its rows."""
    return [
        np.bincount(spec.problem.row, machine.beta, len(machine.f))
        for spec, machine in zip(plan.machines, machines, strict=True)
    ]


def is_coarse(gram: SharedGram, entry: Entry) -> bool:
    """Tell whether rounding in single precision could matter beside ``tol``."""
    if gram.matrix.dtype == np.float64 or entry.model._is_precomputed():
        return False
    spread = np.sqrt(max((float(w @ w) for w in entry.weights), default=0.0))
    eps = np.finfo(np.float32).eps
    largest = np.abs(gram.diag).max(initial=0.0)
    return bool(eps * largest * spread > 0.1 * entry.model.tol)


class Part(NamedTuple):
    """A block of the training samples, and the machines that it takes part in."""

    samples: NDArray[np.intp]  #: rows of the Gram matrix
    machines: list[tuple[int, slice]]  #: numbers of machines, and their rows


def _parts(fold: Fold, plan: Plan) -> list[Part]:
    parts = []
    for first, stop in pairwise(plan.starts):
        parts.append(Part(fold.train[plan.order[first:stop]], []))
    for t, spec in enumerate(plan.machines):
        at = 0
        for block in spec.blocks:
            stop = at + len(parts[block].samples)
            parts[block].machines.append((t, slice(at, stop)))
            at = stop
    return parts


def decide(gram: SharedGram, entries: list[Entry], *, on_train: bool = False) -> None:
    """Let machines of one fold know their decision values, but for the bias.

    The kernel values of a block with the new samples are multiplied with the
    coefficients of all machines in which the block takes part.
    """
    fold = entries[0].fold
    new = (fold.train if on_train else fold.test).astype(np.int64)
    X = fold.valid.X if on_train else fold.X_test
    alike: dict[Any, list[Entry]] = {}
    for entry in entries:
        blocks = tuple(spec.blocks for spec in entry.plan.machines)
        alike.setdefault((blocks, tuple(entry.plan.starts)), []).append(entry)
    for together in alike.values():
        n_machines = len(together[0].weights)
        sums = np.zeros((len(together) * n_machines, len(new)))
        for samples, machines in _parts(fold, together[0].plan):
            shape = len(together) * len(machines), len(samples)
            weights = np.empty(shape, dtype=gram.matrix.dtype)
            target = []
            for e, entry in enumerate(together):
                for k, (t, rows) in enumerate(machines):
                    weights[e * len(machines) + k] = entry.weights[t][rows]
                    target.append(e * n_machines + t)
            sums[target] += gram.times(weights, new, samples)
        for entry, own in zip(together, np.split(sums, len(together)), strict=True):
            entry.model._known = (*entry.model._known, (X, own.T))
