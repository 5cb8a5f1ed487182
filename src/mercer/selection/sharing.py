"""Estimators that are fitted, and predict, on a Gram matrix that others use too.

A shared estimator is one of the library's, of a class derived from its own.  Its
``fit`` runs twice: the first time up to the problems that it wants solved, the second
time on from their solutions.  On the samples of its fold it then predicts from the
shared kernel values; on others as always.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from mercer.core.problem import Solution
from mercer.kernels.base import Kernel
from mercer.machine import QUIET, KernelMachine, Tasks
from mercer.novelty import OneClassSVM
from mercer.nusvc import NuSVC
from mercer.selection.path import gathered
from mercer.selection.stored import SharedGram
from mercer.svc import SVC
from mercer.svr import SVR, NuSVR

__all__ = ["Fold", "Given", "shared_copy", "take_tasks", "unshared", "why_not"]

MACHINES = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)


@dataclass(eq=False)
class Fold:
    """One split of the samples, validated."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]
    X_train: Any
    X_test: Any
    y_train: Any
    y_test: Any
    learnt: dict[str, Any] = field(default_factory=dict)  #: what validation found out
    before: Any = None  #: the fitted steps before the machine

    def rows_of(self, X: Any) -> NDArray[np.intp] | None:
        """Return which samples these are, if they are known."""
        if X is self.X_test:
            return self.test
        return self.train if X is self.X_train else None


@dataclass(eq=False)
class Given:
    """What a shared estimator is given."""

    fold: Fold
    kernel: Kernel
    tasks: Tasks | None = None
    gram: SharedGram | None = None
    solutions: list[Solution] | None = None


class _Paused(BaseException):
    """The problems are known; the rest of ``fit`` waits for their solutions."""


class _Shared:
    """What a shared estimator does in another way."""

    _given: Given | None = None

    def _is_given(self, X: Any) -> bool:
        return self._given is not None and X is self._given.fold.X_train

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any]:
        if not self._is_given(X):
            return super()._validate(X, y)  # type: ignore[misc]
        vars(self).update(self._given.fold.learnt)  # type: ignore[union-attr]
        self.shape_fit_ = X.shape
        return X, y

    def _solve(
        self, X: Any, y: Any, targets: NDArray, sample_weight: Any
    ) -> tuple[Tasks, list[Solution]]:
        given = self._given
        if given is None or not self._is_given(X):
            return super()._solve(X, y, targets, sample_weight)  # type: ignore[misc]
        if given.solutions is None or given.tasks is None:
            weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, allow_all_zero_weights=True
            )
            given.tasks = self._tasks(targets, weight)  # type: ignore[attr-defined]
            raise _Paused
        self.kernel_ = given.kernel
        self.converged_ = all(s.converged for s in given.solutions)
        self.fit_status_ = 0 if self.converged_ else 1
        if not self.converged_:
            self._warn(given.solutions, False)  # type: ignore[attr-defined]
        return given.tasks, given.solutions

    @QUIET
    def _decisions(self, X: Any) -> NDArray:
        given = self._given
        rows = None if given is None else given.fold.rows_of(X)
        if given is None or given.gram is None or rows is None:
            return super()._decisions(X)  # type: ignore[misc]
        check_is_fitted(self)
        self._check_internals()  # type: ignore[attr-defined]
        weights = self._weights()  # type: ignore[attr-defined]
        matrix = given.gram.matrix
        if self._is_too_coarse(matrix, weights.matrix):
            return super()._decisions(X)  # type: ignore[misc]
        used = given.fold.train[self.support_]  # type: ignore[attr-defined]
        values = gathered(matrix, rows, used)
        result = np.zeros((len(rows), weights.matrix.shape[1]))
        parts = weights.dense_parts(slice(0, len(used)), matrix.dtype)
        for columns, tasks, weight in parts:
            result[:, tasks] += values[:, columns] @ weight
        return result + self.intercept_  # type: ignore[attr-defined]

    def _is_too_coarse(self, matrix: NDArray, weights: sparse.csr_array) -> bool:
        """Tell whether rounding in single precision could matter beside ``tol``."""
        if matrix.dtype == np.float64 or self._is_precomputed():  # type: ignore[attr-defined]
            return False
        largest = np.abs(matrix.diagonal()).max()
        spread = np.sqrt((weights * weights).sum(axis=0).max(initial=0.0))
        eps = np.finfo(np.float32).eps
        return bool(eps * largest * spread > 0.1 * self.tol)  # type: ignore[attr-defined]


@cache
def _shared_class(kind: type) -> type:
    return type(kind.__name__, (_Shared, kind), {"__module__": kind.__module__})


def shared_copy(estimator: KernelMachine, given: Given) -> Any:
    """Return an unfitted estimator with the same parameters that is given its Gram."""
    shared = _shared_class(type(estimator)).__new__(_shared_class(type(estimator)))
    vars(shared).update(vars(estimator))
    shared._given = given
    return shared


def unshared(estimator: Any) -> Any:
    """Turn a shared estimator, once fitted, into a plain one."""
    estimator.__class__ = type(estimator).__mro__[2]
    del estimator._given
    return estimator


def take_tasks(estimator: Any, sample_weight: Any) -> None:
    """Run the first half of ``fit``: up to the problems."""
    fold = estimator._given.fold
    # The second half must draw the same random numbers.
    random_state = deepcopy(estimator.random_state)
    try:
        estimator.fit(fold.X_train, fold.y_train, sample_weight)
    except _Paused:
        pass
    estimator.random_state = random_state


def why_not(estimator: Any) -> str | None:
    """Return why an estimator cannot share a Gram matrix, or None if it can."""
    if not isinstance(estimator, MACHINES):
        name = type(estimator).__name__
        return f"{name} is not an SVC, NuSVC, SVR, NuSVR or OneClassSVM of Mercer"
    if estimator.solver not in ("auto", "smo"):
        return f"solver={estimator.solver!r} is to be used, and needs its own matrix"
    if estimator._is_function():
        return "the kernel is a function of all samples at once"
    if getattr(estimator, "_skl_callbacks", None):
        return "the estimator has callbacks, which watch its own fits"
    return None

