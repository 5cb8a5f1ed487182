"""The smallest ball around the samples."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.core.problem import DualProblem, svdd
from mercer.engines.cpu.pair import Operand
from mercer.engines.engine import Certified, Plan
from mercer.kernels.base import Kernel
from mercer.machines.base.machine import Validated
from mercer.machines.one_class import NoveltyMachine
from mercer.machines.svr import SVR
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval
from mercer.runtime.user_warnings import warn_user
from mercer.runtime.validation import (
    QUIET,
    as_dense,
    stores_parameters,
    takes_card_arrays,
)

__all__ = ["SVDD"]


@public("mercer", SVR)
class SVDD(NoveltyMachine):
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
    kernel, degree, gamma, coef0 : as in :class:`~mercer.SVR`
    offset : float, default=0.0
        Number that is added to the radius in predictions: it widens the boundary, or
        narrows it if negative.
    solver, tol, cache_size, max_iter, shrinking, n_jobs : as in :class:`~mercer.SVR`
    device, verbose, random_state : as in :class:`~mercer.SVR`

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
    support_, support_vectors_, n_support_, dual_coef_ : as in :class:`~mercer.SVR`
    intercept_, coef_, kernel_, objective_, dual_gap_ : as in :class:`~mercer.SVR`
    kkt_gap_, n_iter_, converged_, is_convex_, fit_status_ : as in :class:`~mercer.SVR`
    n_features_in_, feature_names_in_, shape_fit_ : as in :class:`~mercer.SVR`

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
        **NoveltyMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither"), None],
        "offset": [Interval(Real, None, None, closed="neither")],
    }

    @stores_parameters
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
    ): ...

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
        beta = as_dense(self.dual_coef_)[0]
        own = float(beta @ diag[self.support_])
        self._center_norm = 2.0 * self.objective_ + own
        squared_radius = self._center_norm + 2.0 * self.intercept_[0]
        self.radius_ = float(np.sqrt(np.maximum(0.0, squared_radius)))
        # No coefficient can be more than 1, so 1 is not a bound of the sample itself.
        at_bound = (upper < 1.0) & (beta >= upper)
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
