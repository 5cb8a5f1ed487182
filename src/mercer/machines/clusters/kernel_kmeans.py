"""Kernel k-means: clusters around means in feature space."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from mercer.engines.cpu.tiles import budget_bytes
from mercer.engines.engine import engine_of
from mercer.kernels.base import Kernel, resolve_gamma
from mercer.kernels.pair import Samples
from mercer.kernels.radial import RBF, Laplacian
from mercer.kernels.views import views_of
from mercer.machines.base.feature_space import FeatureSpace
from mercer.machines.base.machine import CACHE_SIZE, KERNEL_PARAMETERS
from mercer.machines.clusters.partition import FeatureSamples, Partition, work_bytes
from mercer.machines.clusters.starts import make_starts
from mercer.machines.clusters.tuning import Tuning, tune_gamma
from mercer.runtime.progress import StepProgress
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval, StrOptions, check_sample_weight
from mercer.runtime.threads import Threads
from mercer.runtime.user_warnings import warn_user
from mercer.runtime.validation import fit_method, stores_parameters, takes_card_arrays

__all__ = ["KernelKMeans"]

# The distance that gamma multiplies, for the kernels whose gamma can be tuned.
METRICS = {"rbf": "sqeuclidean", "laplacian": "manhattan"}
# Up to this many samples, kernel values are computed in double precision.
SMALL = 500


@public("mercer")
class KernelKMeans(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    FeatureSpace,
    CallbackSupportMixin,
    BaseEstimator,
):
    r"""Kernel k-means: clusters around means in feature space.

    .. math:: \min_c \sum_i w_i \|\phi(x_i) - m_{c(i)}\|^2, \qquad
        m_c = \sum_{i \in c} w_i \phi(x_i) \Big/ \sum_{i \in c} w_i,

    by Lloyd's iteration on the Gram matrix. All starts iterate together, so that one
    round is one pass over the matrix for all of them. The objective never increases.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kernel : str, callable or Kernel, default="rbf"
        A name, a text such as ``"rbf(gamma=2) + linear"``, "precomputed", a kernel of
        :mod:`mercer.kernels`, or a function of two matrices of samples that returns
        the matrix of values; one of two rows that returns a number is slower.
    gamma : {"scale", "auto", "tune"} or float, default="scale"
        Coefficient of named kernels. "tune" chooses it without labels, for "rbf" and
        "laplacian": see Notes.
    degree : int, default=3
        Degree of the kernel "poly".
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    kernel_params : dict, default=None
        Arguments of a kernel that is a function.
    normalize : bool or "auto", default="auto"
        Whether samples are weighted by their degree
        :math:`d_i = \sum_j w_j K_{ij}`, and their images in feature space divided by
        it. The objective is then the normalised cut, which finds clusters of any shape;
        the plain objective prefers dense regions. "auto" is True with ``gamma="tune"``
        and False otherwise.
    init : {"auto", "k-means++", "random", "spectral"} or array, default="auto"
        How clusters start. "k-means++" draws samples far from each other in feature
        space, "random" draws random labels, and "spectral" clusters the leading
        eigenvectors. An array gives the labels to start from. "auto" makes one start
        with "spectral" and the others with "k-means++".
    n_init : int, default=10
        Number of starts, of which the best is kept. "spectral" and given labels make
        one start.
    max_iter : int, default=300
        Largest number of rounds.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel values and work arrays; kernel values that do not fit are
        computed again each round. "auto" is a quarter of free memory.
    n_jobs : int, default=None
        Number of threads; -1 means all cores, None as many as BLAS may use. The result
        does not depend on it.
    device : {"cpu", "cuda", "cuda:N"}, default="cpu"
        Where kernel values and their products with vectors are computed: on the
        processor, or on a graphics card, the first one or number N. ``cache_size`` is
        memory of the card then; "auto" is what is free there, less a margin.
    verbose : bool or int, default=False
        Whether to log progress.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each sample.
    inertia_ : float
        The objective; with ``normalize`` the objective of the scaled images.
    inertia_history_ : ndarray
        The objective in each round of the start that was kept.
    start_inertias_ : ndarray of shape (n_starts,)
        The final objective of each start.
    n_iter_ : int
        Number of rounds of the start that was kept.
    converged_ : bool
        Whether the start that was kept ended because no sample changed its cluster.
    gamma_ : float
        The value of gamma in use.
    tuning_ : tuple of two ndarray
        The candidates for gamma and the criterion of each; None if gamma was not tuned.
    kernel_ : Kernel
        The kernel with its numbers.
    X_fit_ : array or CSR matrix of shape (n_samples, n_features)
        The samples; an empty array for a precomputed kernel.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns in ``fit``, if all of them were strings.

    See Also
    --------
    KMeans : without a kernel.
    KernelPCA : components in feature space.

    Notes
    -----
    ``gamma="tune"`` takes the gamma for which the cut of the clustering is smallest,
    relative to the cut that one more cluster would need. It works if the gaps between
    clusters are wide compared with the gaps within clusters, and uses 800 samples at
    most.

    References
    ----------
    Dhillon, Guan & Kulis, "Kernel k-means, spectral clustering and normalized cuts",
    2004.

    Examples
    --------
    >>> from mercer import KernelKMeans, datasets
    >>> X, y = datasets.make_rings(300, random_state=0)
    >>> model = KernelKMeans(2, gamma="tune", random_state=0).fit(X)
    >>> sorted(int((model.labels_[y == ring] == 0).sum()) for ring in (0, 1))
    [0, 150]
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "kernel": [str, callable, Kernel],
        **KERNEL_PARAMETERS,
        "gamma": [
            StrOptions({"scale", "auto", "tune"}),
            Interval(Real, 0, None, closed="left"),
        ],
        "kernel_params": [dict, None],
        "normalize": ["boolean", StrOptions({"auto"})],
        "init": [
            StrOptions({"auto", "k-means++", "random", "spectral"}),
            "array-like",
        ],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "cache_size": CACHE_SIZE,
        "n_jobs": [Integral, None],
        "device": [str],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    @stores_parameters
    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        kernel_params: dict | None = None,
        normalize: bool | str = "auto",
        init: Any = "auto",
        n_init: int = 10,
        max_iter: int = 300,
        cache_size: float | str = "auto",
        n_jobs: int | None = None,
        device: str = "cpu",
        verbose: bool | int = False,
        random_state: Any = None,
    ): ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_precomputed()
        tags.input_tags.pairwise = self._is_precomputed()
        return tags

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelKMeans:
        """Find the clusters.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; the kernel matrix for a precomputed kernel.
        y : ignored, default=None
        sample_weight : array of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        self
        """
        views = views_of(X)
        X = self._validate(X, copy=not self._is_precomputed())
        if X.shape[0] < self.n_clusters:
            raise ValueError(
                f"n_samples={X.shape[0]} should be >= n_clusters={self.n_clusters}."
            )
        weight = check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        random = check_random_state(self.random_state)
        progress = StepProgress(self, X, y, self.verbose)
        with engine_of(X, self.device, self.n_jobs) as engine:
            threads = engine.threads
            self._choose_kernel(X, views, weight, random, threads)
            k = self.n_clusters
            work = work_bytes(X.shape[0], k, budget_bytes(self.cache_size))
            product = self._product(X, engine, small=SMALL, work=work)
            samples = FeatureSamples(product, weight, self._is_normalized(), work)
            starts = make_starts(self.init, self.n_init, samples, k, random, threads)
            found = samples.iterate(starts, k, self.max_iter, progress)
            best = samples.best(found)
            self._keep_means(samples, best.labels)
        progress.finish("inertia", best.inertia)
        self.X_fit_ = np.empty((0, 0)) if self._is_precomputed() else X
        self.start_inertias_ = np.array([part.inertia for part in found])
        self._store(best, progress.ended)
        return self

    def _is_normalized(self) -> bool:
        if self.normalize == "auto":
            return self.gamma == "tune"
        return bool(self.normalize)

    def _choose_kernel(
        self,
        X: Any,
        views: Any,
        weight: NDArray,
        random: np.random.RandomState,
        threads: Threads,
    ) -> None:
        tuning: Tuning | None = None
        kernel, gamma = self.kernel, self.gamma
        if gamma == "tune":
            tuning = tune_gamma(
                X, weight, self._metric(), self.n_clusters, random, threads
            )
            gamma = tuning.best
            if isinstance(kernel, Kernel):
                kernel = type(kernel)(gamma=gamma)
        self.tuning_ = None if tuning is None else tuple(tuning)
        self.gamma_ = resolve_gamma(gamma, X)
        if tuning is not None and isinstance(kernel, Kernel):
            self.kernel_ = kernel.bind(X)
        else:
            self.kernel_ = self._bound_kernel(X, self.gamma_, views)
            self.gamma_ = float(getattr(self.kernel_, "gamma", self.gamma_))

    def _metric(self) -> str:
        kernel = self.kernel
        if self.normalize is False:
            raise ValueError(
                "gamma='tune' judges clusters by their normalised cut, so it needs "
                "normalize=True or 'auto'; got normalize=False."
            )
        for name, kind in (("rbf", RBF), ("laplacian", Laplacian)):
            if isinstance(kernel, kind) or (isinstance(kernel, str) and kernel == name):
                return METRICS[name]
        raise ValueError(
            "gamma='tune' is for the kernels 'rbf' and 'laplacian', got "
            f"kernel={kernel!r}. Give gamma a number, 'scale' or 'auto'."
        )

    def _keep_means(self, samples: FeatureSamples, labels: NDArray) -> None:
        """Store what ``predict`` and ``transform`` need to compute distances."""
        k = self.n_clusters
        indicators = samples.indicators(labels, k)
        mass = indicators.sum(axis=0)
        safe = np.where(mass > 0, mass, 1.0)
        S = samples.times(indicators)
        self._mean_norms = np.einsum("ij,ij->j", indicators, S) / safe**2
        self._mean_norms[mass <= 0] = np.inf
        self._mean_weights = samples.scale[:, None] * indicators / safe
        self._degree_weights = samples.weight * samples.scale

    def _store(self, best: Partition, ended: bool) -> None:
        self.labels_ = best.labels
        self.inertia_ = best.inertia
        self.inertia_history_ = np.array(best.history)
        self.n_iter_ = min(len(best.history), self.max_iter)
        self.converged_ = best.converged
        n_found = len(np.unique(best.labels))
        if n_found < self.n_clusters:
            problem = (
                f"Number of distinct clusters ({n_found}) found smaller than "
                f"n_clusters ({self.n_clusters}). Possibly due to duplicate points "
                "in X."
            )
        elif not best.converged:
            remedy = "Raise max_iter."
            if ended:
                remedy = "A callback asked for an early end."
            problem = (
                f"KernelKMeans did not converge in {self.n_iter_} rounds. {remedy}"
            )
        else:
            return
        warn_user(problem, ConvergenceWarning)

    def _distances(self, X: Any) -> tuple[NDArray, NDArray]:
        """Return squared distances less k(x, x), and the scale of each image."""
        weights = np.column_stack([self._mean_weights, self._degree_weights])
        found = self._times(X, weights)
        scale = np.ones(len(found))
        if self._is_normalized():
            # The degree of a sample far from all others is 0; such a sample is not
            # scaled.
            degrees = found[:, -1]
            scale = 1.0 / np.where(degrees > 0, degrees, 1.0)
        return self._mean_norms - 2.0 * scale[:, None] * found[:, :-1], scale

    @takes_card_arrays
    def predict(self, X: Any) -> NDArray:
        """Return the cluster whose mean in feature space is nearest to each sample.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; for a precomputed kernel the matrix of kernel values between
            these samples and the samples of the fit.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        X = self._validate_new(X)
        return self._distances(X)[0].argmin(axis=1).astype(np.int32)

    @takes_card_arrays
    def transform(self, X: Any) -> NDArray:
        """Return the distances from all means, in feature space.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; for a precomputed kernel the matrix of kernel values between
            these samples and the samples of the fit. Since k(x, x) is then unknown, it
            is taken to be 1.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        X = self._validate_new(X)
        return self._roots(X, self._own(X))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Find the clusters, and return the distances of the samples from all means.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; the kernel matrix for a precomputed kernel.
        y : ignored, default=None
        sample_weight : array of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        return self.fit(X, sample_weight=sample_weight)._transform_own(X)

    @takes_card_arrays
    def _transform_own(self, X: Any) -> NDArray:
        """Transform the samples of the fit, which may be a kernel matrix."""
        X_fit = self._validate_new(X)
        known = X_fit.diagonal() if self._is_precomputed() else self._own(X_fit)
        return self._roots(X_fit, known)

    def _roots(self, X: Any, own: NDArray) -> NDArray:
        squared, scale = self._distances(X)
        return np.sqrt(np.maximum(squared + (own * scale**2)[:, None], 0.0))

    def _own(self, X: Any) -> NDArray:
        """Return k(x, x) of new samples."""
        if self._is_precomputed():
            return np.ones(X.shape[0])
        return np.asarray(self.kernel_.diagonal(Samples(X)), dtype=np.float64)

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters
