"""The two solvers that work on single weights or samples: l1, and all classes jointly.

Both return what :func:`mercer.engines.cpu.linear.solve.solve_linear` returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.linear_joint import joint_epochs
from mercer.core.linear_l1 import l1_dual_value, l1_epochs
from mercer.engines.cpu.linear.features import Features
from mercer.engines.cpu.linear.solve import LinearFound, Start
from mercer.runtime.validation import as_dense

__all__ = ["solve_joint", "solve_l1"]

# The first bound of violations, and its fall between two measurements of the gap.
FIRST_EPS = 0.1
FALL = 0.2
# Epochs between two looks at the gap, and at callbacks.  A look takes as long as many
# epochs of the joint problem on few samples: its looks become rarer, after so many
# times the epochs before.
AT_A_TIME = 20
LOOK_AFTER = 0.5

# Largest number of weights for which an l1 problem has a matrix of second derivatives,
# and how many of Newton's steps are made in a row.
MOST_TOGETHER = 2000
MOST_NEWTON = 20
# Calls of sparse products on fewer entries than this take longer than dense ones.
FEW_ENTRIES = 2**16
# A step is short enough if the objective falls by this part of what its slope says.
SUFFICIENT = 0.01
# Conjugate gradients end at this relative error, or after so many steps.
CG_ERROR = 1e-4
MOST_CG = 300
# With an l1 penalty a small gap does not tell which weights are 0.
LARGEST_VIOLATION = 1e-3

Report = Callable[[list[Any]], None]


@dataclass(eq=False)
class _Task:
    """One problem while it is being solved."""

    w: NDArray
    slack: NDArray
    primal: float = np.inf
    dual: float = 0.0
    eps: float = FIRST_EPS
    worst: float = np.inf  #: the largest violation in the last epoch
    n_iter: int = 0
    done: bool = False

    @property
    def gap(self) -> float:
        return self.primal - self.dual


def solve_l1(
    features: Features,
    sides: NDArray,
    C: NDArray,
    scaling: float | None,
    is_penalised: bool,
    tol: float,
    max_iter: int,
    seed: int,
    stop: NDArray,
    start: Start | None = None,
    report: Report | None = None,
) -> LinearFound:
    """Minimise squared hinge losses with an l1 penalty, each problem in a thread.

    ``sides`` are -1 and 1, and ``C`` the weights of the losses, both of shape
    (n_problems, n).
    """
    X = sparse.csc_array(features.X)
    k, n = sides.shape
    penalty = np.ones(features.d + (scaling is not None))
    if scaling is not None:
        column = sparse.csc_array(np.full((n, 1), scaling, dtype=X.dtype))
        X = sparse.csc_array(sparse.hstack([X, column]))
        penalty[-1] = float(is_penalised)
    dense = X.toarray() if n * X.shape[1] <= FEW_ENTRIES else None
    weights = np.zeros((k, X.shape[1]))
    if start is not None and start.weights is not None:
        weights[:, : features.d] = start.weights
        value = 1.0 if is_penalised or scaling is None else -scaling
        weights[:, features.d :] = start.shifts / value
    tasks = [
        _Task(weights[c].copy(), 1.0 - sides[c] * (X @ weights[c])) for c in range(k)
    ]

    def epochs(c: int, limit: int) -> None:
        task = tasks[c]
        state = np.array([seed + 1000003 * c + task.n_iter], dtype=np.uint64)
        order = np.arange(len(penalty))
        n_epochs, worst = l1_epochs(
            X.data, X.indices, X.indptr, sides[c], C[c], penalty, task.w, task.slack,
            order, task.eps, limit, state, stop,
        )  # fmt: skip
        task.n_iter += n_epochs
        task.worst = worst
        if n_epochs == limit:
            _newton_on_support(X, dense, sides[c], C[c], penalty, task)
        if worst <= task.eps:
            task.eps *= FALL

    def measure(c: int) -> None:
        task, y = tasks[c], sides[c]
        # Slacks follow the weights step by step; certificates take no part in drift.
        task.slack = 1.0 - y * (X @ task.w)
        loss = np.maximum(task.slack, 0.0)
        task.primal = float(penalty @ np.abs(task.w) + C[c] @ (loss * loss))
        alpha = _balanced(
            2.0 * C[c] * loss, y, not is_penalised and scaling is not None
        )
        task.dual = max(
            task.dual,
            l1_dual_value(X.data, X.indices, X.indptr, y, C[c], penalty, alpha),
        )
        is_solved = task.gap <= tol * task.primal
        task.done = is_solved and task.worst <= LARGEST_VIOLATION

    _rounds(features, tasks, epochs, measure, max_iter, stop, report)
    found = np.array([task.w for task in tasks])
    shifts = found[:, features.d :]
    if scaling is not None and not is_penalised:
        shifts = -scaling * shifts
    hindrance = ""
    worst = max(task.worst for task in tasks)
    if worst > LARGEST_VIOLATION:
        hindrance = (
            f"a weight violates its condition of optimality by {worst:.2g}, more than "
            f"{LARGEST_VIOLATION:g}"
        )
    return _found(tasks, found[:, : features.d], shifts)._replace(hindrance=hindrance)


def _newton_on_support(
    X: Any,
    dense: NDArray | None,
    y: NDArray,
    C: NDArray,
    penalty: NDArray,
    task: _Task,
) -> None:
    """Move all weights that are not 0 at once, where coordinate descent is slow.

    As long as no weight changes its sign, the penalty is linear.  A step ends where
    the first weight becomes 0, which then stays so until the next epoch.  ``dense``
    are the same samples as ``X``, if they are few.
    """
    if np.count_nonzero(task.w) > MOST_TOGETHER:
        _newton_on_large_support(X, y, C, penalty, task)
        return
    for _ in range(MOST_NEWTON):
        support = np.flatnonzero(task.w)
        if not 0 < len(support) <= MOST_TOGETHER:
            return
        columns: Any
        if dense is not None:
            columns = dense.take(support, axis=1)
        else:
            columns = sparse.csr_array(X[:, support])
            if columns.shape[0] * columns.shape[1] <= FEW_ENTRIES:
                columns = columns.toarray()
        sign = penalty[support] * np.sign(task.w[support])
        inside = np.flatnonzero(task.slack > 0)
        part = columns[inside].astype(np.float64)
        weight = 2.0 * C[inside]
        gradient = sign - part.T @ (weight * y[inside] * task.slack[inside])
        matrix = as_dense(part.T @ (part * weight[:, None]))
        # Features may depend on each other.
        matrix[np.diag_indices(len(support))] += 1e-10 * max(matrix.trace(), 1e-300)
        step = -np.linalg.solve(matrix, gradient)
        w = task.w[support]
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(w * step < 0, -w / step, np.inf)
        room[penalty[support] == 0] = np.inf  # without penalty, signs may change
        first = int(room.argmin())
        size = min(1.0, float(room[first]))
        change = y * (columns @ step)
        slope = float(gradient @ step)
        before = _loss(C, task.slack)
        while True:
            slack = task.slack - size * change
            fall = before - _loss(C, slack) - size * float(sign @ step)
            if fall >= -SUFFICIENT * size * slope:
                break
            size *= 0.5
            if size < 1e-8:
                return
        new = w + size * step
        if size == room[first]:
            new[first] = 0.0
        task.w[support] = new
        task.slack = slack
        if size == 1.0 and np.array_equal(np.flatnonzero(slack > 0), inside):
            return


def _newton_on_large_support(
    X: Any, y: NDArray, C: NDArray, penalty: NDArray, task: _Task
) -> None:
    """Do the same for more weights, by conjugate gradients.

    Steps that end at the first weight would be too many here: all weights that would
    change their sign become 0 together.
    """
    for _ in range(MOST_NEWTON):
        support = np.flatnonzero(task.w)
        # More weights than samples have no unique best values.
        if not MOST_TOGETHER < len(support) <= len(task.slack):
            return
        columns = sparse.csr_array(X[:, support])
        w = task.w[support]
        sign = penalty[support] * np.sign(w)
        inside = np.flatnonzero(task.slack > 0)
        part = columns[inside].astype(np.float64)
        weight = 2.0 * C[inside]
        gradient = sign - part.T @ (weight * y[inside] * task.slack[inside])
        step = _conjugate_gradients(part, weight, gradient)
        before = _loss(C, task.slack)
        size = 1.0
        while True:
            new = w + size * step
            # Without penalty, signs may change.
            new[(new * w < 0) & (penalty[support] > 0)] = 0.0
            slack = task.slack - y * (columns @ (new - w))
            fall = before - _loss(C, slack) - float(sign @ (new - w))
            if fall >= -SUFFICIENT * float(gradient @ (new - w)) > 0.0:
                break
            size *= 0.5
            if size < 1e-8:
                return
        task.w[support] = new
        task.slack = slack
        stays = np.array_equal(np.flatnonzero(slack > 0), inside)
        if size == 1.0 and stays and new.all():
            return


def _conjugate_gradients(part: Any, weight: NDArray, gradient: NDArray) -> NDArray:
    """Return Newton's step, roughly, for weights with the columns of ``part``."""
    squares = weight @ (part * part)
    # Features may depend on each other.
    diagonal = 1e-10 * max(float(squares.sum()), 1e-300)
    step = np.zeros_like(gradient)
    rest = -gradient
    scale = 1.0 / (squares + diagonal)
    along = scale * rest
    before = rest @ along
    enough = CG_ERROR**2 * before
    for _ in range(MOST_CG):
        product = part.T @ (weight * (part @ along)) + diagonal * along
        size = before / (along @ product)
        step += size * along
        rest -= size * product
        scaled = scale * rest
        after = rest @ scaled
        if after <= enough:
            break
        along = scaled + after / before * along
        before = after
    return step


def _loss(C: NDArray, slack: NDArray) -> float:
    loss = np.maximum(slack, 0.0)
    return float(C @ (loss * loss))


def _balanced(alpha: NDArray, y: NDArray, has_free_intercept: bool) -> NDArray:
    """Make both sides equally heavy, as the dual of a free intercept requires."""
    if not has_free_intercept:
        return alpha
    plus, minus = alpha[y > 0].sum(), alpha[y < 0].sum()
    if min(plus, minus) == 0.0:
        return np.zeros_like(alpha)
    least = min(plus, minus)
    return alpha * np.where(y > 0, least / plus, least / minus)


def _rounds(
    features: Features,
    tasks: list[_Task],
    epochs: Callable[[int, int], None],
    measure: Callable[[int], None],
    max_iter: int,
    stop: NDArray,
    report: Report | None,
    look_after: float = 0.0,
) -> None:
    """Alternate epochs and measurements until all gaps are small enough."""
    todo = list(range(len(tasks)))
    # Epochs, and a matrix of second derivatives, which threads of BLAS must not share.
    work = AT_A_TIME * features.n_values + features.n * features.d**2
    features.run(measure, todo, work * len(todo))
    while True:
        if report is not None:
            report(tasks)
        todo = [c for c in todo if not tasks[c].done and tasks[c].n_iter < max_iter]
        if not todo or stop[0]:
            return

        def improve(c: int) -> None:
            limit = max(AT_A_TIME, int(look_after * tasks[c].n_iter))
            epochs(c, min(limit, max_iter - tasks[c].n_iter))
            measure(c)

        features.run(improve, todo, work * len(todo))


def _found(tasks: list[_Task], weights: NDArray, shifts: NDArray) -> LinearFound:
    return LinearFound(
        weights,
        shifts,
        np.empty((len(weights), 0)),
        np.array([task.primal for task in tasks]),
        np.array([max(task.gap, 0.0) for task in tasks]),
        np.array([task.n_iter for task in tasks]),
        np.array([task.done for task in tasks]),
    )


def solve_joint(
    features: Features,
    targets: NDArray,
    n_classes: int,
    C: NDArray,
    scaling: float | None,
    tol: float,
    max_iter: int,
    seed: int,
    stop: NDArray,
    report: Report | None = None,
) -> LinearFound:
    """Solve the machine of Crammer and Singer, with a penalised intercept or none.

    ``targets`` are the numbers of the classes, ``C`` the weights of the losses.
    """
    X = sparse.csr_array(features.X)
    n, value = len(targets), 0.0 if scaling is None else scaling
    norms = features.squared_norms()
    alpha = np.zeros((n, n_classes))
    W, b = np.zeros((features.d, n_classes)), np.zeros(n_classes)
    task = _Task(W, b)

    def epochs(_: int, limit: int) -> None:
        state = np.array([seed + task.n_iter], dtype=np.uint64)
        n_epochs, worst = joint_epochs(
            X.data, X.indices, X.indptr, norms, value, targets, C, W, b, alpha,
            np.arange(n), task.eps, limit, state, stop,
        )  # fmt: skip
        task.n_iter += n_epochs
        if worst <= task.eps:
            task.eps *= FALL

    def measure(_: int) -> None:
        W[:] = features.combine(np.ascontiguousarray(alpha.T)).T
        b[:] = value * alpha.sum(axis=0)
        scores = features.scores(np.ascontiguousarray(W.T)).T + value * b
        own = scores[np.arange(n), targets]
        margins = scores + 1.0 - own[:, None]
        margins[np.arange(n), targets] = 0.0
        norm = 0.5 * float((W * W).sum() + b @ b)
        others = alpha.sum() - alpha[np.arange(n), targets].sum()
        task.primal = norm + float(C @ margins.max(axis=1))
        task.dual = -norm - float(others)
        task.done = task.gap <= tol * task.primal

    _rounds(features, [task], epochs, measure, max_iter, stop, report, LOOK_AFTER)
    return _found(
        [task],
        W.T.copy(),
        b[:, None] if scaling is not None else np.zeros((n_classes, 0)),
    )
