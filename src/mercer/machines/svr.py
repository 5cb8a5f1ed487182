"""Support vector regression."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.core.problem import DualProblem, epsilon_svr, nu_svr
from mercer.machines.base.machine import UNBOUNDED, SingleMachine
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval
from mercer.runtime.validation import stores_parameters, takes_card_arrays

__all__ = ["SVR", "KernelRegressor", "NuSVR"]


class KernelRegressor(RegressorMixin, SingleMachine):
    """Base class of the regressors."""

    _parameter_constraints: ClassVar[dict] = {
        **SingleMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
    }

    @takes_card_arrays
    def predict(self, X: Any) -> NDArray:
        """Return the value of each sample.

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
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination, :math:`R^2`.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        return super().score(X, y, sample_weight)

    def _bounds(self, weight: NDArray) -> NDArray:
        return np.minimum(self.C, UNBOUNDED) * weight


@public("mercer")
class SVR(KernelRegressor):
    r"""Regression in which errors of at most :math:`\varepsilon` are not penalised.

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2
            + \sum_i C_i \max\{0, |z_i - w \cdot \phi(x_i) - b| - \varepsilon\}

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
    C : float, default=1.0
        Penalty of errors beyond the tube.
    epsilon : float, default=0.1
        Half the width of the tube.
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
    NuSVR : finds epsilon from the share of samples outside.
    LinearSVR : the linear kernel, for very many samples.
    MKLRegressor : learns the weights of several kernels.
    mercer.dask.DaskSVR : the same on a cluster.

    References
    ----------
    Smola & Schölkopf, "A tutorial on support vector regression", Statistics and
    Computing 14, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVR
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = SVR(C=10.0, epsilon=0.05).fit(X, np.sin(X.ravel()))
    >>> np.abs(model.predict(X) - np.sin(X.ravel())).max() < 0.06
    np.True_
    """

    _impl: ClassVar[str] = "epsilon_svr"  # as programs read it that know LIBSVM
    _parameter_constraints: ClassVar[dict] = {
        **KernelRegressor._parameter_constraints,
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
    }

    @stores_parameters
    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        C: float = 1.0,
        epsilon: float = 0.1,
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

    def _problem(self, targets: NDArray, weight: NDArray) -> DualProblem:
        return epsilon_svr(targets, self._bounds(weight), self.epsilon)


@public("mercer", SVR)
class NuSVR(KernelRegressor):
    r"""Regression with a tube as wide as a share :math:`\nu` of errors requires.

    .. math::

        \min_{w, b, \varepsilon} \; \tfrac12 \|w\|^2 + \nu \varepsilon \sum_i C_i
            + \sum_i C_i \max\{0, |z_i - w \cdot \phi(x_i) - b| - \varepsilon\}

    Parameters
    ----------
    nu : float, default=0.5
        An upper bound of the share of samples outside of the tube, and a lower bound
        of the share of support vectors.
    C, kernel, degree, gamma, coef0, solver, tol, cache_size : as in :class:`SVR`
    max_iter, shrinking, n_jobs, device, verbose, random_state : as in :class:`SVR`

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_ : as in :class:`SVR`
    coef_, kernel_, objective_, dual_gap_, kkt_gap_, n_iter_ : as in :class:`SVR`
    converged_, is_convex_, fit_status_, n_features_in_ : as in :class:`SVR`
    feature_names_in_, shape_fit_ : as in :class:`SVR`

    See Also
    --------
    SVR : with a given width of the tube.
    NuSVC : classification with nu.

    References
    ----------
    Schölkopf, Smola, Williamson & Bartlett, "New support vector algorithms", Neural
    Computation 12, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NuSVR
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = NuSVR(C=10.0).fit(X, np.sin(X.ravel()))
    >>> np.abs(model.predict(X) - np.sin(X.ravel())).max() < 0.06
    np.True_
    """

    _impl: ClassVar[str] = "nu_svr"  # as programs read it that know LIBSVM
    _parameter_constraints: ClassVar[dict] = {
        **KernelRegressor._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    @stores_parameters
    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
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

    def _problem(self, targets: NDArray, weight: NDArray) -> DualProblem:
        return nu_svr(targets, self._bounds(weight), self.nu)
