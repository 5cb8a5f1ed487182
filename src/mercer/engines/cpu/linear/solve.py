"""Which solver a linear machine takes, and the certificate of its solution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.engines.cpu.linear.curvature import MOST_DIRECT, Products
from mercer.engines.cpu.linear.descent import coordinate_descent
from mercer.engines.cpu.linear.features import Features
from mercer.engines.cpu.linear.newton import SUM_ERROR, newton
from mercer.engines.cpu.linear.problems import LinearProblems

__all__ = ["LinearFound", "Start", "solve_linear"]

# With this many samples for each feature, Newton's method begins on some of them.
SAMPLES_PER_FEATURE = 16
# It begins with one of so many samples, and solves that problem roughly.
ONE_OF = 8
ROUGH = 0.02
# Coordinate descent that has not ended after so many epochs leaves the rest to
# Newton's method, whose steps cost more and do not slow down.
SLOW = 200


class Start(NamedTuple):
    """Where a solver begins: weights, shifts and coefficients, each with k rows."""

    weights: Any
    shifts: Any
    beta: NDArray | None
    products: Products | None = None  #: filled by Newton's method, for the next C


class LinearFound(NamedTuple):
    """Solutions of linear problems, a row or a number for each."""

    weights: NDArray[np.float64]  #: shape (k, d)
    shifts: NDArray[np.float64]  #: shape (k, n_shifts)
    beta: NDArray[np.float64]  #: coefficients, shape (k, m)
    objective: NDArray[np.float64]  #: of the primal problems, shape (k,)
    gap: NDArray[np.float64]  #: primal minus dual, shape (k,)
    rounds: NDArray[np.int64]  #: rounds or epochs of each task
    solved: NDArray[np.bool_]  #: which tasks have converged
    hindrance: str = ""  #: what else than a gap keeps a problem from being solved

    @property
    def n_iter(self) -> int:
        """Rounds or epochs of the task with most of them."""
        return int(self.rounds.max())

    @property
    def converged(self) -> bool:
        """Whether all tasks have converged."""
        return bool(self.solved.all())

    def part(self, chosen: Any) -> LinearFound:
        """Return the solutions of some of the problems, each of which is a task."""
        return LinearFound(
            self.weights[chosen],
            self.shifts[chosen],
            self.beta[chosen],
            self.objective[chosen],
            self.gap[chosen],
            self.rounds[chosen],
            self.solved[chosen],
            self.hindrance,
        )


def solve_linear(
    features: Features,
    problems: LinearProblems,
    tol: float,
    max_iter: int,
    seed: int,
    stop: NDArray,
    start: Start | None = None,
    report: Callable[[list[Any]], None] | None = None,
) -> LinearFound:
    """Solve to gaps of at most ``tol`` times the primal objectives.

    ``start`` is where to begin.
    """

    def is_solved(task: Any) -> bool:
        return task.gap <= tol * task.primal

    if _takes_descent(features, problems):
        limit = min(max_iter, SLOW)
        tasks: list[Any] = coordinate_descent(
            features, problems, is_solved, limit, seed, stop,
            None if start is None else _clipped(start.beta, problems), report,
        )  # fmt: skip
        left = max_iter - max(task.n_iter for task in tasks)
        if not all(task.done for task in tasks) and left > 0 and not stop[0]:
            tasks = _finish(features, problems, is_solved, left, stop, tasks, report)
    else:
        start = start or Start(None, None, None)
        is_tall = features.n >= SAMPLES_PER_FEATURE * features.d
        if start.weights is None and is_tall:
            rough = _rough_start(features, problems, max_iter, stop)
            start = rough._replace(products=start.products)
        tasks = newton(
            features, problems, is_solved, max_iter, stop, start.weights, start.shifts,
            _clipped(start.beta, problems), report, start.products,
        )  # fmt: skip
    return LinearFound(
        np.array([task.w for task in tasks]),
        np.array([task.u for task in tasks]),
        np.array([task.beta for task in tasks]),
        np.array([task.primal for task in tasks]),
        np.array([max(task.gap, 0.0) for task in tasks]),
        np.array([task.n_iter for task in tasks]),
        np.array([task.done for task in tasks]),
        _hindrance(tasks),
    )


def _hindrance(tasks: list[Any]) -> str:
    """Say what else than a gap keeps a problem from being solved, if anything."""
    if any(getattr(task, "seems_done", False) and not task.done for task in tasks):
        return (
            "the gap seems small enough, but no round was left to confirm it on "
            "decision values that are computed afresh"
        )
    off = max(getattr(task, "off", 0.0) for task in tasks)
    if off <= SUM_ERROR:
        return ""
    return (
        "the coefficients of a problem do not add up to what an intercept without "
        f"penalty requires: the sum is off by {off:.2g} of their mass"
    )


def _takes_descent(features: Features, problems: LinearProblems) -> bool:
    """Tell whether coordinate descent is the faster way.

    Single coordinates cannot keep fixed sums, which an unpenalised intercept needs.
    """
    is_free = problems.penalty or not problems.n_shifts
    return bool(features.is_sparse and features.d > MOST_DIRECT and is_free)


def _finish(
    features: Features,
    problems: LinearProblems,
    rule: Callable[[Any], bool],
    max_iter: int,
    stop: NDArray,
    tasks: list[Any],
    report: Callable[[list[Any]], None] | None,
) -> list[Any]:
    """Let Newton's method solve what coordinate descent has left."""
    rest = [task for task in tasks if not task.done]
    chosen = [task.number for task in rest]
    found = newton(
        features,
        problems.part(chosen),
        rule,
        max_iter,
        stop,
        np.array([task.w for task in rest]),
        np.array([task.u for task in rest]),
        np.array([task.beta for task in rest]),
        report,
    )
    result = list(tasks)
    for before, task in zip(rest, found, strict=True):
        task.n_iter += before.n_iter
        result[before.number] = task
    return result


def _clipped(beta: NDArray | None, problems: LinearProblems) -> NDArray | None:
    """Return coefficients of another fit, within the bounds of these problems."""
    if beta is None or beta.shape != problems.p.shape:
        return None
    return np.clip(beta, problems.lo, problems.hi)


def _rough_start(
    features: Features, problems: LinearProblems, max_iter: int, stop: NDArray
) -> Start:
    """Return rough solutions of the problems on some of the samples."""
    rows = np.arange(0, features.n, ONE_OF)
    copies = problems.p.shape[1] // features.n
    chosen = np.concatenate([rows + copy * features.n for copy in range(copies)])
    some = problems._replace(
        p=problems.p[:, chosen],
        lo=ONE_OF * problems.lo[:, chosen],
        hi=ONE_OF * problems.hi[:, chosen],
        ridge=problems.ridge[:, chosen] / ONE_OF,
        row=np.tile(np.arange(len(rows)), copies),
        group=problems.group[chosen],
    )
    part = Features(features.X[rows], features.run_in_threads)
    tasks = newton(
        part, some, lambda task: task.gap <= ROUGH * task.primal, max_iter, stop
    )
    return Start(
        np.array([task.w for task in tasks]), np.array([task.u for task in tasks]), None
    )
