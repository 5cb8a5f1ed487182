"""How machines with several kernels are fitted.

validate → bind kernels → compute base Gram matrices → learn weights and machines →
certify
"""

from __future__ import annotations

import logging
import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.core.problem import Solution, is_feasible
from mercer.engines.cpu.certificates import all_of
from mercer.engines.cpu.coefficients import Weights
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.solve import Settings, TaskSpec
from mercer.engines.cpu.tiles import apply, is_custom
from mercer.kernels.base import Kernel, Scaled, with_names
from mercer.kernels.dot import Linear
from mercer.kernels.expression import as_kernel
from mercer.kernels.given import Precomputed
from mercer.machines.base.machine import QUIET, KernelMachine, Tasks
from mercer.machines.mkl.base import BaseGrams, weighted_sum
from mercer.machines.mkl.given import GivenMatrices, check_matrices, check_new_matrices
from mercer.machines.mkl.inmemory import GramsInMemory
from mercer.machines.mkl.learning import METHODS, is_convex, learn, settled, split
from mercer.machines.mkl.problem import Found, Problem
from mercer.machines.mkl.store import LEAST_FOR_SINGLE, make_store
from mercer.machines.mkl.weights import Ball
from mercer.runtime.arrays import dense_if_small, frozen
from mercer.runtime.memory import budget_bytes, given_budget
from mercer.runtime.progress import FitProgress
from mercer.runtime.scikit_learn import Interval, StrOptions, check_sample_weight
from mercer.runtime.threads import Threads

__all__ = ["MultiKernelMachine"]

log = logging.getLogger("mercer")

# Largest number of rounds if the user sets no limit.
MOST_ROUNDS = 1000
# Tolerance of the machines that are fitted to the folds of a calibration.
FOLD_TOLERANCE = 1e-3


class MultiKernelMachine(KernelMachine):
    """Base class of machines with several kernels."""

    _parameter_constraints: ClassVar[dict] = {
        **{
            name: allowed
            for name, allowed in KernelMachine._parameter_constraints.items()
            if name not in ("kernel", "solver", "shrinking")
        },
        "kernels": [list, tuple, str, Kernel],
        "method": [StrOptions(set(METHODS))],
        "p": [Interval(Real, 1.0, None, closed="left"), None],
        "penalty": [Interval(Real, 0.0, None, closed="neither"), None],
        "alignment": [StrOptions({"plain", "centred", "joint"})],
        "normalize": [StrOptions({"trace", "variance"}), None],
        "C": [Interval(Real, 0.0, None, closed="neither")],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = False
        tags.input_tags.three_d_array = self._is_precomputed()
        tags.input_tags.two_d_array = not self._is_precomputed()
        return tags

    def _is_shared(self) -> bool:
        """Whether all machines have the same weights."""
        return True

    def _alignment_target(self, spec: TaskSpec) -> NDArray:
        """Return the values, by row of a problem, with which kernels are aligned."""
        raise NotImplementedError

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def _is_function(self) -> bool:
        return False

    def _leaves(self) -> list[Kernel]:
        given = self.kernels
        some = [given] if isinstance(given, str | Kernel) else given
        return [
            leaf
            for kernel in some
            if not isinstance(kernel, str)
            for leaf in as_kernel(kernel, degree=0, gamma=1.0, coef0=0.0).leaves()
        ]

    def _ball(self) -> Ball:
        """Return the set of allowed weights; raise an error if parameters conflict."""
        p = self.p if self.p is not None else (1.0 if self.method == "simple" else 2.0)
        if self.method == "smo" and not p > 1:
            raise ValueError(
                f"method='smo' needs p > 1, got p={p!r}: at p = 1 the dual has corners "
                "at which pair steps get stuck. Use method='group-lasso' or 'simple', "
                "or a p close to 1 such as 1.1."
            )
        if self.method == "simple" and p != 1:
            raise ValueError(
                f"method='simple' needs p = 1, got p={p!r}. Use method='group-lasso' "
                "or 'smo' for other p."
            )
        if self.penalty is not None and self.method not in ("group-lasso", "smo"):
            raise ValueError(
                f"penalty={self.penalty!r} needs method='group-lasso' or 'smo', got "
                f"method={self.method!r}. Set penalty=None, or choose one of these."
            )
        return Ball(float(p), float(self.penalty or 0.0))

    def _base_kernels(self) -> list[Kernel]:
        """Return the kernels, with the views that the training data named, if any."""
        given = self.kernels
        if isinstance(given, str | Kernel):
            given = [given]
        if not len(given):
            raise ValueError("kernels is empty: give at least one kernel.")
        kernels = [
            as_kernel(k, degree=self.degree, gamma=self.gamma, coef0=self.coef0)
            for k in given
        ]
        if any(isinstance(leaf, Precomputed) for k in kernels for leaf in k.leaves()):
            raise ValueError(
                "A precomputed kernel cannot be one of several. Set "
                "kernels='precomputed' and pass all matrices as X, of shape "
                "(n_kernels, n_samples, n_samples)."
            )
        names = getattr(self, "feature_names_in_", None)
        return [with_names(kernel, self._views, names) for kernel in kernels]

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any]:
        self._ball()
        if not self._is_precomputed():
            return super()._validate(X, y)
        self._views: Any = None
        matrices, y = check_matrices(X, y)
        self.n_features_in_ = matrices.shape[1]
        self.shape_fit_ = (len(matrices.matrices), *matrices.shape)
        return matrices, y

    @QUIET
    def _solve(
        self, X: Any, y: Any, targets: NDArray, sample_weight: Any
    ) -> tuple[Tasks, list[Solution]]:
        anchor = X.matrices[0] if isinstance(X, GivenMatrices) else X
        weight = check_sample_weight(
            sample_weight, anchor, dtype=np.float64, allow_all_zero_weights=True
        )
        tasks = self._tasks(targets, weight)
        kernels = [] if self._is_precomputed() else self._base_kernels()
        # A user's own function gets the samples as they were given.
        samples = X if any(map(is_custom, kernels)) else dense_if_small(X)
        kernels = [kernel.bind(samples) for kernel in kernels]
        with Threads(self.n_jobs) as threads:
            progress = FitProgress(self, X, y, self.verbose, threads.stop)
            # If single precision is not enough, fit again in double precision.
            for tol in (self.tol, 0.0):
                store = self._store(samples, kernels, tasks, threads, tol)
                found, solutions = self._run(store, kernels, samples, tasks, progress)
                is_over = max(f.n_iter for f in found) >= self._most_rounds()
                if self.converged_ or store.is_double or is_over or threads.stop[0]:
                    break
            progress.finish(solutions)
        self._keep_weights(kernels, store.factors, found)
        if not self.converged_:
            self._warn_of(found, progress.stopped_early)
        return tasks, solutions

    def _store(
        self, X: Any, kernels: list[Kernel], tasks: Tasks, threads: Threads, tol: float
    ) -> BaseGrams:
        """Return the base Gram matrices, with the samples ordered in blocks."""
        order = tasks.order
        in_order = bool((np.diff(order) == 1).all())
        starts = list(tasks.starts)
        if isinstance(X, GivenMatrices):
            matrices = X.matrices
            if tol < LEAST_FOR_SINGLE:
                matrices = [m.astype(np.float64, copy=False) for m in matrices]
            if not in_order:
                matrices = [m[np.ix_(order, order)] for m in matrices]
            store: BaseGrams = GramsInMemory(matrices, starts, threads)
        else:
            data = Operand(X, order=None if in_order else order, run=threads.map)
            budget = budget_bytes(self.cache_size)
            store = make_store(kernels, data, starts, budget, threads, tol)
        if not np.isfinite(store.diagonals()).all():
            raise ValueError(
                "Kernel values are not finite. The input data may contain large values "
                "and need to be preprocessed."
            )
        store.normalize(self.normalize)
        return store

    def _most_rounds(self) -> int:
        return MOST_ROUNDS if self.max_iter < 0 else max(1, self.max_iter)

    def _run(
        self,
        store: BaseGrams,
        kernels: list[Kernel],
        X: Any,
        tasks: Tasks,
        progress: FitProgress,
    ) -> tuple[list[Found], list[Solution]]:
        """Learn the weights, shared or one set per machine, and certify the result."""
        step = self._problems_per_machine()
        solutions: list[Any] = [None] * len(tasks.specs)
        found, converged, verdicts = [], [], []
        settings = Settings(
            tol=self.tol,
            cache_size=self.cache_size,
            seed=check_random_state(self.random_state).randint(2**31 - 1),
        )
        for part in split(store, tasks, step, self._is_shared()):
            problem = Problem(part.store, part.specs, self._ball(), settings, progress)
            end = learn(
                problem, self.method, self._most_rounds(), self.alignment,
                self._alignment_target,
            )  # fmt: skip
            weights = end.last.weights
            if kernels:
                end = settled(problem, end, kernels, store.factors, X, part.samples)
            is_within = end.last.is_within(self.tol) and all(
                is_feasible(spec.problem, solution.beta)
                for spec, solution in zip(part.specs, end.last.solutions, strict=True)
            )
            converged.append(is_within)
            found.append(end)
            verdicts.append(is_convex(problem, kernels, weights))
            for t, solution in zip(part.machines, end.last.solutions, strict=True):
                solutions[t * step] = solution._replace(converged=is_within)
            if part.folds:
                other = Problem(
                    part.store, part.folds, problem.ball, settings, progress
                )
                folds = other.solve(weights, tol=FOLD_TOLERANCE).solutions
                converged += [s.converged for s in folds]
                for i, t in enumerate(part.machines):
                    own = folds[i * (step - 1) : (i + 1) * (step - 1)]
                    solutions[t * step + 1 : (t + 1) * step] = own
        self._verdicts = verdicts
        self.converged_ = all(converged)
        self.fit_status_ = 0 if self.converged_ else 1
        return found, solutions

    def _keep_weights(
        self, kernels: list[Kernel], factors: NDArray, found: list[Found]
    ) -> None:
        """Store weights and certificates, one for all machines or one for each."""
        weights = np.array([end.last.weights for end in found])
        objective = np.array([-end.last.dual for end in found])
        gap = np.array([end.last.gap for end in found])
        verdicts = self.__dict__.pop("_verdicts")
        self.is_convex_ = all_of(verdicts)
        gap[[is_convex is False for is_convex in verdicts]] = np.inf
        n_iter = np.array([end.n_iter for end in found], dtype=np.int32)
        self._kernels, self._factors = kernels, factors
        self.history_ = {
            "problem": np.repeat(np.arange(len(found)), n_iter).tolist(),
            **{
                name: [row for end in found for row in end.history[name].tolist()]
                for name in found[0].history
            },
        }
        shared = self._is_shared()
        if self._is_precomputed():
            self.kernel_: Any = Precomputed()
        else:
            sums = [weighted_sum(kernels, row * factors) for row in weights]
            self.kernel_ = sums[0] if shared else sums
        self.weights_ = weights[0] if shared else weights
        self._certificate = (
            (float(objective[0]), float(gap[0]), int(n_iter[0]))
            if shared
            else (objective, gap, n_iter)
        )

    def _report_problem(self) -> None:
        """Set the fitted attributes that certify weights and machines together."""
        certificate: Any = self._certificate
        self.objective_: Any = certificate[0]
        self.dual_gap_: Any = certificate[1]
        self.n_iter_: Any = certificate[2]
        del self._certificate

    def _warn_of(self, found: list[Found], stopped_early: bool) -> None:
        worst = max(found, key=lambda end: end.last.gap / abs(end.last.primal or 1.0))
        n_iter = max(end.n_iter for end in found)
        if stopped_early:
            remedy = "A callback asked for an early end."
        elif n_iter >= self._most_rounds():
            remedy = f"max_iter={self.max_iter} allows no more; raise max_iter."
            if self.max_iter < 0:
                remedy = (
                    f"There is a limit of {self._most_rounds()} rounds where "
                    "max_iter=-1 sets none. Scale the data, lower C or raise tol; a "
                    "max_iter above this limit allows more."
                )
        else:
            remedy = "Scale the data, lower C, or raise tol."
        part = worst.last.gap / abs(worst.last.primal or 1.0)
        warnings.warn(
            f"{type(self).__name__} did not converge: after {n_iter} rounds the dual "
            f"gap is {worst.last.gap:.3g}, which is {part:.2g} of the objective and "
            f"more than tol={self.tol:g}. {remedy}",
            ConvergenceWarning,
            stacklevel=8,  # where the user called fit, past three wrappers
        )

    def _validate_for_predict(self, X: Any) -> Any:
        if not self._is_precomputed():
            return super()._validate_for_predict(X)
        check_is_fitted(self)
        self._check_internals()
        return check_new_matrices(X, self.shape_fit_[0], self.shape_fit_[1])

    @property
    def coef_(self) -> Any:
        """Weights of the features, if only a linear kernel of all columns is left."""
        kernel = getattr(self, "kernel_", None)
        factor = 1.0
        if isinstance(kernel, Scaled):
            kernel, factor = kernel.kernel, kernel.factor
        if not isinstance(kernel, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        return frozen(factor * (self._weights().matrix.T @ self.support_vectors_))

    @QUIET
    def _decisions(self, X: Any) -> NDArray:
        if self._is_shared() and not self._is_precomputed():
            return super()._decisions(X)
        X = self._validate_for_predict(X)
        matrix, starts = self._weights()
        values = np.zeros((X.shape[0], matrix.shape[1]))
        by_machine = np.broadcast_to(
            self.weights_ * self._factors, (matrix.shape[1], len(self._factors))
        )
        used = np.flatnonzero(by_machine.any(axis=0))
        scaled = {k: sparse.csr_array(matrix * by_machine[:, k]) for k in used}
        if self._is_precomputed():
            for k in used:
                given = X.matrices[k][:, self.support_].astype(np.float64)
                values += given @ scaled[k]
        else:
            with Threads(self.n_jobs) as threads:
                left, right = (
                    Operand(data.astype(np.float64), run=threads.map)
                    for data in (X, self.support_vectors_)
                )
                for k in used:
                    weights = Weights(scaled[k], starts)
                    values += apply(
                        self._kernels[k],
                        left,
                        right,
                        weights,
                        threads,
                        given_budget(self.cache_size),
                    )
        values = values + self.intercept_
        if not np.isfinite(values).all():
            raise ValueError(
                "The decision values are not finite: the values of X are too large. "
                "Scale X."
            )
        return values
