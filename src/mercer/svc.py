"""Support vector classification."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from mercer.core.problem import Solution, c_svc
from mercer.kernels.dot import Linear
from mercer.machine import KernelMachine, Tasks
from mercer.multiclass import count_votes, one_vs_one, votes_and_margins
from mercer.solvers import TaskSpec

__all__ = ["SVC"]

# Stands for C = inf, so that arithmetic with bounds stays finite.
UNBOUNDED = 1e200


class SVC(ClassifierMixin, KernelMachine):
    r"""C-support vector classification.

    For two classes, with :math:`y_i = \pm 1`, the primal and the dual problem are

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
            + \sum_i C_i \max\{0, 1 - y_i (w \cdot \phi(x_i) + b)\}

        \max_\beta \; y^T \beta - \tfrac12 \beta^T K \beta
            \quad\text{with}\quad 0 \le y_i \beta_i \le C_i, \; \sum_i \beta_i = 0.

    Several classes are told apart by one machine for each pair of classes, and votes.
    All machines share one Gram matrix.

    Parameters
    ----------
    C : float, default=1.0
        Price of a margin violation; infinite for a hard margin.
    kernel : str, callable or Kernel, default="rbf"
        A kernel of :mod:`mercer.kernels`, its text form such as
        ``"rbf(gamma=0.1) + linear"``, a name ("linear", "poly", "rbf", "sigmoid",
        "precomputed", ...), or a function of two matrices.
    degree : int, default=3
        Degree of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernels "rbf", "poly" and "sigmoid": 1 / (d var X), 1 / d,
        or a number.
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    class_weight : dict or "balanced", default=None
        Factors of C by class.
    solver : str, default="auto"
        "smo": pairs, on the whole Gram matrix. "decompose": working sets, on rows
        computed when needed. "auto": the faster of the two. "simplified", "random",
        "platt", "wss1", "wss2": textbook methods, for study.
    tol : float, default=1e-3
        Largest violation of the optimality conditions that is left.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel values; "auto" is what is needed, at most a quarter of the
        memory that is free.
    max_iter : int, default=-1
        Limit on steps for each pair of classes; -1 for none.
    shrinking : bool, default=True
        Whether to leave aside variables that are unlikely to move.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Whether ``decision_function`` has a column per class or per pair of classes.
    break_ties : bool, default=False
        Whether ``predict`` settles equal votes by the decision values.
    n_jobs : int, default=None
        Threads; None is as many as BLAS may use. The result is the same for any
        number.
    verbose : bool or int, default=False
        Whether to log progress.
    random_state : int, RandomState instance or None, default=None
        For the solvers "random" and "simplified".

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors, class by class.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV)
        Signed coefficients, laid out as in scikit-learn.
    intercept_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
    coef_ : ndarray of shape (n_classes * (n_classes - 1) / 2, n_features)
        Weights of the features, for the linear kernel.
    kernel_ : Kernel
        The kernel with its numbers.
    class_weight_ : ndarray of shape (n_classes,)
    objective_ : ndarray of shape (n_pairs,)
        The dual objective, to be minimised, of each pair of classes.
    dual_gap_ : ndarray of shape (n_pairs,)
        Primal minus dual objective: how far from optimal each machine can be.
    kkt_gap_ : ndarray of shape (n_pairs,)
        Largest violation of the optimality conditions.
    n_iter_ : ndarray of shape (n_pairs,)
    converged_ : bool
        Whether every machine is certified to ``tol``, rounding errors included.
    fit_status_ : int
        0 if converged, 1 if not.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where the samples had names that are all text.
    shape_fit_ : tuple of two int
        Shape of the samples.

    References
    ----------
    Fan, Chen & Lin, "Working set selection using second order information for training
    support vector machines", JMLR 6, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> model = SVC(gamma="auto").fit(X, [1, 1, 2, 2])
    >>> model.predict([[-0.8, -1.0]])
    array([1])
    >>> model.converged_
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **KernelMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
    }

    def __init__(
        self,
        C: float = 1.0,
        kernel: Any = "rbf",
        *,
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        class_weight: dict | str | None = None,
        solver: str = "auto",
        tol: float = 1e-3,
        cache_size: float | str = "auto",
        max_iter: int = -1,
        shrinking: bool = True,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        random_state: Any = None,
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.shrinking = shrinking
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVC:
        """Fit the machine.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; the kernel matrix for a precomputed kernel. Single precision
            stays single.
        y : array of shape (n_samples,)
            The classes.
        sample_weight : array of shape (n_samples,), default=None
            Factors of C by sample.

        Returns
        -------
        self
        """
        X, y = self._validate(X, y)
        codes = self._validate_targets(y)
        tasks, solutions = self._solve(X, y, codes, sample_weight)
        self._keep_support(X, codes, tasks, solutions)
        return self

    def _validate_targets(self, y: Any) -> NDArray[np.intp]:
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "The number of classes has to be greater than one; got "
                f"{len(self.classes_)} class"
            )
        self.class_weight_ = compute_class_weight(
            self.class_weight, classes=self.classes_, y=y
        )
        return codes

    def _tasks(self, y: NDArray[np.intp], sample_weight: NDArray) -> Tasks:
        """Sort the samples by class, and build a problem for each pair of classes."""
        C = min(self.C, UNBOUNDED)
        bound = C * self.class_weight_[y] * np.maximum(sample_weight, 0.0)
        if not (bound > 0).any():
            raise ValueError(
                "Invalid input - all samples have zero or negative weights."
            )
        if len(np.unique(y[bound > 0])) < 2:
            raise ValueError(
                "Invalid input - all samples with positive weights belong to the same "
                "class."
            )
        code = one_vs_one(len(self.classes_))
        if len(self.classes_) == 2:
            problem = c_svc(code[y, 0], bound)
            return Tasks([TaskSpec(problem, (0,))], np.arange(len(y)), [0, len(y)])
        order = np.argsort(y, kind="stable")
        starts = np.searchsorted(y[order], np.arange(len(self.classes_) + 1)).tolist()
        specs = []
        for column in code.T:
            blocks = tuple(int(c) for c in np.flatnonzero(column))
            rows = np.concatenate([order[starts[c] : starts[c + 1]] for c in blocks])
            specs.append(TaskSpec(c_svc(column[y[rows]], bound[rows]), blocks))
        return Tasks(specs, order, starts)

    def _keep_support(
        self, X: Any, y: NDArray, tasks: Tasks, solutions: list[Solution]
    ) -> None:
        """Store the union of support vectors, class by class, and the coefficients."""
        weights = np.zeros((len(y), len(solutions)))
        for t, (spec, solution) in enumerate(zip(tasks.specs, solutions, strict=True)):
            rows = np.concatenate(
                [
                    tasks.order[tasks.starts[b] : tasks.starts[b + 1]]
                    for b in spec.blocks
                ]
            )
            weights[rows, t] = solution.beta
        used = np.flatnonzero(weights.any(axis=1))
        self.support_ = used[np.argsort(y[used], kind="stable")].astype(np.int32)
        labels = y[self.support_]
        self.n_support_ = np.bincount(labels, minlength=len(self.classes_)).astype(
            np.int32
        )
        if self._is_precomputed():
            self.support_vectors_ = np.empty((0, 0), dtype=X.dtype)
        else:
            self.support_vectors_ = X[self.support_]
        self.intercept_ = np.array([s.bias for s in solutions])
        self.dual_coef_ = _to_sklearn_layout(weights[self.support_], labels)

    def _weights(self) -> NDArray:
        """Return the coefficients as a matrix, support vectors by tasks."""
        labels = np.repeat(np.arange(len(self.classes_)), self.n_support_)
        return _from_sklearn_layout(self.dual_coef_, labels)

    @property
    def coef_(self) -> NDArray:
        """Weights of the features, one row for each pair of classes."""
        if not isinstance(getattr(self, "kernel_", None), Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        vectors = self.support_vectors_
        if sparse.issparse(vectors):
            coef = np.asarray((vectors.T @ self._weights()).T)
        else:
            coef = self._weights().T @ vectors
        coef.flags.writeable = False
        return coef

    def decision_function(self, X: Any) -> NDArray:
        """Return the decision values.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            For two classes one value, positive for the second. Otherwise votes and
            margins for each class, or the values of all pairs, positive for the first
            of the pair, by ``decision_function_shape``.
        """
        decisions = self._pairs(X)
        if len(self.classes_) == 2:
            return decisions.ravel()
        if self.decision_function_shape == "ovr":
            return votes_and_margins(decisions, one_vs_one(len(self.classes_)))
        return decisions

    def predict(self, X: Any) -> NDArray:
        """Return the class of each sample.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError(
                "break_ties must be False when decision_function_shape is 'ovo'"
            )
        decisions = self._pairs(X)
        code = one_vs_one(len(self.classes_))
        if self.break_ties and len(self.classes_) > 2:
            votes = votes_and_margins(decisions, code)
        else:
            votes = count_votes(decisions, code)
        return self.classes_[votes.argmax(axis=1)]

    def _pairs(self, X: Any) -> NDArray:
        check_is_fitted(self)
        return self._decisions(X, self._weights(), self.intercept_)


def _to_sklearn_layout(weights: NDArray, labels: NDArray) -> NDArray:
    """Lay coefficients (n_SV, n_pairs) out in one row per other class.

    A support vector of class c has at most n_classes - 1 coefficients, one for each
    other class; row r belongs to class r if r < c, else to class r + 1.
    """
    n_pairs = weights.shape[1]
    if n_pairs == 1:
        return weights.T.copy()
    n_classes = round((1 + np.sqrt(1 + 8 * n_pairs)) / 2)
    rows = np.zeros((n_classes - 1, len(weights)))
    for pair, (first, second) in enumerate(
        zip(*np.triu_indices(n_classes, 1), strict=True)
    ):
        rows[second - 1, labels == first] = weights[labels == first, pair]
        rows[first, labels == second] = weights[labels == second, pair]
    return rows


def _from_sklearn_layout(rows: NDArray, labels: NDArray) -> NDArray:
    """Undo :func:`_to_sklearn_layout`."""
    n_classes = len(rows) + 1
    if n_classes == 2:
        return rows.T
    firsts, seconds = np.triu_indices(n_classes, 1)
    weights = np.zeros((rows.shape[1], len(firsts)))
    for pair, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
        weights[labels == first, pair] = rows[second - 1, labels == first]
        weights[labels == second, pair] = rows[first, labels == second]
    return weights
