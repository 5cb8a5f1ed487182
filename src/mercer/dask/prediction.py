"""Predictions for Dask collections, chunk by chunk."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.dask.collections import as_rows, is_frame
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import get_feature_names

__all__ = ["predict"]


@public("mercer.dask")
def predict(model: Any, X: Any, method: str = "predict") -> da.Array:
    """Apply a fitted estimator to a Dask collection, lazily.

    The model is sent to each worker once, however many chunks there are.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of Mercer.
    X : dask array or data frame of shape (n_samples, n_features)
    method : str, default="predict"
        The method to call: "predict", "decision_function", "predict_proba",
        "transform", ...

    Returns
    -------
    dask array
        Nothing is computed before it is asked for.

    Examples
    --------
    >>> import dask.array as da
    >>> import mercer, mercer.dask
    >>> X = da.random.default_rng(0).normal(size=(100, 2), chunks=(50, 2))
    >>> y = X[:, 0].compute() > 0
    >>> model = mercer.SVC().fit(X.compute(), y)
    >>> mercer.dask.predict(model, X)
    dask.array<..., shape=(100,), dtype=bool, chunksize=(50,), chunktype=numpy.ndarray>
    """
    check_is_fitted(model)
    if not callable(getattr(model, method, None)):
        raise AttributeError(f"{type(model).__name__} has no method {method!r}.")
    names = get_feature_names(X._meta) if is_frame(X) else None
    X = as_rows(X)
    if X.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input."
        )
    # One sample of zeros shows the type and the number of the columns.
    some = np.zeros((1, X.shape[1]), dtype=X.dtype)
    shown = np.asarray(_of_block(some, model, method, names, None))
    meta = np.empty((0,) * shown.ndim, dtype=shown.dtype)
    shape: dict[str, Any] = {"drop_axis": 1}
    if shown.ndim == 2:
        shape = {"chunks": (X.chunks[0], (shown.shape[1],))}
    return da.map_blocks(
        _of_block,
        X,
        dask.delayed(model, pure=False, traverse=False),
        method,
        names,
        shown[:0],
        dtype=shown.dtype,
        meta=meta,
        name=None,
        token=f"mercer-{method}",
        **shape,
    )


def _of_block(X: Any, model: Any, method: str, names: Any, nothing: Any) -> Any:
    """Call the method for one chunk; ``nothing`` is the answer for an empty one."""
    if not X.shape[0]:
        return nothing
    if names is not None:
        import pandas as pd

        X = pd.DataFrame(X, columns=names)
    return getattr(model, method)(X)
