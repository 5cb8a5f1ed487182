"""Coordinate descent on wide sparse samples: a problem at a time, each in a thread.

The time goes into reading the samples, epoch after epoch.  So the epochs read *brief*
samples: single precision, and columns in two bytes if there are few enough.  Objectives
are always measured on the samples as they are given, so that rounding cannot make a
solution look better than it is.  It is small enough for most tolerances; a problem that
it keeps from being solved goes on with the given samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.linear_lanes import Rows
from mercer.core.linear_wide import (
    BETA,
    HI,
    LO,
    NORM,
    RIDGE,
    P,
    descend_on,
    look_at_all,
    sum_up,
)
from mercer.engines.cpu.linear.descent import DescentTask
from mercer.engines.cpu.linear.features import Features, aligned_zeros
from mercer.engines.cpu.linear.problems import LinearProblems

__all__ = ["wide_descent"]

# The first bound of the projected gradient.
FIRST_EPS = 0.1
# Rounds aim at this part of the gap that is asked for, and lower the bound by this
# factor at most: samples that are set aside must not be forgotten for long.
AIM = 0.5
LARGEST_FALL = 0.02
# Most epochs of a round.
AT_A_TIME = 20
# Numbers beyond this are not rounded to single precision, where they would overflow.
LARGEST_BRIEF = 1e30
# The gap of a round on brief samples falls at least to this part of what it was, or
# rounding may be what keeps it from falling.
LEAST_FALL = 0.5


class _Stored(NamedTuple):
    """Samples in the two forms that solvers read."""

    given: Rows  #: with the values as they are given
    brief: Rows  #: with values rounded to single precision

    @classmethod
    def from_features(cls, features: Features) -> _Stored:
        """Return both forms; they share what they can."""
        given = features.rows()
        if features.d <= np.iinfo(np.uint16).max + 1:
            given = given._replace(indices=given.indices.astype(np.uint16))
        data = given.data
        if not len(data) or max(data.max(), -data.min()) > LARGEST_BRIEF:
            return cls(given, given)
        return cls(given, given._replace(data=data.astype(np.float32, copy=False)))


class _Wide:
    """One problem while it is being solved."""

    def __init__(
        self,
        features: Features,
        stored: _Stored,
        problems: LinearProblems,
        norms: NDArray,
        number: int,
        beta: NDArray | None,
        seed: int,
    ):
        self.given = stored.given
        self.rows = stored.brief
        self.needs_given = False  #: whether rounding keeps the gap from falling
        n, m = features.n, problems.p.shape[1]
        self.value = problems.value if problems.n_shifts else 0.0
        self.is_squared = problems.has_ridge
        # Eight numbers fill a cache line.
        self.terms = aligned_zeros(m // n, n, 8)
        c = number
        self.terms[:, :, P] = problems.p[c].reshape(-1, n)
        self.terms[:, :, LO] = problems.lo[c].reshape(-1, n)
        self.terms[:, :, HI] = problems.hi[c].reshape(-1, n)
        self.terms[:, :, RIDGE] = problems.ridge[c].reshape(-1, n)
        self.terms[:, :, NORM] = norms
        self.w, self.u = np.zeros(features.d), np.zeros(1)
        if beta is not None:
            self.terms[:, :, BETA] = beta.reshape(-1, n)
            sum_up(self.given, self.value, self.terms, self.w, self.u)
        self.active = np.empty(n, dtype=np.int64)
        self.count = 0
        self.eps, self.worst = FIRST_EPS, np.inf
        self.seed = seed + 1000003 * number
        shifts = self.u[: problems.n_shifts]
        self.task = DescentTask(number, np.empty(0), self.w, shifts)

    def look(self, margin: float, tol: float) -> None:
        """Measure the gap, and choose the active samples of the next round."""
        task = self.task
        task.primal, task.dual, self.count = look_at_all(
            self.given, self.w, self.u, self.value, self.terms, margin, self.active
        )
        task.done = task.gap <= tol * task.primal
        if self.worst <= self.eps and task.gap > 0.0:
            # Gaps of squared losses fall with the square of the gradient.
            fall = AIM * tol * task.primal / task.gap
            fall = np.sqrt(fall) if self.is_squared else fall
            self.eps = self.worst * min(max(fall, LARGEST_FALL), AIM)

    def improve(self, limit: int, tol: float, stop: NDArray) -> None:
        """Make a round of at most ``limit`` epochs."""
        task = self.task
        before = task.gap
        if self.needs_given and self.rows is not self.given:
            self.rows = self.given
            sum_up(self.given, self.value, self.terms, self.w, self.u)
        state = np.array([self.seed + task.n_iter], dtype=np.uint64)
        n_epochs, self.worst = descend_on(
            self.rows, self.w, self.u, self.value, self.terms, self.active, self.count,
            self.eps, min(AT_A_TIME, limit), state, stop,
        )  # fmt: skip
        task.n_iter += n_epochs
        self.look(self.worst, tol)
        self.needs_given |= task.gap > LEAST_FALL * before

    def confirm(self, tol: float) -> None:
        """Measure the dual objective without the rounding errors of all the steps.

        The primal objective is that of the weights as they are, whatever led to them.
        If the gap turns out to be too large, epochs that follow read the given samples.
        """
        task = self.task
        task.beta = self.terms[:, :, BETA].ravel()
        w, u = np.empty_like(self.w), np.empty(1)
        sum_up(self.given, self.value, self.terms, w, u)
        kept = self.w @ self.w + self.u @ self.u
        task.dual += 0.5 * float(kept - w @ w - u @ u)
        task.done = task.gap <= tol * task.primal
        self.needs_given |= not task.done


def wide_descent(
    features: Features,
    problems: LinearProblems,
    tol: float,
    max_iter: int,
    seed: int,
    stop: NDArray,
    beta: NDArray | None = None,
    report: Callable[[list[DescentTask]], None] | None = None,
) -> list[DescentTask]:
    """Solve all problems in up to ``max_iter`` epochs; shifts must be penalised.

    Each problem is a job of its own, from the first round to the last.  Only if there
    are reports do the problems wait for each other after each round, which changes
    nothing else.
    """
    stored = _Stored.from_features(features)
    norms = features.squared_norms()
    if problems.n_shifts:
        norms = norms + problems.value**2
    k = len(problems.p)
    found: list[_Wide] = [None] * k  # type: ignore[list-item]

    def begin(c: int) -> None:
        start = None if beta is None else beta[c]
        found[c] = _Wide(features, stored, problems, norms, c, start, seed)
        found[c].look(np.inf, tol)

    def goes_on(c: int) -> bool:
        task = found[c].task
        return not (task.done or stop[0]) and task.n_iter < max_iter

    def make_round(c: int) -> None:
        one = found[c]
        if goes_on(c):
            one.improve(max_iter - one.task.n_iter, tol, stop)
        if not goes_on(c):
            one.confirm(tol)

    def make_all_rounds(c: int) -> None:
        begin(c)
        while True:
            make_round(c)
            if not goes_on(c):
                return

    if report is None:
        features.run(make_all_rounds, range(k), np.inf)
        return [one.task for one in found]
    features.run(begin, range(k), np.inf)
    tasks = [one.task for one in found]
    todo = list(range(k))
    while todo:
        report(tasks)
        features.run(make_round, todo, np.inf)
        todo = [c for c in todo if goes_on(c)]
    report(tasks)
    return tasks
