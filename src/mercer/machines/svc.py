"""Support vector classification."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from numpy.typing import NDArray

from mercer.core.problem import DualProblem, c_svc
from mercer.machines.base.classifier import KernelClassifier
from mercer.machines.base.machine import UNBOUNDED
from mercer.runtime.fitting import fit_method
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval

__all__ = ["SVC"]


@public("mercer")
class SVC(KernelClassifier):
    r"""C-support vector classification.

    For two classes, with :math:`y_i = \pm 1`, the primal and the dual problem are

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
            + \sum_i C_i \max\{0, 1 - y_i (w \cdot \phi(x_i) + b)\}

        \max_\beta \; y^T \beta - \tfrac12 \beta^T K \beta
            \quad\text{with}\quad 0 \le y_i \beta_i \le C_i, \; \sum_i \beta_i = 0.

    Several classes are told apart by several such machines (see ``multiclass``), which
    share one Gram matrix.

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
    multiclass : {"ovo", "ovr", "ecoc"}, default="ovo"
        One machine for each pair of classes, for each class against the rest, or for
        each column of an error-correcting output code.
    decode : str, default="auto"
        How decision values become a class. "votes": most machines for it. "margin":
        largest sum of decision values. "hamming": signs closest to the code. "loss":
        least sum of hinge losses. "barycentre": as "hamming", and among equals the
        nearest class mean. "platt": largest probability. "auto": votes for one-vs-one,
        margin for one-vs-rest, loss for ECOC; with ``probability`` always "platt".
    code : str or array of shape (n_classes, n_tasks), default=None
        For ECOC: "hadamard", "exhaustive", "dietterich15", "random-dense",
        "random-sparse", or a matrix of -1, 0 and 1. None is exhaustive for up to four
        classes, else Hadamard.
    probability : bool, default=False
        Whether to fit what ``predict_proba`` needs: five more problems on the same Gram
        matrix for each machine. ``predict`` then returns the most probable class.
        Probabilities are those of a population in which classes and samples have the
        weights that were given.
    class_weight : dict or "balanced", default=None
        Factors of C by class.
    positive_weight : float or array of shape (n_classes,), default=1.0
        For one-vs-rest: factor of C on the positive side.
    solver : str, default="auto"
        "smo": pairs, on the whole Gram matrix. "decompose": working sets, on rows
        computed when needed. "auto": the faster of the two. "simplified", "random",
        "platt", "wss1", "wss2": textbook methods, for study.
    tol : float, default=1e-3
        Largest violation of the optimality conditions that is left.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel values and scratch memory; "auto" is what is needed, at
        most a quarter of the memory that is free.
    max_iter : int, default=-1
        Limit on steps for each machine; -1 is ten million, or a hundred for each
        variable if that is more.
    shrinking : bool, default=True
        Whether to leave aside variables that are unlikely to move.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Whether ``decision_function`` has a column per class or per machine.
    break_ties : bool, default=False
        Whether ``predict`` settles equal votes by the decision values.
    n_jobs : int, default=None
        Threads; None is as many as BLAS may use. The result is the same for any
        number.
    verbose : bool or int, default=False
        Whether to log progress.
    random_state : int, RandomState instance or None, default=None
        For the folds of ``probability``, random codes, and the solvers "random" and
        "simplified".

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors, class by class.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV) or (n_tasks, n_SV)
        Signed coefficients; for one-vs-one laid out as in scikit-learn, else a row for
        each machine.
    intercept_ : ndarray of shape (n_tasks,)
    coef_ : ndarray of shape (n_tasks, n_features)
        Weights of the features, for the linear kernel.
    code_ : ndarray of shape (n_classes, n_tasks)
        On which side of each machine a class is: 1, -1, or 0 for neither.
    probA_, probB_ : ndarray of shape (n_tasks,)
        Sigmoids of the machines, where there are probabilities.
    kernel_ : Kernel
        The kernel with its numbers.
    class_weight_ : ndarray of shape (n_classes,)
    objective_ : ndarray of shape (n_tasks,)
        The dual objective, to be minimised, of each machine.
    dual_gap_ : ndarray of shape (n_tasks,)
        Primal minus dual objective: how far from optimal each machine can be. Infinite
        where the problem is not convex.
    kkt_gap_ : ndarray of shape (n_tasks,)
        Largest violation of the optimality conditions.
    n_iter_ : ndarray of shape (n_tasks,)
    converged_ : bool
        Whether every machine is certified to ``tol``, rounding errors included.
    is_convex_ : bool or None
        Whether the problems are known to be convex. True: a converged machine is
        optimal to within ``dual_gap_``. False: the kernel is not positive
        semi-definite, such as "sigmoid"; a converged machine is stationary, but another
        may be better, and ``dual_gap_`` is infinite. None: the kernel is a function or
        a matrix of one's own and too large for a full test; a part of it passed.
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
        **KernelClassifier._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
    }

    def __init__(
        self,
        C: float = 1.0,
        kernel: Any = "rbf",
        *,
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
        verbose: bool | int = False,
        random_state: Any = None,
    ):
        self.C = C
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
        self.verbose = verbose
        self.random_state = random_state

    @fit_method
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
        return self._fit(X, y, sample_weight)

    def _problem(self, sides: NDArray, weight: NDArray) -> DualProblem:
        return c_svc(sides, min(self.C, UNBOUNDED) * weight)
