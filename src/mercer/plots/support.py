"""Support vectors in the plane: which of them are free, and which at their bound."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline

from mercer.plots.plane import final_step

__all__ = ["Support", "find_support", "training_rows"]

# A coefficient counts as being at its bound within this relative distance, which is
# the precision of float32.
AT_BOUND = 1e-6


class Support(NamedTuple):
    """Support vectors in the plane."""

    points: NDArray  #: (n, 2)
    is_bound: (
        NDArray | None
    )  #: whether each vector is at its bound; None if that is unknown


def dense(values: Any) -> NDArray:
    """Return an array, or the dense form of a sparse matrix."""
    return values.toarray() if sparse.issparse(values) else np.asarray(values)


def training_rows(estimator: Any, X: Any) -> NDArray | None:
    """Return ``support_`` if X has the samples of the fit, and None otherwise."""
    machine = final_step(estimator)
    rows = np.asarray(machine.support_)
    n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_samples != machine.shape_fit_[0]:
        return None
    known = dense(machine.support_vectors_)
    if known.shape[0] != len(rows):  # with a precomputed kernel there are no samples
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
            "fit only, and X has other samples. Give the samples of the fit, or "
            "support=False."
        )
    bound = None
    if machine.n_support_.sum() == len(machine.support_):
        names = np.repeat(machine.classes_, machine.n_support_)
        bound = _is_bound(machine, names, sample_weight)
    return Support(dense(machine.support_vectors_).astype(np.float64), bound)


def _is_bound(machine: Any, names: NDArray, sample_weight: Any) -> NDArray | None:
    """Return which support vectors have a coefficient at its bound.

    ``names`` are the classes of the support vectors.
    """
    C = getattr(machine, "C", None)
    coef = np.abs(dense(machine.dual_coef_))
    # hasattr would not do: scikit-learn's SVC has a nu that it does not use.
    if "nu" in machine.get_params():
        # The bound is 1 / ρ, which the machine does not keep. If two or more
        # coefficients are equal and largest, they are at the bound.
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
