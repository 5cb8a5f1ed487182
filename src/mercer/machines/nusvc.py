"""Support vector classification with a share of support vectors in place of C."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from numpy.typing import NDArray

from mercer.core.problem import DualProblem, Solution, nu_svc
from mercer.machines.base.classifier import KernelClassifier
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval
from mercer.runtime.user_warnings import warn_user
from mercer.runtime.validation import fit_method

__all__ = ["NuSVC"]


@public("mercer")
class NuSVC(KernelClassifier):
    r"""Classification with :math:`\nu` in place of C.

    :math:`\nu` is at least the share of margin errors and at most the share of support
    vectors. The dual problem of two classes is

    .. math::

        \min_\beta \; \tfrac12 \beta^T K \beta
            \quad\text{with}\quad 0 \le y_i \beta_i \le w_i, \quad
            \sum_{y_i = 1} \beta_i = -\sum_{y_i = -1} \beta_i
            = \tfrac\nu2 \sum_i w_i,

    scaled afterwards so that the margin is 1, as in scikit-learn.

    Parameters
    ----------
    nu : float, default=0.5
        An upper bound of the share of margin errors, and a lower bound of the share of
        support vectors; more than 0 and at most 1.
    kernel : str, callable or Kernel, default="rbf"
        The kernel, as in :class:`~mercer.SVC`.
    degree : int, default=3
        Degree of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernels "rbf", "poly" and "sigmoid".
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    multiclass : {"ovo", "ovr", "ecoc"}, default="ovo"
        One machine for each pair of classes, for each class against the rest, or for
        each column of an error-correcting output code.
    decode : str, default="auto"
        How decision values become a class, as in :class:`~mercer.SVC`.
    code : str or array of shape (n_classes, n_tasks), default=None
        The code for ECOC, as in :class:`~mercer.SVC`.
    probability : bool, default=False
        Whether to enable ``predict_proba``, as in :class:`~mercer.SVC`.
    class_weight : dict or "balanced", default=None
        Factors of the upper bounds, one for each class.
    positive_weight : float or array of shape (n_classes,), default=1.0
        Factor of the upper bounds on the positive side, for one-vs-rest only.
    solver : str, default="auto"
        "auto", "smo", "decompose" or a textbook method, as in :class:`~mercer.SVC`.
    tol : float, default=1e-3
        Largest violation of the optimality conditions at the end, before scaling.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel values and scratch memory; "auto" is at most a quarter of
        the free memory.
    max_iter : int, default=-1
        Largest number of steps for each machine; -1 means ten million, or a hundred for
        each variable if that is more.
    shrinking : bool, default=True
        Whether to set aside variables that are unlikely to change.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Whether ``decision_function`` has a column per class or per machine.
    break_ties : bool, default=False
        Whether ``predict`` breaks ties between votes by the decision values.
    n_jobs : int, default=None
        Number of threads; -1 means all cores, None as many as BLAS may use. The result
        does not depend on it.
    device : {"cpu", "cuda", "cuda:N"}, default="cpu"
        Where to compute: on the processor, or on a graphics card, the first one or
        number N. ``cache_size`` is memory of the card then; "auto" is what is free
        there, less a margin. A model can be fitted on one device and predict on
        another: ``set_params(device="cpu")``.
    verbose : bool or int, default=False
        Whether to log progress.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds of ``probability`` and of random codes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors, class by class.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV) or (n_tasks, n_SV)
        Signed coefficients, as in :class:`~mercer.SVC`.
    intercept_ : ndarray of shape (n_tasks,)
    coef_ : ndarray of shape (n_tasks, n_features)
        Weights of the features, for the linear kernel.
    code_ : ndarray of shape (n_classes, n_tasks)
        The side of each class in each machine: 1, -1, or 0 for neither.
    probA_, probB_ : ndarray of shape (n_tasks,)
        Parameters of the machines' sigmoids, with ``probability=True``.
    kernel_ : Kernel
        The kernel, with numbers for all of its parameters.
    class_weight_ : ndarray of shape (n_classes,)
    objective_ : ndarray of shape (n_tasks,)
        The dual objective, to be minimised, of each machine, before scaling.
    dual_gap_ : ndarray of shape (n_tasks,)
        Primal minus dual objective, before scaling; infinite if the problem is not
        convex.
    kkt_gap_ : ndarray of shape (n_tasks,)
        Largest violation of the optimality conditions, before scaling.
    n_iter_ : ndarray of shape (n_tasks,)
    converged_ : bool
        Whether every machine is certified to ``tol``, rounding errors included.
    is_convex_ : bool or None
        Whether the problems are known to be convex, as in :class:`~mercer.SVC`.
    fit_status_ : int
        0 if converged, 1 if not.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all of them are strings.
    shape_fit_ : tuple of two int
        Shape of the samples.

    See Also
    --------
    SVC : with a penalty C in place of nu.
    NuSVR : regression with nu.
    OneClassSVM : samples of one kind, with nu.

    References
    ----------
    Schölkopf, Smola, Williamson & Bartlett, "New support vector algorithms", Neural
    Computation 12, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NuSVC
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> NuSVC().fit(X, [1, 1, 2, 2]).predict([[-0.8, -1.0]])
    array([1])
    """

    _parameter_constraints: ClassVar[dict] = {
        **KernelClassifier._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }
    _by_class = True
    _one_side_left = "specified nu is infeasible"

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        multiclass: str = "ovo",
        decode: str = "auto",
        code: Any = None,
        probability: bool = False,
        class_weight: dict | str | None = None,
        positive_weight: Any = 1.0,
        solver: str = "auto",
        tol: float = 1e-3,
        cache_size: float | str = "auto",
        max_iter: int = -1,
        shrinking: bool = True,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        n_jobs: int | None = None,
        device: str = "cpu",
        verbose: bool | int = False,
        random_state: Any = None,
    ):
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.multiclass = multiclass
        self.decode = decode
        self.code = code
        self.probability = probability
        self.class_weight = class_weight
        self.positive_weight = positive_weight
        self.solver = solver
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.shrinking = shrinking
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NuSVC:
        """Fit the machine.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; the kernel matrix for a precomputed kernel.
        y : array of shape (n_samples,)
            The classes.
        sample_weight : array of shape (n_samples,), default=None
            Factors of the upper bounds, one for each sample.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _problem(self, sides: NDArray, weight: NDArray) -> DualProblem:
        return nu_svc(sides, weight, self.nu)

    def _check_task(self, sides: NDArray, weight: NDArray) -> None:
        smaller = min(weight[sides > 0].sum(), weight[sides < 0].sum())
        most = 2.0 * smaller / weight.sum()
        if self.nu > most * (1 + 1e-12):
            raise ValueError(
                f"specified nu is infeasible: nu={self.nu:g}, but the weights of two "
                f"classes allow at most {most:.4g}. Lower nu, or use class_weight."
            )

    def _rescaled(self, solutions: list[Solution]) -> list[Solution]:
        rescaled, n_vague = [], 0
        for solution in solutions:
            plus, minus = (*solution.multipliers, 0.0)[:2]
            margin = 0.5 * (plus - minus)
            n_vague += bool(margin <= solution.kkt_gap + solution.error)
            if margin > 0:
                solution = solution._replace(
                    beta=solution.beta / margin,
                    f=solution.f / margin,
                    bias=solution.bias / margin,
                )
            rescaled.append(solution)
        if n_vague:
            problems = "problem" if n_vague == 1 else "problems"
            warn_user(
                f"The margin of {n_vague} {problems} is not larger than the violation "
                f"of the optimality conditions that tol={self.tol:g} allows, so that "
                "decision values, which are scaled by the margin, mean little. Raise "
                f"nu={self.nu:g}, or lower tol."
            )
        return rescaled
