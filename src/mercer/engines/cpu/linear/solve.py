"""Which solver a linear machine takes, and the certificate of its solution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.linear_small import Machines, solve_small_machines
from mercer.engines.cpu.linear.curvature import MOST_DIRECT, Products
from mercer.engines.cpu.linear.descent import coordinate_descent
from mercer.engines.cpu.linear.features import Features
from mercer.engines.cpu.linear.newton import (
    AFTER_DESCENT,
    SUM_ERROR,
    first_sigmas,
    newton,
)
from mercer.engines.cpu.linear.problems import LinearProblems
from mercer.engines.cpu.linear.wide import wide_descent

__all__ = ["LinearFound", "Start", "solve_linear"]

# Up to this many features, entries of samples, and multiplications for a step of
# Newton's method, each problem is solved in one compiled call, or all of them in one.
FEW_FEATURES = 64
FEW_ENTRIES = 2**19
SMALL_STEP = 2**24
ONE_CALL = 2**20
# A problem that takes more rounds is left to the solver that shows its progress.
MOST_SMALL_ROUNDS = 200
# With this many samples for each feature, Newton's method begins on some of them.
SAMPLES_PER_FEATURE = 16
# It begins with one of so many samples, and solves that problem roughly.
ONE_OF = 8
ROUGH = 0.02
# Passes over fewer values than this take less time than what a round costs besides.
FEW_VALUES = 300_000
# With this many features and more, coordinate descent visits so many samples for each
# feature before Newton's method begins: squared losses need few of Newton's steps.
MANY_FEATURES = 256
VISITS = 1000
VISITS_IF_SQUARED = 250
# These are at most and at least so many epochs.
MOST_EPOCHS = 200
LEAST_EPOCHS = 3
# From the coefficients of another fit, epochs go on while gaps fall as fast as this.
FAST = 0.3
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
    if start is None and report is None and _is_small(features, problems):
        found = _solve_small(features, problems, tol, max_iter, stop)
        if found is not None:
            return found

    def is_solved(task: Any) -> bool:
        return task.gap <= tol * task.primal

    start = start or Start(None, None, None)
    beta = _clipped(start.beta, problems)
    has_weights_only = start.weights is not None and beta is None
    limit = _n_epochs(features, problems, max_iter, has_weights_only)
    if limit:
        tasks: list[Any]
        if _is_wide(features):
            tasks = wide_descent(
                features, problems, tol, limit, seed, stop, beta, report
            )
        else:
            fall = np.inf if beta is None else FAST
            tasks = coordinate_descent(
                features, problems, is_solved, limit, seed, stop, beta, report, fall
            )
        left = max_iter - max(task.n_iter for task in tasks)
        if not all(task.done for task in tasks) and left > 0 and not stop[0]:
            tasks = _finish(features, problems, is_solved, left, stop, tasks, report)
    else:
        is_tall = (
            features.n >= SAMPLES_PER_FEATURE * features.d
            and features.n_values >= FEW_VALUES
        )
        if start.weights is None and is_tall:
            rough = _rough_start(features, problems, max_iter, stop)
            start = rough._replace(products=start.products)
        tasks = newton(
            features, problems, is_solved, max_iter, stop, start.weights, start.shifts,
            beta, report, start.products,
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


def _is_small(features: Features, problems: LinearProblems) -> bool:
    """Tell whether calls from Python would take a good part of Newton's steps."""
    n, d = features.n, features.d
    return (
        not features.is_sparse
        and d <= FEW_FEATURES
        and n * d <= FEW_ENTRIES
        and n * d * d <= SMALL_STEP
        and not problems.has_fixed_sums
    )


def _solve_small(
    features: Features,
    problems: LinearProblems,
    tol: float,
    max_iter: int,
    stop: NDArray,
) -> LinearFound | None:
    """Solve each problem in one compiled call; return None if one is not solved."""
    k, m = problems.p.shape
    bounds, sigma = first_sigmas(features, problems)
    inverses = np.zeros(k) if problems.has_ridge else 1.0 / sigma
    found = Machines.not_solved(k, features.d, problems.n_shifts, m)
    X = np.ascontiguousarray(features.X, dtype=np.float64)
    most = min(max_iter, MOST_SMALL_ROUNDS)

    def solve(some: slice) -> None:
        p, lo, hi, ridge, row, group, value, _, _ = problems.part(some)
        solve_small_machines(
            X, p, lo, hi, ridge, row, group, value, bounds[some], inverses[some],
            tol, most, stop, found.part(some),
        )  # fmt: skip

    work = features.n * features.d**2
    if work <= ONE_CALL:
        solve(slice(0, k))
    else:
        features.run(solve, [slice(c, c + 1) for c in range(k)], k * work)
    if not found.solved.all():
        return None
    return LinearFound(
        found.weights,
        found.shifts,
        found.beta,
        found.primal,
        np.maximum(found.gap, 0.0),
        found.rounds,
        found.solved,
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


def _is_wide(features: Features) -> bool:
    """Tell whether samples are sparse, with too many features for matrices of them."""
    return features.is_sparse and features.d > MOST_DIRECT


def _n_epochs(
    features: Features, problems: LinearProblems, max_iter: int, has_weights_only: bool
) -> int:
    """Return how many epochs of coordinate descent come before Newton's method.

    On wide sparse samples, coordinate descent is the faster way.  Elsewhere, some
    epochs bring Newton's method close to the solution; they need coefficients, or none
    at all.  Single coordinates cannot keep fixed sums, which an unpenalised intercept
    needs.
    """
    if problems.has_fixed_sums:
        return 0
    if _is_wide(features):
        return min(SLOW, max_iter)
    if has_weights_only or features.d < MANY_FEATURES:
        return 0
    visits = VISITS_IF_SQUARED if problems.has_ridge else VISITS
    epochs = min(MOST_EPOCHS, max_iter // 2, visits * features.d // features.n)
    return epochs if epochs >= LEAST_EPOCHS else 0


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
        trust=AFTER_DESCENT,
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
