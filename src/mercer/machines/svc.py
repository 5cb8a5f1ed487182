"""Support vector classification."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import DualProblem, c_svc
from mercer.machines.base.classifier import KernelClassifier
from mercer.machines.base.machine import UNBOUNDED
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval
from mercer.runtime.validation import stores_parameters

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

    More than two classes need several such machines (see ``multiclass``), which share
    one Gram matrix.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of margin violations; infinity for a hard margin.
    kernel : str, callable or Kernel, default="rbf"
        A kernel of :mod:`mercer.kernels`, an expression such as
        ``"rbf(gamma=0.1) + linear"``, a name ("linear", "poly", "rbf", "sigmoid",
        "precomputed", ...), or a function that takes two matrices of samples and
        returns the matrix of kernel values.
    degree : int, default=3
        Degree of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernels "rbf", "poly" and "sigmoid". "scale" is
        1 / (n_features * X.var()), "auto" is 1 / n_features.
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    multiclass : {"ovo", "ovr", "ecoc"}, default="ovo"
        One machine for each pair of classes, for each class against the rest, or for
        each column of an error-correcting output code.
    decode : str, default="auto"
        How decision values become a class. "votes" takes the class for which most
        machines decide, "margin" the one with the largest sum of decision values,
        "hamming" the one whose code is closest to the signs of the decision values,
        "loss" the one with the smallest sum of hinge losses, and "platt" the most
        probable one. "barycentre" is "hamming" with ties broken by the nearest class
        mean. "auto" is "votes" for one-vs-one, "margin" for one-vs-rest, "loss" for
        ECOC, and always "platt" with ``probability``.
    code : str or array of shape (n_classes, n_tasks), default=None
        The code for ECOC: "hadamard", "exhaustive", "dietterich15", "random-dense",
        "random-sparse", or a matrix of -1, 0 and 1. None means "exhaustive" for up to
        four classes and "hadamard" for more.
    probability : bool, default=False
        Whether to enable ``predict_proba``. Each machine then needs five more problems
        on the same Gram matrix, and ``predict`` returns the most probable class.
        Classes and samples count with their weights in the probabilities.
    class_weight : dict or "balanced", default=None
        Factors of C, one for each class.
    positive_weight : float or array of shape (n_classes,), default=1.0
        Factor of C on the positive side, for one-vs-rest only.
    solver : str, default="auto"
        "smo" changes pairs of variables and needs the whole Gram matrix. "decompose"
        solves working sets and computes rows of the matrix when it needs them. "auto"
        chooses between the two by the number of samples, the memory, and the share of
        samples that become support vectors in a trial on some of them. "simplified",
        "random", "platt", "wss1" and "wss2" are textbook methods, for study.
    tol : float, default=1e-3
        Largest violation of the optimality conditions at the end.
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
        Seed of the folds of ``probability``, of random codes, and of the solvers
        "random" and "simplified".

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors, class by class.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV) or (n_tasks, n_SV)
        Signed coefficients, for one-vs-one in the layout of scikit-learn, otherwise
        with a row for each machine.
    intercept_ : ndarray of shape (n_tasks,)
    coef_ : ndarray of shape (n_tasks, n_features)
        Weights of the features, for the linear kernel.
    code_ : ndarray of shape (n_classes, n_tasks)
        The side of each class in each machine: 1, -1, or 0 for neither.
    probA_, probB_ : ndarray of shape (n_tasks,)
        Parameters of the machines' sigmoids, empty without ``probability=True``. The
        positive side of a machine with the decision value f has the probability
        :math:`1 / (1 + \exp(A f + B))`; for two classes, as in scikit-learn, the
        second class has :math:`1 / (1 + \exp(A f - B))`.
    kernel_ : Kernel
        The kernel, with numbers for all of its parameters.
    class_weight_ : ndarray of shape (n_classes,)
    objective_ : ndarray of shape (n_tasks,)
        The dual objective, to be minimised, of each machine.
    dual_gap_ : ndarray of shape (n_tasks,)
        Primal minus dual objective, which bounds how far each machine is from the
        optimum. It is infinite if the problem is not convex.
    kkt_gap_ : ndarray of shape (n_tasks,)
        Largest violation of the optimality conditions.
    n_iter_ : ndarray of shape (n_tasks,)
    converged_ : bool
        Whether every machine is certified to ``tol``, rounding errors included.
    is_convex_ : bool or None
        Whether the problems are known to be convex. If True, a converged machine is
        optimal to within ``dual_gap_``. If False, the kernel is not positive
        semi-definite, such as "sigmoid": a converged machine is stationary, but another
        one may be better, and ``dual_gap_`` is infinite. None means that the kernel is
        the user's function or matrix, that it is too large for a full test, and that a
        part of it passed the test.
    fit_status_ : int
        0 if converged, 1 if not.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all of them are strings.
    shape_fit_ : tuple of two int
        Shape of the samples.

    See Also
    --------
    NuSVC : a share of samples, nu, in place of C.
    LinearSVC : the linear kernel, for very many samples.
    MKLClassifier : learns the weights of several kernels.
    OnlineSVC : learns from samples as they come.
    mercer.selection.GridSearchCV : chooses C and gamma on shared kernel values.
    mercer.dask.DaskSVC : the same on a cluster.

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

    _impl: ClassVar[str] = "c_svc"  # as programs read it that know LIBSVM
    _parameter_constraints: ClassVar[dict] = {
        **KernelClassifier._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
    }

    @stores_parameters
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
        device: str = "cpu",
        verbose: bool | int = False,
        random_state: Any = None,
    ): ...

    def _problem(self, sides: NDArray, weight: NDArray) -> DualProblem:
        return c_svc(sides, min(self.C, UNBOUNDED) * weight)

    def _problems(
        self, sides: NDArray, weight: NDArray, begin: NDArray[np.intp]
    ) -> DualProblem:
        # Stated all at once: with a hundred classes there are thousands.
        together = self._problem(sides, weight)
        row = together.row - np.repeat(begin[:-1], np.diff(begin))
        return together._replace(row=row)
