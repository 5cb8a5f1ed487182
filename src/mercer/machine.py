"""The one fit path that all machines share.

validate → bind the kernel → sort samples into blocks → problems → solve → keep support
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from mercer.core.problem import Solution
from mercer.gram import WholeGram, apply
from mercer.kernels.base import Kernel, with_views
from mercer.kernels.dot import Linear
from mercer.kernels.expression import as_kernel
from mercer.kernels.given import Precomputed
from mercer.kernels.operand import Operand
from mercer.kernels.views import views_of
from mercer.progress import FitProgress
from mercer.solvers import SOLVERS, Settings, TaskSpec, solve_many
from mercer.threads import Threads

__all__ = ["KernelMachine", "Tasks"]


class Tasks(NamedTuple):
    """The problems of a fit, on samples sorted into blocks."""

    specs: list[TaskSpec]
    order: NDArray[np.intp]  #: the samples, block by block
    starts: list[int]  #: where each block begins, then the end


class KernelMachine(CallbackSupportMixin, BaseEstimator):
    """Base of the estimators: parameters, validation, solving, decision values."""

    _parameter_constraints: ClassVar[dict] = {
        "kernel": [str, callable, Kernel],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [
            StrOptions({"scale", "auto"}),
            Interval(Real, 0.0, None, closed="left"),
        ],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "solver": [StrOptions(set(SOLVERS))],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "cache_size": [
            StrOptions({"auto"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "shrinking": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    @abstractmethod
    def _tasks(self, y: Any, sample_weight: NDArray) -> Tasks:
        """Return the problems to solve."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.sparse = not self._is_precomputed()
        return tags

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )

    def _solve(
        self, X: Any, y: Any, targets: NDArray, sample_weight: Any
    ) -> tuple[Tasks, list[Solution]]:
        """Take validated data to certified solutions.

        ``y`` is what callbacks see, ``targets`` what the problems are built from.
        """
        kernel = as_kernel(
            self.kernel, degree=self.degree, gamma=self.gamma, coef0=self.coef0
        )
        weight = _check_sample_weight(
            sample_weight, X, dtype=np.float64, allow_all_zero_weights=True
        )
        tasks = self._tasks(targets, weight)
        self.kernel_ = self._resolve(kernel).bind(X)
        settings = Settings(
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            cache_size=self.cache_size,
            shrinking=self.shrinking,
            seed=check_random_state(self.random_state).randint(2**31 - 1),
        )
        with Threads(self.n_jobs) as threads:
            progress = FitProgress(self, X, y, self.verbose, threads.stop)
            data = self._sorted(X, tasks, threads)
            solutions = solve_many(
                self.kernel_,
                data,
                tasks.starts,
                tasks.specs,
                settings,
                threads,
                progress,
            )
            progress.finish(solutions)
        if not all(np.isfinite([s.objective, s.kkt_gap]).all() for s in solutions):
            raise ValueError(
                "The dual coefficients or intercepts are not finite. The input data "
                "may contain large values and need to be preprocessed."
            )
        self._report(solutions)
        if not all(s.converged for s in solutions):
            self._warn(solutions, progress.stopped_early)
        return tasks, solutions

    def _resolve(self, kernel: Kernel) -> Kernel:
        """Return the kernel with the views that the training data named, if any."""
        return with_views(kernel, self._views) if self._views else kernel

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any]:
        # Validation leaves a plain array; names of columns have to be read before.
        self._views = views_of(X)
        X, y = validate_data(
            self,
            X,
            y,
            dtype=[np.float64, np.float32],
            order="C",
            accept_sparse="csr",
            multi_output=False,
        )
        if self._is_precomputed():
            if sparse.issparse(X):
                raise TypeError("Sparse precomputed kernels are not supported.")
            if X.shape[0] != X.shape[1]:
                raise ValueError(
                    "Precomputed matrix must be a square matrix."
                    f" Input is a {X.shape[0]}x{X.shape[1]} matrix."
                )
        self.shape_fit_ = X.shape
        return X, y

    def _sorted(self, X: Any, tasks: Tasks, threads: Threads) -> Operand | WholeGram:
        """Return the samples block by block, or the given matrix in that order."""
        in_order = bool((np.diff(tasks.order) == 1).all())
        if self._is_precomputed():
            matrix = X if in_order else X[np.ix_(tasks.order, tasks.order)]
            diag = np.array(matrix.diagonal(), dtype=np.float64)
            return WholeGram(matrix, diag, tasks.starts)
        return Operand(X, order=None if in_order else tasks.order, run=threads.map)

    def _report(self, solutions: Sequence[Solution]) -> None:
        self.n_iter_ = np.array([s.n_iter for s in solutions], dtype=np.int32)
        self.objective_ = np.array([s.objective for s in solutions])
        self.dual_gap_ = np.array([s.dual_gap for s in solutions])
        self.kkt_gap_ = np.array([s.kkt_gap for s in solutions])
        self.converged_ = all(s.converged for s in solutions)
        self.fit_status_ = 0 if self.converged_ else 1

    def _warn(self, solutions: Sequence[Solution], stopped_early: bool) -> None:
        left = [s for s in solutions if not s.converged]
        worst = max(s.kkt_gap for s in left)
        if stopped_early:
            remedy = "A callback asked for an early end."
        elif 0 <= self.max_iter <= max(s.n_iter for s in left):
            remedy = f"Raise max_iter (now {self.max_iter}) or set it to -1."
        elif self.solver in ("random", "simplified"):
            remedy = f"solver={self.solver!r} is approximate; 'auto' is exact."
        else:
            remedy = (
                "Rounding stands in the way: scale the data (e.g. StandardScaler), "
                "lower C, raise tol, or pass float64 data."
            )
        warnings.warn(
            f"{type(self).__name__} did not converge in {len(left)} of "
            f"{len(solutions)} problems: KKT gap {worst:.3g}, tol={self.tol:g}, "
            f"{sum(s.n_iter for s in solutions)} iterations. {remedy}",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _validate_for_predict(self, X: Any) -> Any:
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            dtype=[np.float64, np.float32],
            order="C",
            accept_sparse="csr",
            reset=False,
        )
        was_sparse = sparse.issparse(self.support_vectors_)
        if self._is_precomputed():
            if X.shape[1] != self.shape_fit_[0]:
                raise ValueError(
                    f"X.shape[1] = {X.shape[1]} should be equal to "
                    f"{self.shape_fit_[0]}, the number of samples at training time"
                )
        elif was_sparse and not sparse.issparse(X):
            X = sparse.csr_array(X)
        elif sparse.issparse(X) and not was_sparse:
            raise ValueError(
                f"cannot use sparse input in {type(self).__name__!r} trained on dense "
                "data"
            )
        return X

    def _decisions(self, X: Any, weights: NDArray, bias: NDArray) -> NDArray:
        """Return ``K(X, support vectors) @ weights + bias``, shape (n, n_tasks)."""
        X = self._validate_for_predict(X)
        if self._is_precomputed():
            values = X[:, self.support_].astype(np.float64, copy=False) @ weights
        elif isinstance(self.kernel_, Linear):
            # One product with the weights of the features, whatever the support.
            values = np.asarray(X @ (self.support_vectors_.T @ weights))
        else:
            vectors = self.support_vectors_
            if self._needs_double(Operand(vectors), weights):
                X, vectors = X.astype(np.float64), vectors.astype(np.float64)
            with Threads(self.n_jobs) as threads:
                anchor = Operand(vectors, run=threads.map)
                values = apply(self.kernel_, Operand(X), anchor, weights, threads)
        return values + bias

    def _needs_double(self, vectors: Operand, weights: NDArray) -> bool:
        """Tell whether rounding in single precision could matter beside ``tol``."""
        if vectors.dtype == np.float64 or not len(vectors):
            return False
        largest = np.abs(self.kernel_.diagonal(vectors)).max()
        spread = np.sqrt((weights**2).sum(axis=0).max())
        return bool(np.finfo(np.float32).eps * largest * spread > 0.1 * self.tol)
