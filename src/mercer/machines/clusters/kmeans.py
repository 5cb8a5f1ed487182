"""K-means clustering."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import euclidean_distances
from sklearn.utils import check_array, check_random_state
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_is_fitted

from mercer.core.tiles import ranges
from mercer.kernels.pair import squared_norms
from mercer.machines.clusters.lloyd import Clustering, Lloyd, is_lower
from mercer.machines.clusters.lloyd_steps import centre, nearest, sum_columns
from mercer.machines.clusters.seeds import draw_far_apart
from mercer.runtime.progress import StepProgress
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval, StrOptions, check_sample_weight
from mercer.runtime.soundness import numbers
from mercer.runtime.threads import Threads
from mercer.runtime.user_warnings import warn_user
from mercer.runtime.validation import (
    fit_method,
    stores_parameters,
    takes_card_arrays,
    validate_samples,
)

__all__ = ["KMeans"]

# Number of rows that a thread sums or centres at a time.
PART = 2048
# Up to this many multiplications, all distances are computed in the calling thread.
BRIEF = 1_000_000
# Up to this many, they are computed by differences to predict clusters.
BRIEF_TO_PREDICT = 4_000_000


@public("mercer")
class KMeans(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    CallbackSupportMixin,
    BaseEstimator,
):
    r"""K-means clustering.

    .. math:: \min_{c, m} \sum_i w_i \|x_i - m_{c(i)}\|^2

    by Lloyd's iteration: assign samples to the nearest centre, and move centres to the
    mean of their samples.  Bounds on distances avoid work for samples whose nearest
    centre cannot have changed.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    init : {"k-means++", "random"}, callable or array, default="k-means++"
        Where centres start: at samples drawn far from each other ("k-means++"), at
        samples drawn at random ("random"), at the centres that
        ``init(X, n_clusters, random_state=...)`` returns, or at the centres given.
    n_init : int or "auto", default="auto"
        Number of starts, of which the best is kept. "auto" is 1 for "k-means++" and for
        given centres, and 10 for "random" and callables.
    max_iter : int, default=300
        Largest number of rounds of one start.
    tol : float, default=1e-4
        A start ends when the sum of the squared moves of the centres is at most ``tol``
        times the mean variance of the features.
    verbose : bool or int, default=0
        Whether to log progress.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts; the same number gives the same starts as in scikit-learn.
    copy_x : bool, default=True
        Whether dense samples are centred in a copy. False centres them in place, and
        undoes it at the end of the fit.
    n_jobs : int, default=None
        Number of threads; -1 means all cores, None as many as BLAS may use. The result
        does not depend on it.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,)
        The cluster of each sample.
    inertia_ : float
        The objective.
    inertia_history_ : ndarray
        The objective in each round of the start that was kept, and at the end.
    n_iter_ : int
        Number of rounds of the start that was kept.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns in ``fit``, if all of them were strings.

    See Also
    --------
    KernelKMeans : the same in the feature space of a kernel.

    References
    ----------
    Hamerly, "Making k-means even faster", 2010.

    Examples
    --------
    >>> from mercer import KMeans, datasets
    >>> X, y = datasets.make_clouds(300, n_classes=3, separation=8, random_state=0)
    >>> model = KMeans(n_clusters=3, random_state=0).fit(X)
    >>> sorted(int((model.labels_ == c).sum()) for c in range(3))
    [100, 100, 100]
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-means++", "random"}), callable, "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "copy_x": ["boolean"],
        "n_jobs": [Integral, None],
    }

    @stores_parameters
    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: bool | int = 0,
        random_state: Any = None,
        copy_x: bool = True,
        n_jobs: int | None = None,
    ): ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KMeans:
        """Find the clusters.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples.
        y : ignored, default=None
        sample_weight : array of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        self
        """
        given = X
        X = self._validated(X, copy=self.copy_x and not sparse.issparse(X))
        if X.shape[0] < self.n_clusters:
            raise ValueError(
                f"n_samples={X.shape[0]} should be >= n_clusters={self.n_clusters}."
            )
        weight = check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        random = check_random_state(self.random_state)
        progress = StepProgress(self, given, y, self.verbose)
        mean = np.zeros(X.shape[1])  # a sparse matrix stays as it is
        try:
            with Threads(self.n_jobs, self._is_brief(X)) as threads:
                if sparse.issparse(X):
                    norms = None
                    variance = float(np.mean(mean_variance_axis(X, axis=0)[1]))
                else:
                    middle = _mean(X, threads)
                    norms = self._centre(X, middle, threads)
                    mean = middle  # from here on, it is to be added again
                    variance = float(norms.sum()) / X.size
                samples = Lloyd(X, weight, threads, norms)
                _check_size(samples)
                best: Clustering | None = None
                for _ in range(self._n_starts()):
                    start = self._start(samples, mean, random)
                    found = samples.run(
                        start, self.max_iter, self.tol * variance, progress
                    )
                    if best is None or is_lower(
                        found.inertia, best.inertia, samples.total
                    ):
                        best = found
                    if progress.ended:
                        break
        finally:
            if not sparse.issparse(X) and not self.copy_x:
                X += mean.astype(X.dtype)
        progress.finish("inertia", best.inertia)  # type: ignore[union-attr]
        self._store(best, mean, X)  # type: ignore[arg-type]
        return self

    def _store(self, best: Clustering, mean: NDArray, X: Any) -> None:
        shift = 0.0 if sparse.issparse(X) else mean
        self.cluster_centers_ = (best.centers + shift).astype(X.dtype)
        self.labels_ = best.labels
        self.inertia_ = best.inertia
        self.inertia_history_ = np.array(best.history)
        self.n_iter_ = best.n_iter
        n_found = len(np.unique(best.labels))
        if n_found < self.n_clusters:
            warn_user(
                f"Number of distinct clusters ({n_found}) found smaller than "
                f"n_clusters ({self.n_clusters}). Possibly due to duplicate points "
                "in X.",
                ConvergenceWarning,
            )

    def _centre(self, X: NDArray, mean: NDArray, threads: Threads) -> NDArray:
        """Subtract the mean in place; return the squared norms of the samples."""
        rounded = mean.astype(X.dtype)
        if not self.copy_x:
            # One operation that no interrupt can leave half done: the mean is added to
            # the user's own samples again at the end.
            X -= rounded
            return squared_norms(X)
        norms = np.empty(len(X))
        parts = ranges(0, len(X), PART, even=False)
        threads.map(lambda rows: centre(X[rows], rounded, norms[rows]), parts)
        return norms

    def _validated(self, X: Any, **more: Any) -> Any:
        return validate_samples(self, X, accept_large_sparse=False, **more)

    def _is_brief(self, X: Any) -> bool:
        """Tell whether a pass over the samples takes less time than waking threads."""
        return X.shape[0] * X.shape[1] * self.n_clusters <= BRIEF

    def _n_starts(self) -> int:
        is_text = isinstance(self.init, str)
        if not is_text and not callable(self.init):
            return 1
        if self.n_init != "auto":
            return int(self.n_init)
        return 1 if is_text and self.init == "k-means++" else 10

    def _start(
        self, samples: Lloyd, mean: NDArray, random: np.random.RandomState
    ) -> NDArray:
        """Return centres to start from, in the coordinates of the centred samples."""
        X, k = samples.X, self.n_clusters
        shift = 0.0 if sparse.issparse(X) else mean
        if isinstance(self.init, str) and self.init == "k-means++":
            return draw_far_apart(samples, k, random)
        if isinstance(self.init, str):
            weight = samples.weight / samples.weight.sum()
            rows = random.choice(samples.n, k, replace=False, p=weight)
            return X[rows].toarray() if sparse.issparse(X) else X[rows]
        given = self.init
        if callable(given):
            restored = X if sparse.issparse(X) else X + mean.astype(X.dtype)
            given = given(restored, k, random_state=random)
        given = check_array(given, dtype=np.float64, copy=True)
        if given.shape != (k, samples.d):
            raise ValueError(
                f"init has shape {given.shape}; with n_clusters={k} and samples of "
                f"{samples.d} features it must be ({k}, {samples.d})."
            )
        return given - shift

    @takes_card_arrays
    def predict(self, X: Any) -> NDArray:
        """Return the cluster with the nearest centre for each sample.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        # Users may set the centres.
        centers = numbers(self, "cluster_centers_", None, X.shape[1])
        n_products = X.shape[0] * X.shape[1] * len(centers)
        if sparse.issparse(X) or n_products > BRIEF_TO_PREDICT:
            return self._lloyd_of(X, None)[1]
        labels = np.empty(len(X), dtype=np.int32)
        nearest(X, centers.astype(np.float64), labels)
        return labels

    def _lloyd_of(self, X: Any, sample_weight: Any) -> tuple[Lloyd, NDArray, NDArray]:
        """Return valid samples, their labels and the centres, after a common shift."""
        centers = numbers(self, "cluster_centers_", None, X.shape[1])
        centers = centers.astype(np.float64)
        weight = check_sample_weight(sample_weight, X, dtype=np.float64)
        if not sparse.issparse(X):
            # Inner products lose fewer digits if the origin is the mean of the centres.
            middle = centers.mean(axis=0).astype(X.dtype)
            X, centers = X - middle, centers - middle
        with Threads(self.n_jobs, self._is_brief(X)) as threads:
            samples = Lloyd(X, weight, threads)
            return samples, samples.labels_of(centers), centers

    @takes_card_arrays
    def transform(self, X: Any) -> NDArray:
        """Return the distances from all centres.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        check_is_fitted(self)
        return euclidean_distances(
            self._validated(X, reset=False), self.cluster_centers_
        )

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Find the clusters, and return the distances of the samples from all centres.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : ignored, default=None
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        return self.fit(X, sample_weight=sample_weight).transform(X)

    @takes_card_arrays
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the objective on the given samples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : ignored, default=None
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        samples, labels, centers = self._lloyd_of(X, sample_weight)
        with Threads(self.n_jobs, self._is_brief(samples.X)) as threads:
            samples = Lloyd(samples.X, samples.weight, threads)
            return -samples.inertia(labels, centers)

    @property
    def _n_features_out(self) -> int:
        return self.cluster_centers_.shape[0]


def _check_size(samples: Lloyd) -> None:
    """Raise an error if squared distances overflow in the dtype of the samples."""
    dtype = samples.X.dtype
    if not samples.norms.max() <= np.finfo(dtype).max / 4:
        raise ValueError(
            f"The squared distances are not finite in {dtype}: the values of X are too "
            "large. Scale X."
        )


def _mean(X: NDArray, threads: Threads) -> NDArray:
    """Return the mean of each feature of dense samples."""
    parts = ranges(0, len(X), PART, even=False)
    sums = threads.map(lambda rows: sum_columns(X[rows]), parts)
    return np.sum(sums, axis=0) / len(X)
