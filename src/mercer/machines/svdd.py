"""The smallest ball around the samples."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.core.problem import DualProblem, svdd
from mercer.engines.cpu.pair import Operand
from mercer.engines.engine import Certified, Plan
from mercer.kernels.base import Kernel
from mercer.machines.base.machine import SingleMachine, Validated
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval
from mercer.runtime.user_warnings import warn_user
from mercer.runtime.validation import QUIET, fit_method, takes_card_arrays

__all__ = ["SVDD"]


@public("mercer")
class SVDD(OutlierMixin, SingleMachine):
    r"""The smallest ball in feature space that contains the samples, or most of them.

    With the centre :math:`a = \sum_i \alpha_i \phi(x_i)`,

    .. math::

        \min_\alpha \; \tfrac12 \alpha^T K \alpha
            - \tfrac12 \sum_i \alpha_i K_{ii} \quad\text{with}\quad
            0 \le \alpha_i \le C_i, \; \sum_i \alpha_i = 1.

    Parameters
    ----------
    C : float, default=None
        Largest coefficient of a sample: C = 1 / (n s) leaves at most a share s of the
        n samples outside. None means a hard ball, which contains all samples.
    kernel : str, callable or Kernel, default="rbf"
        The kernel, as in :class:`~mercer.SVC`.
    degree : int, default=3
        Degree of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernels "rbf", "poly" and "sigmoid".
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    offset : float, default=0.0
        Number that is added to the radius in predictions: it widens the boundary, or
        narrows it if negative.
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
    radius_ : float
        Radius of the ball.
    offset_ : float
        ``decision_function`` is ``score_samples`` minus this: minus the radius and the
        offset.
    boundary_ : ndarray of int
        Indices of the samples on the boundary.
    outliers_ : ndarray of int
        Indices of the samples outside.
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
    n_support_ : ndarray of shape (1,)
    dual_coef_ : ndarray of shape (1, n_SV)
    intercept_ : ndarray of shape (1,)
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
    OneClassSVM : a half-space; the same machine for Gaussian kernels.
    mercer.plots.OneClassDisplay : draws the boundary.

    References
    ----------
    Tax & Duin, "Support vector data description", Machine Learning 54, 2004.

    Examples
    --------
    >>> from mercer import SVDD
    >>> X = [[0.0, 0.0], [2.0, 0.0], [1.0, 0.5]]
    >>> model = SVDD(kernel="linear").fit(X)
    >>> float(round(model.radius_, 3))
    1.0
    >>> model.boundary_
    array([0, 1])
    >>> model.predict([[1.0, 0.9], [1.0, 1.1]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict] = {
        **SingleMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither"), None],
        "offset": [Interval(Real, None, None, closed="neither")],
    }

    _takes_targets = False

    def __init__(
        self,
        *,
        C: float | None = None,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        offset: float = 0.0,
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
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.offset = offset
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
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SVDD:
        """Fit the ball.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; the kernel matrix for a precomputed kernel.
        y : ignored, default=None
        sample_weight : array of shape (n_samples,), default=None
            Factors of C, one for each sample; a sample of weight 0 may lie anywhere.

        Returns
        -------
        self
        """
        return self._fit(X, None, sample_weight)

    def _targets(self, valid: Validated, kernel: Kernel, samples: Any) -> NDArray:
        """Return the diagonal of the kernel matrix, of which the problem is made."""
        if self._is_precomputed():
            return np.array(samples.diagonal(), dtype=np.float64)
        return np.asarray(kernel.diagonal(Operand(samples)), dtype=np.float64)

    def _problem(self, targets: NDArray, weight: NDArray) -> DualProblem:
        if self.C is None:
            upper = np.where(weight > 0, 1.0, 0.0)
        else:
            upper = np.minimum(self.C * weight, 1.0)
        total = upper.sum()
        if total < 1.0 - 1e-12:
            raise ValueError(
                f"C={self.C!r} is too small: the coefficients must sum to 1, but their "
                f"upper bounds sum to {total:.4g}. Use C of at least "
                f"{self.C / total:.4g}."
            )
        return svdd(targets, upper)

    def _keep(self, plan: Plan, found: Certified) -> None:
        super()._keep(plan, found)
        problem = plan.specs[0].problem
        diag, upper = -2.0 * problem.p, problem.hi[self.support_]
        # The centre a has aᵀa = αᵀKα, from ½αᵀKα - ½ Σ αᵢKᵢᵢ and Σ αᵢKᵢᵢ.
        own = float(self.dual_coef_[0] @ diag[self.support_])
        self._center_norm = 2.0 * self.objective_ + own
        squared_radius = self._center_norm + 2.0 * self.intercept_[0]
        self.radius_ = float(np.sqrt(np.maximum(0.0, squared_radius)))
        # No coefficient can be more than 1, so 1 is not a bound of the sample itself.
        at_bound = (upper < 1.0) & (self.dual_coef_[0] >= upper)
        self.boundary_ = self.support_[~at_bound].astype(np.intp)
        self.outliers_ = self.support_[at_bound].astype(np.intp)
        if plan.is_matrix and not np.allclose(diag, 1.0):
            warn_user(
                "A precomputed kernel says nothing about k(x, x) of new samples, which "
                "is taken to be 1, but the diagonal of this matrix ranges from "
                f"{diag.min():.3g} to {diag.max():.3g}. Divide K by the roots of its "
                "diagonal, or pass samples and a kernel."
            )

    @property
    def offset_(self) -> float:
        """Minus the radius and the offset."""
        return -(self.radius_ + self.offset)

    @QUIET
    @takes_card_arrays
    def center_distance(self, X: Any) -> NDArray:
        """Return the distances from the centre, in feature space.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            For a precomputed kernel, the kernel values with the samples of the fit; new
            samples are then taken to have k(x, x) = 1.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        # The product with the centre is the decision value without the bias.
        along = self._decisions(X).ravel() - self.intercept_[0]
        if self._is_precomputed():
            own = np.ones(len(along))
        else:
            own = self.kernel_.diagonal(Operand(self._validate_for_predict(X)))
        return np.sqrt(np.maximum(0.0, own - 2.0 * along + self._center_norm))

    @takes_card_arrays
    def decision_function(self, X: Any) -> NDArray:
        """Return radius plus offset minus distance; positive is inside.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.score_samples(X)  # it checks that there was a fit
        return scores - self.offset_

    @takes_card_arrays
    def score_samples(self, X: Any) -> NDArray:
        """Return minus the distances from the centre.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return -self.center_distance(X)

    @takes_card_arrays
    def predict(self, X: Any) -> NDArray:
        """Return 1 for samples inside the ball, -1 for others.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)
