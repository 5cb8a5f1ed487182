"""Named views: several descriptions of the same samples in one matrix."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from mercer.images.base import read_array
from mercer.images.stack import float_dtype
from mercer.kernels.views import name_columns
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import check_feature_names_in
from mercer.runtime.validation import (
    all_or_nothing,
    takes_card_arrays,
)

__all__ = ["Views", "as_rows"]

PASSTHROUGH = "passthrough"


@public("mercer.images")
class Views(TransformerMixin, BaseEstimator):
    """Concatenate several descriptions of the samples, and give each a name.

    Views are given as keywords, ``Views(raw="passthrough", hog=HOG())``.  A view is a
    transformer, a pipeline of transformers, or ``"passthrough"`` for the values
    themselves.  The results of a view are flattened to rows, and the rows of all views
    are concatenated in the order of the keywords.

    A kernel can then look at one view by its name, ``RBF().on("hog")`` or
    ``"rbf@hog"``.  The names travel with the data: ``transform`` returns a matrix that
    knows which columns belong to which view, and ``fit`` of an estimator looks the
    names up.  A selection of rows, as in cross-validation, keeps the names.  A step
    between ``Views`` and the estimator, such as a scaler, would lose the names: put
    that step into the view, ``Views(hog=make_pipeline(HOG(), StandardScaler()))``.
    With ``set_output(transform="pandas")`` the names are in the column names, such as
    ``hog__hog0``, and work as well.

    Parameters
    ----------
    **views : transformer or "passthrough"
        The views, in order. A parameter of a view is named like ``hog__bins`` in
        ``get_params``, ``set_params`` and searches.

    Attributes
    ----------
    transformers_ : dict
        The fitted transformers by name.
    views_ : dict of slices
        The columns of each view.
    n_features_in_ : int
        Number of values of a sample: its columns, or its pixels times channels.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns in ``fit``, if all of them were strings.

    See Also
    --------
    mercer.kernels.OnColumns : a kernel that looks at one view.
    mercer.MKLClassifier : learns how much each view counts.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from mercer import SVC
    >>> from mercer.images import HOG, Rescale, Views
    >>> X, y = load_digits(return_X_y=True)
    >>> hog = HOG(cell_size=2, block_size=2)
    >>> model = make_pipeline(
    ...     Views(raw=Rescale(), hog=hog), SVC(kernel="rbf@raw * rbf(sigma=4)@hog")
    ... )
    >>> model.fit(X[:900], y[:900])["views"].views_
    {'raw': slice(0, 64, None), 'hog': slice(64, 388, None)}
    >>> model.score(X[900:], y[900:]) > 0.96
    True
    """

    def __init__(self, **views: Any):
        self._given = views

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the views and, if ``deep``, their parameters.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of the views.

        Returns
        -------
        dict
        """
        found = dict(self._given)
        for name, view in self._given.items():
            if deep and hasattr(view, "get_params") and not isinstance(view, type):
                inner = view.get_params()
                found |= {f"{name}__{key}": value for key, value in inner.items()}
        return found

    def set_params(self, **params: Any) -> Views:
        """Set views, or parameters of views.

        Parameters
        ----------
        **params : object
            Views or parameters by name, such as ``hog=HOG()`` or ``hog__bins=12``.

        Returns
        -------
        self
        """
        # Views come first, so that a parameter is set on the new view.
        for name in sorted(params, key=lambda name: "__" in name):
            view, _, key = name.partition("__")
            if view not in self._given:
                known = ", ".join(self._given) or "none"
                raise ValueError(f"Unknown view {view!r}. Known: {known}.")
            if key:
                self._given[view].set_params(**{key: params[name]})
            else:
                self._given[view] = params[name]
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> Views:
        """Fit all views.

        Parameters
        ----------
        X : array of shape (n_samples, ...)
            Samples that all views accept: images, flattened or not, or other rows.
        y : array of shape (n_samples,), default=None
            Passed to the views.

        Returns
        -------
        self
        """
        self._fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> NDArray:
        """Fit all views, and return them in one matrix.

        Parameters
        ----------
        X : array of shape (n_samples, ...)
            Samples that all views accept.
        y : array of shape (n_samples,), default=None
            Passed to the views.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            A matrix that knows its views by name.
        """
        return self._fit_transform(X, y)

    @all_or_nothing
    def _fit_transform(self, X: Any, y: Any) -> NDArray:
        self._check_views()
        values = read_array(self, X, reset=True)
        self.transformers_ = {}
        blocks = {}
        for name, view in self._given.items():
            if isinstance(view, str):
                self.transformers_[name] = view
                blocks[name] = as_rows(values)
            else:
                self.transformers_[name] = fitted = clone(view)
                blocks[name] = as_rows(fitted.fit_transform(X, y))
        stops = np.cumsum([block.shape[1] for block in blocks.values()]).tolist()
        starts = [0, *stops[:-1]]
        self.views_ = {
            name: slice(start, stop)
            for name, start, stop in zip(blocks, starts, stops, strict=True)
        }
        return self._join(list(blocks.values()))

    @takes_card_arrays
    def transform(self, X: Any) -> NDArray:
        """Return all views of the samples in one matrix.

        Parameters
        ----------
        X : array of shape (n_samples, ...)
            Samples like those in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            A matrix that knows its views by name.
        """
        check_is_fitted(self)
        values = read_array(self, X, reset=False)
        return self._join(
            [
                as_rows(values if isinstance(view, str) else view.transform(X))
                for view in self.transformers_.values()
            ]
        )

    def _join(self, blocks: list[NDArray]) -> NDArray:
        joined = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
        return name_columns(joined, self.views_)

    def _check_views(self) -> None:
        if not self._given:
            raise ValueError(
                "Views has no views. Give at least one by name, such as "
                "Views(hog=HOG())."
            )
        for name, view in self._given.items():
            if "__" in name:
                raise ValueError(
                    f"Views: the name {name!r} must not contain '__', which separates "
                    "the name of a view from its parameters. Choose another name."
                )
            is_known = isinstance(view, str) and view == PASSTHROUGH
            if not is_known and not hasattr(view, "fit_transform"):
                raise TypeError(
                    f"Views: {name} must be a transformer or {PASSTHROUGH!r}, got "
                    f"{view!r}."
                )

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Return the names of the columns: ``raw__x0``, ..., ``hog__hog0``, ...

        Parameters
        ----------
        input_features : array of str, default=None
            Names of the input values.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        given = check_feature_names_in(self, input_features)
        names: list[str] = []
        for name, view in self.transformers_.items():
            columns = self.views_[name]
            if isinstance(view, str):
                inner = given
            elif hasattr(view, "get_feature_names_out"):
                inner = view.get_feature_names_out(given)
            else:
                inner = range(columns.stop - columns.start)
            names += [f"{name}__{k}" for k in inner]
        return np.array(names, dtype=object)


def as_rows(values: Any) -> NDArray:
    """Return the samples as rows of floating-point numbers."""
    values = np.asarray(values)
    flat = values.reshape(len(values), math.prod(values.shape[1:]))
    return flat.astype(float_dtype(flat.dtype), copy=False)
