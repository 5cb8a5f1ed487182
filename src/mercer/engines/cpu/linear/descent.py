"""Coordinate descent: problems in lanes, lanes in threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.core.linear_lanes import descend
from mercer.core.linear_pieces import respond
from mercer.engines.cpu.linear.features import (
    Features,
    aligned_zeros,
    lane_groups,
    lanes,
)
from mercer.engines.cpu.linear.problems import LinearProblems

__all__ = ["DescentTask", "coordinate_descent"]

# The first bound of the projected gradient, and its fall between two measurements.
FIRST_EPS = 0.1
FALL = 0.2
# Epochs between two measurements of the gap.
AT_A_TIME = 20


@dataclass(eq=False)
class DescentTask:
    """One problem while it is being solved."""

    number: int
    beta: NDArray
    w: NDArray
    u: NDArray
    primal: float = np.inf
    dual: float = -np.inf
    n_iter: int = 0
    done: bool = False

    @property
    def gap(self) -> float:
        """Primal minus dual objective."""
        return self.primal - self.dual


def coordinate_descent(
    features: Features,
    problems: LinearProblems,
    rule: Callable[[DescentTask], bool],
    max_iter: int,
    seed: int,
    stop: NDArray,
    beta: NDArray | None = None,
    report: Callable[[list[DescentTask]], None] | None = None,
    fall: float = np.inf,
) -> list[DescentTask]:
    """Solve all problems in up to ``max_iter`` epochs; shifts must be penalised.

    Epochs go on as long as each measurement finds the largest relative gap below
    ``fall`` times what it was.
    """
    k, m = problems.p.shape
    start = np.zeros((k, m)) if beta is None else beta
    tasks = [
        DescentTask(c, start[c].copy(), np.empty(0), np.zeros(problems.n_shifts))
        for c in range(k)
    ]
    norms = features.squared_norms()
    if problems.n_shifts:
        norms = norms + problems.value**2
    eps = np.full(k, FIRST_EPS)
    before = np.inf
    while True:
        active = [task for task in tasks if not task.done]
        _measure(features, problems, active)
        for task in active:
            task.done = rule(task)
        if report is not None:
            report(tasks)
        active = [task for task in active if not task.done]
        if not active or stop[0]:
            return tasks
        left = max_iter - max(task.n_iter for task in active)
        worst = max(task.gap / task.primal for task in active)
        if left <= 0 or worst > fall * before:
            return tasks
        before = worst

        def solve(some: list[DescentTask], left: int = left) -> None:
            _epochs(features, problems, some, norms, eps, left, seed, stop)

        features.run(solve, lane_groups(active), np.inf)


def _epochs(
    features: Features,
    problems: LinearProblems,
    tasks: list[DescentTask],
    norms: NDArray,
    eps: NDArray,
    left: int,
    seed: int,
    stop: NDArray,
) -> None:
    """Make epochs for problems side by side."""
    chosen = [task.number for task in tasks]
    k = len(chosen)
    w = lanes(np.array([task.w for task in tasks]))
    width = w.shape[1]
    # Lanes that are not used have bounds of 0, and never move.
    given = (problems.p, problems.lo, problems.hi, problems.ridge)
    m = problems.p.shape[1]
    terms = aligned_zeros(m, 5, width)
    for place, values in enumerate(given):
        terms[:, place, :k] = values[chosen].T
    terms[:, 4, :k] = np.array([task.beta for task in tasks]).T
    u = np.zeros(width)
    if problems.n_shifts:
        u[:k] = [task.u[0] for task in tasks]
    value = problems.value if problems.n_shifts else 0.0
    state = np.array([seed + 1000003 * chosen[0] + tasks[0].n_iter], dtype=np.uint64)
    bound = eps[chosen].min()
    n_epochs, worst = descend(
        features.rows(), norms, w, u, value, terms, problems.row, bound,
        min(AT_A_TIME, left), state, stop,
    )  # fmt: skip
    for i, task in enumerate(tasks):
        task.beta = terms[:, 4, i].copy()
        task.n_iter += n_epochs
    if worst <= bound:
        eps[chosen] = FALL * bound


def _measure(
    features: Features, problems: LinearProblems, tasks: list[DescentTask]
) -> None:
    """Compute weights anew from the coefficients, and the gap of each problem."""
    p, lo, hi, ridge, row, group, value, _, _ = problems
    by_row = np.array([np.bincount(row, task.beta, features.n) for task in tasks])
    weights = features.combine(by_row)
    scores = features.scores(weights)
    free = np.empty(p.shape[1], dtype=np.bool_)
    best = np.empty(p.shape[1])
    for i, task in enumerate(tasks):
        c = task.number
        task.w = weights[i]
        sums = np.bincount(group, task.beta, problems.n_shifts)
        task.u = value * sums[: problems.n_shifts]
        norm = 0.5 * (task.w @ task.w + task.u @ task.u)
        loss, _ = respond(
            scores[i], task.u, value, p[c], lo[c], hi[c], ridge[c], task.beta, 1.0,
            row, group, best, free,
        )  # fmt: skip
        rest = p[c] @ task.beta + 0.5 * (ridge[c] * task.beta) @ task.beta
        task.primal = norm + loss
        task.dual = -norm - rest
