"""From single precision to certificates, whoever computes.

Kernel values in single precision are tried first where they may be good enough.  The
rounding errors that they leave in ``f`` are measured in double precision, and count
against the tolerance.  If they are too large, ``f`` is computed anew where it matters,
and steps go on; if that is not enough either, solving continues in double precision
from the solution so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import Solution, is_feasible
from mercer.core.stacked import SAFETY, closer_goal
from mercer.engines.cpu.certificates import are_spoilt, settle, to_solution
from mercer.engines.cpu.decompose import Task
from mercer.engines.engine import TaskSpec

__all__ = [
    "SAFETY",
    "Arithmetic",
    "solve_to_certificates",
]

# Up to this multiple of the tolerance, rounding errors are made smaller by computing
# gradients anew; if they are larger, all goes on in double precision.
LARGEST_ERROR = 20.0


class Arithmetic(Protocol):
    """Solves tasks with kernel values of one precision, and measures their errors."""

    @property
    def is_single(self) -> bool:
        """Whether kernel values are in single precision and could be in double."""
        ...

    @property
    def is_custom(self) -> bool:
        """Whether a function of the user computes values, in its own precision."""
        ...

    def solve(self, tol: float) -> None:
        """Solve the tasks that are not settled to a KKT gap, from where they stand."""
        ...

    def errors(self) -> NDArray:
        """Return the largest error of each task's ``f``."""
        ...

    def exact(self, some: Sequence[tuple[Task, NDArray]]) -> list[NDArray]:
        """Return ``f`` of each task on the rows beside it, in double precision."""
        ...

    def solve_in_double(self, specs: Sequence[TaskSpec]) -> list[Solution]:
        """Return solutions of some problems from values in double precision.

        Nothing else will be asked for afterwards, so that memory can be freed first.
        """
        ...


def solve_to_certificates(
    specs: Sequence[TaskSpec], tasks: list[Task], tol: float, work: Arithmetic
) -> list[Solution]:
    """Solve the tasks of some problems, and certify the solutions."""
    work.solve(SAFETY * tol)
    errors = work.errors()
    closer = closer_goal(errors.max(), tol)
    if are_spoilt(tasks, errors, tol) and closer > 0:
        work.solve(closer)
        errors = work.errors()
    if work.is_single and errors.max() <= LARGEST_ERROR * tol and not work.is_custom:
        errors = settle(tasks, errors, tol, work.solve, work.exact)
    is_coarse = work.is_single and not work.is_custom
    solutions = [
        to_solution(task, float(error), tol)._replace(is_single=is_coarse)
        for task, error in zip(tasks, errors, strict=True)
    ]
    spoilt = [
        t
        for t in range(len(tasks))
        if work.is_single and are_spoilt(tasks[t : t + 1], errors[t : t + 1], tol)
    ]
    if spoilt:
        again = [_from_here(specs[t], tasks[t]) for t in spoilt]
        found = work.solve_in_double(again)
        # One flag tells for all solutions of a plan whether to refine them.
        is_coarse = is_coarse and len(spoilt) < len(tasks)
        for t, better in zip(spoilt, found, strict=True):
            n_iter = better.n_iter + tasks[t].n_iter
            solutions[t] = better._replace(is_single=is_coarse, n_iter=n_iter)
    return solutions


def _from_here(spec: TaskSpec, task: Task) -> TaskSpec:
    """Return the problem with the solution so far as its start, if that is sound."""
    if np.isfinite(task.f).all() and is_feasible(spec.problem, task.beta):
        return spec._replace(problem=spec.problem._replace(start=task.beta))
    return spec
