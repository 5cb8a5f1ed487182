"""Classification with several kernels."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from mercer.calibration import N_FOLDS
from mercer.classifier import KernelClassifier
from mercer.core.problem import DualProblem, Solution, c_svc
from mercer.mkl.machine import MultiKernelMachine
from mercer.solvers import TaskSpec

__all__ = ["MKLClassifier"]


class MKLClassifier(MultiKernelMachine, KernelClassifier):
    r"""Support vector classification that learns how to weigh several kernels.

    For two classes, with :math:`K = \sum_k d_k K_k` and
    :math:`s_k = \beta^T K_k \beta`, the primal and the dual problem are

    .. math::

        \min_{d \ge 0,\, \|d\|_p \le 1} \; \max_\beta \;
            y^T \beta - \tfrac12 \beta^T K \beta
        \qquad
        \max_\beta \; y^T \beta - \tfrac12 \|s\|_q,
            \quad \tfrac1p + \tfrac1q = 1,

    over the box and the sum of :class:`~mercer.SVC`. Several classes are told apart by
    several such machines; if they share the weights, their objectives are added up.

    Parameters
    ----------
    kernels : list of str, callable or Kernel, default=("linear", "poly", "rbf")
        What :class:`~mercer.SVC` takes as ``kernel``, several times; ``k.on(columns)``
        looks at some columns only. "precomputed": X is then a list of matrices, or an
        array of shape (n_kernels, n_samples, n_samples), and for new samples of shape
        (n_kernels, n_new, n_samples).
    method : str, default="smo"
        How weights are found. "group-lasso": machines and closed-form weights in turn.
        "smo": pair steps in which the weights move along, for p > 1. "simple": reduced
        gradient, for p = 1. These three solve the problem above. "uniform": all weights
        equal. "alignment": by how well a kernel agrees with the targets. These two are
        closed forms, and only the machines are optimal for them.
    p : float, default=None
        Norm of the weights, at least 1: the closer to 1, the fewer kernels are left.
        None is 1 for "simple" and 2 otherwise. "uniform" and "alignment" have none.
    penalty : float, default=None
        Price :math:`\lambda` of the weights, with :math:`\frac\lambda2 \|d\|_p^2`
        in place of the bound :math:`\|d\|_p \le 1`; for "group-lasso" and "smo".
    alignment : {"plain", "centred", "joint"}, default="plain"
        For ``method="alignment"``: kernels as they are, or centred in their space, one
        by one; or the weights whose sum of centred kernels is aligned best.
    normalize : {"trace", "variance"}, default="trace"
        Scale each kernel to a mean of 1 on the diagonal, or to a variance of 1 of the
        samples in its space; None leaves kernels as they are.
    C : float, default=1.0
        Price of a margin violation; finite.
    weights : {"shared", "per-task"}, default="shared"
        Whether all machines have the same weights, or each its own.
    degree : int, default=3
        Degree of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernels "rbf", "poly" and "sigmoid", where they are names.
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid", where they are names.
    multiclass : {"ovo", "ovr", "ecoc"}, default="ovr"
        One machine for each pair of classes, for each class against the rest, or for
        each column of an error-correcting output code.
    decode : str, default="auto"
        How decision values become a class, as for :class:`~mercer.SVC`.
    code : str or array of shape (n_classes, n_tasks), default=None
        For ECOC, as for :class:`~mercer.SVC`.
    probability : bool, default=False
        Whether to fit what ``predict_proba`` needs: five more problems for each
        machine, with the weights that all samples have led to.
    class_weight : dict or "balanced", default=None
        Factors of C by class.
    positive_weight : float or array of shape (n_classes,), default=1.0
        For one-vs-rest: factor of C on the positive side.
    tol : float, default=1e-3
        Largest duality gap that is left, as a part of the value of the problem.
    cache_size : float or "auto", default="auto"
        Megabytes for the base Gram matrices, their sum and scratch memory; where
        matrices do not fit, they are computed again when they are needed.
        "auto" is at most a quarter of the memory that is free.
    max_iter : int, default=-1
        Limit on rounds, in each of which all machines are solved or improved; -1 is
        a thousand.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Whether ``decision_function`` has a column per class or per machine.
    break_ties : bool, default=False
        Whether ``predict`` settles equal votes by the decision values.
    n_jobs : int, default=None
        Threads; None is as many as BLAS may use.
    verbose : bool or int, default=False
        Whether to log progress.
    random_state : int, RandomState instance or None, default=None
        For the folds of ``probability`` and random codes.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,) or (n_tasks, n_kernels)
        Weights of the kernels, as they are after scaling.
    kernel_ : Kernel or list of Kernel
        The weighted sum, without kernels of weight 0; one for each machine if their
        weights differ.
    classes_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors, class by class.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV) or (n_tasks, n_SV)
        Signed coefficients, as in :class:`~mercer.SVC`.
    intercept_ : ndarray of shape (n_tasks,)
    coef_ : ndarray of shape (n_tasks, n_features)
        Weights of the features, where only a linear kernel of all columns is left.
    code_ : ndarray of shape (n_classes, n_tasks)
        On which side of each machine a class is: 1, -1, or 0 for neither.
    probA_, probB_ : ndarray of shape (n_tasks,)
        Sigmoids of the machines, where there are probabilities.
    class_weight_ : ndarray of shape (n_classes,)
    objective_ : float or ndarray of shape (n_tasks,)
        The dual objective, to be minimised: of all machines together, or of each if
        their weights differ.
    dual_gap_ : float or ndarray of shape (n_tasks,)
        Primal minus dual objective of machines and weights together. For "uniform" and
        "alignment" the weights count as given.
    kkt_gap_ : ndarray of shape (n_tasks,)
        Largest violation of the optimality conditions by a machine, weights fixed.
    n_iter_ : int or ndarray of shape (n_tasks,)
        Rounds.
    history_ : list of dict
        For each problem, "objective", "dual_gap" and "weights" round by round; in
        rounds on a part of the samples, those of that part.
    converged_ : bool
        Whether every gap is within ``tol``, rounding errors included.
    fit_status_ : int
        0 if converged, 1 if not.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where the samples had names that are all text.
    shape_fit_ : tuple of int
        Shape of the samples, or of all matrices.

    References
    ----------
    Sun, Ampornpunt, Varma & Vishwanathan, "Multiple kernel learning and the SMO
    algorithm", NIPS 2010.
    Xu, Jin, Yang, King & Lyu, "Simple and efficient multiple kernel learning by group
    lasso", ICML 2010.
    Rakotomamonjy, Bach, Canu & Grandvalet, "SimpleMKL", JMLR 9, 2008.
    Cortes, Mohri & Rostamizadeh, "Algorithms for learning kernels based on centered
    alignment", JMLR 13, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MKLClassifier
    >>> from mercer.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> y = X[:, 0] ** 2 + X[:, 1] ** 2 > 1.5
    >>> useful, noise = RBF().on([0, 1]), RBF().on([2, 3])
    >>> model = MKLClassifier([useful, noise], method="group-lasso", p=1)
    >>> model.fit(X, y).weights_.round(1)
    array([1., 0.])
    >>> model.converged_
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **{
            name: allowed
            for name, allowed in KernelClassifier._parameter_constraints.items()
            if name not in ("kernel", "solver", "shrinking")
        },
        **MultiKernelMachine._parameter_constraints,
        "weights": [StrOptions({"shared", "per-task"})],
    }

    def __init__(
        self,
        kernels: Any = ("linear", "poly", "rbf"),
        *,
        method: str = "smo",
        p: float | None = None,
        penalty: float | None = None,
        alignment: str = "plain",
        normalize: str | None = "trace",
        C: float = 1.0,
        weights: str = "shared",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        multiclass: str = "ovr",
        decode: str = "auto",
        code: Any = None,
        probability: bool = False,
        class_weight: dict | str | None = None,
        positive_weight: Any = 1.0,
        tol: float = 1e-3,
        cache_size: float | str = "auto",
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        random_state: Any = None,
    ):
        self.kernels = kernels
        self.method = method
        self.p = p
        self.penalty = penalty
        self.alignment = alignment
        self.normalize = normalize
        self.C = C
        self.weights = weights
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.multiclass = multiclass
        self.decode = decode
        self.code = code
        self.probability = probability
        self.class_weight = class_weight
        self.positive_weight = positive_weight
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLClassifier:
        """Fit machines and weights.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; for precomputed kernels a list of matrices.
        y : array of shape (n_samples,)
            The classes.
        sample_weight : array of shape (n_samples,), default=None
            Factors of C by sample.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight)
        return self

    def _problem(self, sides: NDArray, weight: NDArray) -> DualProblem:
        return c_svc(sides, self.C * weight)

    def _problems_per_machine(self) -> int:
        return 1 + N_FOLDS if self._is_calibrated() else 1

    def _is_shared(self) -> bool:
        return self.weights == "shared"

    def _report(self, solutions: list[Solution]) -> None:
        super()._report(solutions)
        self._report_problem()

    def _alignment_target(self, spec: TaskSpec) -> NDArray:
        # The linear term is minus the side; without weight a sample has no say.
        return np.where(spec.problem.hi > spec.problem.lo, -spec.problem.p, 0.0)
