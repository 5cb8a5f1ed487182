"""Which support vectors are free, and which are at their bound."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline

from mercer.plots.plane import final_step

__all__ = ["Support", "find_support", "training_rows"]

# Relative distance from the bound at which a coefficient counts as being there: single
# precision.
AT_BOUND = 1e-6


class Support(NamedTuple):
    """Support vectors in the plane."""

    points: NDArray  #: (n, 2)
    is_bound: NDArray | None  #: whether each is at its bound; None if that is unknown


def dense(values: Any) -> NDArray:
    """Return an array, from a sparse matrix too."""
    return values.toarray() if sparse.issparse(values) else np.asarray(values)


def training_rows(estimator: Any, X: Any) -> NDArray | None:
    """Return ``support_`` if X are the samples of the fit, else None."""
    machine = final_step(estimator)
    rows = np.asarray(machine.support_)
    n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_samples != machine.shape_fit_[0]:
        return None
    known = dense(machine.support_vectors_)
    if known.shape[0] != len(rows):  # a precomputed kernel keeps no samples
        return None
    seen = estimator[:-1].transform(X) if isinstance(estimator, Pipeline) else X
    seen = dense(seen)[rows]
    return rows if np.allclose(seen, known, rtol=1e-5, atol=1e-7) else None


def find_support(
    estimator: Any, X: Any, points: NDArray, y: Any, sample_weight: Any
) -> Support:
    """Find the support vectors of a classifier in the plane, and their bounds."""
    machine = final_step(estimator)
    rows = training_rows(estimator, X)
    if rows is not None:
        return Support(
            points[rows], _is_bound(machine, np.asarray(y)[rows], sample_weight)
        )
    if isinstance(estimator, Pipeline):
        raise ValueError(
            "The support vectors of a pipeline can be drawn among the samples of its "
            "fit only, and X are others. Give those, or support=False."
        )
    bound = None
    if machine.n_support_.sum() == len(machine.support_):
        names = np.repeat(machine.classes_, machine.n_support_)
        bound = _is_bound(machine, names, sample_weight)
    return Support(dense(machine.support_vectors_).astype(np.float64), bound)


def _is_bound(machine: Any, names: NDArray, sample_weight: Any) -> NDArray | None:
    """Say which support vectors, of these classes, have a coefficient at its bound."""
    C = getattr(machine, "C", None)
    coef = np.abs(dense(machine.dual_coef_))
    # Not hasattr: scikit-learn's SVC has a nu that it does not use.
    if "nu" in machine.get_params():
        # The bound is 1 / ρ, which is not kept. Two coefficients or more that are
        # equal and largest are there.
        is_plain = sample_weight is None and (machine.class_weight_ == 1.0).all()
        is_largest = (coef >= (1.0 - AT_BOUND) * coef.max()).any(axis=0)
        knows = is_plain and len(coef) == 1 and is_largest.sum() > 1
        return is_largest if knows else None
    if C is None or np.any(np.asarray(getattr(machine, "positive_weight", 1.0)) != 1.0):
        return None
    factors = np.asarray(machine.class_weight_)[
        np.searchsorted(machine.classes_, names)
    ]
    if sample_weight is not None:
        factors = factors * np.asarray(sample_weight)[machine.support_]
    return (coef >= (1.0 - AT_BOUND) * C * factors).any(axis=0)
