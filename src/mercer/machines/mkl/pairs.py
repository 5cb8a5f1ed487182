r"""SMO for :math:`\ell_p`-norm multiple kernel learning, on working sets.

Every machine keeps :math:`f_k = K_k \beta` for each base kernel.  In a round, each
machine in turn picks the variables that violate most at the current weights, makes
exact pair steps on them (:mod:`mercer.core.mkl`), which also move the weights, and
updates its products.  This only needs the matrices of a working set, which may be in
memory or computed.

Close to p = 1 the weights react strongly to small steps.  Problems with larger p are
therefore solved first, loosely, and each is the start of the next.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.core.choice import choose_set, room_for
from mercer.core.mkl import minimise_shared_pairs
from mercer.core.problem import Solution, certify
from mercer.machines.mkl.grams import Products, Solved
from mercer.machines.mkl.joint_problem import SAFETY, JointProblem, JointSolution, Round

__all__ = ["minimise"]

# Bytes for the matrices of a working set, which should stay in the processor's cache.
SET_BYTES = 24 * 2**20
SMALLEST_SET, LARGEST_SET = 128, 1024
# A working set is solved to this fraction of the largest violation of all variables.
INNER_TOLERANCE = 0.1
# Problems with p below this are solved in stages, which begin here and halve p - 1.
DIRECT_FROM = 1.4
# Relative gap at the end of each stage except the last.
STAGE_TOLERANCE = 0.05


class _Machine:
    """One machine: its coefficients and its products with all base kernels."""

    def __init__(self, problem: JointProblem, t: int, beta: NDArray):
        self.task = problem.tasks[t]
        self.problem = self.task.problem
        self.rows = problem.rows[t]
        self.beta = self.task.beta = beta.copy()
        self.F = np.empty(0)
        self.set = np.flatnonzero((beta > self.problem.lo) & (beta < self.problem.hi))
        self.n_iter = 0
        self.gap = np.inf
        self.done = False
        self.all: NDArray | None = None  #: the matrices, if all rows fit into one set

    def f(self, weights: NDArray) -> NDArray:
        """Return the products with the weighted sum, by row of the machine."""
        return weights @ self.F

    def s(self) -> NDArray:
        """Return the contribution of this machine to s."""
        B = np.bincount(self.problem.row, self.beta, len(self.rows))
        return self.F @ B

    def solution(self, weights: NDArray, error: float) -> Solution:
        """Return the current solution with its certificate."""
        f = self.f(weights)
        found = certify(self.problem, self.beta, f)
        self.gap = found.kkt_gap
        return Solution(
            self.beta.copy(), f, *found[:4], self.n_iter, False, found[4], error
        )


def minimise(
    problem: JointProblem,
    max_iter: int,
    weights: NDArray,
    before: Round | None = None,
) -> JointSolution:
    """Solve the problem for p > 1; ``max_iter`` limits the rounds.

    The iteration starts from ``weights``, or continues from ``before`` if it is given.
    """
    # An iteration that continues has gone through the stages of larger p already.
    stage = DIRECT_FROM if before is None else 1.0
    if before is None:
        before = problem.solve(weights)
        if problem.is_over(max_iter):
            return problem.found(before)
    machines = [_Machine(problem, t, s.beta) for t, s in enumerate(before.solutions)]
    _refresh(problem, machines, before.F)
    target = problem.ball
    while target.p < stage and not problem.is_over(max_iter):
        problem.ball = target._replace(p=stage)
        _run(problem, machines, max(problem.tol, STAGE_TOLERANCE), max_iter)
        stage = 1.0 + 0.5 * (stage - 1.0)
    problem.ball = target
    while True:
        if not problem.is_over(max_iter):
            _run(problem, machines, SAFETY * problem.tol, max_iter)
        _refresh(problem, machines)
        problem.rounds.pop()  # _look records the same round, with new products
        now = _look(problem, machines)
        tighter = _floor(problem)
        if problem.is_over(max_iter) or now.is_within(problem.tol) or tighter is None:
            return problem.found(now)
        problem.pace.inner_tol = tighter


def _floor(problem: JointProblem) -> float | None:
    """Return a tighter tolerance than the last, or None if it is the tightest."""
    tol = 0.2 * problem.pace.inner_tol
    return tol if tol >= problem.least_tol else None


def _refresh(
    problem: JointProblem, machines: list[_Machine], F: Products | None = None
) -> None:
    """Compute all products anew, unless ``F`` has them."""
    if F is None:
        F = problem.store.products_of([machine.task for machine in machines])
    for machine, own in zip(machines, F, strict=True):
        machine.F = own.copy()


def _look(problem: JointProblem, machines: list[_Machine]) -> Round:
    """Return the current weights and solutions of all machines, certified."""
    s = np.sum([machine.s() for machine in machines], axis=0)
    weights = problem.ball.best(s)
    solutions = [machine.solution(weights, 0.0) for machine in machines]
    if problem.report is not None:
        problem.report(machines)
    found = Solved(solutions, s, [machine.F for machine in machines])
    return problem.certified(weights, found)


def _run(
    problem: JointProblem, machines: list[_Machine], tol: float, max_iter: int
) -> None:
    """Iterate until the gap is within ``tol``."""
    n_stalled = 0
    while True:
        now = _look(problem, machines)
        if problem.is_over(max_iter) or now.is_within(tol) or n_stalled > 2:
            return
        violation = max(machine.gap for machine in machines)
        # The gap is about proportional to the violation, so working sets need not be
        # solved more tightly than in this proportion.
        part = 0.5 * tol * abs(now.primal) / max(now.gap, 1e-300)
        wanted = max(problem.least_tol, violation * min(INNER_TOLERANCE, part))
        steps = sum(_improve(problem, machines, m, wanted) for m in machines)
        n_stalled = 0 if steps else n_stalled + 1
        if not steps and wanted <= problem.least_tol:
            return


def _improve(
    problem: JointProblem, machines: list[_Machine], machine: _Machine, tol: float
) -> int:
    """Make pair steps on a working set of one machine; return their number."""
    store, ball = problem.store, problem.ball
    own = machine.problem
    s = np.sum([m.s() for m in machines], axis=0)
    weights = ball.best(s)
    size = set_size(
        store.n_kernels, 8 if store.is_double else 4, store.part_of_spare(4, SET_BYTES)
    )
    f = machine.f(weights)
    if len(machine.rows) <= size:
        chosen = np.arange(len(own.p))
        rows = np.arange(len(machine.rows))
        if machine.all is None:
            machine.all = store.squares(machine.rows)
        K = machine.all
    else:
        is_free = (own.lo < machine.beta) & (machine.beta < own.hi)
        mask, gap = choose_set(
            own, machine.beta, f, machine.set, is_free[machine.set].astype(np.float64),
            size, size // 2, tol, room_for(len(own.p)),
        )  # fmt: skip
        if gap <= tol or not mask.any():
            return 0
        machine.set = chosen = np.flatnonzero(mask)
        rows = np.unique(own.row[chosen])
        K = store.squares(machine.rows[rows])
    beta = machine.beta[chosen]
    row = np.searchsorted(rows, own.row[chosen])
    F = np.ascontiguousarray(machine.F[:, rows])
    steps, _, _ = minimise_shared_pairs(
        K, own.p[chosen], own.lo[chosen], own.hi[chosen], row, own.group[chosen],
        beta, F, s, ball.q, ball.penalty, tol, 50 * len(chosen) + 1000,
        store.threads.stop,
    )  # fmt: skip
    change = np.bincount(row, beta - machine.beta[chosen], len(rows))
    machine.beta[chosen] = beta
    moved = np.flatnonzero(change)
    if len(moved):
        moved_rows = machine.rows[rows[moved]]
        store.add_columns(machine.task, moved_rows, change[moved], machine.F)
    machine.n_iter += int(steps)
    return int(steps)


def set_size(n_kernels: int, itemsize: int, n_bytes: int = SET_BYTES) -> int:
    """Return how many rows a working set has whose matrices take so many bytes."""
    size = int(np.sqrt(n_bytes / (itemsize * n_kernels)))
    return int(np.clip(size, SMALLEST_SET, LARGEST_SET))
