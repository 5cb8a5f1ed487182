"""How held machines learn: start from a batch, take samples, solve to the optimum.

Learning proceeds in steps.  ``take_samples`` and ``finish_over`` yield the machines
after each step as a fork, which the caller keeps and settles before it asks for the
next step.  If a step fails, the machines before it have not changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mercer.core.tiles import ranges
from mercer.engines.cpu.held import HeldGram, sample_keys
from mercer.engines.cpu.solve import MOST_STEPS
from mercer.kernels.base import Kernel
from mercer.machines.online.held_machines import HeldMachines, PassSettings
from mercer.machines.online.lasvm import IN_TURN, NEAREST, WORST
from mercer.runtime.user_warnings import warn_user

__all__ = [
    "CHOICES",
    "DistinctSamples",
    "LearningSettings",
    "finish_over",
    "start_from",
    "take_samples",
]

CHOICES = {"stream": IN_TURN, "random": IN_TURN, "active": NEAREST, "gradient": WORST}
# Largest number of violators that are added at once while finishing over a data set.
MOST_VIOLATORS = 2000
# The held samples are solved to this fraction of the tolerance, so that rounding errors
# in the kernel values of other samples do not matter.
SAFETY = 0.5


class DistinctSamples(NamedTuple):
    """A data set in which all samples differ."""

    X: Any
    labels: NDArray
    cost: NDArray  #: the sum of the costs of equal samples
    keys: list[bytes]

    @classmethod
    def gather(cls, X: Any, labels: NDArray, cost: NDArray) -> DistinctSamples:
        """Join equal samples, and leave out samples without cost."""
        place: dict[bytes, int] = {}
        index = [place.setdefault(key, len(place)) for key in sample_keys(X, labels)]
        total = np.bincount(index, cost, len(place))
        first = np.unique(index, return_index=True)[1]
        wanted = np.flatnonzero(total > 0)
        keys = list(place)
        if len(wanted) < X.shape[0]:
            X, labels = X[first[wanted]], labels[first[wanted]]
        return cls(X, labels, total[wanted], [keys[k] for k in wanted])


class LearningSettings(NamedTuple):
    """How an online machine learns."""

    holds_all: bool  #: whether all samples are held and kept optimal
    tol: float
    max_iter: int
    n_reprocess: int
    selection: str
    n_candidates: int
    fraction: float
    adds_up: bool  #: whether the cost of a repeated sample is added to its cost
    limit: int  #: largest number of samples to hold
    side: int  #: rows of the largest matrix of kernel values that memory allows
    chunk: int  #: number of samples whose kernel values are computed at once
    n_jobs: int | None
    classes: NDArray  #: the names of the classes

    @classmethod
    def of(cls, model: Any, most: int, chunk: int) -> LearningSettings:
        """Return the settings of an OnlineSVC whose memory allows ``most`` samples."""
        return cls(
            holds_all=model.method == "smo",
            tol=model.tol,
            max_iter=MOST_STEPS if model.max_iter < 0 else model.max_iter,
            n_reprocess=model.n_reprocess,
            selection=model.selection,
            n_candidates=model.n_candidates,
            fraction=model.fraction,
            adds_up=model.duplicates == "add",
            limit=most if model.budget is None else min(model.budget, most),
            side=most + chunk,
            chunk=chunk,
            n_jobs=model.n_jobs,
            classes=model.classes_,
        )


def start_from(
    kernel: Kernel,
    X: Any,
    labels: NDArray,
    cost: NDArray,
    code: NDArray,
    beta: NDArray,
    settings: LearningSettings,
    is_optimal: bool,
) -> HeldMachines:
    """Hold the solution of a batch solver, ``beta`` of shape (n_tasks, n).

    If the solution is optimal and a machine has no free support vector, the samples
    that bound the intercept are held as well.  If there are more support vectors than
    may be held, the samples are learnt as a stream instead.
    """
    weight = np.abs(beta).sum(axis=0)
    if np.count_nonzero(weight) > settings.limit:
        machines = HeldMachines.empty(kernel, X, code, settings.side)
        settings = settings._replace(selection="stream")
        rng = np.random.default_rng(0)
        steps = take_samples(machines, X, labels, cost, settings, rng)
        for machines, _ in steps:
            machines.settle()
        return machines
    # Support vectors come first, and then the latest of the other samples.
    order = np.lexsort((-np.arange(len(weight)), weight == 0))
    n_wanted = int((cost > 0).sum()) if settings.holds_all else np.count_nonzero(weight)
    if n_wanted == 0:
        return HeldMachines.empty(kernel, X, code, settings.side)
    held = order[: min(n_wanted, settings.limit)]
    # Samples that are equal to a held sample are included: they take no place, and the
    # intercept depends on their bounds.
    keys = np.array(list(sample_keys(X, labels)), dtype="V16")
    place = np.unique(keys, return_inverse=True)[1]
    held = np.flatnonzero(np.isin(place, place[held]) & (cost > 0))
    machines = HeldMachines.of_batch(
        partial(HeldGram, kernel, most=settings.side),
        X[held],
        labels[held],
        cost[held],
        code,
        beta[:, held],
    )
    n = len(machines)
    members = machines.side if settings.holds_all else machines.beta
    machines.active[:, :n] = members[:, :n] != 0
    if is_optimal and not machines.has_free_vectors().all():
        samples = DistinctSamples.gather(X, labels, cost)
        steps_to_optimum = finish_over(machines, samples, settings)
        for machines in steps_to_optimum:
            machines.settle()
    return machines


def take_samples(
    machines: HeldMachines,
    X: Any,
    labels: NDArray,
    cost: NDArray,
    settings: LearningSettings,
    rng: np.random.Generator,
) -> Iterator[tuple[HeldMachines, int]]:
    """Learn from samples; yield the machines and the length of each chunk after it."""
    order = np.flatnonzero(cost > 0)
    if settings.selection == "random":
        order = rng.permutation(order)[: int(np.ceil(settings.fraction * len(order)))]
    for first in range(0, len(order), settings.chunk):
        part = order[first : first + settings.chunk]
        whole = len(part) == X.shape[0]
        machines = machines.fork()
        slots = machines.add(
            X if whole and (np.diff(part) == 1).all() else X[part],
            labels[part],
            cost[part],
            settings.adds_up,
        )
        gap = 0.0
        if settings.holds_all:
            found = machines.solve(settings.tol, settings.max_iter, settings.n_jobs)
            gap = max((o.gap for o in found), default=0.0)
            leaves = np.zeros(len(machines), dtype=bool)
        else:
            how = _pass_settings(settings, len(part))
            machines.learn(slots, how, _seeds(machines, rng), settings.n_jobs)
            leaves = machines.unused()
        surplus = machines.surplus(settings.limit, leaves)
        machines.release(surplus, settings.tol)
        leaves[surplus] = True
        known = np.unique(machines.label[: len(machines)])
        machines.remove(np.flatnonzero(leaves))
        lost = np.setdiff1d(known, machines.label[: len(machines)])
        yield machines, len(part)
        if gap > settings.tol:
            _warn(gap, settings)
        if len(lost):
            _warn_of_lost_classes(lost, settings)


def _pass_settings(settings: LearningSettings, n: int) -> PassSettings:
    choice = CHOICES[settings.selection]
    count = n if choice == IN_TURN else int(np.ceil(settings.fraction * n))
    return PassSettings(
        count, settings.tol, settings.n_reprocess, choice, settings.n_candidates
    )


def _seeds(machines: HeldMachines, rng: np.random.Generator) -> NDArray[np.uint64]:
    return rng.integers(2**63, size=machines.n_tasks, dtype=np.uint64)


def finish_over(
    machines: HeldMachines, samples: DistinctSamples | None, settings: LearningSettings
) -> Iterator[HeldMachines]:
    """Solve over the held samples or, if given, over ``samples`` until none violates.

    Yield the machines after each step.
    """
    if samples is not None:
        machines = machines.fork()
        _adopt_costs(machines, samples)
        yield machines
    before = np.inf
    while True:
        machines = machines.fork()
        machines.refresh()
        found = machines.solve(
            SAFETY * settings.tol, settings.max_iter, settings.n_jobs
        )
        gap = max((o.gap for o in found), default=0.0)
        missing = np.zeros(0, dtype=np.int64)
        if samples is not None and gap <= settings.tol:
            missing, gap = _missing(machines, samples, settings)
        objective = sum(c.objective for c in machines.certificates())
        if not settings.holds_all:
            machines.let_go()
            machines.remove(np.flatnonzero(machines.unused()))
        yield machines
        # If violating samples do not decrease the objective, they violate by rounding.
        if samples is None or not len(missing) or not objective < before:
            break
        before = objective
        if len(machines) + len(missing) > settings.limit:
            if gap <= settings.tol:
                break
            raise MemoryError(
                f"The optimum needs more than the {settings.limit} samples that may be "
                "held. Raise budget or cache_size, or finish over the held samples "
                "only: finish()."
            )
        machines = machines.fork()
        for first in range(0, len(missing), settings.chunk):
            part = missing[first : first + settings.chunk]
            machines.add(
                samples.X[part], samples.labels[part], samples.cost[part], False
            )
        yield machines
    if gap > settings.tol:
        _warn(gap, settings)


def _adopt_costs(machines: HeldMachines, samples: DistinctSamples) -> None:
    """Give held samples their costs in a data set, and remove samples not in it."""
    cost_of = dict(zip(samples.keys, samples.cost, strict=True))
    cost = np.array([cost_of.get(key, 0.0) for key in machines.keys()])
    machines.set_costs(cost)
    machines.remove(np.flatnonzero(cost == 0))


def _missing(
    machines: HeldMachines, samples: DistinctSamples, settings: LearningSettings
) -> tuple[NDArray, float]:
    """Return the samples that must be held as well, and the largest gap.

    These are the samples that violate most against the held samples or, if no sample
    violates, those that bound the intercept of a machine without free support vectors.
    """
    _, labels, _, keys = samples
    parts = ranges(0, len(labels), machines.gram.strip, even=False)
    f = np.concatenate(
        [machines.products(samples.X[part], settings.n_jobs) for part in parts]
        or [np.zeros((0, machines.n_tasks))]
    )
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
            if float(most_of_all) - float(most) > SAFETY * settings.tol:
                bounds.append(int(np.argmax(np.where(side > 0, g, -np.inf))))
            if float(least) - float(least_of_all) > SAFETY * settings.tol:
                bounds.append(int(np.argmin(np.where(side < 0, g, np.inf))))
    if gap <= settings.tol:
        return np.unique(np.array(bounds, dtype=np.int64)), float(gap)
    order = np.argsort(-worst, kind="stable")[:MOST_VIOLATORS]
    return np.sort(order[worst[order] > settings.tol]), float(gap)


def _warn(gap: float, settings: LearningSettings) -> None:
    warn_user(
        f"OnlineSVC did not converge: KKT gap {gap:.3g} is more than "
        f"tol={settings.tol:g}. Scale the data, lower C, raise tol or max_iter, or "
        "pass float64 data.",
        ConvergenceWarning,
    )


def _warn_of_lost_classes(lost: NDArray, settings: LearningSettings) -> None:
    names = ", ".join(repr(name) for name in settings.classes[lost].tolist())
    warn_user(
        f"OnlineSVC has lost what it learnt about class {names}, because it no longer "
        f"holds a sample of it: only {settings.limit} samples may be held for "
        f"{len(settings.classes)} classes. Raise budget or cache_size.",
    )
