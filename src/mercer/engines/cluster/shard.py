r"""The samples of one chunk, and the state of all problems on them.

For each problem a shard has the coefficients :math:`\beta` and the values
:math:`f = K\beta` of its samples.  A round brings the changes of some coefficients
together with the samples that they belong to, if these are new.  The shard computes the
kernel rows of new samples, keeps them for as long as the samples are in a working set,
updates ``f``, and answers with the variables that violate the optimality conditions
most.

A shard can be made anew from its samples and from what the driver knows: all
coefficients that are not 0, and their samples.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.choice import mark_strong
from mercer.core.tiles import add_rows, ranges, scatter_rows
from mercer.engines.cluster.messages import (
    Ask,
    Certify,
    Facts,
    Look,
    Message,
    Move,
    Part,
    Reply,
    Restore,
    Round,
    Rows,
    Setup,
    SumGaps,
    Sums,
    TellLeftOut,
)
from mercer.engines.cpu.engine import CpuEngine
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.solve import tries_single
from mercer.engines.cpu.tiles import WORKERS, Tiles, Weights, plan_tiles
from mercer.engines.engine import Settings
from mercer.multiclass.calibration import deal_out

__all__ = ["Failure", "Missed", "Shard", "ShardGroup"]

# Samples whose kernel rows are computed at a time.
AT_ONCE = 1024
# Least number of columns that a thread works on.
LEAST_COLUMNS = 1024
# Rows without coefficients on which rounding errors are measured, for each shard.
SAMPLED_ROWS = 32


class _Task:
    """One problem on the samples of a shard."""

    def __init__(self, part: Part):
        self.rows = part.rows
        self.problem = part.problem
        self.beta = part.problem.start.copy()
        self.f = np.zeros(len(part.rows))
        cuts = np.flatnonzero(np.diff(part.rows) != 1) + 1
        #: stretches of neighbouring samples: the first, the end, and the place in ``f``
        self.runs = [
            (int(run[0]), int(run[-1]) + 1, int(begin))
            for begin, run in zip(
                np.append(0, cuts), np.split(part.rows, cuts), strict=True
            )
            if len(run)
        ]

    def gradient(self) -> NDArray[np.float64]:
        return self.f[self.problem.row] + self.problem.p

    def may_move(self) -> tuple[NDArray, NDArray]:
        """Return which variables may grow and which may shrink."""
        return self.beta < self.problem.hi, self.beta > self.problem.lo


class Shard:
    """One chunk of samples.

    Parameters
    ----------
    number : int
        The number of the chunk.
    chunk : tuple
        Validated samples, their targets and their weights.
    setup : Setup
    engine : CpuEngine
        It computes kernel values.
    budget : int
        Bytes for kernel values and scratch memory.
    """

    def __init__(
        self, number: int, chunk: tuple, setup: Setup, engine: CpuEngine, budget: int
    ):
        X, y, weight = chunk
        statement = setup.statement
        self.number = number
        self._setup, self._engine, self._budget = setup, engine, budget
        self._per_sample = statement.per_sample
        target = statement.encode(y, X.shape[0])
        fold = np.zeros(len(target), dtype=np.intp)
        if statement.folds_seed is not None:
            fold = deal_out(target.astype(np.intp), statement.folds_seed + number)
        facts = Facts(target, weight, fold)
        order = np.arange(len(target))
        if statement.by_class:
            # The samples of a problem then lie in a few stretches.
            order = np.argsort(target, kind="stable")
            X, facts = X[order], facts.take(order)
        self._X, self._facts = X, facts
        self._offset = int(setup.offsets[number])
        self._ids = self._offset + order
        self._place = np.argsort(order)  # of each sample of the chunk
        self._tasks = [
            _Task(statement.part(t, facts)) for t in range(statement.n_tasks)
        ]
        self._sent = np.zeros(len(target), dtype=bool)
        self._prepare(precise=False)

    def __len__(self) -> int:
        return len(self._ids)

    def _prepare(self, precise: bool) -> None:
        """Prepare for kernel values in the precision of the data, or in double."""
        kernel, X = self._setup.kernel, self._X
        operand = Operand(X)
        if precise:
            operand = Operand(X.astype(np.float64, copy=False))
        elif tries_single(kernel, operand, Settings(tol=self._setup.tol)):
            operand = operand.astype(np.float32)
        self._precise = precise
        self._operand = operand
        tiling = plan_tiles([kernel], operand, self._budget)
        self._tiles = Tiles(kernel, operand, self._engine, tiling)
        room = max(0, self._budget - tiling.n_bytes)
        n_slots = min(
            self._setup.capacity, room // (len(self) * operand.dtype.itemsize)
        )
        self._pool = np.empty((n_slots, len(self)), dtype=operand.dtype)
        self._free = list(range(n_slots))[::-1]
        self._slots: dict[int, int] = {}  # of samples whose kernel rows are kept
        self._loose: dict[int, Any] = {}  # samples of which there is no room for them

    def answer(self, message: Message) -> Reply:
        """Do what a message asks for."""
        if isinstance(message, Round):
            self._update(message)
            return self._look(message.asks, message.tol)
        if isinstance(message, Restore):
            self._restore(message)
            return self._look(message.asks, message.tol)
        if isinstance(message, Certify):
            return Reply(self.number, sums=self._certify(message))
        if isinstance(message, SumGaps):
            return Reply(self.number, sums=self._gaps(message.multipliers))
        assert isinstance(message, TellLeftOut)
        return Reply(self.number, sums=self._left_out(message))

    def first_reply(self) -> Reply:
        """Return the variables that do not start at 0, and their samples."""
        found, used = [], []
        for task in self._tasks:
            which = np.flatnonzero(task.problem.start)
            found.append((self._variables(task, which), task.problem.start[which]))
            used.append(task.rows[task.problem.row[which]])
        rows = np.unique(np.concatenate(used))
        self._sent[rows] = True
        return Reply(
            self.number,
            rows=Rows(self._ids[rows], self._X[rows]),
            facts=self._facts.take(rows),
            start=found,
        )

    # Where variables and samples are

    def _variables(self, task: _Task, which: NDArray) -> NDArray[np.int64]:
        """Return the names of some of a problem's variables."""
        ids = self._ids[task.rows[task.problem.row[which]]]
        return ids * self._per_sample + which // max(len(task.rows), 1)

    def _own(self, ids: NDArray) -> tuple[NDArray, NDArray]:
        """Return which of some samples are here, and where."""
        here = np.flatnonzero(
            (ids >= self._offset) & (ids < self._offset + len(self._ids))
        )
        return here, self._place[ids[here] - self._offset]

    def _own_variables(self, task: _Task, members: NDArray) -> tuple[NDArray, NDArray]:
        """Return which of some variables of a problem are here, and where."""
        here, places = self._own(members // self._per_sample)
        kind = members[here] % self._per_sample
        return here, kind * len(task.rows) + np.searchsorted(task.rows, places)

    # Kernel values

    def _sweep(self, X: Any, use: Callable[[int, int, NDArray], None]) -> None:
        """Compute the kernel rows of samples, in tiles.

        ``use(first, column, values)`` gets each tile: its first row and its first
        column.  It is called in threads.
        """
        dtype = self._operand.dtype
        for some in ranges(0, X.shape[0], AT_ONCE, even=False):
            left = Operand(X[some].astype(dtype, copy=False))
            room = max(1, self._tiles.tiling.values // len(left))
            fair = max(LEAST_COLUMNS, -(-len(self) // WORKERS))
            parts = ranges(0, len(self), min(room, fair))
            self._tiles.run(partial(self._tile, left, some.start, use), parts)

    def _tile(self, left: Operand, first: int, use: Callable, part: slice) -> None:
        use(first, part.start, self._tiles(left, self._operand.rows(part)))

    def _add(self, X: Any, weights: Sequence[tuple[_Task, NDArray, NDArray]]) -> None:
        """Add ``K(own samples, X) w`` to ``f`` of some problems.

        ``weights`` has, for each problem, rows of X in ascending order and their
        weights.
        """

        def use(first: int, column: int, values: NDArray) -> None:
            stop = column + values.shape[1]
            for task, rows, weight in weights:
                begin, end = np.searchsorted(rows, [first, first + len(values)])
                if begin == end:
                    continue
                for start, until, at in task.runs:
                    a, b = max(start, column), min(until, stop)
                    if a < b:
                        f = task.f[at + a - start : at + b - start]
                        own = rows[begin:end] - first
                        add_rows(values, own, weight[begin:end], a - column, f)

        self._sweep(X, use)

    # Messages

    def _update(self, message: Round) -> None:
        for sample in message.leaving.tolist():
            slot = self._slots.pop(sample, None)
            if slot is None:
                self._loose.pop(sample, None)
            else:
                self._free.append(slot)
        _, places = self._own(message.forgotten)
        self._sent[places] = False
        if message.coming is not None:
            self._admit(message.coming)
        self._move(message.moves)

    def _admit(self, coming: Rows) -> None:
        """Compute and keep the kernel rows of samples, as far as there is room."""
        ids = coming.ids.tolist()
        n_kept = min(len(ids), len(self._free))
        slots = np.array([self._free.pop() for _ in range(n_kept)], dtype=np.int64)
        self._slots.update(zip(ids[:n_kept], slots.tolist(), strict=True))
        for k in range(n_kept, len(ids)):
            self._loose[ids[k]] = coming.X[k : k + 1]

        def use(first: int, column: int, values: NDArray) -> None:
            own = slots[first : first + len(values)]
            scatter_rows(values, self._pool, own, column)

        if n_kept:
            self._sweep(coming.X[:n_kept], use)

    def _move(self, moves: Sequence[Move]) -> None:
        """Take over new coefficients, and update ``f``."""
        jobs: list[tuple[_Task, NDArray, NDArray]] = []
        loose: dict[int, int] = {}
        products = []
        for move in moves:
            task = self._tasks[move.task]
            here, places = self._own_variables(task, move.members)
            task.beta[places] = move.beta[here]
            samples, at = np.unique(
                move.members // self._per_sample, return_inverse=True
            )
            weight = np.bincount(at, move.change, len(samples))
            moved = np.flatnonzero(weight)
            samples, weight = samples[moved], weight[moved]
            slots = np.array(
                [self._slots.get(s, -1) for s in samples.tolist()], dtype=np.int64
            )
            is_kept = slots >= 0
            jobs.append((task, slots[is_kept], weight[is_kept]))
            if not is_kept.all():
                rows = [
                    loose.setdefault(s, len(loose)) for s in samples[~is_kept].tolist()
                ]
                order = np.argsort(rows)
                products.append((task, np.array(rows)[order], weight[~is_kept][order]))
        width = max(LEAST_COLUMNS, -(-len(self) // WORKERS))
        self._tiles.run(
            self._add_kept,
            [
                (*job, run[0], run[2], part)
                for job in jobs
                for run in job[0].runs
                for part in ranges(run[0], run[1], width)
            ],
        )
        if products:
            self._add(_stack([self._loose[s] for s in loose]), products)

    def _add_kept(self, job: tuple) -> None:
        task, slots, weight, start, at, part = job
        f = task.f[at + part.start - start : at + part.stop - start]
        add_rows(self._pool, slots, weight, part.start, f)

    def _restore(self, message: Restore) -> None:
        """Begin again from what the driver knows."""
        self._prepare(message.precise)
        self._sent[:] = False
        weights = []
        for task, (variables, values) in zip(self._tasks, message.beta, strict=True):
            task.beta[:] = 0.0
            task.f[:] = 0.0
            here, places = self._own_variables(task, variables)
            task.beta[places] = values[here]
            rows, at = np.unique(variables // self._per_sample, return_inverse=True)
            weight = np.bincount(at, values, len(rows))
            weights.append((task, np.searchsorted(message.vectors.ids, rows), weight))
        if len(message.vectors.ids):
            self._add(message.vectors.X, weights)
        self._admit(message.members)

    def _look(self, asks: Sequence[Ask], tol: float) -> Reply:
        """Find the extremes of the gradient, and the strongest violators."""
        looks, rows = [], []
        for ask in asks:
            task = self._tasks[ask.task]
            look, chosen = self._look_at(task, ask, tol)
            looks.append(look)
            rows.append(task.rows[task.problem.row[chosen]])
        new = np.unique(np.concatenate(rows)) if rows else np.empty(0, dtype=np.intp)
        new = new[~self._sent[new]]
        self._sent[new] = True
        sent = Rows(self._ids[new], self._X[new])
        return Reply(self.number, looks, sent, self._facts.take(new))

    def _look_at(self, task: _Task, ask: Ask, tol: float) -> tuple[Look, NDArray]:
        G = task.gradient()
        up, down = (np.flatnonzero(side) for side in task.may_move())
        is_chosen = np.zeros(len(G), dtype=bool)
        least, most = np.inf, -np.inf
        if len(up):
            first = up[G[up].argmin()]
            least, is_chosen[first] = float(G[first]), True
        if len(down):
            last = down[G[down].argmax()]
            most, is_chosen[last] = float(G[last]), True
        # Other shards may have samples that violate more on the other side.
        for side, violation in (
            (up, max(most, ask.most) - G[up]),
            (down, G[down] - min(least, ask.least)),
        ):
            strong = np.flatnonzero((violation > tol) & ~is_chosen[side])
            take = min(len(strong), ask.count)
            if take:
                mark_strong(violation[strong], side[strong], take, is_chosen)
        chosen = np.flatnonzero(is_chosen)
        here, places = self._own_variables(task, ask.members)
        look = Look(
            ask.task,
            least,
            most,
            self._variables(task, chosen),
            task.f[task.problem.row[chosen]],
            here,
            task.f[task.problem.row[places]],
        )
        return look, chosen

    def _certify(self, message: Certify) -> Sums:
        """Compute ``f`` anew where it matters most, from double-precision values."""
        vectors, n_tasks = message.vectors, len(self._tasks)
        _, own = self._own(vectors.ids)
        some = np.linspace(0, len(self) - 1, min(len(self), SAMPLED_ROWS))
        rows = np.union1d(own, some.astype(np.intp))
        weights = np.zeros((len(vectors.ids), n_tasks))
        for t, (variables, values) in enumerate(message.beta):
            at = np.searchsorted(vectors.ids, variables // self._per_sample)
            np.add.at(weights[:, t], at, values)
        exact = np.zeros((len(rows), n_tasks))
        if len(vectors.ids):
            exact = self._engine.apply(
                self._setup.kernel,
                self._X[rows].astype(np.float64, copy=False),
                vectors.X.astype(np.float64, copy=False),
                Weights(sparse.csr_array(weights), [0, len(weights)]),
                budget=self._budget,
            )
        found = []
        for t, task in enumerate(self._tasks):
            at = np.searchsorted(task.rows, rows)
            takes_part = np.isin(rows, task.rows)
            places, values = at[takes_part], exact[takes_part, t]
            error = np.abs(task.f[places] - values).max(initial=0.0)
            task.f[places] = values
            found.append((error, *_sums(task)))
        return Sums(*(np.array(column) for column in zip(*found, strict=True)))

    def _gaps(self, multipliers: NDArray) -> NDArray:
        gaps = []
        for task, multiplier in zip(self._tasks, multipliers, strict=True):
            slack = task.gradient() - multiplier
            above = slack * (task.beta - task.problem.lo)
            below = slack * (task.beta - task.problem.hi)
            gaps.append(np.maximum(above, below).sum())
        return np.array(gaps)

    def _left_out(self, message: TellLeftOut) -> tuple[NDArray, ...]:
        """Return decision values, sides, and weights by the machine and as given."""
        first = message.machine * self._setup.statement.per_machine
        whole = self._tasks[first]
        fold = self._facts.fold[whole.rows]
        decisions = np.empty(len(fold))
        for k, bias in enumerate(message.biases):
            left_out = fold == k
            decisions[left_out] = self._tasks[first + 1 + k].f[left_out] + bias
        weight = whole.problem.hi - whole.problem.lo
        return decisions, whole.problem.p < 0, weight, self._facts.weight[whole.rows]


def _sums(task: _Task) -> tuple[float, ...]:
    G = task.gradient()
    up, down = task.may_move()
    is_free = up & down
    return (
        float(0.5 * (task.beta * (G + task.problem.p)).sum()),
        float(G[up].min(initial=np.inf)),
        float(G[down].max(initial=-np.inf)),
        int(is_free.sum()),
        float(G[is_free].sum()),
        float(task.problem.start.sum()),
    )


def _stack(rows: Sequence[Any]) -> Any:
    if sparse.issparse(rows[0]):
        return sparse.vstack(rows, format="csr")
    return np.concatenate(rows)


class Missed:
    """The answer of shards that have not seen all messages."""


class Failure:
    """The answer of shards in which an error has occurred."""

    def __init__(self, error: BaseException):
        self.error = error


class ShardGroup:
    """The shards of one worker: one message and one answer for all of them.

    Parameters
    ----------
    setup : Setup
    numbers : sequence of int
        The numbers of the chunks.
    chunks : sequence of tuple
        Validated samples, their targets and their weights.
    budget : int
        Bytes for kernel values and scratch memory.
    """

    def __init__(
        self, setup: Setup, numbers: Sequence[int], chunks: Sequence[tuple], budget: int
    ):
        self._engine = CpuEngine(setup.n_jobs)
        self._shards: dict[int, Shard] = {}
        self._number = 0
        self._answer: Any = None
        total = sum(chunk[0].shape[0] for chunk in chunks)
        try:
            with np.errstate(over="ignore", invalid="ignore"), self._engine as engine:
                for number, chunk in zip(numbers, chunks, strict=True):
                    room = budget * chunk[0].shape[0] // total
                    self._shards[number] = Shard(number, chunk, setup, engine, room)
            self._answer = [shard.first_reply() for shard in self._shards.values()]
        except Exception as error:
            self._answer = Failure(error)

    def handle(self, message: Message | None) -> list[Reply] | Missed | Failure:
        """Answer a message; None asks for the answer to the message before."""
        if message is None or message.number == self._number:
            return self._answer
        if isinstance(self._answer, Failure):
            return self._answer
        if not isinstance(message, Restore) and message.number != self._number + 1:
            return Missed()
        began = time.perf_counter()
        try:
            with np.errstate(over="ignore", invalid="ignore"), self._engine:
                self._answer = [s.answer(message) for s in self._shards.values()]
            self._answer[0].seconds = time.perf_counter() - began
        except Exception as error:
            self._answer = Failure(error)
        self._number = message.number
        return self._answer

    def release(self, numbers: Sequence[int]) -> None:
        """Give up some shards, which another worker takes over."""
        for number in numbers:
            self._shards.pop(number, None)
