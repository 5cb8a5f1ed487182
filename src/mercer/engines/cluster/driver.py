r"""The driver: it chooses and solves working sets, and can rebuild any shard.

A round is one exchange of messages.  The shards report the variables that violate the
optimality conditions most, with their samples.  The driver chooses working sets among
them, solves these with the pair solver, and tells all shards which samples are new and
which coefficients have changed.  The largest violation over all shards is the KKT gap
of the whole problem, so that the solution is exact: it is the one that a single machine
would find.

The driver has all coefficients that are not 0, and the samples that they belong to.
That is all that a shard needs to begin again, if its worker is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.choice import choose_set, room_for
from mercer.core.problem import DualProblem, is_feasible, layout
from mercer.core.smo import minimise_pairs
from mercer.core.stacked import SAFETY, closer_goal
from mercer.engines.cluster.carrier import Carrier
from mercer.engines.cluster.known_rows import KnownRows
from mercer.engines.cluster.messages import (
    Ask,
    Certify,
    Look,
    Message,
    Move,
    Reply,
    Restore,
    Round,
    Rows,
    Setup,
    SumGaps,
    Sums,
    TellLeftOut,
    n_bytes,
)
from mercer.engines.cpu.engine import CpuEngine
from mercer.engines.cpu.pair import Operand

__all__ = ["Driver", "Found", "WorkingSets", "plan_working_sets"]

# The inner problems are solved this much more tightly than the outer one is violated.
INNER_TOLERANCE = 0.03
# Seconds to wait before lost shards are made anew: twice as many each time, up to the
# latter.
PAUSE, LONGEST_PAUSE = 0.2, 10.0
# Number of new variables in the first working set of a problem.
FIRST_FRESH = 128
# Working sets of data with fewer and with more features than this.
WIDE = 256
SIZE, SIZE_IF_WIDE = 2048, 4096
# Working sets of many problems are not smaller than this, so that fewer problems are
# solved at a time.
LEAST_SIZE = 512
# Tolerances from which on working sets are solved in single precision.
LEAST_FOR_SINGLE = 1e-4
# More rounds than any fit has.
MOST_ROUNDS = 2.0**26
# Each shard proposes at least this many variables for either side.
LEAST_PROPOSED = 8


class WorkingSets(NamedTuple):
    """How many problems are solved at a time, and how large their working sets are."""

    size: int
    fresh: int  #: new variables in each round
    n_active: int


def plan_working_sets(
    working_set: int | str, n_features: int, n_tasks: int
) -> WorkingSets:
    """Divide the working set among problems; "auto" depends on the features."""
    if working_set == "auto":
        working_set = SIZE_IF_WIDE if n_features >= WIDE else SIZE
    size = int(working_set)
    if n_tasks == 1:
        return WorkingSets(size, max(2, size // 4), 1)
    total = 2 * size
    own = int(np.clip(total // n_tasks, min(LEAST_SIZE, size), size))
    return WorkingSets(own, max(2, own // 4), max(1, total // own))


class Found(NamedTuple):
    """The solution of one problem."""

    variables: NDArray[np.int64]  #: those that are not 0
    beta: NDArray[np.float64]
    bias: float
    objective: float
    kkt_gap: float
    dual_gap: float
    n_iter: int
    converged: bool
    multipliers: tuple[float, ...]
    error: float


class _Task:
    """What the driver knows of one problem."""

    def __init__(self, number: int, setup: Setup):
        self.number = number
        self.gap = np.inf
        self.done = False
        self.stalled = False
        self.n_iter = 0
        self.fresh = FIRST_FRESH
        self.least, self.most = np.inf, -np.inf
        self.members = np.empty(0, dtype=np.int64)
        self.variables = np.empty(0, dtype=np.int64)  #: those that are not 0, sorted
        self.values = np.empty(0)
        self._setup = setup
        self._f = np.empty(0)
        self._square: NDArray | None = None
        self._new = np.empty(0, dtype=np.intp)  #: positions of the latest members
        self._n_rounds = 0
        #: the rounds in which each member moved last, and in which it came: members
        #: that moved last stay, and of those the ones that came last
        self._moved_in = self._came_in = np.empty(0, dtype=np.int64)

    @property
    def samples(self) -> NDArray[np.int64]:
        """The samples of the working set."""
        return np.unique(self.members // self._setup.statement.per_sample)

    def beta(self, variables: NDArray) -> NDArray[np.float64]:
        """Return the coefficients of some variables."""
        found = np.zeros(len(variables))
        if len(self.variables):
            at = np.searchsorted(self.variables, variables)
            at[at == len(self.variables)] = 0
            is_known = self.variables[at] == variables
            found[is_known] = self.values[at[is_known]]
        return found

    def set_beta(self, variables: NDArray, values: NDArray) -> None:
        """Replace the coefficients of some variables."""
        others = ~np.isin(self.variables, variables)
        rest = values != 0
        ids = np.concatenate([self.variables[others], variables[rest]])
        order = np.argsort(ids)
        self.variables = ids[order]
        self.values = np.concatenate([self.values[others], values[rest]])[order]

    def leave(self) -> None:
        """Give up the working set."""
        self.members = np.empty(0, dtype=np.int64)
        self._moved_in = self._came_in = np.empty(0, dtype=np.int64)
        self._f, self._square = np.empty(0), None

    def problem_of(self, variables: NDArray, known: KnownRows) -> DualProblem:
        """Return the problem of some variables, in the given order."""
        statement = self._setup.statement
        samples, at = np.unique(variables // statement.per_sample, return_inverse=True)
        part = statement.part(self.number, known.facts(samples))
        where = variables % statement.per_sample * len(samples) + at
        p, lo, hi = (values[where] for values in part.problem[:3])
        m = len(variables)
        return DualProblem(
            p, lo, hi, np.zeros(m), np.arange(m), np.zeros(m, dtype=np.intp)
        )

    def choose(
        self, looks: Sequence[Look], known: KnownRows, sets: WorkingSets, tol: float
    ) -> None:
        """Choose the next working set from what the shards have reported."""
        self.least = min(look.least for look in looks)
        self.most = max(look.most for look in looks)
        for look in looks:
            self._f[look.positions] = look.member_f
        proposed = np.concatenate([look.candidates for look in looks])
        variables = np.union1d(self.members, proposed)
        f = np.empty(len(variables))
        previous = np.searchsorted(variables, self.members)
        f[previous] = self._f
        f[np.searchsorted(variables, proposed)] = np.concatenate(
            [look.f for look in looks]
        )
        self.gap = max(self.most - self.least, 0.0)
        self.done = self.gap <= tol
        if self.done:
            self.leave()
            return
        problem = self.problem_of(variables, known)
        chosen, _ = choose_set(
            problem,
            self.beta(variables),
            f,
            previous,
            self._moved_in * MOST_ROUNDS + self._came_in,
            sets.size,
            max(2, min(self.fresh, sets.fresh)),
            tol,
            room_for(len(problem.p)),
        )
        self.stalled = not chosen.any()
        self._replace_members(variables[chosen])
        self._f = f[np.searchsorted(variables, self.members)]
        self.fresh = min(2 * self.fresh, sets.fresh)

    def _replace_members(self, chosen: NDArray) -> None:
        """Put new members in the places of those that leave, or behind them."""
        self._n_rounds += 1
        old = self.members
        leaving = np.flatnonzero(~np.isin(old, chosen))
        coming = np.setdiff1d(chosen, old)
        if len(coming) < len(leaving):
            self.leave()
            old, leaving, coming = self.members, leaving[:0], chosen
        added = np.arange(len(old), len(old) + len(coming) - len(leaving))
        self._new = np.concatenate([leaving, added])
        none = np.zeros(len(added), dtype=np.int64)
        self.members = np.concatenate([old, none])
        self._moved_in = np.concatenate([self._moved_in, none])
        self._came_in = np.concatenate([self._came_in, none])
        self.members[self._new] = coming
        self._moved_in[self._new] = self._came_in[self._new] = self._n_rounds

    def improve(self, known: KnownRows, stop: NDArray, max_iter: int) -> Move:
        """Solve the working set."""
        assert self._square is not None
        part = self.problem_of(self.members, known)
        before = self.beta(self.members)
        beta, f = before.copy(), self._f.copy()
        inner_tol = max(INNER_TOLERANCE * self.gap, 0.45 * self._setup.tol)
        n_iter, _, _ = minimise_pairs(
            self._square,
            layout(part),
            part,
            beta,
            f,
            inner_tol,
            max_iter - self.n_iter,
            stop,
        )
        self.n_iter += n_iter
        change = beta - before
        self._moved_in[change != 0] = self._n_rounds
        self.stalled = not change.any()
        self.set_beta(self.members, beta)
        return Move(self.number, self.members, change, beta)

    def extend_square(self, known: KnownRows, size: int, engine: CpuEngine) -> None:
        """Compute the kernel values of new members with all members."""
        setup, new = self._setup, self._new
        dtype = np.float32 if setup.tol >= LEAST_FOR_SINGLE else np.float64
        samples = self.members // setup.statement.per_sample
        X = known.rows(samples).X
        X = X.astype(np.result_type(X.dtype, dtype) if dtype == np.float64 else dtype)
        if self._square is None:
            self._square = np.empty((size, size), dtype=dtype)
            new = np.arange(len(self.members))
        values = engine.matrix(setup.kernel, X[new], X)
        m = len(self.members)
        self._square[new, :m] = values
        self._square[:m, new] = values.T
        self._square[new, new] = setup.kernel.diagonal(Operand(X[new]))


class Driver:
    """Solves all problems of a fit on the shards of a carrier.

    Parameters
    ----------
    carrier : Carrier
    setup : Setup
    sets : WorkingSets
    engine : CpuEngine
        It computes on the driver's side; its ``stop`` ends the rounds.
    max_iter : int
        Most steps of each problem.
    max_restores : int
        How many times lost shards are made anew before an error is raised.
    progress : callable, default=None
        It is called with the tasks after each round.
    """

    def __init__(
        self,
        carrier: Carrier,
        setup: Setup,
        sets: WorkingSets,
        engine: CpuEngine,
        max_iter: int,
        max_restores: int = 3,
        progress: Callable[[Sequence[Any]], None] | None = None,
    ):
        self._carrier, self._setup, self._sets = carrier, setup, sets
        self._engine, self._max_iter, self._progress = engine, max_iter, progress
        self._max_restores = max_restores
        self.tasks = [_Task(t, setup) for t in range(setup.statement.n_tasks)]
        self.known = KnownRows()
        self.n_rounds = self.n_restores = self.bytes_sent = 0
        #: seconds of the slowest worker in each exchange, and of exchanges besides
        self.seconds = {"workers": 0.0, "messages": 0.0}
        self._number = 0
        self._precise = setup.tol < LEAST_FOR_SINGLE
        self._members = np.empty(0, dtype=np.int64)  #: samples that shards have

    def solve(self) -> list[Found]:
        """Solve all problems, and certify the solutions."""
        tol = self._setup.tol
        self._begin()
        self._run(self.tasks, SAFETY * tol)
        found = self._certify()
        # The error in a certificate is twice that of decision values.
        closer = closer_goal(0.5 * max(one.error for one in found), tol)
        if self._spoilt(found) and closer > 0:
            self._run(self._spoilt(found), closer)
            found = self._certify()
        if self._spoilt(found) and not self._precise:
            self._precise = True
            self._restore_all()
            self._run(self._spoilt(found), SAFETY * tol)
            found = self._certify()
        return found

    def left_out(self, machine: int, biases: NDArray) -> list[NDArray]:
        """Return what a calibration needs of all samples; see :class:`TellLeftOut`."""
        replies = self._exchange(TellLeftOut(self._next(), machine, biases))
        parts = [replies[k].sums for k in sorted(replies)]
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def _spoilt(self, found: Sequence[Found]) -> list[_Task]:
        """Return the tasks in which only rounding is in the way of a certificate."""
        return [
            task
            for task, one in zip(self.tasks, found, strict=True)
            if task.done and not one.converged
        ]

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _begin(self) -> None:
        chunks = list(range(self._carrier.n_chunks))
        replies = dict(self._carrier.begin(self._setup, chunks))
        while lost := self._lost(replies):
            replies.update(self._carrier.begin(self._setup, lost))
        self._receive(replies.values())
        for reply in replies.values():
            assert reply.start is not None
            for task, (variables, values) in zip(self.tasks, reply.start, strict=True):
                if len(variables):
                    task.set_beta(variables, values)
        if self._precise or any(len(task.variables) for task in self.tasks):
            self._restore_all()

    def _restore_all(self) -> None:
        """Let all shards compute their state from the driver's."""
        message = self._restoration(self._next(), [], self._setup.tol)
        self._exchange(message)

    def _run(self, tasks: Sequence[_Task], tol: float) -> None:
        """Do rounds until the gaps are at most ``tol``."""
        waiting = list(tasks)
        active: list[_Task] = []
        for task in tasks:
            task.done = task.stalled = False
            task.leave()
        moves: list[Move] = []
        while waiting or active:
            # A problem begins when another one is solved.
            while waiting and len(active) < self._sets.n_active:
                active.append(waiting.pop(0))
            replies = self._exchange(self._round(moves, active, tol))
            looks = [replies[k].looks for k in sorted(replies)]
            for a, task in enumerate(active):
                own = [look[a] for look in looks]
                task.choose(own, self.known, self._sets, tol)
            if self._progress is not None:
                self._progress(self.tasks)
            active = [
                task
                for task in active
                if not (task.done or task.stalled or task.n_iter >= self._max_iter)
            ]
            if self._engine.stop[0]:
                break
            for task in active:
                task.extend_square(self.known, self._sets.size, self._engine)
            moves = self._engine.map(
                lambda task: task.improve(
                    self.known, self._engine.stop, self._max_iter
                ),
                active,
            )
            self.n_rounds += bool(moves)
            moves = [move for move in moves if not self.tasks[move.task].stalled]
            active = [task for task in active if not task.stalled]
        for task in tasks:
            task.leave()

    def _round(self, moves: list[Move], active: list[_Task], tol: float) -> Round:
        """Write the message of a round: what has changed, and what is asked for."""
        members = np.unique(np.concatenate([task.samples for task in active]))
        coming = np.setdiff1d(members, self._members)
        leaving = np.setdiff1d(self._members, members)
        self._members = members
        return Round(
            self._next(),
            self.known.rows(coming) if len(coming) else None,
            leaving,
            self._forget(),
            moves,
            self._asks(active),
            tol,
        )

    def _asks(self, active: Iterable[_Task]) -> list[Ask]:
        return [
            Ask(
                task.number,
                task.members,
                max(LEAST_PROPOSED, -(-task.fresh // self._carrier.n_chunks)),
                task.least,
                task.most,
            )
            for task in active
        ]

    def _forget(self) -> NDArray[np.int64]:
        """Drop samples that are not needed, once they are more than the others."""
        per_sample = self._setup.statement.per_sample
        used = [task.variables // per_sample for task in self.tasks]
        needed = np.unique(np.concatenate([self._members, *used]))
        if len(self.known) <= 2 * len(needed) + 2 * self._setup.capacity:
            return needed[:0]
        return self.known.keep_only(needed)

    def _vectors(self) -> tuple[Rows, list[tuple[NDArray, NDArray]]]:
        """Return all samples with coefficients, and the coefficients."""
        per_sample = self._setup.statement.per_sample
        used = [task.variables // per_sample for task in self.tasks]
        ids = np.unique(np.concatenate(used))
        beta = [(task.variables, task.values) for task in self.tasks]
        return self.known.rows(ids), beta

    def _restoration(self, number: int, asks: list[Ask], tol: float) -> Restore:
        vectors, beta = self._vectors()
        members = self.known.rows(self._members)
        return Restore(number, vectors, beta, members, asks, tol, self._precise)

    def _exchange(self, message: Message) -> dict[int, Reply]:
        """Send a message to all shards; lost ones are made anew."""
        began = time.perf_counter()
        self.bytes_sent += n_bytes(message) * self._carrier.copies
        replies = self._carrier.exchange(message)
        while lost := self._lost(replies):
            replies.update(self._restored(lost, message))
        if isinstance(message, Round):
            self._rehome()
        self.bytes_sent += sum(map(n_bytes, replies.values()))
        at_work = max(reply.seconds for reply in replies.values())
        self.seconds["workers"] += at_work
        self.seconds["messages"] += time.perf_counter() - began - at_work
        self._receive(replies.values())
        return replies

    def _lost(self, replies: Mapping[int, Reply]) -> list[int]:
        """Return chunks without an answer, to be made anew after a wait, if any.

        Raise an error if that has happened too often.
        """
        lost = [k for k in range(self._carrier.n_chunks) if k not in replies]
        if not lost:
            return lost
        if self.n_restores >= self._max_restores:
            error = self._carrier.error
            last = f" The last error was {error!r}." if error is not None else ""
            raise RuntimeError(
                f"Workers were lost {self.n_restores + 1} times during one fit, and "
                f"max_restores={self._max_restores} allows {self._max_restores}. Check "
                "the workers' logs, for example for too little memory, or raise "
                f"max_restores.{last}"
            ) from error
        # A worker that begins anew, or a machine without memory, needs some time.
        time.sleep(min(PAUSE * 2**self.n_restores, LONGEST_PAUSE))
        self.n_restores += 1
        return lost

    def _restored(self, chunks: Sequence[int], message: Message) -> dict[int, Reply]:
        """Make shards anew, and return their answers to a message."""
        if isinstance(message, Round | Restore):
            full = self._restoration(message.number, message.asks, message.tol)
            self.bytes_sent += n_bytes(full)
            return self._carrier.restore(chunks, full)
        full = self._restoration(message.number - 1, [], self._setup.tol)
        self.bytes_sent += n_bytes(full)
        restored = self._carrier.restore(chunks, full)
        return self._carrier.exchange(message, list(restored))

    def _rehome(self) -> None:
        """Let workers that have joined take over some chunks."""
        chunks = self._carrier.misplaced()
        if chunks:
            self._carrier.release(chunks)
            full = self._restoration(self._number, [], self._setup.tol)
            self.bytes_sent += n_bytes(full)
            self._carrier.restore(chunks, full)

    def _receive(self, replies: Iterable[Reply]) -> None:
        for reply in replies:
            if reply.rows is not None and reply.facts is not None:
                self.known.add(reply.rows, reply.facts)

    def _certify(self) -> list[Found]:
        vectors, beta = self._vectors()
        replies = self._exchange(Certify(self._next(), vectors, beta))
        parts: list[Sums] = [replies[k].sums for k in sorted(replies)]
        error = np.max([part.error for part in parts], axis=0)
        least = np.min([part.least for part in parts], axis=0)
        most = np.max([part.most for part in parts], axis=0)
        objective, n_free, total, start = (
            np.sum([getattr(part, name) for part in parts], axis=0)
            for name in ("objective", "n_free", "total_free", "start")
        )
        multipliers = _multipliers(least, most, n_free, total)
        replies = self._exchange(SumGaps(self._next(), multipliers))
        dual_gap = np.sum([replies[k].sums for k in sorted(replies)], axis=0)
        kkt_gap = np.maximum(most - least, 0.0)
        found = []
        for t, task in enumerate(self.tasks):
            is_within = kkt_gap[t] + 2.0 * error[t] <= self._setup.tol
            found.append(
                Found(
                    task.variables,
                    task.values,
                    -float(multipliers[t]),
                    float(objective[t]),
                    float(kkt_gap[t]),
                    float(dual_gap[t]),
                    task.n_iter,
                    bool(is_within and self._is_feasible(task, float(start[t]))),
                    (float(multipliers[t]),),
                    2.0 * float(error[t]),
                )
            )
        return found

    def _is_feasible(self, task: _Task, total: float) -> bool:
        """Tell whether coefficients keep to their bounds and to their sum."""
        if not len(task.variables):
            return total == 0.0
        problem = task.problem_of(task.variables, self.known)
        problem.start[0] = total  # only the sum of the start matters
        return is_feasible(problem, task.values)


def _multipliers(
    least: NDArray, most: NDArray, n_free: NDArray, total: NDArray
) -> NDArray[np.float64]:
    """Return the mean gradient of free variables, or the middle of what bounds allow.

    See :func:`mercer.core.problem.certify`.
    """
    found = np.zeros(len(least))
    for t in range(len(found)):
        ends = [end for end in (least[t], most[t]) if np.isfinite(end)]
        if n_free[t]:
            found[t] = total[t] / n_free[t]
        elif ends:
            found[t] = sum(ends) / len(ends)
    return found
