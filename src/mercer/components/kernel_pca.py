"""Principal components in feature space."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from mercer.components.centred import (
    SMALL,
    Decomposition,
    Settings,
    choose_solver,
    decompose,
    work_bytes,
)
from mercer.components.preimage import PreImages
from mercer.kernels.base import Kernel, resolve_gamma
from mercer.kernels.operand import Operand
from mercer.kernels.views import views_of
from mercer.memory import budget_bytes
from mercer.progress import StepProgress
from mercer.threads import Threads

__all__ = ["KernelPCA"]


class KernelPCA(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    PreImages,
    CallbackSupportMixin,
    BaseEstimator,
):
    r"""The directions of feature space in which the images of the samples vary most.

    With the centred Gram matrix :math:`H K H = V \Lambda V^T`,
    :math:`H = I - 11^T/n`, the coordinates of a sample are

    .. math::

        y_k(x) = \sum_i a_{ik} \left(k(x, x_i) - \bar k_i\right), \qquad
        a_{ik} = v_{ik} / \sqrt{\lambda_k}, \quad \bar k_i = \tfrac1n \sum_j K_{ij}.

    Parameters
    ----------
    n_components : int, default=None
        How many components; None keeps all whose eigenvalue is not 0.
    kernel : str, callable or Kernel, default="linear"
        A name, a text such as ``"rbf(gamma=2) + linear"``, "precomputed", a kernel of
        :mod:`mercer.kernels`, or, as in scikit-learn's class, a function of two rows
        that returns a number (``kernels.Custom`` takes one of two matrices).
    gamma : {"scale", "auto"}, float or None, default=None
        Coefficient of named kernels; None is 1 / n_features.
    degree : float, default=3
        Degree of the kernel "poly"; a whole number.
    coef0 : float, default=1
        Constant of the kernels "poly" and "sigmoid".
    kernel_params : dict, default=None
        Arguments of a kernel that is a function.
    alpha : float, default=1.0
        Ridge of the map from coordinates back to samples.
    fit_inverse_transform : bool, default=False
        Whether to learn that map: n x n values more, and the time of a linear system.
    eigen_solver : str, default="auto"
        "dense" (LAPACK, the whole matrix), "lanczos" (blocks of vectors, the matrix
        within the memory budget), "arpack" (one vector at a time), "randomized" (the
        eigenvalues largest in modulus, no tolerance), or "auto": "dense" up to 500
        samples or for more than an eighth of the components, else "lanczos".
    tol : float, default=0
        Residual that is good enough, as a share of the largest eigenvalue; 0 is some
        rounding errors of the data's precision: 1e-5 for float32, 2e-14 for float64.
    max_iter : int, default=None
        Limit on passes over the matrix, for "lanczos" (300 if None) and "arpack".
    iterated_power : int or "auto", default="auto"
        Power iterations of "randomized"; "auto" is 7, or 4 for many components.
    remove_zero_eig : bool, default=False
        Whether to drop components with eigenvalue 0.
    random_state : int, RandomState instance or None, default=None
        For the start of the iterations.
    copy_X : bool, default=True
        Whether the samples are copied, so that the model survives their change.
    n_jobs : int, default=None
        Threads; None is as many as BLAS may use. The result is the same for any
        number.
    preimage : {"ridge", "fixed-point"}, default="ridge"
        How ``inverse_transform`` goes back: by the map that ``fit_inverse_transform``
        learns, or, for the Gaussian kernel, by the fixed-point iteration, which needs
        nothing learnt.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel values and work arrays; kernel values that do not fit are
        computed again for each pass. "auto" is a quarter of free memory.
    verbose : bool or int, default=False
        Whether to log progress.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        From the largest down.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Of norm 1.
    residuals_ : ndarray of shape (n_components,)
        :math:`\|HKHv - \lambda v\|`: an eigenvalue lies within that of each.
    explained_variance_ : ndarray of shape (n_components,)
        Variance in feature space along each component, with n - 1 as divisor.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Its share of the variance in feature space, the trace of HKH.
    X_fit_ : array or CSR matrix of shape (n_samples, n_features)
        The samples.
    gamma_ : float
        The coefficient in use.
    kernel_ : Kernel
        The kernel with its numbers; None for a function of two rows.
    n_iter_ : int
        Passes over the matrix.
    converged_ : bool
        Whether the residuals are as small as was asked for; always so for
        "randomized", which is not asked.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where the samples had names that are all text.

    Notes
    -----
    With ``fit_inverse_transform`` there are ``dual_coef_`` and ``X_transformed_fit_``
    too, as in scikit-learn. The Gram matrix has the precision of the data: float32 data
    take half the memory and half the time.

    References
    ----------
    Schölkopf, Smola & Müller, "Nonlinear component analysis as a kernel eigenvalue
    problem", 1998. Mika et al., "Kernel PCA and de-noising in feature spaces", 1999.

    Examples
    --------
    >>> from mercer import KernelPCA, datasets
    >>> X, y = datasets.make_rings(200, random_state=0)
    >>> model = KernelPCA(2, kernel="rbf", gamma=2.0).fit(X)
    >>> model.transform(X[:5]).shape
    (5, 2)
    >>> bool((model.residuals_ < 1e-10 * model.eigenvalues_[0]).all())
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "kernel": [str, callable, Kernel],
        "gamma": [
            StrOptions({"scale", "auto"}),
            Interval(Real, 0, None, closed="left"),
            None,
        ],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_inverse_transform": ["boolean"],
        "eigen_solver": [
            StrOptions({"auto", "dense", "lanczos", "arpack", "randomized"})
        ],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "iterated_power": [
            Interval(Integral, 0, None, closed="left"),
            StrOptions({"auto"}),
        ],
        "remove_zero_eig": ["boolean"],
        "random_state": ["random_state"],
        "copy_X": ["boolean"],
        "n_jobs": [None, Integral],
        "preimage": [StrOptions({"ridge", "fixed-point"})],
        "cache_size": [
            StrOptions({"auto"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "linear",
        gamma: float | str | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict | None = None,
        alpha: float = 1.0,
        fit_inverse_transform: bool = False,
        eigen_solver: str = "auto",
        tol: float = 0,
        max_iter: int | None = None,
        iterated_power: int | str = "auto",
        remove_zero_eig: bool = False,
        random_state: Any = None,
        copy_X: bool = True,
        n_jobs: int | None = None,
        preimage: str = "ridge",
        cache_size: float | str = "auto",
        verbose: bool | int = False,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.iterated_power = iterated_power
        self.remove_zero_eig = remove_zero_eig
        self.random_state = random_state
        self.copy_X = copy_X
        self.n_jobs = n_jobs
        self.preimage = preimage
        self.cache_size = cache_size
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.pairwise = self._is_precomputed()
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> KernelPCA:
        """Find the components.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; the kernel matrix for a precomputed kernel.
        y : ignored, default=None

        Returns
        -------
        self
        """
        self._check_preimage(X)
        views = views_of(X)
        X = self._validate(X, copy=self.copy_X)
        gamma = 1.0 / X.shape[1] if self.gamma is None else self.gamma
        self.gamma_ = resolve_gamma(gamma, X)
        self.kernel_ = self._bound_kernel(X, self.gamma_, views)
        k = X.shape[0] if self.n_components is None else self.n_components
        settings = Settings(
            self.eigen_solver,
            min(X.shape[0], k),
            float(self.tol),
            self.max_iter,
            self.iterated_power,
            check_random_state(self.random_state),
        )
        room = self._room(settings, X)
        settings = settings._replace(room=room)
        progress = StepProgress(self, X, y, self.verbose)
        with Threads(self.n_jobs) as threads:
            order = None
            if self.kernel_ is not None and not self._is_precomputed():
                order = Operand(X, run=threads.map).good_order()
            product = self._product(X, threads, SMALL, order, room)
            found = decompose(product, settings, progress).in_order(order)
        progress.finish("largest residual", float(found.residuals.max(initial=0.0)))
        self.X_fit_ = X
        self._store(found, X.dtype, progress.ended)
        if self.fit_inverse_transform:
            self._fit_ridge(X)
        return self

    def _room(self, settings: Settings, X: Any) -> int:
        """Return the bytes for arrays beside the matrix, or refuse the budget."""
        n, budget = X.shape[0], budget_bytes(self.cache_size)
        needed, room = work_bytes(settings, n, X.dtype, budget)
        solver = choose_solver(settings.solver, n, settings.n_components)
        is_free = self.cache_size == "auto" or self._is_precomputed()
        if solver == "dense" and n > SMALL and needed > budget and not is_free:
            raise MemoryError(
                f"eigen_solver={self.eigen_solver!r} decomposes the whole matrix of "
                f"{n} samples for {settings.n_components} components, which needs "
                f"{needed / 2**20:.3g} MB; cache_size={self.cache_size!r} allows "
                f"{budget / 2**20:.3g} MB. Raise cache_size, or use "
                "eigen_solver='lanczos' with fewer components."
            )
        return room

    def _store(self, found: Decomposition, dtype: np.dtype, ended: bool) -> None:
        kept = np.ones(len(found.values), dtype=bool)
        if self.remove_zero_eig or self.n_components is None:
            kept = found.values > 0
        values, vectors = found.values[kept], found.vectors[:, kept]
        n = len(vectors)
        trace = found.trace if found.trace > 0 else 1.0
        self.eigenvalues_ = values.astype(dtype)
        self.eigenvectors_ = vectors.astype(dtype)
        self.residuals_ = found.residuals[kept]
        self.explained_variance_ = (values / max(n - 1, 1)).astype(dtype)
        self.explained_variance_ratio_ = (values / trace).astype(dtype)
        self.n_iter_ = found.n_iter
        self.converged_ = found.converged
        # Columns that sum to 0 centre a row of kernel values by themselves.
        root = np.sqrt(np.where(values > 0, values, 1.0))
        scaled = np.where(values > 0, vectors / root, 0.0)
        self._weights = scaled - scaled.mean(axis=0)
        self._offset = found.row_means @ self._weights
        if not found.converged:
            remedy = "Raise max_iter or tol, or use eigen_solver='dense'."
            if ended:
                remedy = "A callback asked for an early end."
            warnings.warn(
                f"KernelPCA did not converge: residuals up to "
                f"{found.residuals.max():.3g} beside a largest eigenvalue of "
                f"{found.values.max():.4g} after {found.n_iter} passes. {remedy}",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _coordinates(self) -> NDArray:
        return self.eigenvectors_ * np.sqrt(self.eigenvalues_)

    def fit_transform(self, X: Any, y: Any = None) -> NDArray:
        """Find the components, and return the coordinates of the samples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : ignored, default=None

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        return self.fit(X)._coordinates()

    def transform(self, X: Any) -> NDArray:
        """Return the coordinates of samples along the components.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            For a precomputed kernel the matrix with the samples of the fit.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        X = self._validate_new(X)
        return (self._times(X, self._weights) - self._offset).astype(X.dtype)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)
