"""Several two-sided machines over one set of held samples.

The samples, their classes and their Gram matrix are shared.  Each machine (one class
against the rest, or one pair of classes) has its own coefficients, gradients and
members.  A sample that is not a member of any machine is removed.

Learning proceeds in steps.  Each step works on a fork (see
:mod:`mercer.engines.cpu.held`) that adds samples, moves coefficients and, at the end,
removes samples.  The owner then keeps the fork and settles it, or discards it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.problem import Certificate, DualProblem, c_svc, certify, layout
from mercer.core.smo import Outcome, solve_whole
from mercer.engines.cpu.certificates import are_convex
from mercer.engines.cpu.held import STRIPS, HeldGram, HeldRows, Moves, sample_keys
from mercer.kernels.base import Kernel
from mercer.machines.base.held_samples import SampleIndex, products_with_held
from mercer.machines.online.lasvm import (
    Members,
    extremes,
    learn,
    let_go,
    products,
    release,
    restore,
)
from mercer.runtime.threads import Threads, count_threads

__all__ = ["HeldMachines", "PassSettings", "most_held"]

# Arrays with an entry for each held sample, in their last axis.
VECTORS = ("label", "cost", "born", "beta", "f", "active", "side")

# Least work, in kernel values that are read, for which a pool of threads pays.
LEAST_FOR_THREADS = 2_000_000
# Largest number of steps for each held sample after a support vector was removed.
REPAIR_STEPS = 2
# Bytes that a held sample needs besides its kernel values: for its key, and for each
# machine, whose arrays exist twice during a step.
BYTES_OF_SAMPLE = 400
BYTES_OF_MEMBER = 120
# Memory for strips of kernel values and the scratch memory of the kernel, as a fraction
# of the matrix.
SCRATCH = 4 / STRIPS


def most_held(n_bytes: int, itemsize: int, n_tasks: int) -> int:
    """Return how many samples can be held in so many bytes."""
    square = (1.0 + SCRATCH) * itemsize
    linear = BYTES_OF_SAMPLE + BYTES_OF_MEMBER * n_tasks
    root = np.sqrt(linear**2 + 4.0 * square * n_bytes)
    return int((root - linear) / (2.0 * square))


class PassSettings(NamedTuple):
    """How waiting samples are processed; see :func:`lasvm.learn`."""

    n_picks: int
    tau: float
    n_reprocess: int
    choice: int
    n_candidates: int


class HeldMachines:
    """The state of an online machine.

    ``code`` (n_classes, n_tasks) is the side of each class in each machine.
    """

    def __init__(self, gram: HeldGram, code: NDArray, labels: NDArray, cost: NDArray):
        self.gram = gram
        self.code = np.asarray(code, dtype=np.float64)
        n, n_tasks = len(gram), code.shape[1]
        self.label = np.array(labels, dtype=np.int64)
        self.cost = np.array(cost, dtype=np.float64)
        self.beta = np.zeros((n_tasks, n))
        self.f = np.zeros((n_tasks, n))
        self.active = np.zeros((n_tasks, n), dtype=bool)
        self.side = np.ascontiguousarray(self.code[self.label].T)
        self.born = np.arange(n, dtype=np.int64)  #: the order in which samples arrived
        self.n_born = n
        self.n_steps = np.zeros(n_tasks, dtype=np.int64)  #: steps taken so far
        self._index = SampleIndex(sample_keys(gram.rows.X, self.label))

    @classmethod
    def empty(cls, kernel: Kernel, X: Any, code: NDArray, most: int) -> HeldMachines:
        """Return machines without samples, for samples of the kind of ``X``."""
        center = None if sparse.issparse(X) else X.mean(axis=0, dtype=np.float64)
        gram = HeldGram(kernel, HeldRows(X[:1], center), most)
        machines = cls(gram, code, np.zeros(len(gram)), np.zeros(len(gram)))
        machines.remove(np.arange(len(gram)))
        machines.settle()
        return machines

    def fork(self) -> HeldMachines:
        """Return machines that can learn while these stay as they are."""
        twin = HeldMachines.__new__(HeldMachines)
        vars(twin).update(vars(self))
        for name in (*VECTORS, "n_steps", "_index"):
            setattr(twin, name, getattr(self, name).copy())
        twin.gram = self.gram.fork()
        return twin

    def settle(self) -> None:
        """Move samples to the places of those that have been removed."""
        self.gram.settle()

    def __len__(self) -> int:
        return len(self.gram)

    @property
    def n_tasks(self) -> int:
        """The number of machines."""
        return len(self.beta)

    def members(self, t: int) -> Members:
        """Return one machine."""
        return Members(self.side[t], self.cost, self.beta[t], self.f[t], self.active[t])

    def coefficients(self) -> NDArray:
        """Return the coefficients, shape (n_tasks, n_held)."""
        return self.beta[:, : len(self)]

    def products(self, X: Any, n_jobs: int | None) -> NDArray:
        """Return ``K(X, held) @ beta`` of each machine, shape (n, n_tasks)."""
        return products_with_held(
            self.gram.kernel, X, self.gram.rows, self.coefficients(), n_jobs
        )

    def add(
        self, X: Any, labels: NDArray, cost: NDArray, adds_up: bool
    ) -> NDArray[np.int64]:
        """Hold samples, except those that are held already; return their places.

        With ``adds_up``, the cost of a sample that is held already is added to its
        present cost, as if the sample were held twice.
        """
        n = len(self)
        self._make_room(n + len(labels))
        slots, fresh = self._index.add(sample_keys(X, labels))
        self.cost[slots[fresh]] = cost[fresh]
        self.label[slots[fresh]] = labels[fresh]
        self.born[slots[fresh]] = self.n_born + np.array(fresh, dtype=np.int64)
        if adds_up:
            repeated = np.delete(np.arange(len(labels)), fresh)
            np.add.at(self.cost, slots[repeated], cost[repeated])
        self.n_born += len(labels)
        if fresh:
            is_new = self.gram.extend(X if len(fresh) == len(labels) else X[fresh])
            total = len(self)
            self.side[:, n:total] = self.code[self.label[n:total]].T
            self.beta[:, n:total] = 0.0
            self.active[:, n:total] = False
            # If all values were computed again, they may differ in their last digits.
            self.refresh(0 if is_new else n)
        return slots

    def _make_room(self, needed: int) -> None:
        size = self.beta.shape[1]
        if needed <= size:
            return
        size = max(needed, size + size // 2)
        for name in VECTORS:
            old = getattr(self, name)
            new = np.zeros((*old.shape[:-1], size), dtype=old.dtype)
            new[..., : old.shape[-1]] = old
            setattr(self, name, new)

    def learn(
        self, slots: NDArray, settings: PassSettings, seeds: NDArray, n_jobs: int | None
    ) -> None:
        """Let every machine process samples, each with its own random numbers."""
        n, K = len(self), self.gram.matrix

        def run(t: int) -> None:
            seed = seeds[t : t + 1].copy()
            steps = learn(K, n, self.members(t), slots.copy(), *settings, seed)
            self.n_steps[t] += steps

        self._each(run, len(slots) * n, n_jobs)

    @classmethod
    def of_batch(
        cls,
        gram_of: Any,
        X: Any,
        labels: NDArray,
        cost: NDArray,
        code: NDArray,
        beta: NDArray,
    ) -> HeldMachines:
        """Hold samples with the coefficients that a batch solver gave them.

        ``gram_of`` returns the Gram matrix of rows.  Equal samples become one sample
        with the sum of their coefficients and costs; the problem is the same.
        """
        keys = np.array(list(sample_keys(X, labels)), dtype="V16")
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        machines = cls(
            gram_of(HeldRows(X[first])),
            code,
            labels[first],
            np.bincount(place, cost, len(first)),
        )
        for t, values in enumerate(beta):
            machines.beta[t] = np.bincount(place, values, len(first))
        machines.refresh()
        return machines

    def refresh(self, first: int = 0) -> None:
        """Compute the gradients anew, because rounding errors of steps add up."""
        for t in range(self.n_tasks):
            products(self.gram.matrix, first, len(self), self.beta[t], self.f[t])

    def solve(self, tol: float, max_iter: int, n_jobs: int | None) -> list[Outcome]:
        """Bring every machine to its optimum over all held samples."""
        n, K = len(self), self.gram.matrix
        self.active[:, :n] = self.side[:, :n] != 0
        stop = np.zeros(1, dtype=np.uint8)
        # Shrinking copies up to a quarter of the matrix, in each thread.
        copies = min(self.n_tasks, count_threads(n_jobs)) * (n // 2) ** 2
        shrinks = self.gram.has_room_for(copies)
        found: dict[int, Outcome] = {}

        def run(t: int) -> None:
            problem = self.problem(t)
            beta, f = self.beta[t, :n], self.f[t, :n]
            found[t] = solve_whole(
                K, layout(problem), problem, beta, f, tol, max_iter, stop, shrinks
            )
            self.n_steps[t] += found[t].n_iter

        if n:
            self._each(run, 100 * n, n_jobs)
        return [found[t] for t in sorted(found)]

    def _each(self, run: Any, work: int, n_jobs: int | None) -> None:
        if self.n_tasks == 1 or work * self.n_tasks < LEAST_FOR_THREADS:
            for t in range(self.n_tasks):
                run(t)
            return
        with Threads(n_jobs) as threads:
            threads.map(run, range(self.n_tasks))

    def problem(self, t: int) -> DualProblem:
        """Return the dual problem of a machine over its members.

        The other samples have side 0 and bounds 0, so that they have no influence.
        """
        n = len(self)
        mine = self.active[t, :n]
        return c_svc(self.side[t, :n] * mine, self.cost[:n] * mine)

    def certificates(self) -> list[Certificate]:
        """Return how exact each machine is over its members."""
        n = len(self)
        if n == 0:
            return [Certificate(0.0, 0.0, 0.0, 0.0, (0.0,))] * self.n_tasks
        return [
            certify(self.problem(t), self.beta[t, :n], self.f[t, :n])
            for t in range(self.n_tasks)
        ]

    def convexity(self) -> list[bool | None]:
        """Tell whether the problem of each machine is convex; None if unknown."""
        n, K = len(self), self.gram.matrix
        if not n:
            return [True] * self.n_tasks
        problems = [(self.problem(t), np.arange(n)) for t in range(self.n_tasks)]
        return are_convex(
            self.gram.kernel, lambda rows: K[np.ix_(rows, rows)], problems
        )

    def has_free_vectors(self) -> NDArray[np.bool_]:
        """Tell which machines have a support vector between its bounds."""
        size = np.abs(self.coefficients())
        return ((size > 0) & (size < self.cost[: len(self)])).any(axis=1)

    def let_go(self) -> None:
        """Remove from each machine the members that cannot become support vectors.

        The two members that bound the intercept stay: if no support vector is free, the
        intercept lies in the middle between their bounds.
        """
        for t in range(self.n_tasks):
            machine = self.members(t)
            bounds = [s for s in extremes(len(self), machine) if s >= 0]
            let_go(len(self), machine)
            machine.active[bounds] = True

    def unused(self) -> NDArray[np.bool_]:
        """Tell which samples are not members of any machine."""
        return np.logical_not(self.active[:, : len(self)].any(axis=0))

    def surplus(self, limit: int, leaves: NDArray) -> NDArray[np.int64]:
        """Return the samples to remove so that at most ``limit`` samples are held.

        ``leaves`` marks samples that are removed anyhow.  The order of removal is:
        samples that are not support vectors, support vectors on the wrong side of a
        machine, and other support vectors; within each kind the oldest come first.
        (If samples with small coefficients were removed instead, noise would fill the
        set.  If new samples on the wrong side were removed first, machines could not
        follow a change of the data.)  The last sample of each class is removed only
        after all samples that are not the last of their class.
        """
        n = len(self)
        count = n - int(leaves.sum()) - limit
        if count <= 0:
            return np.zeros(0, dtype=np.int64)
        carries = self.beta[:, :n] != 0
        bias = np.array([[c.bias] for c in self.certificates()])
        margin = self.side[:, :n] * (self.f[:, :n] + bias)
        is_wrong = (carries & (margin < 0)).any(axis=0)
        rank = np.where(carries.any(axis=0), np.where(is_wrong, 1, 2), 0)
        order = np.lexsort((self.born[:n], rank))
        order = order[~leaves[order]]
        label = self.label[order]
        last = len(order) - 1 - np.unique(label[::-1], return_index=True)[1]
        is_last = np.isin(np.arange(len(order)), last)
        return np.concatenate([order[~is_last], order[is_last]])[:count]

    def release(self, leaving: NDArray, tau: float) -> None:
        """Remove samples from all machines, and restore optimality."""
        n, K = len(self), self.gram.matrix
        if not len(leaving):
            return
        for t in range(self.n_tasks):
            machine = self.members(t)
            carries = self.beta[t, leaving] != 0
            self.active[t, leaving[~carries]] = False
            # A sample that leaves later may take over a coefficient for a while, so
            # that there is always room for it.
            for k in leaving[carries]:
                release(K, n, machine, int(k))
            restore(K, n, machine, tau, REPAIR_STEPS * n)

    def remove(self, leaving: NDArray) -> None:
        """Remove samples without coefficients; nothing but ``settle`` may follow."""
        if not len(leaving):
            return
        n = len(self)
        moves = Moves(n, leaving)
        self._index.remove(leaving, moves)
        self.gram.remove(moves)
        for values in (self.label, self.cost, self.born):
            moves.apply(values)
        for rows in (self.beta, self.f, self.active, self.side):
            rows[:, moves.target] = rows[:, moves.source]
        self.active[:, moves.count : n] = False

    def set_costs(self, cost: NDArray) -> None:
        """Give the held samples other costs, and make the coefficients feasible.

        Coefficients are clipped to their new bounds.  The side of each machine with the
        larger sum is then scaled down, so that the coefficients add up to zero again.
        """
        n = len(self)
        self.cost[:n] = cost
        for t in range(self.n_tasks):
            bound = self.side[t, :n] * cost
            beta = np.clip(
                self.beta[t, :n], np.minimum(bound, 0.0), np.maximum(bound, 0.0)
            )
            up, down = beta.clip(min=0.0).sum(), -beta.clip(max=0.0).sum()
            if up > down:
                beta[beta > 0] *= down / up
            elif down > up:
                beta[beta < 0] *= up / down
            self.beta[t, :n] = beta
        self.refresh()

    def keys(self) -> list[bytes]:
        """Return the keys of the held samples."""
        return self._index.keys

    def holds(self, keys: list[bytes]) -> NDArray[np.bool_]:
        """Tell which samples, by their keys, are held."""
        return np.array([self._index.get(key) is not None for key in keys], dtype=bool)

    def find(self, X: Any) -> NDArray[np.int64]:
        """Return the places of samples that are held, with any class."""
        found = [
            place
            for label in range(len(self.code))
            for key in sample_keys(X, np.full(X.shape[0], label))
            if (place := self._index.get(key)) is not None
        ]
        return np.unique(np.array(found, dtype=np.int64))

    def state(self) -> dict[str, Any]:
        """Return the arrays that :meth:`from_state` needs."""
        n = len(self)
        return {
            "gram": self.gram.state(),
            "code": self.code.copy(),
            "label": self.label[:n].copy(),
            "cost": self.cost[:n].copy(),
            "beta": self.beta[:, :n].copy(),
            "f": self.f[:, :n].copy(),
            "active": self.active[:, :n].copy(),
            "n_steps": self.n_steps.copy(),
            "born": self.born[:n].copy(),
            "n_born": self.n_born,
        }

    @classmethod
    def from_state(cls, kernel: Kernel, state: dict[str, Any]) -> HeldMachines:
        """Return the machines of :meth:`state`; refuse arrays of different sizes."""
        gram = HeldGram.from_state(kernel, state["gram"])
        n, n_tasks = len(gram), state["code"].shape[1]
        fits = state["label"].shape == state["cost"].shape == (n,) and (
            n == 0 or 0 <= state["label"].min() <= state["label"].max()
        )
        for name in ("beta", "f", "active"):
            fits = fits and state[name].shape == (n_tasks, n)
        if not fits:
            raise ValueError("The arrays of the held samples do not fit together.")
        machines = cls(gram, state["code"], state["label"], state["cost"])
        for name in ("beta", "f", "active"):
            setattr(machines, name, np.array(state[name]))
        machines.n_steps[:] = state["n_steps"]
        machines.born[:] = state["born"]
        machines.n_born = int(state["n_born"])
        return machines
