"""Kernel machines with the linear kernel, solved through the weights of features.

The problems, their solutions and certificates are those of the kernel machines: the
KKT gap is measured in double precision on ``f = X (X' beta)``, which is ``K beta``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import DualProblem, Solution, certify, is_feasible
from mercer.engines.cpu.linear.features import Features, Run, in_turn
from mercer.engines.cpu.linear.newton import NewtonTask, newton
from mercer.engines.cpu.linear.problems import LinearProblems, from_dual
from mercer.engines.engine import Certified, Plan, Settings, TaskSpec
from mercer.kernels.dot import Linear
from mercer.runtime.validation import check_finite

__all__ = ["solve_through_weights", "takes_weights"]

# Solvers stop at this fraction of the tolerance; the rest is for rounding errors.
SAFETY = 0.9
# Rounds of Newton's method.  Where they are not enough, kernel values are.
MOST_ROUNDS = 300
# Least number of samples for each feature at which weights are the faster way: a round
# of Newton's method costs more than many steps of pairs if there are many features.
SAMPLES_PER_FEATURE = 16
# More features than this do not fit into matrices of products.
MOST_FEATURES = 3000


@dataclass(eq=False)
class _Shown:
    """What progress reports say about a problem."""

    gap: float = np.inf
    n_iter: int = 0
    done: bool = False


def takes_weights(plan: Plan, settings: Settings) -> bool:
    """Tell whether a plan is solved through the weights.

    A limit of steps is one of steps of the pair solver, and is left to it.
    """
    if (
        type(plan.kernel) is not Linear
        or len(plan.kernels) != 1
        or plan.is_matrix
        or plan.function is not None
        or settings.solver != "auto"
        or settings.max_iter >= 0
        or plan.samples.shape[1] > MOST_FEATURES
    ):
        return False
    sizes = np.diff(plan.starts)
    largest = max(int(sizes[list(spec.blocks)].sum()) for spec in plan.specs)
    return largest >= SAMPLES_PER_FEATURE * plan.samples.shape[1]


def solve_through_weights(
    plan: Plan, settings: Settings, run: Run, stop: NDArray, progress: Any = None
) -> Certified | None:
    """Return certified solutions of all problems, or None if one is not solved."""
    shown = [_Shown() for _ in plan.specs]
    batches = _batches(plan)

    def report() -> None:
        if progress is not None:
            progress(shown)

    found: dict[int, Solution] = {}
    if len(batches) == 1:
        found.update(_solve(plan, batches[0], settings, run, stop, shown, report))
    else:

        def solve(batch: list[int]) -> dict[int, Solution]:
            return _solve(plan, batch, settings, in_turn, stop, shown, lambda: None)

        for part in _in_order(run, solve, batches, report):
            found.update(part)
    solutions = [found[i] for i in range(len(plan.specs))]
    stopped = bool(getattr(progress, "stopped_early", False))
    if not stopped and not all(s.converged for s in solutions):
        return None
    check_finite("dual coefficients or intercepts", [s.objective for s in solutions])
    return Certified(solutions, True, stopped)


def _in_order(run: Any, solve: Any, batches: list, report: Any) -> list:
    """Solve batches in threads, with a report after each."""
    return run(solve, batches, report)


def _batches(plan: Plan) -> list[list[int]]:
    """Put problems of the same form on the same samples together."""
    together: dict[Any, list[int]] = {}
    for i, spec in enumerate(plan.specs):
        problem = spec.problem
        key = (spec.blocks, problem.row.tobytes(), problem.group.tobytes())
        together.setdefault(key, []).append(i)
    return list(together.values())


def _stacked(problems: Sequence[DualProblem]) -> LinearProblems:
    parts = [from_dual(problem) for problem in problems]
    return parts[0]._replace(
        p=np.concatenate([part.p for part in parts]),
        lo=np.concatenate([part.lo for part in parts]),
        hi=np.concatenate([part.hi for part in parts]),
        ridge=np.concatenate([part.ridge for part in parts]),
        totals=np.concatenate([part.totals for part in parts]),
    )


def _solve(
    plan: Plan,
    batch: list[int],
    settings: Settings,
    run: Run,
    stop: NDArray,
    shown: list[_Shown],
    report: Any,
) -> dict[int, Solution]:
    """Solve problems on the same samples."""
    specs: list[TaskSpec] = [plan.specs[i] for i in batch]
    problems = [spec.problem for spec in specs]
    rows = plan.rows(specs[0])
    samples = plan.samples
    is_all = len(rows) == samples.shape[0] and bool((np.diff(rows) == 1).all())
    features = Features(samples if is_all else samples[rows], run)
    farthest = float(np.sqrt(features.squared_norms().max(initial=0.0)))

    def is_solved(task: NewtonTask) -> bool:
        found = certify(problems[task.number], task.beta, task.score)
        # The weights are not exactly those of the coefficients.
        error = 2.0 * farthest * float(np.linalg.norm(task.w - task.combined))
        state = shown[batch[task.number]]
        state.gap, state.n_iter = found.kkt_gap + error, task.n_iter
        state.done = bool(state.gap <= SAFETY * settings.tol)
        return state.done

    stacked = _stacked(problems)
    start = np.array([problem.start for problem in problems])
    tasks = newton(
        features,
        stacked,
        is_solved,
        MOST_ROUNDS,
        stop,
        beta=start if start.any() else None,
        report=lambda _: report(),
    )
    by_row = np.array(
        [np.bincount(stacked.row, task.beta, features.n) for task in tasks]
    )
    scores = features.scores(features.combine(by_row))
    return {
        batch[task.number]: _solution(problems[task.number], task, f, settings.tol)
        for task, f in zip(tasks, scores, strict=True)
    }


def _solution(
    problem: DualProblem, task: NewtonTask, f: NDArray, tol: float
) -> Solution:
    found = certify(problem, task.beta, f)
    converged = found.kkt_gap <= tol and is_feasible(problem, task.beta)
    return Solution(
        task.beta, f, *found[:4], task.n_iter, bool(converged), found.multipliers
    )
