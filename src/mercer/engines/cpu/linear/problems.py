"""The problems of one or more linear machines on the same samples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import DualProblem

__all__ = ["LinearProblems", "from_dual", "with_intercept"]


class LinearProblems(NamedTuple):
    """Problems in the form of :mod:`mercer.core.linear_pieces`, a row for each."""

    p: NDArray[np.float64]  #: linear terms, shape (k, m)
    lo: NDArray[np.float64]  #: lower bounds, shape (k, m)
    hi: NDArray[np.float64]  #: upper bounds, infinite for squared losses, (k, m)
    ridge: NDArray[np.float64]  #: 0, or 1 / 2C for squared losses, shape (k, m)
    row: NDArray[np.intp]  #: the sample of each variable, shape (m,)
    group: NDArray[np.intp]  #: the shift of each variable, shape (m,)
    value: float  #: what a shift is multiplied with
    penalty: float  #: 1 if shifts are penalised like weights, otherwise 0
    totals: NDArray[np.float64]  #: fixed sums of the groups, shape (k, n_shifts)

    @property
    def has_ridge(self) -> bool:
        """Whether the losses are squared, and smooth as they are."""
        return bool((self.ridge > 0).all())

    @property
    def n_shifts(self) -> int:
        """The number of intercepts of each problem."""
        return self.totals.shape[1]

    @property
    def has_fixed_sums(self) -> bool:
        """Whether there are shifts without penalty, and so fixed sums of groups."""
        return bool(self.n_shifts and not self.penalty)

    def part(self, chosen: Any) -> LinearProblems:
        """Return some of the problems."""
        return self._replace(
            p=self.p[chosen],
            lo=self.lo[chosen],
            hi=self.hi[chosen],
            ridge=self.ridge[chosen],
            totals=self.totals[chosen],
        )


def from_dual(problem: DualProblem) -> LinearProblems:
    """Return a dual problem of a kernel machine as one through the weights."""
    n_groups = int(problem.group[-1]) + 1
    totals = np.bincount(problem.group, problem.start, n_groups)
    return LinearProblems(
        p=problem.p[None],
        lo=problem.lo[None],
        hi=problem.hi[None],
        ridge=np.zeros((1, len(problem.p))),
        row=problem.row,
        group=problem.group,
        value=-1.0,
        penalty=0.0,
        totals=totals[None].astype(np.float64),
    )


def with_intercept(
    p: NDArray,
    lo: NDArray,
    hi: NDArray,
    ridge: NDArray,
    n: int,
    scaling: float | None,
    is_penalised: bool,
) -> LinearProblems:
    """Return problems on ``n`` samples, with ``scaling=None`` without intercept.

    There may be several variables for each sample, one copy of all samples after
    another.
    """
    k, m = p.shape
    n_shifts = 0 if scaling is None else 1
    return LinearProblems(
        p=p,
        lo=lo,
        hi=hi,
        ridge=ridge,
        row=np.tile(np.arange(n), m // n),
        group=np.zeros(m, dtype=np.intp),
        value=float(scaling or 0.0) if is_penalised else -1.0,
        penalty=1.0 if is_penalised else 0.0,
        totals=np.zeros((k, n_shifts)),
    )
