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
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from mercer.core.problem import Solution
from mercer.engines.cpu.certificates import Values, all_of, are_convex, kernel_values
from mercer.engines.cpu.coefficients import Weights
from mercer.engines.cpu.gram import WholeGram
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.solve import MOST_STEPS, SOLVERS, Settings, TaskSpec, solve_many
from mercer.engines.cpu.tiles import apply, is_custom
from mercer.kernels.base import Kernel, with_names
from mercer.kernels.dot import Linear
from mercer.kernels.expression import as_kernel
from mercer.kernels.given import Custom, Precomputed, call_function
from mercer.kernels.views import views_of
from mercer.machines.base.export import to_sklearn
from mercer.runtime.arrays import (
    as_dense,
    dense_if_small,
    frozen,
    is_numeric,
    refuse_other_things,
    things,
)
from mercer.runtime.memory import given_budget
from mercer.runtime.progress import FitProgress
from mercer.runtime.scikit_learn import Interval, StrOptions, check_sample_weight
from mercer.runtime.threads import Threads
from mercer.runtime.validation import validate_data

__all__ = ["QUIET", "UNBOUNDED", "KernelMachine", "Tasks"]

# Stands for C = inf, so that arithmetic with bounds stays finite.
UNBOUNDED = 1e200
# What overflows shows in the results, and they are looked at.
QUIET = np.errstate(over="ignore", invalid="ignore")


class Tasks(NamedTuple):
    """The problems of a fit, on samples sorted into blocks."""

    specs: list[TaskSpec]
    order: NDArray[np.intp]  #: the samples, block by block
    starts: list[int]  #: where each block begins, then the end

    def samples(self, spec: TaskSpec) -> NDArray[np.intp]:
        """Return the samples that take part in a problem, in its order."""
        return self.order[self.gram_rows(spec)]

    def gram_rows(self, spec: TaskSpec) -> NDArray[np.intp]:
        """Return the Gram rows of these samples."""
        starts = self.starts
        return np.concatenate(
            [np.arange(starts[b], starts[b + 1]) for b in spec.blocks]
        )


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

    #: whether samples come with classes or values
    _takes_targets: ClassVar[bool] = True

    @abstractmethod
    def _tasks(self, y: Any, sample_weight: NDArray) -> Tasks:
        """Return the problems to solve."""

    def _problems_per_machine(self) -> int:
        """Return 1, or with it how many folds of a calibration a machine has."""
        return 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.sparse = not self._is_precomputed()
        return tags

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (
            isinstance(self.kernel, str) and self.kernel.strip() == "precomputed"
        )

    def to_sklearn(self) -> Any:
        """Return a fitted estimator of scikit-learn with the same decision values.

        It is the class of the same name, with this kernel as a function if scikit-learn
        does not have it; for one-vs-rest of more than two classes a
        ``OneVsRestClassifier``. Other schemes and decodings have no counterpart. It
        computes in double precision, whatever the data had.

        With ``probability=True`` the probabilities differ by up to about 0.005, where
        scikit-learn ends the coupling of pairs, and its ``predict`` goes by the
        decision values, not by the probabilities; a warning says so.

        Returns
        -------
        estimator
        """
        return to_sklearn(self)

    @QUIET
    def _solve(
        self, X: Any, y: Any, targets: NDArray, sample_weight: Any
    ) -> tuple[Tasks, list[Solution]]:
        """Take validated data to certified solutions.

        ``y`` is what callbacks see, ``targets`` what the problems are built from.
        """
        weight = check_sample_weight(
            sample_weight, X, dtype=np.float64, allow_all_zero_weights=True
        )
        tasks = self._tasks(targets, weight)
        self.kernel_, samples = self._bound(X)
        settings = Settings(
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            cache_size=self.cache_size,
            shrinking=self.shrinking,
            seed=check_random_state(self.random_state).randint(2**31 - 1),
            refines=self._problems_per_machine(),
        )
        with Threads(self.n_jobs) as threads:
            progress = FitProgress(self, X, y, self.verbose, threads.stop)
            data = self._sorted(samples, tasks, threads)
            solutions = solve_many(
                self.kernel_,
                data,
                tasks.starts,
                tasks.specs,
                settings,
                threads,
                progress,
            )
            values = kernel_values(self.kernel_, data)
            solutions = self._judged(solutions, self._convexity(tasks, values))
            progress.finish(solutions)
        found: list[Any] = [[s.objective, s.kkt_gap] for s in solutions]
        if isinstance(data, Operand):
            found.append(self.kernel_.diagonal(Operand(X)))
        if not all(np.isfinite(values).all() for values in found):
            raise ValueError(
                "The dual coefficients or intercepts are not finite. The input data "
                "may contain large values and need to be preprocessed."
            )
        self.converged_ = all(s.converged for s in solutions)
        self.fit_status_ = 0 if self.converged_ else 1
        if not self.converged_:
            self._warn(solutions, progress.stopped_early)
        return tasks, solutions

    def _convexity(self, tasks: Tasks, values: Values) -> list[bool | None]:
        """Tell whether the problems of the machines, not those of folds, are convex.

        ``values`` returns the square of kernel values of some Gram rows.
        """
        mains = tasks.specs[:: self._problems_per_machine()]
        problems = [(spec.problem, tasks.gram_rows(spec)) for spec in mains]
        return are_convex(self.kernel_, values, problems)

    def _judged(
        self, solutions: list[Solution], verdicts: Sequence[bool | None]
    ) -> list[Solution]:
        """Note which problems are convex: where one is not, no gap is a bound."""
        self.is_convex_ = all_of(verdicts)
        judged = list(solutions)
        step = self._problems_per_machine()
        for k, is_convex in enumerate(verdicts):
            if is_convex is False:
                judged[k * step] = judged[k * step]._replace(dual_gap=np.inf)
        return judged

    def _bound(self, X: Any) -> tuple[Kernel, Any]:
        """Return the kernel with its numbers, and the samples as it is to see them."""
        kernel = self._make_kernel()
        # A user's own function gets the samples as they were given.
        samples = X if is_custom(kernel) else dense_if_small(X)
        return kernel.bind(samples), samples

    def _make_kernel(self) -> Kernel:
        """Return the kernel, with the columns that the training data named, if any."""
        kernel = as_kernel(
            self.kernel, degree=self.degree, gamma=self.gamma, coef0=self.coef0
        )
        return with_names(kernel, self._views, getattr(self, "feature_names_in_", None))

    def _leaves(self) -> list[Kernel]:
        """Return the kernels that the given one is made of, if it is an object."""
        return list(self.kernel.leaves()) if isinstance(self.kernel, Kernel) else []

    def _is_function(self) -> bool:
        """Whether the kernel is a function, to be called as scikit-learn calls it."""
        return callable(self.kernel) and not isinstance(self.kernel, Kernel)

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any]:
        # Validation leaves a plain array; names of columns have to be read before.
        self._views = views_of(X)
        for name in ("probA_", "probB_", "_means", "_samples"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if self._is_function() and not is_numeric(X):
            if self._takes_targets:
                y = column_or_1d(y, warn=True)
            X = things(X)
            check_consistent_length(X, y)
            for name in ("n_features_in_", "feature_names_in_"):  # of an earlier fit
                self.__dict__.pop(name, None)
            self.shape_fit_ = X.shape
            return X, y
        if any(isinstance(leaf, Custom) for leaf in self._leaves()):
            refuse_other_things(self, X)
        settings: dict[str, Any] = dict(
            dtype=[np.float64, np.float32], order="C", accept_sparse="csr"
        )
        if y is None and not self._takes_targets:
            X = validate_data(self, X, **settings)
        else:
            X, y = validate_data(self, X, y, multi_output=False, **settings)
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

    def _by_function(self, X: Any, Z: Any) -> NDArray:
        """Call the kernel function once, with all samples, as scikit-learn does."""
        return call_function(self.kernel, X, Z, X.dtype)

    def _sorted(self, X: Any, tasks: Tasks, threads: Threads) -> Operand | WholeGram:
        """Return the samples block by block, or the given matrix in that order."""
        in_order = bool((np.diff(tasks.order) == 1).all())
        if self._is_precomputed() or self._is_function():
            matrix = X
            if self._is_function():
                self._samples = X
                matrix = self._by_function(X, X)
            matrix = matrix if in_order else matrix[np.ix_(tasks.order, tasks.order)]
            diag = np.array(matrix.diagonal(), dtype=np.float64)
            return WholeGram(matrix, diag, tasks.starts)
        return Operand(X, order=None if in_order else tasks.order, run=threads.map)

    def _warn(self, solutions: Sequence[Solution], stopped_early: bool) -> None:
        left = [s for s in solutions if not s.converged]
        worst = max(left, key=lambda s: s.kkt_gap + s.error)
        limit = MOST_STEPS if self.max_iter < 0 else self.max_iter
        n_steps = max(s.n_iter for s in left)
        state = (
            f"KKT gap {worst.kkt_gap:.3g} and rounding errors of {worst.error:.1g} are "
            f"more than tol={self.tol:g}"
        )
        if worst.kkt_gap + worst.error <= self.tol:
            # A gap within the tolerance is not enough: bounds and sums have to hold.
            state = "the coefficients violate their bounds or the sum of a group"
            remedy = f"solver={self.solver!r} has failed; use solver='auto'."
        elif stopped_early:
            remedy = "A callback asked for an early end."
        elif limit <= n_steps and self.max_iter < 0:
            remedy = (
                f"The solver has a limit of its own, here {n_steps} steps, where "
                "max_iter=-1 sets none. Scale the data, for example by StandardScaler, "
                "lower C or raise tol; a max_iter above this limit lets it go on."
            )
        elif limit <= n_steps:
            remedy = (
                f"Solver terminated early (max_iter={self.max_iter}).  Consider "
                "pre-processing your data with StandardScaler or MinMaxScaler. Or "
                "raise max_iter."
            )
        elif self.solver in ("random", "simplified"):
            remedy = f"solver={self.solver!r} is approximate; 'auto' is exact."
        elif self._is_precomputed() or self._is_function():
            remedy = "The kernel matrix must be symmetric; if it is, scale it, lower C."
        else:
            remedy = "Scale the data, lower C, raise tol, or pass float64 data."
        warnings.warn(
            f"{type(self).__name__} did not converge in {len(left)} of "
            f"{len(solutions)} problems: {state} after "
            f"{sum(s.n_iter for s in solutions)} iterations. {remedy}",
            ConvergenceWarning,
            stacklevel=8,  # where the user called fit, past three wrappers
        )

    def _validate_for_predict(self, X: Any) -> Any:
        check_is_fitted(self)
        self._check_internals()
        if self._is_function() and self.support_vectors_.dtype == object:
            return things(X)
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

    def _check_internals(self) -> None:
        """Refuse to compute with arrays that do not fit together any more."""
        n = len(self.support_)
        sizes = {int(self.n_support_.sum()), self.dual_coef_.shape[1]}
        if not self._is_precomputed():
            sizes.add(self.support_vectors_.shape[0])
        if sizes != {n}:
            raise ValueError(
                f"The internal representation of {type(self).__name__} was altered"
            )
        if self._is_function() and not hasattr(self, "_samples"):
            raise NotFittedError(f"kernel={self.kernel!r} was set after fit: fit again")

    @property
    def _gamma(self) -> float:
        return getattr(self.kernel_, "gamma", 0.0)

    @property
    def _n_support(self) -> NDArray:
        return self.n_support_

    @property
    def _libsvm_sign(self) -> float:
        """Return -1 where LIBSVM has the other side positive."""
        return 1.0

    @property
    def _dual_coef_(self) -> Any:
        return self._libsvm_sign * self.dual_coef_

    @_dual_coef_.setter
    def _dual_coef_(self, value: Any) -> None:
        self.dual_coef_ = self._libsvm_sign * value

    @property
    def _intercept_(self) -> NDArray:
        return self._libsvm_sign * self.intercept_

    @_intercept_.setter
    def _intercept_(self, value: NDArray) -> None:
        self.intercept_ = self._libsvm_sign * value

    @abstractmethod
    def _weights(self) -> Weights:
        """Return the coefficients of the support vectors."""

    @property
    def coef_(self) -> Any:
        """Weights of the features, one row for each machine."""
        if not hasattr(self, "kernel_"):
            raise AttributeError("coef_ is only available after fit")
        if not isinstance(self.kernel_, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        return frozen(self._weights().matrix.T @ self.support_vectors_)

    @QUIET
    def _decisions(self, X: Any) -> NDArray:
        """Return ``K(X, support vectors) @ weights + bias``, shape (n, n_tasks)."""
        X = self._validate_for_predict(X)
        weights = self._weights()
        if self._is_precomputed():
            given = X[:, self.support_].astype(np.float64, copy=False)
            values = given @ weights.matrix
        elif isinstance(self.kernel_, Linear):
            # One product with the weights of the features, whatever the support.
            values = as_dense(X @ as_dense(self.support_vectors_.T @ weights.matrix))
        elif self._is_function():
            given = self._by_function(X, self._samples)
            values = given[:, self.support_].astype(np.float64) @ weights.matrix
        else:
            vectors = self.support_vectors_
            self.kernel_.bind(X)  # what it asks of the data holds for new ones too
            if self._needs_double(Operand(vectors), weights.matrix):
                X, vectors = X.astype(np.float64), vectors.astype(np.float64)
            with Threads(self.n_jobs) as threads:
                anchor = Operand(vectors, run=threads.map)
                values = apply(
                    self.kernel_,
                    Operand(X),
                    anchor,
                    weights,
                    threads,
                    given_budget(self.cache_size),
                )
        values = values + self.intercept_
        if not np.isfinite(values).all():
            raise ValueError(
                "The decision values are not finite: X has too large values; scale it."
            )
        return values

    def _needs_double(self, vectors: Operand, weights: sparse.csr_array) -> bool:
        """Tell whether rounding in single precision could matter beside ``tol``."""
        if vectors.dtype == np.float64 or not len(vectors):
            return False
        largest = np.abs(self.kernel_.diagonal(vectors)).max()
        spread = np.sqrt((weights * weights).sum(axis=0).max())
        return bool(np.finfo(np.float32).eps * largest * spread > 0.1 * self.tol)
