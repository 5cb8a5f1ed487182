"""Kernel principal component analysis."""

from __future__ import annotations

from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import decomposition
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import KernelCenterer
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.engines.cpu.tiles import budget_bytes
from mercer.engines.engine import engine_of
from mercer.kernels.base import Kernel, resolve_gamma
from mercer.kernels.given import Pairwise
from mercer.kernels.views import views_of
from mercer.machines.base.export import KERNEL_NAMES, KernelFunction
from mercer.machines.base.machine import CACHE_SIZE
from mercer.machines.components.centred import (
    SMALL,
    Decomposition,
    EigenSettings,
    choose_solver,
    decompose,
    work_bytes,
)
from mercer.machines.components.preimage import PreImages
from mercer.runtime.progress import StepProgress
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval, StrOptions
from mercer.runtime.user_warnings import warn_user
from mercer.runtime.validation import (
    QUIET,
    check_finite,
    fit_method,
    like,
    stores_parameters,
    takes_card_arrays,
)

__all__ = ["KernelPCA"]

#: Attributes that scikit-learn's KernelPCA has too.
THEIRS = (
    *("X_fit_", "X_transformed_fit_", "_centerer", "dual_coef_", "eigenvalues_"),
    *("eigenvectors_", "feature_names_in_", "gamma_", "n_features_in_"),
)


@public("mercer")
class KernelPCA(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    PreImages,
    CallbackSupportMixin,
    BaseEstimator,
):
    r"""Kernel principal component analysis.

    The components are the directions of feature space in which the images of the
    samples vary most.  With the centred Gram matrix :math:`H K H = V \Lambda V^T`,
    :math:`H = I - 11^T/n`, the coordinates of a sample are

    .. math::

        y_k(x) = \sum_i a_{ik} \left(k(x, x_i) - \bar k_i\right), \qquad
        a_{ik} = v_{ik} / \sqrt{\lambda_k}, \quad \bar k_i = \tfrac1n \sum_j K_{ij}.

    Parameters
    ----------
    n_components : int, default=None
        Number of components; None keeps all with an eigenvalue other than 0.
    kernel : str, callable or Kernel, default="linear"
        A name, a text such as ``"rbf(gamma=2) + linear"``, "precomputed", a kernel of
        :mod:`mercer.kernels`, or a function of two matrices of samples that returns
        the matrix of values. A function of two rows that returns a number, which
        scikit-learn's class takes, works too: it is called for every pair.
    gamma : {"scale", "auto"}, float or None, default=None
        Coefficient of named kernels; None is 1 / n_features.
    degree : float, default=3
        Degree of the kernel "poly", a whole number.
    coef0 : float, default=1
        Constant of the kernels "poly" and "sigmoid".
    kernel_params : dict, default=None
        Arguments of a kernel that is a function.
    alpha : float, default=1.0
        Ridge penalty of the map from coordinates back to samples, if
        ``fit_inverse_transform`` is True.
    fit_inverse_transform : bool, default=False
        Whether to learn that map: n x n values more, and the time of a linear system.
        The samples that it leads to are dense, and so is what it keeps of sparse ones:
        n x n_features values.
    eigen_solver : str, default="auto"
        "dense" (LAPACK on the whole matrix), "lanczos" (blocks of vectors, with the
        matrix within the memory budget), "arpack" (one vector at a time), "randomized"
        (the eigenvalues of largest modulus, without a tolerance), or "auto": "dense"
        up to 500 samples or if ``n_components`` is more than an eighth of the samples,
        and "lanczos" otherwise.
    tol : float, default=0
        Largest residual, as a fraction of the largest eigenvalue. 0 stands for a few
        rounding errors in the precision of the data: about 1e-5 for float32 and 2e-14
        for float64.
    max_iter : int, default=None
        Largest number of passes over the matrix for "lanczos" (300 if None) and
        "arpack".
    iterated_power : int or "auto", default="auto"
        Number of power iterations of "randomized"; "auto" is 7, or 4 if
        ``n_components`` is at least a tenth of the samples.
    remove_zero_eig : bool, default=False
        Whether to drop components with eigenvalue 0.
    random_state : int, RandomState instance or None, default=None
        For the start of the iterations. None is one start for all fits: a fit that is
        repeated gives the same numbers to the last bit. For "arpack" and "randomized"
        None is NumPy's global generator, as in scikit-learn.
    copy_X : bool, default=True
        Whether the model keeps a copy of the samples, so that later changes of X do
        not affect it.
    n_jobs : int, default=None
        Number of threads; -1 means all cores, None as many as BLAS may use. The result
        does not depend on it.
    device : {"cpu", "cuda", "cuda:N"}, default="cpu"
        Where kernel values and their products with vectors are computed: on the
        processor, or on a graphics card, the first one or number N. ``cache_size`` is
        memory of the card then; "auto" is what is free there, less a margin.
    preimage : {"ridge", "fixed-point"}, default="ridge"
        How ``inverse_transform`` finds samples: by the map that
        ``fit_inverse_transform`` learns or, for the Gaussian kernel, by the fixed-point
        iteration, for which nothing has to be learnt.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel values and work arrays; kernel values that do not fit are
        computed again for each pass. "auto" is a quarter of free memory.
    verbose : bool or int, default=False
        Whether to log progress.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the centred Gram matrix, in descending order.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Eigenvectors of norm 1.
    residuals_ : ndarray of shape (n_components,)
        :math:`\|HKHv - \lambda v\|` of each component: the distance of its eigenvalue
        from an exact eigenvalue is at most this.
    explained_variance_ : ndarray of shape (n_components,)
        Variance in feature space along each component, with n - 1 as divisor.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of each component in the total variance in feature space.
    X_fit_ : array or CSR matrix of shape (n_samples, n_features)
        The samples.
    gamma_ : float
        The value of gamma in use.
    kernel_ : Kernel
        The kernel with its numbers.
    n_iter_ : int
        Number of passes over the matrix.
    converged_ : bool
        Whether the residuals are within ``tol``; always True for "randomized", which
        has no tolerance.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns in ``fit``, if all of them were strings.

    See Also
    --------
    PCA : without a kernel.
    KernelKMeans : clusters in feature space.
    mercer.plots.EmbeddingDisplay : draws components.

    Notes
    -----
    With ``fit_inverse_transform`` the model also has ``dual_coef_`` and
    ``X_transformed_fit_``, as in scikit-learn. The Gram matrix has the precision of the
    data: float32 data take half the memory and half the time.

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
        "device": [str],
        "preimage": [StrOptions({"ridge", "fixed-point"})],
        "cache_size": CACHE_SIZE,
        "verbose": ["verbose"],
    }

    @stores_parameters
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
        device: str = "cpu",
        preimage: str = "ridge",
        cache_size: float | str = "auto",
        verbose: bool | int = False,
    ): ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_precomputed()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.pairwise = self._is_precomputed()
        return tags

    @fit_method
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
        self._check_preimage()
        views = views_of(X)
        X = self._validate(X, copy=self.copy_X)
        gamma = 1.0 / X.shape[1] if self.gamma is None else self.gamma
        self.gamma_ = resolve_gamma(gamma, X)
        self.kernel_ = self._bound_kernel(X, self.gamma_, views)
        k = X.shape[0] if self.n_components is None else self.n_components
        random = self.random_state
        if random is None and self.eigen_solver not in ("arpack", "randomized"):
            random = 0  # the start influences rounding errors only
        settings = EigenSettings(
            self.eigen_solver,
            min(X.shape[0], k),
            float(self.tol),
            self.max_iter,
            self.iterated_power,
            check_random_state(random),
        )
        room = self._room(settings, X)
        settings = settings._replace(room=room)
        progress = StepProgress(self, X, y, self.verbose)
        with engine_of(X, self.device, self.n_jobs) as engine:
            order = None
            if not self._is_precomputed():
                order = engine.good_order(X)
            product = self._product(X, engine, SMALL, order, room)
            found = decompose(product, settings, progress).in_order(order)
        progress.finish("largest residual", float(found.residuals.max(initial=0.0)))
        self.X_fit_ = X
        self._store(found, X.dtype, progress.ended)
        if self.fit_inverse_transform:
            self._fit_ridge(X)
        return self

    def _room(self, settings: EigenSettings, X: Any) -> int:
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

    @QUIET
    def _store(self, found: Decomposition, dtype: np.dtype, ended: bool) -> None:
        kept = np.ones(len(found.values), dtype=bool)
        if self.remove_zero_eig or self.n_components is None:
            kept = found.values > 0
        values, vectors = found.values[kept], found.vectors[:, kept]
        n = len(vectors)
        trace = found.trace if found.trace > 0 else 1.0
        self.eigenvalues_ = values.astype(dtype)
        check_finite("eigenvalues", self.eigenvalues_)
        self.eigenvectors_ = vectors.astype(dtype)
        self.residuals_ = found.residuals[kept]
        self.explained_variance_ = (values / max(n - 1, 1)).astype(dtype)
        self.explained_variance_ratio_ = (values / trace).astype(dtype)
        self.n_iter_ = found.n_iter
        self.converged_ = found.converged
        # Since the columns of the weights sum to 0, their product with a row of kernel
        # values centres that row.
        root = np.sqrt(np.where(values > 0, values, 1.0))
        scaled = np.where(values > 0, vectors / root, 0.0)
        self._weights = scaled - scaled.mean(axis=0)
        self._offset = found.row_means @ self._weights
        # Programs that know scikit-learn's KernelPCA read this.
        self._centerer = KernelCenterer()
        self._centerer.K_fit_rows_ = found.row_means.astype(dtype)
        self._centerer.K_fit_all_ = dtype.type(found.row_means.mean())
        self._centerer.n_features_in_ = n
        if not found.converged:
            remedy = "Raise max_iter or tol, or use eigen_solver='dense'."
            if ended:
                remedy = "A callback asked for an early end."
            warn_user(
                f"KernelPCA did not converge: after {found.n_iter} passes there are "
                f"residuals up to {found.residuals.max():.3g}, with a largest "
                f"eigenvalue of {found.values.max():.4g}. {remedy}",
                ConvergenceWarning,
            )

    def _get_kernel(self, X: Any, Y: Any = None) -> NDArray:
        """Return kernel values as scikit-learn's method of this name does."""
        if self._is_precomputed():
            return X
        with engine_of(X, self.device, self.n_jobs) as engine:
            return engine.matrix(self.kernel_, X, Y)

    def to_sklearn(self) -> Any:
        """Return a fitted ``KernelPCA`` of scikit-learn with the same components.

        A kernel that scikit-learn does not have becomes a function, which scikit-learn
        calls for each pair of samples.

        Returns
        -------
        estimator
        """
        check_is_fitted(self)
        own = self.get_params(deep=False)
        taken = {name: own[name] for name in decomposition.KernelPCA().get_params()}
        if self.eigen_solver == "lanczos":
            taken["eigen_solver"] = "auto"
        if type(self.kernel_) in KERNEL_NAMES:
            numbers = self.kernel_.get_params()
            taken |= {name: v for name, v in numbers.items() if name in taken}
            taken["kernel"] = KERNEL_NAMES[type(self.kernel_)][0]
        elif isinstance(self.kernel_, Pairwise):
            taken["kernel"] = self.kernel
        else:
            taken |= {"kernel": KernelFunction(self.kernel_), "kernel_params": None}
        result = decomposition.KernelPCA(**taken)
        for name, value in vars(self).items():
            if name in THEIRS:
                setattr(result, name, copy(value))
        return result

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
        return like(X, self.fit(X)._coordinates())

    @takes_card_arrays
    def transform(self, X: Any) -> NDArray:
        """Return the coordinates of samples along the components.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; for a precomputed kernel the matrix of kernel values between
            these samples and the samples of the fit.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        X = self._validate_new(X)
        return (self._times(X, self._weights) - self._offset).astype(X.dtype)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)
