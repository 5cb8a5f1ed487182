"""What is done with held machines: start from a batch, take samples in, finish.

Learning goes in steps, and ``take_samples`` and ``finish_over`` yield the machines
after each.  What they yield is a fork: the caller keeps it and then settles it before
it asks for the next step.  A step that fails has changed nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mercer.core.lasvm import IN_TURN, NEAREST, WORST
from mercer.engines.cpu.held import HeldGram, sample_keys
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.tiles import Weights, apply, coefficient_matrix
from mercer.kernels.base import Kernel
from mercer.machines.online.members import HeldMachines, Lesson
from mercer.runtime.threads import Threads

__all__ = [
    "CHOICES",
    "Plan",
    "Samples",
    "finish_over",
    "products_with",
    "start_from",
    "take_samples",
]

CHOICES = {"stream": IN_TURN, "random": IN_TURN, "active": NEAREST, "gradient": WORST}
# Violators that are taken in at once while finishing over a whole data set.
MOST_VIOLATORS = 2000
# The held samples are solved to this part of the tolerance, so that the rounding of
# other kernel values than theirs does not matter.
SAFETY = 0.5


class Samples(NamedTuple):
    """A data set in which no sample stands twice."""

    X: Any
    labels: NDArray
    cost: NDArray  #: costs of samples that stood there several times are added up
    keys: list[bytes]

    @classmethod
    def gather(cls, X: Any, labels: NDArray, cost: NDArray) -> Samples:
        """Put samples that are the same together, and leave out those without cost."""
        place: dict[bytes, int] = {}
        index = [place.setdefault(key, len(place)) for key in sample_keys(X, labels)]
        total = np.bincount(index, cost, len(place))
        first = np.unique(index, return_index=True)[1]
        wanted = np.flatnonzero(total > 0)
        keys = list(place)
        if len(wanted) < X.shape[0]:
            X, labels = X[first[wanted]], labels[first[wanted]]
        return cls(X, labels, total[wanted], [keys[k] for k in wanted])


class Plan(NamedTuple):
    """How to learn."""

    holds_all: bool  #: whether all samples are held and kept optimal
    tol: float
    max_iter: int
    n_reprocess: int
    selection: str
    n_candidates: int
    fraction: float
    adds_up: bool  #: whether a sample that comes again adds to its cost
    limit: int  #: most samples to hold
    side: int  #: rows of the largest matrix of kernel values that memory allows
    chunk: int  #: samples whose kernel values are computed at once
    n_jobs: int | None
    classes: NDArray  #: the names of the classes


def start_from(
    kernel: Kernel,
    X: Any,
    labels: NDArray,
    cost: NDArray,
    code: NDArray,
    beta: NDArray,
    plan: Plan,
    is_optimal: bool,
) -> HeldMachines:
    """Hold what a batch solver has found, ``beta`` of shape (n_tasks, n).

    If it is optimal and a machine has no free support vector, the samples that bound
    the intercept are held too.  If there are more support vectors than may be held, the
    samples are learnt from as a stream instead.
    """
    weight = np.abs(beta).sum(axis=0)
    if np.count_nonzero(weight) > plan.limit:
        machines = HeldMachines.empty(kernel, X, code, plan.side)
        plan = plan._replace(selection="stream")
        rng = np.random.default_rng(0)
        steps = take_samples(machines, X, labels, cost, plan, rng)
        for machines, _ in steps:
            machines.settle()
        return machines
    # Support vectors first, and of the others those that came last.
    order = np.lexsort((-np.arange(len(weight)), weight == 0))
    n_wanted = int((cost > 0).sum()) if plan.holds_all else np.count_nonzero(weight)
    if n_wanted == 0:
        return HeldMachines.empty(kernel, X, code, plan.side)
    held = order[: min(n_wanted, plan.limit)]
    # With what is the same as one of them: it takes no place, and it has room that the
    # intercept depends on.
    keys = np.array(list(sample_keys(X, labels)), dtype="V16")
    place = np.unique(keys, return_inverse=True)[1]
    held = np.flatnonzero(np.isin(place, place[held]) & (cost > 0))
    machines = HeldMachines.of_batch(
        partial(HeldGram, kernel, most=plan.side),
        X[held],
        labels[held],
        cost[held],
        code,
        beta[:, held],
    )
    n = len(machines)
    members = machines.side if plan.holds_all else machines.beta
    machines.active[:, :n] = members[:, :n] != 0
    if is_optimal and not machines.has_free_vectors().all():
        samples = Samples.gather(X, labels, cost)
        steps_to_optimum = finish_over(machines, samples, plan)
        for machines in steps_to_optimum:
            machines.settle()
    return machines


def take_samples(
    machines: HeldMachines,
    X: Any,
    labels: NDArray,
    cost: NDArray,
    plan: Plan,
    rng: np.random.Generator,
) -> Iterator[tuple[HeldMachines, int]]:
    """Learn from samples; yield the machines after each chunk, and its length."""
    order = np.flatnonzero(cost > 0)
    if plan.selection == "random":
        order = rng.permutation(order)[: int(np.ceil(plan.fraction * len(order)))]
    for first in range(0, len(order), plan.chunk):
        part = order[first : first + plan.chunk]
        whole = len(part) == X.shape[0]
        machines = machines.fork()
        slots = machines.add(
            X if whole and (np.diff(part) == 1).all() else X[part],
            labels[part],
            cost[part],
            plan.adds_up,
        )
        gap = 0.0
        if plan.holds_all:
            found = machines.solve(plan.tol, plan.max_iter, plan.n_jobs)
            gap = max((o.gap for o in found), default=0.0)
            leaves = np.zeros(len(machines), dtype=bool)
        else:
            machines.learn(slots, _lesson(plan, len(part)), _seeds(machines, rng),
                           plan.n_jobs)  # fmt: skip
            leaves = machines.unused()
        surplus = machines.surplus(plan.limit, leaves)
        machines.release(surplus, plan.tol)
        leaves[surplus] = True
        known = np.unique(machines.label[: len(machines)])
        machines.remove(np.flatnonzero(leaves))
        lost = np.setdiff1d(known, machines.label[: len(machines)])
        yield machines, len(part)
        if gap > plan.tol:
            _warn(gap, plan)
        if len(lost):
            _warn_of_lost_classes(lost, plan)


def _lesson(plan: Plan, n: int) -> Lesson:
    choice = CHOICES[plan.selection]
    count = n if choice == IN_TURN else int(np.ceil(plan.fraction * n))
    return Lesson(count, plan.tol, plan.n_reprocess, choice, plan.n_candidates)


def _seeds(machines: HeldMachines, rng: np.random.Generator) -> NDArray[np.uint64]:
    return rng.integers(2**63, size=machines.n_tasks, dtype=np.uint64)


def finish_over(
    machines: HeldMachines, samples: Samples | None, plan: Plan
) -> Iterator[HeldMachines]:
    """Solve over the held samples or, if given, over others until none violates.

    Yields the machines after each step.
    """
    if samples is not None:
        machines = machines.fork()
        _adopt_costs(machines, samples)
        yield machines
    before = np.inf
    while True:
        machines = machines.fork()
        machines.refresh()
        found = machines.solve(SAFETY * plan.tol, plan.max_iter, plan.n_jobs)
        gap = max((o.gap for o in found), default=0.0)
        missing = np.zeros(0, dtype=np.int64)
        if samples is not None and gap <= plan.tol:
            missing, gap = _missing(machines, samples, plan)
        objective = sum(c.objective for c in machines.certificates())
        if not plan.holds_all:
            machines.let_go()
            machines.remove(np.flatnonzero(machines.unused()))
        yield machines
        # Samples that violate and yet do not lower the objective do so by rounding.
        if samples is None or not len(missing) or not objective < before:
            break
        before = objective
        if len(machines) + len(missing) > plan.limit:
            if gap <= plan.tol:
                break
            raise MemoryError(
                f"The optimum needs more than the {plan.limit} samples that may be "
                "held. Raise budget or cache_size, or finish over the held samples "
                "only: finish()."
            )
        machines = machines.fork()
        for first in range(0, len(missing), plan.chunk):
            part = missing[first : first + plan.chunk]
            machines.add(
                samples.X[part], samples.labels[part], samples.cost[part], False
            )
        yield machines
    if gap > plan.tol:
        _warn(gap, plan)


def _adopt_costs(machines: HeldMachines, samples: Samples) -> None:
    """Give held samples the costs that they have among others; let go of the rest."""
    cost_of = dict(zip(samples.keys, samples.cost, strict=True))
    cost = np.array([cost_of.get(key, 0.0) for key in machines.keys()])
    machines.set_costs(cost)
    machines.remove(np.flatnonzero(cost == 0))


def _missing(
    machines: HeldMachines, samples: Samples, plan: Plan
) -> tuple[NDArray, float]:
    """Return which samples have to be held besides, and the largest gap.

    Those are the samples that violate most against the held ones or, if none does, the
    samples that bound the intercept of a machine without a free support vector.
    """
    _, labels, _, keys = samples
    step = machines.gram.strip
    f = np.concatenate([
        products_with(machines, samples.X[first : first + step], plan.n_jobs)
        for first in range(0, len(labels), step)
    ] or [np.zeros((0, machines.n_tasks))])  # fmt: skip
    n = len(machines)
    others = ~machines.holds(keys)
    worst, gap = np.zeros(len(labels)), 0.0
    bounds: list[int] = []
    has_free = machines.has_free_vectors()
    for t in range(machines.n_tasks):
        problem = machines.problem(t)
        beta, g = machines.beta[t, :n], -problem.p - machines.f[t, :n]
        most = g[beta < problem.hi].max(initial=-np.inf)
        least = g[beta > problem.lo].min(initial=np.inf)
        side = machines.code[labels, t] * others
        g = side - f[:, t]
        most_of_all = max(most, g[side > 0].max(initial=-np.inf))
        least_of_all = min(least, g[side < 0].min(initial=np.inf))
        gap = max(gap, most_of_all - least_of_all)
        by = np.where(side > 0, g - least_of_all, most_of_all - g)
        worst = np.maximum(worst, np.where(side != 0, by, 0.0))
        if not has_free[t]:
            if float(most_of_all) - float(most) > SAFETY * plan.tol:
                bounds.append(int(np.argmax(np.where(side > 0, g, -np.inf))))
            if float(least) - float(least_of_all) > SAFETY * plan.tol:
                bounds.append(int(np.argmin(np.where(side < 0, g, np.inf))))
    if gap <= plan.tol:
        return np.unique(np.array(bounds, dtype=np.int64)), float(gap)
    order = np.argsort(-worst, kind="stable")[:MOST_VIOLATORS]
    return np.sort(order[worst[order] > plan.tol]), float(gap)


def products_with(machines: HeldMachines, X: Any, n_jobs: int | None) -> NDArray:
    """Return ``K(X, held) @ beta``, shape (n, n_tasks)."""
    n = len(machines)
    rows = np.arange(n)
    columns = [(rows, values) for values in machines.coefficients()]
    weights = Weights(coefficient_matrix(n, columns), [0, n])
    with Threads(n_jobs) as threads:
        return apply(machines.gram.kernel, Operand(X), machines.gram.rows, weights,
                     threads)  # fmt: skip


def _warn(gap: float, plan: Plan) -> None:
    warnings.warn(
        f"OnlineSVC did not converge: KKT gap {gap:.3g} is more than tol={plan.tol:g}. "
        "Scale the data, lower C, raise tol or max_iter, or pass float64 data.",
        ConvergenceWarning,
        stacklevel=5,
    )


def _warn_of_lost_classes(lost: NDArray, plan: Plan) -> None:
    names = ", ".join(repr(name) for name in plan.classes[lost].tolist())
    warnings.warn(
        f"OnlineSVC no longer holds a sample of class {names}, and so forgets what it "
        f"learnt about it: only {plan.limit} samples may be held, for "
        f"{len(plan.classes)} classes. Raise budget or cache_size.",
        UserWarning,
        stacklevel=5,
    )
