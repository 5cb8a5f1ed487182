"""Novelty: what is unlike the samples."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.core.problem import DualProblem, Solution, one_class
from mercer.engines.engine import Certified, Plan
from mercer.machines.base.machine import SingleMachine
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval
from mercer.runtime.validation import fit_method, takes_card_arrays

__all__ = ["OneClassSVM"]


@public("mercer")
class OneClassSVM(OutlierMixin, SingleMachine):
    r"""The half-space in feature space that holds most samples, far from the origin.

    .. math::

        \min_\alpha \; \tfrac12 \alpha^T K \alpha \quad\text{with}\quad
            0 \le \alpha_i \le w_i, \; \sum_i \alpha_i = \nu \sum_i w_i

    Parameters
    ----------
    kernel : str, callable or Kernel, default="rbf"
        The kernel, as in :class:`~mercer.SVC`.
    degree : int, default=3
        Degree of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernels "rbf", "poly" and "sigmoid".
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    nu : float, default=0.5
        An upper bound of the share of outliers, and a lower bound of the share of
        support vectors.
    solver : str, default="auto"
        "auto", "smo", "decompose" or a textbook method, as in :class:`~mercer.SVC`.
    tol : float, default=1e-3
        Largest violation of the optimality conditions at the end.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel values and scratch memory; "auto" is at most a quarter of
        the free memory.
    max_iter : int, default=-1
        Largest number of steps; -1 means ten million, or a hundred for each variable if
        that is more.
    shrinking : bool, default=True
        Whether to set aside variables that are unlikely to change.
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
        Seed of the solvers "random" and "simplified".

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
    n_support_ : ndarray of shape (1,)
    dual_coef_ : ndarray of shape (1, n_SV)
    intercept_ : ndarray of shape (1,)
    offset_ : float
        ``decision_function`` is ``score_samples`` minus this.
    coef_ : ndarray of shape (1, n_features)
        Weights of the features, for the linear kernel.
    kernel_ : Kernel
        The kernel, with numbers for all of its parameters.
    objective_ : float
        The dual objective, to be minimised.
    dual_gap_ : float
        Primal minus dual objective; infinite if the problem is not convex.
    kkt_gap_ : float
        Largest violation of the optimality conditions.
    n_iter_ : int
    converged_ : bool
        Whether the machine is certified to ``tol``, rounding errors included.
    is_convex_ : bool or None
        Whether the problem is known to be convex, as in :class:`~mercer.SVC`.
    fit_status_ : int
        0 if converged, 1 if not.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all of them are strings.
    shape_fit_ : tuple of two int
        Shape of the samples.

    See Also
    --------
    SVDD : the smallest ball; the same machine for Gaussian kernels.
    mercer.dask.DaskOneClassSVM : the same on a cluster.
    mercer.plots.OneClassDisplay : draws the boundary.

    References
    ----------
    Schölkopf, Platt, Shawe-Taylor, Smola & Williamson, "Estimating the support of a
    high-dimensional distribution", Neural Computation 13, 2001.

    Examples
    --------
    >>> from mercer import OneClassSVM
    >>> X = [[0.0], [0.44], [0.45], [0.46], [1.0]]
    >>> OneClassSVM(gamma="auto").fit(X).predict([[0.45], [1.5]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict] = {
        **SingleMachine._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    _takes_targets = False

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        nu: float = 0.5,
        solver: str = "auto",
        tol: float = 1e-3,
        cache_size: float | str = "auto",
        max_iter: int = -1,
        shrinking: bool = True,
        n_jobs: int | None = None,
        device: str = "cpu",
        verbose: bool | int = False,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.nu = nu
        self.solver = solver
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.shrinking = shrinking
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassSVM:
        """Fit the machine.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; the kernel matrix for a precomputed kernel.
        y : ignored, default=None
        sample_weight : array of shape (n_samples,), default=None
            Factors of the upper bounds, one for each sample.

        Returns
        -------
        self
        """
        return self._fit(X, None, sample_weight)

    def _keep_machines(self, plan: Plan, found: Certified) -> list[Solution]:
        machines = super()._keep_machines(plan, found)
        self.offset_ = -self.intercept_
        return machines

    def _problem(self, targets: NDArray, weight: NDArray) -> DualProblem:
        return one_class(weight, self.nu)

    @takes_card_arrays
    def decision_function(self, X: Any) -> NDArray:
        """Return the signed distance from the boundary; positive is inside.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._decisions(X).ravel()

    @takes_card_arrays
    def score_samples(self, X: Any) -> NDArray:
        """Return the decision values without the offset.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.decision_function(X) + self.offset_

    @takes_card_arrays
    def predict(self, X: Any) -> NDArray:
        """Return 1 for samples like those of the fit, -1 for others.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.where(self.decision_function(X) > 0, 1, -1)
