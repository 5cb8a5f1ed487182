"""How machines with several kernels are fitted.

validate → bind kernels → compute base Gram matrices → learn weights and machines →
certify
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer.core.problem import Solution, is_feasible
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.tiles import (
    Weights,
    given_budget,
)
from mercer.engines.engine import Plan, Settings, TaskSpec, all_of, engine_of
from mercer.kernels.base import Kernel, Scaled, seen_by, with_names
from mercer.kernels.dot import Linear
from mercer.kernels.given import Precomputed
from mercer.machines.base.machine import KernelMachine, Validated, as_kernel
from mercer.machines.mkl.given import GivenMatrices, check_matrices, check_new_matrices
from mercer.machines.mkl.grams import BaseGrams, weighted_sum
from mercer.machines.mkl.inmemory import GramsInMemory
from mercer.machines.mkl.joint_problem import JointProblem, JointSolution
from mercer.machines.mkl.methods import METHODS, is_convex, learn, settled, split
from mercer.machines.mkl.store import LEAST_FOR_SINGLE, make_store
from mercer.machines.mkl.weights import Ball
from mercer.runtime.progress import FitProgress
from mercer.runtime.scikit_learn import Interval, StrOptions, as_in_scikit_learn
from mercer.runtime.threads import Threads
from mercer.runtime.user_warnings import warn_user
from mercer.runtime.validation import QUIET, check_finite, frozen

__all__ = ["MultiKernelMachine"]

log = logging.getLogger("mercer")

# Largest number of rounds if the user sets no limit.
MOST_ROUNDS = 1000
# Tolerance of the machines that are fitted to the folds of a calibration.
FOLD_TOLERANCE = 1e-3


class Learnt(NamedTuple):
    """Certified solutions, as of a machine with one kernel, and the weights."""

    solutions: list[Solution]
    is_convex: bool | None
    stopped_early: bool
    verdicts: list[bool | None]  #: for each set of weights, whether it is convex
    factors: NDArray  #: by which the kernels were scaled
    found: list[JointSolution]  #: for each set of weights, how learning ended
    coarse: Sequence[dict] = ()  #: nothing is left to be computed in double precision


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
                "at which pair steps get stuck. Use method='auto', 'group-lasso' or "
                "'simple', or a p close to 1 such as 1.1."
            )
        if self.method == "simple" and p != 1:
            raise ValueError(
                f"method='simple' needs p = 1, got p={p!r}. Use method='auto', "
                "'group-lasso' or 'smo' for other p."
            )
        has_penalty = ("auto", "group-lasso", "smo")
        if self.penalty is not None and self.method not in has_penalty:
            raise ValueError(
                f"penalty={self.penalty!r} needs method='auto', 'group-lasso' or "
                f"'smo', got method={self.method!r}. Set penalty=None, or choose one "
                "of these."
            )
        return Ball(float(p), float(self.penalty or 0.0))

    def _base_kernels(self, valid: Validated) -> list[Kernel]:
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
        names = valid.learnt.get("feature_names_in_")
        return [with_names(kernel, valid.views, names) for kernel in kernels]

    def _check_choices(self) -> None:
        super()._check_choices()
        self._ball()

    def _validated(self, X: Any, y: Any) -> Validated:
        if not self._is_precomputed():
            return super()._validated(X, y)
        matrices, y = check_matrices(X, y)
        shape = (len(matrices.matrices), *matrices.shape)
        learnt = {"n_features_in_": matrices.shape[1], "shape_fit_": shape}
        return Validated(matrices, y, learnt, None)

    def _bound(self, valid: Validated) -> tuple[tuple[Kernel, ...], Any]:
        if self._is_precomputed():
            return (Precomputed(),), valid.X
        kernels = self._base_kernels(valid)
        samples = seen_by(kernels, valid.X)
        return tuple(kernel.bind(samples) for kernel in kernels), samples

    @QUIET
    def _solve(self, plan: Plan) -> Learnt:
        kernels = [] if plan.is_matrix else list(plan.kernels)
        with engine_of(plan.X, n_jobs=self.n_jobs) as engine:
            threads = engine.threads
            progress = FitProgress(self, plan.X, plan.y, self.verbose, engine.stop)
            # If single precision is not enough, fit again in double precision.
            for tol in (self.tol, 0.0):
                store = self._store(plan, kernels, threads, tol)
                found, solutions, verdicts = self._run(store, kernels, plan, progress)
                is_over = max(f.n_iter for f in found) >= self._most_rounds()
                is_good = all(s.converged for s in solutions)
                if is_good or store.is_double or is_over or threads.stop[0]:
                    break
            progress.finish(solutions)
        return Learnt(
            solutions,
            all_of(verdicts),
            progress.stopped_early,
            verdicts,
            store.factors,
            found,
        )

    def _store(
        self, plan: Plan, kernels: list[Kernel], threads: Threads, tol: float
    ) -> BaseGrams:
        """Return the base Gram matrices, with the samples ordered in blocks."""
        X, order, starts = plan.samples, plan.order, list(plan.starts)
        in_order = bool((np.diff(order) == 1).all())
        if isinstance(X, GivenMatrices):
            matrices = X.matrices
            if tol < LEAST_FOR_SINGLE:
                matrices = [m.astype(np.float64, copy=False) for m in matrices]
            if not in_order:
                matrices = [m[np.ix_(order, order)] for m in matrices]
            store: BaseGrams = GramsInMemory(matrices, starts, threads)
        else:
            data = Operand(X, order=None if in_order else order, run=threads.map)
            engine = None
            if self.device != "cpu":
                engine = engine_of(X, self.device, self.n_jobs)
            store = make_store(
                kernels, data, starts, self.cache_size, threads, tol, engine
            )
        check_finite("kernel values", store.diagonals())
        store.normalize(self.normalize)
        return store

    def _most_rounds(self) -> int:
        return MOST_ROUNDS if self.max_iter < 0 else max(1, self.max_iter)

    def _run(
        self,
        store: BaseGrams,
        kernels: list[Kernel],
        plan: Plan,
        progress: FitProgress,
    ) -> tuple[list[JointSolution], list[Solution], list[bool | None]]:
        """Learn the weights, shared or one set per machine, and certify the result."""
        step = plan.per_machine
        solutions: list[Any] = [None] * len(plan.specs)
        found, verdicts = [], []
        settings = Settings(tol=self.tol, cache_size=self.cache_size)
        for part in split(store, plan, self._is_shared()):
            problem = JointProblem(
                part.store, part.specs, self._ball(), settings, progress
            )
            end = learn(
                problem, self.method, self._most_rounds(), self.alignment,
                self._alignment_target,
            )  # fmt: skip
            weights = end.last.weights
            if kernels:
                end = settled(
                    problem, end, kernels, store.factors, plan.samples, part.samples
                )
            is_within = end.last.is_within(self.tol) and all(
                is_feasible(spec.problem, solution.beta)
                for spec, solution in zip(part.specs, end.last.solutions, strict=True)
            )
            found.append(end)
            verdicts.append(is_convex(problem, kernels, weights))
            for t, solution in zip(part.machines, end.last.solutions, strict=True):
                solutions[t * step] = solution._replace(converged=is_within)
            if part.folds:
                other = JointProblem(
                    part.store, part.folds, problem.ball, settings, progress
                )
                folds = other.solve(weights, tol=FOLD_TOLERANCE).solutions
                for i, t in enumerate(part.machines):
                    own = folds[i * (step - 1) : (i + 1) * (step - 1)]
                    solutions[t * step + 1 : (t + 1) * step] = own
        return found, solutions, verdicts

    def _keep_machines(self, plan: Any, learnt: Any) -> Sequence[Solution]:
        """Store weights and certificates, one for all machines or one for each."""
        machines = super()._keep_machines(plan, learnt)
        found, factors = learnt.found, learnt.factors
        kernels = [] if plan.is_matrix else list(plan.kernels)
        weights = np.array([end.last.weights for end in found])
        objective = np.array([-end.last.dual for end in found])
        gap = np.array([end.last.gap for end in found])
        gap[[is_convex is False for is_convex in learnt.verdicts]] = np.inf
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
        if not plan.is_matrix:
            sums = [weighted_sum(kernels, row * factors) for row in weights]
            self.kernel_: Any = sums[0] if shared else sums
        self.weights_ = weights[0] if shared else weights
        self.objective_: Any = float(objective[0]) if shared else objective
        self.dual_gap_: Any = float(gap[0]) if shared else gap
        self.n_iter_: Any = int(n_iter[0]) if shared else n_iter
        return machines

    def _warn(self, learnt: Learnt) -> None:
        found = learnt.found
        worst = max(found, key=lambda end: end.last.gap / abs(end.last.primal or 1.0))
        n_iter = max(end.n_iter for end in found)
        if learnt.stopped_early:
            remedy = "A callback asked for an early end."
        elif n_iter >= self._most_rounds():
            remedy = f"max_iter={self.max_iter} allows no more; raise max_iter."
            if self.max_iter < 0:
                remedy = (
                    f"max_iter=-1 allows {self._most_rounds()} rounds. Scale the data, "
                    "lower C, raise tol, or raise max_iter above this limit."
                )
        else:
            remedy = "Scale the data, lower C, or raise tol."
        part = worst.last.gap / abs(worst.last.primal or 1.0)
        warn_user(
            f"{type(self).__name__} did not converge: after {n_iter} rounds the dual "
            f"gap is {worst.last.gap:.3g}, which is {part:.2g} of the objective and "
            f"more than tol={self.tol:g}. {remedy}",
            ConvergenceWarning,
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
        found = self._weights().matrix.T @ self.support_vectors_
        if sparse.issparse(found):
            found = as_in_scikit_learn(sparse.csr_array(found))
        return frozen(factor * found)

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
            budget = given_budget(self.cache_size)
            with engine_of(X, self.device, self.n_jobs) as engine:
                left, right = (
                    engine.operand(data.astype(np.float64))
                    for data in (X, self.support_vectors_)
                )
                for k in used:
                    weights = Weights(scaled[k], starts)
                    values += engine.apply(
                        self._kernels[k], left, right, weights, budget
                    )
        values = values + self.intercept_
        check_finite("decision values", values)
        return values
