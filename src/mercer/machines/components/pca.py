"""Principal component analysis."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.extmath import svd_flip
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_is_fitted

from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval, RealNotInt, StrOptions
from mercer.runtime.validation import (
    as_dense,
    fit_method,
    stores_parameters,
    takes_card_arrays,
    validate_data,
)

__all__ = ["PCA"]

# Number of rows that are centred at a time, which avoids a centred copy of all data.
ROWS = 4096
# solver="auto" uses the covariance matrix up to this many columns.
MOST_COLUMNS = 1000


@public("mercer")
class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Principal component analysis.

    The components are the directions in which the samples vary most.  With the centred
    data :math:`X_c = U \Sigma V^T`, or the covariance matrix
    :math:`X_c^T X_c / (n - 1) = V \Lambda V^T`, :math:`\Lambda = \Sigma^2 / (n-1)`,
    the rows of :math:`V^T` are the components, and

    .. math:: X \mapsto (X - \bar x) V

    the coordinates of the samples along them.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components. A number below 1 keeps as many components as explain this
        share of the variance; None keeps all, min(n_samples, n_features).
    whiten : bool, default=False
        Whether to divide the coordinates by their standard deviations.
    solver : {"auto", "svd", "eigh"}, default="auto"
        "svd" computes the singular values of the centred data, and "eigh" the
        eigenvalues of the covariance matrix. "eigh" is faster for many samples of few
        features, but small singular values are only accurate to the square root of the
        rounding error. "auto" uses "eigh" for sparse data, and if there are at least
        ten times as many samples as features and at most 1000 features.

    Attributes
    ----------
    components_ : ndarray of shape (k, n_features)
        Orthonormal directions; the largest entry of each is positive.
    explained_variance_ : ndarray of shape (k,)
        Variance along each component, with n - 1 as divisor.
    explained_variance_ratio_ : ndarray of shape (k,)
        Share of each component in the total variance of the data.
    singular_values_ : ndarray of shape (k,)
        Norms of the columns of coordinates.
    mean_ : ndarray of shape (n_features,)
    noise_variance_ : float
        Mean variance along the directions that are left out.
    n_components_ : int
    n_samples_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns in ``fit``, if all of them were strings.

    See Also
    --------
    KernelPCA : the same in the feature space of a kernel.

    Examples
    --------
    >>> from mercer import PCA, datasets
    >>> X, _ = datasets.make_sheet(500, random_state=0)
    >>> model = PCA(n_components=2).fit(X)
    >>> bool(model.explained_variance_ratio_.sum() > 0.99)
    True
    >>> model.inverse_transform(model.transform(X)).shape
    (500, 3)
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [
            Interval(Integral, 0, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
            None,
        ],
        "whiten": ["boolean"],
        "solver": [StrOptions({"auto", "svd", "eigh"})],
    }

    @stores_parameters
    def __init__(
        self,
        n_components: float | None = None,
        *,
        whiten: bool = False,
        solver: str = "auto",
    ): ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        return tags

    @fit_method
    def fit(self, X: Any, y: Any = None) -> PCA:
        """Find the components.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples.
        y : ignored, default=None

        Returns
        -------
        self
        """
        X = validate_data(
            self,
            X,
            dtype=[np.float64, np.float32],
            accept_sparse="csr",
            ensure_min_samples=2,
            ensure_min_features=1,
        )
        n, d = X.shape
        self._check_count(n, d)
        if sparse.issparse(X):
            mean = np.asarray(mean_variance_axis(X.astype(np.float64), axis=0)[0])
        else:
            mean = X.mean(axis=0, dtype=np.float64)
        values, V = (_by_svd if self._takes_svd(X) else _by_covariance)(X, mean)
        rank = min(n, d)
        values, V = values[:rank], V[:rank]
        _, V = svd_flip(None, V, u_based_decision=False)
        variance = np.maximum(values, 0.0) / (n - 1)
        if not variance.sum() <= np.finfo(X.dtype).max:
            raise ValueError(
                f"PCA: the variances are not finite in {X.dtype}: the values of X are "
                "too large. Scale X."
            )
        total = variance.sum()
        ratio = variance / total if total > 0 else np.zeros_like(variance)
        k = self._count(ratio)
        self.n_components_, self.n_samples_ = k, n
        self.mean_ = mean.astype(X.dtype)
        self.components_ = np.ascontiguousarray(V[:k], dtype=X.dtype)
        self.explained_variance_ = variance[:k].astype(X.dtype)
        self.explained_variance_ratio_ = ratio[:k].astype(X.dtype)
        self.singular_values_ = np.sqrt(np.maximum(values[:k], 0.0)).astype(X.dtype)
        self.noise_variance_ = float(variance[k:].mean()) if k < rank else 0.0
        return self

    def _takes_svd(self, X: Any) -> bool:
        n, d = X.shape
        if sparse.issparse(X):
            if self.solver == "svd":
                raise TypeError(
                    "PCA: solver='svd' would need a dense centred copy of sparse data. "
                    "Use solver='eigh', or pass X.toarray()."
                )
            return False
        is_tall = n >= 10 * d and d <= MOST_COLUMNS
        return self.solver == "svd" or (self.solver == "auto" and not is_tall)

    def _check_count(self, n: int, d: int) -> None:
        k = self.n_components
        if isinstance(k, Integral) and int(k) > min(n, d):
            raise ValueError(
                f"n_components={k} must be between 0 and min(n_samples, n_features)="
                f"{min(n, d)}. Use fewer, or None for all."
            )

    def _count(self, ratio: NDArray) -> int:
        k: Any = self.n_components
        if k is None:
            return len(ratio)
        if isinstance(k, Integral):
            return int(k)
        found = int(np.searchsorted(np.cumsum(ratio), float(k), side="right")) + 1
        return min(found, len(ratio))

    def _scale(self) -> NDArray:
        """Return the standard deviations, with 1 for directions without variance."""
        deviation = np.sqrt(self.explained_variance_)
        least = np.finfo(deviation.dtype).eps
        return np.where(deviation > least, deviation, deviation.dtype.type(1))

    @takes_card_arrays
    def transform(self, X: Any) -> NDArray:
        """Return the coordinates of samples along the components.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, k)
        """
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            dtype=[np.float64, np.float32],
            accept_sparse="csr",
            reset=False,
        )
        if sparse.issparse(X):
            found = as_dense(X @ self.components_.T) - self.mean_ @ self.components_.T
        else:
            found = np.empty((len(X), self.n_components_), dtype=X.dtype)
            for first in range(0, len(X), ROWS):
                part = X[first : first + ROWS] - self.mean_.astype(X.dtype)
                found[first : first + ROWS] = part @ self.components_.T
        return found / self._scale().astype(found.dtype) if self.whiten else found

    def inverse_transform(self, X: Any) -> NDArray:
        """Return the samples that have these coordinates.

        Parameters
        ----------
        X : array of shape (n_samples, k)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_components_:
            raise ValueError(
                f"PCA: coordinates must have shape (n_samples, {self.n_components_}), "
                f"got {X.shape}."
            )
        if self.whiten:
            X = X * self._scale()
        return X @ self.components_ + self.mean_

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]


def _by_svd(X: NDArray, mean: NDArray) -> tuple[NDArray, NDArray]:
    centred = X - mean.astype(X.dtype)
    _, sigma, V = linalg.svd(centred, full_matrices=False, overwrite_a=True)
    return sigma.astype(np.float64) ** 2, V


def _by_covariance(X: Any, mean: NDArray) -> tuple[NDArray, NDArray]:
    """Decompose the covariance matrix, summed in double precision, part by part."""
    d = X.shape[1]
    total = np.zeros((d, d))
    for first in range(0, X.shape[0], ROWS):
        part = X[first : first + ROWS]
        if sparse.issparse(part):
            part = part.astype(np.float64)
            total += as_dense(part.T @ part)
        else:
            part = part - mean
            total += part.T @ part
    if sparse.issparse(X):
        total -= X.shape[0] * np.outer(mean, mean)
    if not np.isfinite(total).all():
        return np.full(d, np.inf), np.eye(d)  # the caller checks the values
    values, V = np.linalg.eigh(total)
    return values[::-1], V[:, ::-1].T
