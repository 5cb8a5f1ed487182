"""Regression with several kernels."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from mercer.core.problem import DualProblem, epsilon_svr
from mercer.mkl.machine import MultiKernelMachine
from mercer.single import SingleMachine
from mercer.solvers import TaskSpec

__all__ = ["MKLRegressor"]


class MKLRegressor(RegressorMixin, MultiKernelMachine, SingleMachine):
    r"""Support vector regression that learns how to weigh several kernels.

    Over weights :math:`d \ge 0` with :math:`\|d\|_p \le 1`, the least of the values
    that :class:`~mercer.SVR` has with the kernel :math:`\sum_k d_k K_k`. With
    :math:`s_k = \beta^T K_k \beta` and :math:`1/p + 1/q = 1` the dual problem is

    .. math::

        \max_\beta \; z^T \beta - \varepsilon \|\beta\|_1 - \tfrac12 \|s\|_q
            \quad\text{with}\quad |\beta_i| \le C_i, \; \sum_i \beta_i = 0.

    Parameters
    ----------
    kernels : list of str, callable or Kernel, default=("linear", "poly", "rbf")
        What :class:`~mercer.SVR` takes as ``kernel``, several times; ``k.on(columns)``
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
        Price of an error beyond the tube; finite.
    epsilon : float, default=0.1
        Half the width of the tube in which errors are free.
    degree : int, default=3
        Degree of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernels "rbf", "poly" and "sigmoid", where they are names.
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid", where they are names.
    tol : float, default=1e-3
        Largest duality gap that is left, as a part of the value of the problem.
    cache_size : float or "auto", default="auto"
        Megabytes for the base Gram matrices, their sum and scratch memory; where
        matrices do not fit, they are computed again when they are needed.
        "auto" is at most a quarter of the memory that is free.
    max_iter : int, default=-1
        Limit on rounds, in each of which all machines are solved or improved; -1 is
        a thousand.
    n_jobs : int, default=None
        Threads; None is as many as BLAS may use.
    verbose : bool or int, default=False
        Whether to log progress.
    random_state : int, RandomState instance or None, default=None
        Has no effect; for the sake of one interface.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Weights of the kernels, as they are after scaling.
    kernel_ : Kernel
        The weighted sum, without kernels of weight 0.
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
    n_support_ : ndarray of shape (1,)
    dual_coef_ : ndarray of shape (1, n_SV)
    intercept_ : ndarray of shape (1,)
    coef_ : ndarray of shape (1, n_features)
        Weights of the features, where only a linear kernel of all columns is left.
    objective_ : float
        The dual objective, to be minimised.
    dual_gap_ : float
        Primal minus dual objective of machine and weights together. For "uniform" and
        "alignment" the weights count as given.
    kkt_gap_ : float
        Largest violation of the optimality conditions by the machine, weights fixed.
    n_iter_ : int
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
    >>> from mercer import MKLRegressor
    >>> from mercer.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> kernels = [RBF().on([0]), RBF().on([1])]
    >>> model = MKLRegressor(kernels, method="simple", C=10.0)
    >>> model.fit(X, np.sin(2 * X[:, 0])).weights_.round(2)
    array([1., 0.])
    """

    _parameter_constraints: ClassVar[dict] = {
        **MultiKernelMachine._parameter_constraints,
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
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
        epsilon: float = 0.1,
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: float | str = "auto",
        max_iter: int = -1,
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
        self.epsilon = epsilon
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLRegressor:
        """Fit machine and weights.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; for precomputed kernels a list of matrices.
        y : array of shape (n_samples,)
            The values.
        sample_weight : array of shape (n_samples,), default=None
            Factors of C by sample.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight)
        self._report_problem()
        return self

    def predict(self, X: Any) -> NDArray:
        """Return the value of each sample.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; for precomputed kernels a list of matrices.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._decisions(X).ravel()

    def _problem(self, targets: NDArray, weight: NDArray) -> DualProblem:
        return epsilon_svr(targets, self.C * weight, self.epsilon)

    def _alignment_target(self, spec: TaskSpec) -> NDArray:
        # The linear term of the first half is the tube less the value.
        n = len(spec.problem.p) // 2
        values = self.epsilon - spec.problem.p[:n]
        counts = spec.problem.hi[:n] > 0
        return np.where(counts, values - values[counts].mean(), 0.0)
