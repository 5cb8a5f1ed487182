"""Novelty: what is unlike the samples."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.core.problem import DualProblem, Solution, one_class
from mercer.engines.engine import Certified, Plan
from mercer.machines.base.machine import SingleMachine
from mercer.machines.svr import SVR
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval
from mercer.runtime.validation import fit_method, stores_parameters, takes_card_arrays

__all__ = ["NoveltyMachine", "OneClassSVM"]


class NoveltyMachine(OutlierMixin, SingleMachine):
    """Base class of the machines that take samples of one kind."""

    _takes_targets = False

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the machine.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; the kernel matrix for a precomputed kernel.
        y : ignored, default=None
        sample_weight : array of shape (n_samples,), default=None
            Factors of the upper bounds, one for each sample; a sample of weight 0 may
            lie anywhere.

        Returns
        -------
        self
        """
        return self._fit(X, None, sample_weight)


@public("mercer", SVR)
class OneClassSVM(NoveltyMachine):
    r"""The half-space in feature space that holds most samples, far from the origin.

    .. math::

        \min_\alpha \; \tfrac12 \alpha^T K \alpha \quad\text{with}\quad
            0 \le \alpha_i \le w_i, \; \sum_i \alpha_i = \nu \sum_i w_i

    Parameters
    ----------
    kernel, degree, gamma, coef0 : as in :class:`~mercer.SVR`
    nu : float, default=0.5
        An upper bound of the share of outliers, and a lower bound of the share of
        support vectors.
    solver, tol, cache_size, max_iter, shrinking, n_jobs : as in :class:`~mercer.SVR`
    device, verbose, random_state : as in :class:`~mercer.SVR`

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_ : as in :class:`~mercer.SVR`
    intercept_ : as in :class:`~mercer.SVR`
    offset_ : float
        ``decision_function`` is ``score_samples`` minus this.
    coef_, kernel_, objective_, dual_gap_, kkt_gap_ : as in :class:`~mercer.SVR`
    n_iter_, converged_, is_convex_, fit_status_ : as in :class:`~mercer.SVR`
    n_features_in_, feature_names_in_, shape_fit_ : as in :class:`~mercer.SVR`

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

    _impl: ClassVar[str] = "one_class"  # as programs read it that know LIBSVM
    _parameter_constraints: ClassVar[dict] = {
        **SingleMachine._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    @stores_parameters
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
    ): ...

    def _keep_machines(self, plan: Plan, found: Certified) -> Sequence[Solution]:
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
