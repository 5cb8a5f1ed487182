"""What the linear machines share: parameters, validation, fit, decision values.

As with kernel machines, a fit is planned, solved by an engine, and kept.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import svm
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.engines.cpu.linear.problems import LinearProblems, with_intercept
from mercer.engines.cpu.linear.solve import LinearFound, Start
from mercer.engines.engine import engine_of
from mercer.runtime.progress import FitProgress
from mercer.runtime.scikit_learn import Interval, StrOptions, check_sample_weight
from mercer.runtime.user_warnings import warn_user
from mercer.runtime.validation import (
    QUIET,
    as_dense,
    check_finite,
    validate_new_samples,
    validate_samples,
)

__all__ = ["LinearMachine", "LinearPlan"]


class LinearPlan(NamedTuple):
    """What a fit is going to solve."""

    X: Any  #: the validated samples
    y: Any  #: the validated targets
    targets: NDArray  #: what each machine is to predict, shape (n_machines, n)
    weights: NDArray  #: factors of C, shape (n_problems, n); folds follow machines
    learnt: dict[str, Any]  #: attributes that validation has found


class LinearMachine(CallbackSupportMixin, BaseEstimator):
    """Base class of the linear machines."""

    _parameter_constraints: ClassVar[dict] = {
        "dual": ["boolean", StrOptions({"auto"})],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "penalize_intercept": ["boolean"],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
    }

    coef_: Any

    @abstractmethod
    def _plan(self, X: Any, y: Any, sample_weight: Any) -> LinearPlan:
        """Say what is to be solved, without a change of the estimator."""

    @abstractmethod
    def _problems(self, plan: LinearPlan) -> LinearProblems:
        """Return the problems with an l2 penalty."""

    @abstractmethod
    def _keep(self, plan: LinearPlan, found: LinearFound) -> None:
        """Replace what an earlier fit has left by what was found."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @QUIET
    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        plan = self._plan(X, y, sample_weight)
        found = self._solve(plan)
        check_finite("weights or intercepts", found.weights, found.objective)
        self._keep(plan, found)
        if not found.converged:
            self._warn(found)
        return self

    def _solve(self, plan: LinearPlan) -> LinearFound:
        """Let an engine find certified solutions."""
        with engine_of(plan.X, n_jobs=self.n_jobs) as engine:
            progress = None
            if self.verbose or getattr(self, "_skl_callbacks", None):
                progress = FitProgress(
                    self, plan.X, plan.y, self.verbose, engine.stop, "dual gap"
                )
            found = self._solve_with(engine, plan, self._start(plan), progress)
        if progress is not None:
            progress.end(f"dual gap {found.gap.sum():.3g}")
        return found

    def _solve_with(
        self,
        engine: Any,
        plan: LinearPlan,
        start: Start | None,
        progress: FitProgress | None,
    ) -> LinearFound:
        return engine.solve_linear(
            plan.X,
            self._problems(plan),
            self.tol,
            self.max_iter,
            self._seed(),
            start,
            progress,
        )

    def _targets(self, plan: LinearPlan) -> NDArray:
        """Return the targets of all problems of a plan, a row for each."""
        return plan.targets

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _validated(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Check samples and targets; return them, and what the checks have found."""
        # scikit-learn sets attributes of the estimator that it validates for.
        draft = object.__new__(type(self))
        draft.__dict__.update(vars(self))
        X, y = validate_samples(draft, X, y, multi_output=False)
        if sparse.issparse(X):
            # Sorted columns without repetition, in a copy if X is the user's.
            X = X.copy() if not X.has_canonical_format else X
            X.sum_duplicates()
        learnt = {
            name: vars(draft)[name]
            for name in ("n_features_in_", "feature_names_in_")
            if name in vars(draft)
        }
        return X, y, learnt

    def _sample_weight(self, X: Any, sample_weight: Any) -> NDArray:
        weight = check_sample_weight(
            sample_weight,
            np.empty(X.shape[0]),
            dtype=np.float64,
            allow_all_zero_weights=True,
        )
        weight = np.maximum(weight, 0.0)
        if not (weight > 0).any():
            raise ValueError(
                "Invalid input - all samples have zero or negative weights."
            )
        return weight

    def _with_intercept(
        self, p: NDArray, lo: NDArray, hi: NDArray, ridge: NDArray, n: int
    ) -> LinearProblems:
        scaling = float(self.intercept_scaling) if self.fit_intercept else None
        return with_intercept(p, lo, hi, ridge, n, scaling, self.penalize_intercept)

    def _start(self, plan: LinearPlan) -> Start | None:
        """Return what an earlier fit has found, with ``warm_start``."""
        coef = getattr(self, "coef_", None)
        k, d = len(plan.weights), plan.X.shape[1]
        if not self.warm_start or coef is None:
            return None
        coef = np.atleast_2d(as_dense(coef)).astype(np.float64)
        if k % len(coef) or coef.shape[1] != d:
            return None
        coef = np.tile(coef, (k // len(coef), 1))
        beta = getattr(self, "_beta", None)
        for start in (coef, self.intercept_, beta):
            if start is not None and not np.isfinite(start).all():
                return None
        if not self.fit_intercept:
            return Start(coef, np.zeros((k, 0)), beta)
        bias = np.atleast_1d(self.intercept_)
        if len(coef) % len(bias):
            return None
        value = self.intercept_scaling if self.penalize_intercept else -1.0
        return Start(coef, np.tile(bias / value, k // len(bias))[:, None], beta)

    def _intercepts(self, found: LinearFound) -> NDArray:
        """Return the intercept of each problem."""
        if not self.fit_intercept:
            return np.zeros(len(found.weights))
        value = self.intercept_scaling if self.penalize_intercept else -1.0
        return value * found.shifts[:, 0]

    def _keep_common(self, plan: LinearPlan, found: LinearFound) -> None:
        for name in list(vars(self)):
            if name == "_beta" or (name.endswith("_") and name[0] != "_"):
                delattr(self, name)
        if self.warm_start and found.beta.size:
            self._beta = found.beta
        self.__dict__.update(plan.learnt)
        self.n_iter_ = int(found.n_iter)
        self.converged_ = bool(found.converged)

    def _warn(self, found: LinearFound) -> None:
        """Say how far the solutions are from the optimum, and what helps."""
        ratio = (found.gap / np.maximum(found.objective, 1e-300)).max()
        remedy = "Raise tol, scale the data, or lower C."
        if found.n_iter >= self.max_iter:
            # The second sentence is scikit-learn's, for programs that look for it.
            remedy = (
                "Liblinear failed to converge, increase the number of iterations. "
                f"That is: raise max_iter={self.max_iter} or tol, scale the data, for "
                "example with StandardScaler, or lower C."
            )
        reasons = [found.hindrance] if found.hindrance else []
        if ratio > self.tol:
            reasons.append(
                f"the duality gap is {ratio:.2g} of the objective, more than "
                f"tol={self.tol:g}"
            )
        state = ", and ".join(reasons)
        warn_user(
            f"{type(self).__name__} did not converge in {found.n_iter} iterations: "
            f"{state}. {remedy}",
            ConvergenceWarning,
        )

    @QUIET
    def _decisions(self, X: Any) -> NDArray:
        """Return ``X @ coef_.T + intercept_``, shape (n, n_machines)."""
        check_is_fitted(self)
        X = validate_new_samples(self, X)
        coef = np.atleast_2d(as_dense(self.coef_)).astype(np.float64, copy=False)
        if coef.shape[1] != X.shape[1]:
            raise ValueError(
                f"coef_ has shape {self.coef_.shape}, and the samples have "
                f"{X.shape[1]} features. Call fit again."
            )
        with engine_of(X, n_jobs=self.n_jobs) as engine:
            values = engine.features(X).scores(np.ascontiguousarray(coef)).T
        values = values + self.intercept_
        check_finite("decision values", values)
        return values

    def to_sklearn(self) -> Any:
        """Return a fitted estimator of scikit-learn with the same decision values.

        It is an instance of the class of the same name. It has no probabilities, and
        its ``predict`` uses the decision values; with ``probability=True`` a warning
        says so.

        Returns
        -------
        estimator
        """
        check_is_fitted(self)
        kind = getattr(svm, type(self).__name__, None)
        if kind is None:
            raise ValueError(
                f"{type(self).__name__} has no counterpart in scikit-learn. Use "
                "LinearSVC or LinearSVR."
            )
        if getattr(self, "probability", False):
            warn_user(
                "In the scikit-learn model predict follows the decision values; with "
                f"probability=True predict of {type(self).__name__} returns the most "
                "probable class. The two can differ near the boundaries."
            )
        own = self.get_params(deep=False)
        result = kind(**{name: own[name] for name in kind().get_params()})
        result.set_params(verbose=0)
        names = ("classes_", "n_iter_", "n_features_in_", "feature_names_in_")
        for name in (*names, "coef_", "intercept_"):
            if hasattr(self, name):
                setattr(result, name, copy(getattr(self, name)))
        return result

    def densify(self) -> Any:
        """Make ``coef_`` a dense array.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.coef_ = as_dense(self.coef_)
        return self

    def sparsify(self) -> Any:
        """Make ``coef_`` a sparse matrix, which saves memory if most weights are 0.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.coef_ = sparse.csr_array(np.atleast_2d(as_dense(self.coef_)))
        return self
