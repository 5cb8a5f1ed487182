"""Several two-sided machines over one set of held samples.

The samples, their classes and their Gram matrix are shared; each machine (one class
against the rest, or one pair of classes) has its own coefficients, gradients and
members.  A sample that no machine needs any more leaves the store.

Learning goes step by step.  Each step works on a fork (see
:mod:`mercer.engines.cpu.held`) that adds samples, moves coefficients and, last of all,
removes samples; the owner then keeps the fork and settles it, or throws it away.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.lasvm import (
    Members,
    extremes,
    learn,
    let_go,
    products,
    release,
    restore,
)
from mercer.core.problem import Certificate, DualProblem, c_svc, certify, layout
from mercer.core.smo import Outcome, solve_whole
from mercer.engines.cpu.held import HeldGram, HeldRows, Moves, sample_keys
from mercer.kernels.base import Kernel
from mercer.runtime.threads import Threads, count_threads

__all__ = ["HeldMachines", "PassSettings"]

# Arrays with an entry for each held sample, in their last axis.
VECTORS = ("label", "cost", "born", "beta", "f", "active", "side")

# Less work than this is not worth a pool of threads.
LEAST_FOR_THREADS = 2_000_000
# Steps, per held sample, after a support vector had to leave.
REPAIR_STEPS = 2


class PassSettings(NamedTuple):
    """How waiting samples are gone through; see :func:`mercer.core.lasvm.learn`."""

    n_picks: int
    tau: float
    n_reprocess: int
    choice: int
    n_candidates: int


class HeldMachines:
    """The state of an online machine.

    ``code`` (n_classes, n_tasks) says on which side of each machine a class is.
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
        self.born = np.arange(n, dtype=np.int64)  #: the order in which samples came
        self.n_born = n
        self.n_steps = np.zeros(n_tasks, dtype=np.int64)  #: steps taken so far
        self._keys = list(sample_keys(gram.rows.X, self.label))
        self._slot = {key: slot for slot, key in enumerate(self._keys)}

    @classmethod
    def empty(cls, kernel: Kernel, X: Any, code: NDArray, most: int) -> HeldMachines:
        """Return machines that hold nothing, for samples of the kind of ``X``."""
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
        for name in (*VECTORS, "n_steps", "_keys", "_slot"):
            setattr(twin, name, getattr(self, name).copy())
        twin.gram = self.gram.fork()
        return twin

    def settle(self) -> None:
        """Put the samples that stay in the places of those that have left."""
        self.gram.settle()

    def __len__(self) -> int:
        return len(self.gram)

    @property
    def n_tasks(self) -> int:
        """How many machines there are."""
        return len(self.beta)

    def members(self, t: int) -> Members:
        """Return one machine."""
        return Members(self.side[t], self.cost, self.beta[t], self.f[t], self.active[t])

    def coefficients(self) -> NDArray:
        """Return the coefficients, shape (n_tasks, n_held)."""
        return self.beta[:, : len(self)]

    def add(
        self, X: Any, labels: NDArray, cost: NDArray, adds_up: bool
    ) -> NDArray[np.int64]:
        """Hold samples, of which those held already are not held twice.

        Returns the place of each.  With ``adds_up`` the cost of a sample that comes
        again is added to what it has, as if it were there twice.
        """
        n = len(self)
        self._make_room(n + len(labels))
        slots = np.empty(len(labels), dtype=np.int64)
        fresh: list[int] = []
        for r, key in enumerate(sample_keys(X, labels)):
            slot = self._slot.get(key)
            if slot is None:
                slot = self._slot[key] = n + len(fresh)
                self._keys.append(key)
                self.cost[slot] = cost[r]
                self.label[slot] = labels[r]
                self.born[slot] = self.n_born + r
                fresh.append(r)
            elif adds_up:
                self.cost[slot] += cost[r]
            slots[r] = slot
        self.n_born += len(labels)
        if fresh:
            is_new = self.gram.extend(X if len(fresh) == len(labels) else X[fresh])
            total = len(self)
            self.side[:, n:total] = self.code[self.label[n:total]].T
            self.beta[:, n:total] = 0.0
            self.active[:, n:total] = False
            # Values that were computed again may differ in their last digits.
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
        """Let every machine process samples, in its own way."""
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

        ``gram_of`` makes the Gram matrix of rows.  Samples that are there twice become
        one with the sum of coefficients and costs: the problem is the same.
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
        """Compute the gradients anew: many steps add up their rounding errors."""
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

        Others have no side and no room, and so no say.
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

    def has_free_vectors(self) -> NDArray[np.bool_]:
        """Tell which machines have a support vector between its bounds."""
        size = np.abs(self.coefficients())
        return ((size > 0) & (size < self.cost[: len(self)])).any(axis=1)

    def let_go(self) -> None:
        """Take out of each machine the members that cannot be support vectors.

        The members that bound the intercept stay.  If no support vector is free, the
        intercept lies in the middle between them.
        """
        for t in range(self.n_tasks):
            machine = self.members(t)
            bounds = [s for s in extremes(len(self), machine) if s >= 0]
            let_go(len(self), machine)
            machine.active[bounds] = True

    def unused(self) -> NDArray[np.bool_]:
        """Tell which samples are members of no machine."""
        return np.logical_not(self.active[:, : len(self)].any(axis=0))

    def surplus(self, limit: int, leaves: NDArray) -> NDArray[np.int64]:
        """Return who has to go so that no more than ``limit`` samples are held.

        ``leaves`` marks samples that go anyhow.  First those go that are no support
        vectors, then support vectors on the wrong side of a machine, then the others;
        of each kind the oldest first.  Noise would fill the set if small coefficients
        had to go, and what is new may be wrong because things have changed.  The last
        sample of a class goes after all samples that are not the last of their class.
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
        """Take samples out of all machines, and restore what that upsets."""
        n, K = len(self), self.gram.matrix
        if not len(leaving):
            return
        for t in range(self.n_tasks):
            machine = self.members(t)
            carries = self.beta[t, leaving] != 0
            self.active[t, leaving[~carries]] = False
            # One may take over what another carried, until it goes itself: so there is
            # always room for it.
            for k in leaving[carries]:
                release(K, n, machine, int(k))
            restore(K, n, machine, tau, REPAIR_STEPS * n)

    def remove(self, leaving: NDArray) -> None:
        """Remove samples without coefficients, as the last thing before settling."""
        if not len(leaving):
            return
        n = len(self)
        moves = Moves(n, leaving)
        for slot in leaving:
            del self._slot[self._keys[slot]]
        for target, source in zip(moves.target, moves.source, strict=True):
            self._keys[target] = self._keys[source]
            self._slot[self._keys[target]] = int(target)
        del self._keys[moves.count :]
        self.gram.remove(moves)
        for values in (self.label, self.cost, self.born):
            moves.apply(values)
        for rows in (self.beta, self.f, self.active, self.side):
            rows[:, moves.target] = rows[:, moves.source]
        self.active[:, moves.count : n] = False

    def set_costs(self, cost: NDArray) -> None:
        """Give the held samples other costs, and make the coefficients fit to them.

        Coefficients are cut off at their new bounds.  The heavier side of each machine
        is then scaled down, so that the coefficients add up to zero again.
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
        """Return what tells the held samples apart."""
        return self._keys

    def holds(self, keys: list[bytes]) -> NDArray[np.bool_]:
        """Tell which samples, by their keys, are held."""
        return np.array([key in self._slot for key in keys], dtype=bool)

    def find(self, X: Any) -> NDArray[np.int64]:
        """Return where samples are held, of whatever class."""
        found = [
            self._slot[key]
            for label in range(len(self.code))
            for key in sample_keys(X, np.full(X.shape[0], label))
            if key in self._slot
        ]
        return np.unique(np.array(found, dtype=np.int64))

    def state(self) -> dict[str, Any]:
        """Return what :meth:`from_state` needs, in arrays."""
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
        """Return the machines as they were; refuse arrays that do not fit together."""
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
