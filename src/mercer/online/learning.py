"""What is done with held machines: start from a batch, take samples in, finish."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mercer.coefficients import Weights, coefficient_matrix
from mercer.core.lasvm import IN_TURN, NEAREST, WORST
from mercer.gram import apply
from mercer.kernels.base import Kernel
from mercer.kernels.operand import Operand
from mercer.online.members import HeldMachines, Lesson
from mercer.store import HeldGram, sample_keys
from mercer.threads import Threads

__all__ = [
    "CHOICES",
    "Plan",
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

Samples = tuple[Any, NDArray, NDArray]


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
    chunk: int  #: samples whose kernel values are computed at once
    n_jobs: int | None


def start_from(
    kernel: Kernel,
    X: Any,
    labels: NDArray,
    cost: NDArray,
    code: NDArray,
    beta: NDArray,
    plan: Plan,
) -> HeldMachines:
    """Hold what a batch solver has found, ``beta`` of shape (n_tasks, n).

    If there are more support vectors than may be held, the samples are learnt from as
    a stream instead.
    """
    weight = np.abs(beta).sum(axis=0)
    most = plan.limit + plan.chunk
    if np.count_nonzero(weight) > plan.limit:
        machines = HeldMachines.empty(kernel, X, code, most)
        plan = plan._replace(selection="stream")
        take_samples(machines, X, labels, cost, plan, np.random.default_rng(0))
        return machines
    # Support vectors first, and of the others those that came last.
    order = np.lexsort((-np.arange(len(weight)), weight == 0))
    n_wanted = int((cost > 0).sum()) if plan.holds_all else np.count_nonzero(weight)
    if n_wanted == 0:
        return HeldMachines.empty(kernel, X, code, most)
    held = order[: min(n_wanted, plan.limit)]
    # With what is the same as one of them: it takes no place, and it has room that the
    # intercept depends on.
    keys = np.array(list(sample_keys(X, labels)), dtype="V16")
    place = np.unique(keys, return_inverse=True)[1]
    held = np.flatnonzero(np.isin(place, place[held]) & (cost > 0))
    machines = HeldMachines.of_batch(
        partial(HeldGram, kernel, most=most, n_jobs=plan.n_jobs),
        X[held],
        labels[held],
        cost[held],
        code,
        beta[:, held],
    )
    n = len(machines)
    members = machines.side if plan.holds_all else machines.beta
    machines.active[:, :n] = members[:, :n] != 0
    return machines


def take_samples(
    machines: HeldMachines,
    X: Any,
    labels: NDArray,
    cost: NDArray,
    plan: Plan,
    rng: np.random.Generator,
) -> None:
    """Learn from samples, chunk by chunk."""
    order = np.flatnonzero(cost > 0)
    if plan.selection == "random":
        order = rng.permutation(order)[: int(np.ceil(plan.fraction * len(order)))]
    for first in range(0, len(order), plan.chunk):
        part = order[first : first + plan.chunk]
        whole = len(part) == X.shape[0]
        slots = machines.add(
            X if whole and (np.diff(part) == 1).all() else X[part],
            labels[part],
            cost[part],
            plan.adds_up,
        )
        if plan.holds_all:
            found = machines.solve(plan.tol, plan.max_iter, plan.n_jobs)
            if any(o.gap > plan.tol for o in found):
                _warn(max(o.gap for o in found), plan)
        else:
            machines.learn(slots, _lesson(plan, len(part)), _seeds(machines, rng),
                           plan.n_jobs)  # fmt: skip
            machines.sweep()
        machines.shrink_to(plan.limit, plan.tol)


def _lesson(plan: Plan, n: int) -> Lesson:
    choice = CHOICES[plan.selection]
    count = n if choice == IN_TURN else int(np.ceil(plan.fraction * n))
    return Lesson(count, plan.tol, plan.n_reprocess, choice, plan.n_candidates)


def _seeds(machines: HeldMachines, rng: np.random.Generator) -> NDArray[np.uint64]:
    return rng.integers(2**63, size=machines.n_tasks, dtype=np.uint64)


def finish_over(machines: HeldMachines, samples: Samples | None, plan: Plan) -> None:
    """Solve over the held samples and, if given, over others until none violates."""
    gap = 0.0
    keys = [] if samples is None else list(sample_keys(samples[0], samples[1]))
    while True:
        machines.refresh()
        found = machines.solve(SAFETY * plan.tol, plan.max_iter, plan.n_jobs)
        gap = max((o.gap for o in found), default=0.0)
        if samples is None or gap > plan.tol:
            break
        violators, gap = _violators(machines, samples, keys, plan)
        if gap <= plan.tol:
            break
        if not plan.holds_all:
            machines.let_go()
            machines.sweep()
        if len(machines) + len(violators) > plan.limit:
            raise MemoryError(
                f"The optimum needs more than the {plan.limit} samples that may be "
                "held. Raise budget or cache_size, or finish over the held samples "
                "only: finish()."
            )
        X, labels, cost = samples
        n = len(machines)
        slots = machines.add(X[violators], labels[violators], cost[violators], False)
        if slots.max(initial=-1) < n:  # rounding: all that violate are held
            break
    if not plan.holds_all:
        machines.let_go()
        machines.sweep()
    if gap > plan.tol:
        _warn(gap, plan)


def _violators(
    machines: HeldMachines, samples: Samples, keys: list[bytes], plan: Plan
) -> tuple[NDArray, float]:
    """Return which samples violate most against the held ones, and the largest gap."""
    X, labels, cost = samples
    f = products_with(machines, X, plan.n_jobs)
    n = len(machines)
    # Those that are held count as what they are there.
    others = (cost > 0) & ~machines.holds(keys)
    worst, gap = np.zeros(len(labels)), 0.0
    for t in range(machines.n_tasks):
        problem = machines.problem(t)
        beta, g = machines.beta[t, :n], -problem.p - machines.f[t, :n]
        most = g[beta < problem.hi].max(initial=-np.inf)
        least = g[beta > problem.lo].min(initial=np.inf)
        side = machines.code[labels, t] * others
        g = side - f[:, t]
        most_of_all = max(most, g[side > 0].max(initial=-np.inf))
        least_of_all = min(least, g[side < 0].min(initial=np.inf))
        if most_of_all - least_of_all > gap:
            gap = most_of_all - least_of_all
        by = np.where(side > 0, g - least_of_all, most_of_all - g)
        worst = np.maximum(worst, np.where(side != 0, by, 0.0))
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
        stacklevel=4,
    )
