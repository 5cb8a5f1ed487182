"""The one way of fitting that all machines share.

plan  = self._plan(X, y, sample_weight)   # validate, bind the kernel, state problems
found = engine.solve(plan, settings, progress)
self._keep(plan, found)                   # support, coefficients, certificates
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from numbers import Integral, Real
from operator import is_not
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from mercer.core.problem import DualProblem, Solution
from mercer.core.stacked import column
from mercer.engines.cpu.small import Expansion
from mercer.engines.cpu.solve import MOST_STEPS, SOLVERS
from mercer.engines.cpu.tiles import (
    Weights,
    given_budget,
)
from mercer.engines.engine import Plan, Settings, TaskSpec, engine_of
from mercer.kernels.base import Kernel, seen_by, with_names
from mercer.kernels.dot import Linear
from mercer.kernels.expression import KERNELS, parse, unknown_kernel
from mercer.kernels.given import Custom, Precomputed, call_function
from mercer.kernels.pair import Samples
from mercer.kernels.views import views_of
from mercer.machines.base.export import to_sklearn
from mercer.runtime.progress import FitProgress
from mercer.runtime.scikit_learn import (
    Interval,
    StrOptions,
    as_in_scikit_learn,
    check_sample_weight,
)
from mercer.runtime.threads import one_blas_thread
from mercer.runtime.user_warnings import warn_user
from mercer.runtime.validation import (
    QUIET,
    as_dense,
    as_in_fit,
    check_finite,
    check_square,
    fit_method,
    frozen,
    is_numeric,
    refuse_other_things,
    things,
    validate_samples,
)

__all__ = [
    "CACHE_SIZE",
    "KERNEL_PARAMETERS",
    "UNBOUNDED",
    "KernelMachine",
    "SingleMachine",
    "Validated",
    "as_kernel",
]

# Up to this many multiplications, a second thread of BLAS gains nothing; where other
# programs are at work, the first would have to wait for it.
BRIEF_PRODUCT = 2**22
# Up to this many, BLAS uses one thread anyway.
LEAST_FOR_THREADS = 100_000

# Stands for C = inf, so that arithmetic with bounds stays finite.
UNBOUNDED = 1e200


class Validated(NamedTuple):
    """Samples and targets that have been checked."""

    X: Any
    y: Any
    learnt: dict[str, Any]  #: fitted attributes that the checks have found
    views: Any  #: groups of columns that the data name


#: The values that ``cache_size`` may have.
CACHE_SIZE = [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")]
#: The values that the parameters of a named kernel may have.
KERNEL_PARAMETERS: dict[str, list] = {
    "degree": [Interval(Integral, 0, None, closed="left")],
    "gamma": [
        StrOptions({"scale", "auto"}),
        Interval(Real, 0.0, None, closed="left"),
    ],
    "coef0": [Interval(Real, None, None, closed="neither")],
}


def as_kernel(kernel: Any, *, degree: int, gamma: float | str, coef0: float) -> Kernel:
    """Turn what estimators take as ``kernel`` into a kernel.

    A plain name takes its parameters from the arguments, an expression from its text.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel) and not isinstance(kernel, type):
        return Custom(kernel)
    other = "a Kernel or a function of two matrices"
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        name = kernel.__name__
        raise TypeError(f"kernel is the class {name}, not a kernel: write {name}().")
    if not isinstance(kernel, str):
        raise TypeError(f"kernel must be a name or text, {other}; got {kernel!r}.")
    name = kernel.strip()
    if name == "precomputed":
        return Precomputed()
    if name in KERNELS:
        values = {"degree": degree, "gamma": gamma, "coef0": coef0}
        takes = vars(KERNELS[name]())
        return KERNELS[name](**{key: v for key, v in values.items() if key in takes})
    if name.isidentifier():
        raise ValueError(f"{unknown_kernel(name)}, precomputed, or pass {other}.")
    return parse(kernel)


class _Refined:
    """A fitted attribute that is computed in double precision when it is asked for.

    After a fit in single precision it would cost up to a quarter of the fit, and few
    ask for it.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, machine: Any, owner: type | None = None) -> Any:
        if machine is None:
            return self
        if "_coarse" in vars(machine):
            machine._refine()
        try:
            return vars(machine)[self._name]
        except KeyError:
            kind = type(machine).__name__
            raise AttributeError(f"{kind} has no {self._name} before fit") from None

    def __set__(self, machine: Any, value: Any) -> None:
        vars(machine)[self._name] = value

    def __delete__(self, machine: Any) -> None:
        del vars(machine)[self._name]


class _InUse:
    """What prediction has derived from the support vectors, and from which arrays."""

    known: tuple[tuple, Any] = (), None


class KernelMachine(CallbackSupportMixin, BaseEstimator):
    """Base class of the machines: parameters, validation, fit, decision values."""

    objective_ = _Refined()
    dual_gap_ = _Refined()

    _parameter_constraints: ClassVar[dict] = {
        "kernel": [str, callable, Kernel],
        **KERNEL_PARAMETERS,
        "solver": [StrOptions(set(SOLVERS))],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "cache_size": CACHE_SIZE,
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "shrinking": ["boolean"],
        "n_jobs": [Integral, None],
        "device": [str],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    # Models in files of earlier versions have no device: they use the processor.
    device: str = "cpu"

    #: whether samples come with classes or values
    _takes_targets: ClassVar[bool] = True

    #: private attributes that a fit may set
    _learnt: ClassVar[frozenset[str]] = frozenset({"_samples", "_coarse", "_in_use"})
    #: samples, recognised by identity, and their decision values without the bias
    _known: ClassVar[Sequence[tuple[Any, NDArray]]] = ()

    @abstractmethod
    def _plan_for(
        self,
        valid: Validated,
        sample_weight: Any,
        bound: tuple[Kernel, ...] | None = None,
    ) -> Plan:
        """State the problems; ``bound`` are the kernels, if they are bound already."""

    @abstractmethod
    def _keep_support(self, plan: Any, machines: Sequence[Solution]) -> None:
        """Store the support vectors and their coefficients."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.sparse = not self._is_precomputed()
        return tags

    def _check_choices(self) -> None:
        """Refuse parameters that contradict each other."""

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (
            isinstance(self.kernel, str) and self.kernel.strip() == "precomputed"
        )

    def to_sklearn(self) -> Any:
        """Return a fitted estimator of scikit-learn with the same decision values.

        It is an instance of the class of the same name, or a ``OneVsRestClassifier``
        for one-vs-rest with more than two classes. A kernel that scikit-learn does not
        have becomes a function. Other schemes and decodings have no counterpart. The
        estimator computes in double precision, whatever the precision of the data was.

        With ``probability=True`` the probabilities differ by up to about 0.005, because
        scikit-learn couples pairs less exactly. Its ``predict`` uses the decision
        values, not the probabilities; a warning says so.

        Returns
        -------
        estimator
        """
        return to_sklearn(self)

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the machine.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; the kernel matrix for a precomputed kernel, or a list of them
            if there are several kernels. Single precision stays single.
        y : array of shape (n_samples,)
            The classes, or the values.
        sample_weight : array of shape (n_samples,), default=None
            Factors of C, one for each sample; of the upper bounds of the coefficients
            if there is no C.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        plan = self._plan(X, y, sample_weight)
        found = self._solve(plan)
        self._keep(plan, found)
        return self

    @QUIET
    def _plan(self, X: Any, y: Any, sample_weight: Any) -> Plan:
        """Say what is to be solved, without a change of the estimator."""
        self._check_choices()
        return self._plan_for(self._validated(X, y), sample_weight)

    @QUIET
    def _solve(self, plan: Plan) -> Any:
        """Let an engine find certified solutions."""
        settings = Settings(
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            cache_size=self.cache_size,
            shrinking=self.shrinking,
            seed=check_random_state(self.random_state).randint(2**31 - 1),
        )
        with engine_of(plan.X, self.device, self.n_jobs) as engine:
            progress = self._progress(plan, engine.stop)
            found = engine.solve(plan, settings, progress)
        if progress is not None:
            progress.finish(found.solutions)
        return found

    def _progress(self, plan: Plan, stop: NDArray) -> FitProgress | None:
        """Return what reports on a fit, if there is somebody to report to."""
        if not (self.verbose or getattr(self, "_skl_callbacks", None)):
            return None
        return FitProgress(self, plan.X, plan.y, self.verbose, stop)

    def _keep(self, plan: Plan, found: Any) -> None:
        """Replace what an earlier fit has left by what was found."""
        self._keep_support(plan, self._keep_machines(plan, found))
        if found.coarse:
            self._coarse = {
                "parts": list(found.coarse),
                "objective_": self.__dict__.pop("objective_"),
                "dual_gap_": self.__dict__.pop("dual_gap_"),
            }

    def _keep_machines(self, plan: Any, found: Any) -> Sequence[Solution]:
        """Keep all but the support vectors; return the solutions of the machines."""
        for name in list(vars(self)):
            if name in self._learnt or (name.endswith("_") and name[0] != "_"):
                delattr(self, name)
        self.__dict__.update(plan.learnt)
        self._in_use = _InUse()
        self.kernel_ = plan.kernel
        if plan.function is not None:
            self._samples = plan.X
        self.is_convex_ = found.is_convex
        self.converged_ = bool(column(found.solutions, "converged").all())
        self.fit_status_ = 0 if self.converged_ else 1
        if not self.converged_:
            self._warn(found)
        machines = found.solutions[:: plan.per_machine]
        self.intercept_ = column(machines, "bias")
        return machines

    def _hold(
        self, plan: Any, support: NDArray, n_support: NDArray, coef: NDArray
    ) -> None:
        """Store support vectors, given the coefficients of all samples in rows."""
        X = plan.X
        self.support_ = support.astype(np.int32)
        self.n_support_ = n_support.astype(np.int32)
        if plan.is_matrix:
            self.support_vectors_ = np.empty((0, 0), dtype=X.dtype)
        else:
            self.support_vectors_ = X[self.support_]
        self.dual_coef_ = coef[:, self.support_]
        if sparse.issparse(X):
            self.support_vectors_ = as_in_scikit_learn(self.support_vectors_)
            self.dual_coef_ = as_in_scikit_learn(sparse.csr_array(self.dual_coef_))

    def __getstate__(self) -> dict[str, Any]:
        # Pickles and model files hold final numbers, not what they are computed from.
        if "_coarse" in vars(self):
            self._refine()
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_in_use"}

    def _refine(self) -> None:
        """Take objective and dual gap from kernel values in double precision."""
        coarse = self._coarse
        vectors = self.support_vectors_
        with engine_of(vectors, self.device, self.n_jobs) as engine:
            found = engine.refine(
                coarse["parts"],
                self.kernel_,
                vectors,
                self.support_,
                given_budget(self.cache_size),
            )
        objective, more = (np.array(values) for values in zip(*found, strict=True))
        gap = np.maximum(coarse["dual_gap_"] + more, 0.0)
        refined: dict[str, Any] = {"objective_": objective, "dual_gap_": gap}
        if np.ndim(coarse["objective_"]) == 0:
            refined = {name: float(values[0]) for name, values in refined.items()}
        others = {k: v for k, v in vars(self).items() if k != "_coarse"}
        # One assignment, so that an interrupt leaves either state.
        self.__dict__ = {**others, **refined}

    def _common(self, valid: Validated, bound: tuple[Kernel, ...] | None) -> dict:
        """Return the parts of a plan that do not depend on the kind of machine."""
        kernels, samples = self._bound(valid) if bound is None else (bound, valid.X)
        return dict(
            X=valid.X,
            samples=samples,
            y=valid.y,
            kernels=kernels,
            learnt=valid.learnt,
            is_matrix=self._is_precomputed(),
            function=self.kernel if self._is_function() else None,
        )

    def _bound(self, valid: Validated) -> tuple[tuple[Kernel, ...], Any]:
        """Return kernels with their numbers, and the samples as kernels see them."""
        kernel = self._make_kernel(valid)
        samples = seen_by([kernel], valid.X)
        return (kernel.bind(samples),), samples

    def _make_kernel(self, valid: Validated) -> Kernel:
        """Return the kernel, with the columns that the training data named, if any."""
        kernel = as_kernel(
            self.kernel, degree=self.degree, gamma=self.gamma, coef0=self.coef0
        )
        return with_names(kernel, valid.views, valid.learnt.get("feature_names_in_"))

    def _leaves(self) -> list[Kernel]:
        """Return the kernels that the given one is made of, if it is an object."""
        return list(self.kernel.leaves()) if isinstance(self.kernel, Kernel) else []

    def _is_function(self) -> bool:
        """Whether the kernel is a function, to be called as scikit-learn calls it."""
        return callable(self.kernel) and not isinstance(self.kernel, Kernel)

    def _validated(self, X: Any, y: Any) -> Validated:
        """Check samples and targets."""
        # Validation leaves a plain array; names of columns have to be read before.
        views = None if type(X) is np.ndarray else views_of(X)
        if self._is_function() and not is_numeric(X):
            if self._takes_targets:
                y = column_or_1d(y, warn=True)
            X = things(X)
            check_consistent_length(X, y)
            return Validated(X, y, {"shape_fit_": X.shape}, views)
        if any(isinstance(leaf, Custom) for leaf in self._leaves()):
            refuse_other_things(self, X)
        # scikit-learn sets attributes of the estimator that it validates for.
        draft = object.__new__(type(self))
        draft.__dict__.update(vars(self))
        if y is None and not self._takes_targets:
            X = validate_samples(draft, X)
        else:
            X, y = validate_samples(draft, X, y, multi_output=False)
        if self._is_precomputed():
            check_square(X)
        learnt = {
            name: vars(draft)[name]
            for name in ("n_features_in_", "feature_names_in_")
            if name in vars(draft)
        }
        return Validated(X, y, {**learnt, "shape_fit_": X.shape}, views)

    def _sample_weight(self, valid: Validated, sample_weight: Any) -> NDArray:
        """Return a weight for each sample."""
        n = valid.X.shape[0]
        return check_sample_weight(
            sample_weight, np.empty(n), dtype=np.float64, allow_all_zero_weights=True
        )

    def _warn(self, found: Any) -> None:
        """Say why the solutions are not certified to ``tol``, and what helps."""
        solutions = found.solutions
        left = [s for s in solutions if not s.converged]
        worst = max(left, key=lambda s: s.kkt_gap + s.error)
        limit = MOST_STEPS if self.max_iter < 0 else self.max_iter
        n_steps = max(s.n_iter for s in left)
        rounding = f" and rounding errors of {worst.error:.1g} are"
        state = (
            f"KKT gap {worst.kkt_gap:.3g}{rounding if worst.error > 0 else ' is'} "
            f"more than tol={self.tol:g}"
        )
        if worst.kkt_gap + worst.error <= self.tol:
            # A gap within the tolerance is not enough: bounds and sums have to hold.
            state = "the coefficients violate their bounds or the sum of a group"
            remedy = f"solver={self.solver!r} has failed; use solver='auto'."
        elif found.stopped_early:
            remedy = "A callback asked for an early end."
        elif limit <= n_steps and self.max_iter < 0:
            remedy = (
                f"With max_iter=-1 the solver stops after {n_steps} steps. Scale the "
                "data, for example with StandardScaler, lower C or raise tol; a larger "
                "max_iter allows more steps."
            )
        elif limit <= n_steps:
            remedy = (
                f"Solver terminated early (max_iter={self.max_iter}).  Consider "
                "pre-processing your data with StandardScaler or MinMaxScaler, or "
                "raise max_iter."
            )
        elif self.solver in ("random", "simplified"):
            remedy = f"solver={self.solver!r} is approximate; use 'auto'."
        elif self._is_precomputed() or self._is_function():
            remedy = (
                "The kernel matrix must be symmetric. If it is, scale it, or lower C."
            )
        else:
            remedy = "Scale the data, lower C, raise tol, or pass float64 data."
        warn_user(
            f"{type(self).__name__} did not converge in {len(left)} of "
            f"{len(solutions)} problems: {state} after "
            f"{sum(s.n_iter for s in solutions)} iterations. {remedy}",
            ConvergenceWarning,
        )

    def _validate_for_predict(self, X: Any) -> Any:
        check_is_fitted(self)
        self._check_internals()
        if self._is_function() and self.support_vectors_.dtype == object:
            return things(X)
        X = validate_samples(self, X, reset=False)
        if not self._is_precomputed():
            return as_in_fit(self, X, sparse.issparse(self.support_vectors_))
        if X.shape[1] != self.shape_fit_[0]:
            raise ValueError(
                f"X.shape[1] = {X.shape[1]} should be equal to "
                f"{self.shape_fit_[0]}, the number of samples at training time"
            )
        return X

    def _check_internals(self) -> None:
        """Refuse to compute with arrays that do not fit together any more."""
        n = len(self.support_)
        sizes = {int(self.n_support_.sum()), self.dual_coef_.shape[1]}
        fits = self.n_support_.min(initial=0) >= 0
        if not self._is_precomputed():
            sizes.add(self.support_vectors_.shape[0])
            is_table = self.support_vectors_.ndim == 2
            width = self.support_vectors_.shape[1] if is_table else 0
            fits = fits and width == getattr(self, "n_features_in_", width)
        if sizes != {n} or not fits:
            raise ValueError(
                f"The internal representation of {type(self).__name__} was altered"
            )
        if self._is_function() and not hasattr(self, "_samples"):
            raise NotFittedError(
                f"kernel={self.kernel!r} was set after fit. Call fit again."
            )

    @property
    def _gamma(self) -> float:
        return getattr(self.kernel_, "gamma", 0.0)

    # What follows is read by programs that know scikit-learn's machines.
    _probA: NDArray = frozen(np.empty(0))
    _probB: NDArray = frozen(np.empty(0))

    @property
    def _sparse(self) -> bool:
        return sparse.issparse(self.support_vectors_)

    @property
    def _n_support(self) -> NDArray:
        return self.n_support_

    @property
    def _libsvm_sign(self) -> float:
        """Return -1 if the positive side is the negative one of LIBSVM."""
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
        found = self._weights().matrix.T @ self.support_vectors_
        if sparse.issparse(found):
            found = as_in_scikit_learn(sparse.csr_array(found))
        return frozen(found)

    @QUIET
    def _decisions(self, X: Any) -> NDArray:
        """Return ``K(X, support vectors) @ weights + bias``, shape (n, n_tasks)."""
        for samples, values in self._known:
            if X is samples:
                return values + self.intercept_
        X = self._validate_for_predict(X)
        if self._is_precomputed():
            given = X[:, self.support_].astype(np.float64, copy=False)
            values = given @ self._weights().matrix
        elif isinstance(self.kernel_, Linear):
            # One product with the weights of the features takes least time.
            weights = self._derived(self._weights_of_features)
            is_brief = LEAST_FOR_THREADS < X.shape[0] * weights.size <= BRIEF_PRODUCT
            with one_blas_thread() if is_brief else nullcontext():
                values = as_dense(X @ weights)
        elif self._is_function():
            given = call_function(self.kernel, X, self._samples, X.dtype)
            values = given[:, self.support_].astype(np.float64) @ self._weights().matrix
        else:
            if not self.kernel_.takes_all_samples:
                self.kernel_.bind(X)  # checks that the kernel can take such samples
            expansion = self._expansion()
            if expansion.vectors.dtype == np.float64:
                X = X.astype(np.float64, copy=False)
            if self.device == "cpu" and expansion.is_small(X, self.cache_size):
                values = expansion(X)
            else:
                budget = given_budget(self.cache_size)
                with engine_of(X, self.device, self.n_jobs) as engine:
                    values = engine.expand(expansion, X, budget)
        values = values + self.intercept_
        check_finite("decision values", values)
        return values

    def _expansion(self) -> Expansion:
        """Return the decision function without its bias, derived once for each fit."""
        return self._derived(self._new_expansion)

    def _derived(self, derive: Callable[[], Any]) -> Any:
        """Return what prediction needs, derived once for each fit."""
        made_of = (self.support_vectors_, self.dual_coef_, self.kernel_, self.tol)
        if "_in_use" not in vars(self):  # the model comes from a file
            self._in_use = _InUse()
        known, found = self._in_use.known
        if found is None or any(map(is_not, known, made_of)):
            # What was derived from the arrays must not differ from them later.
            frozen(made_of[0])
            frozen(made_of[1])
            found = derive()
            self._in_use.known = made_of, found
        return found

    def _new_expansion(self) -> Expansion:
        vectors, weights = self.support_vectors_, self._weights()
        if self._needs_double(Samples(vectors), weights.matrix):
            vectors = vectors.astype(np.float64)
        return Expansion(self.kernel_, vectors, weights)

    def _weights_of_features(self) -> NDArray:
        """Return the weights of a linear kernel, shape (n_features, n_tasks)."""
        return as_dense(self.support_vectors_.T @ self._weights().matrix)

    def _needs_double(self, vectors: Samples, weights: sparse.csr_array) -> bool:
        """Tell whether rounding in single precision could matter beside ``tol``."""
        if vectors.dtype == np.float64 or not len(vectors):
            return False
        largest = np.abs(self.kernel_.diagonal(vectors)).max()
        spread = np.sqrt((weights * weights).sum(axis=0).max())
        return bool(np.finfo(np.float32).eps * largest * spread > 0.1 * self.tol)


class SingleMachine(KernelMachine):
    """Base class of machines with one problem on all samples."""

    @abstractmethod
    def _problem(self, targets: NDArray, weight: NDArray) -> DualProblem:
        """Build the problem, with a weight for each sample."""

    def _targets(self, valid: Validated, kernel: Kernel, samples: Any) -> NDArray:
        """Return a number for each sample, from which the problem is built."""
        if valid.y is None:
            return np.zeros(valid.X.shape[0])
        targets = valid.y.astype(np.float64)
        assert_all_finite(targets, input_name="y")
        return targets

    def _plan_for(
        self,
        valid: Validated,
        sample_weight: Any,
        bound: tuple[Kernel, ...] | None = None,
    ) -> Plan:
        weight = np.maximum(self._sample_weight(valid, sample_weight), 0.0)
        if not (weight > 0).any():
            raise ValueError(
                "Invalid input - all samples have zero or negative weights."
            )
        common = self._common(valid, bound)
        targets = self._targets(valid, common["kernels"][0], common["samples"])
        n = len(weight)
        return Plan(
            specs=[TaskSpec(self._problem(targets, weight), (0,))],
            order=np.arange(n),
            starts=[0, n],
            **common,
        )

    def _keep_machines(self, plan: Any, found: Any) -> Sequence[Solution]:
        machines = super()._keep_machines(plan, found)
        (solution,) = machines
        self.n_iter_ = int(solution.n_iter)
        self.objective_ = solution.objective
        self.dual_gap_ = solution.dual_gap
        self.kkt_gap_ = solution.kkt_gap
        return machines

    def _keep_support(self, plan: Any, machines: Sequence[Solution]) -> None:
        # A sample above and below the tube at once counts by the difference.
        row, n = plan.specs[0].problem.row, plan.X.shape[0]
        weights = np.bincount(row, machines[0].beta, n)
        support = np.flatnonzero(weights)
        self._hold(plan, support, np.array([len(support)]), weights[None])

    @property
    def _n_support(self) -> NDArray:
        # LIBSVM counts for two classes.
        return np.repeat(self.n_support_, 2)

    def _weights(self) -> Weights:
        matrix = sparse.csr_array(self.dual_coef_.T)
        return Weights(matrix, [0, len(self.support_)])
