"""The smallest C for which a machine with l1 penalty is not empty."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.validation import check_array, check_consistent_length

from mercer.runtime.public import public
from mercer.runtime.validation import as_dense

__all__ = ["l1_min_c"]

#: the slope of each loss at 0, as a factor of the smallest C
_LOSSES = {"squared_hinge": 0.5, "log": 2.0}


@public("mercer")
def l1_min_c(
    X: Any,
    y: Any,
    *,
    loss: str = "squared_hinge",
    fit_intercept: bool = True,
    intercept_scaling: float = 1.0,
) -> float:
    """Return the smallest C for which weights with l1 penalty are not all 0.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        The classes.
    loss : {"squared_hinge", "log"}, default="squared_hinge"
        "squared_hinge" as in :class:`LinearSVC`, or "log" as in logistic regression.
    fit_intercept : bool, default=True
        Whether the machine has an intercept, which is penalised.
    intercept_scaling : float, default=1.0
        The value of the feature that stands for the intercept.

    Returns
    -------
    float

    See Also
    --------
    LinearSVC : the machine that C is for.

    Examples
    --------
    >>> from mercer import l1_min_c
    >>> l1_min_c([[-1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 1])
    0.25
    """
    if loss not in _LOSSES:
        known = ", ".join(map(repr, _LOSSES))
        raise ValueError(f"loss must be one of {known}, got {loss!r}.")
    if not intercept_scaling > 0:
        raise ValueError(f"intercept_scaling must be > 0, got {intercept_scaling!r}.")
    X = check_array(X, accept_sparse="csc")
    check_consistent_length(X, y)
    sides = LabelBinarizer(neg_label=-1).fit_transform(y)
    largest = np.abs(as_dense(X.T @ sides)).max(initial=0.0)
    if fit_intercept:
        largest = max(largest, intercept_scaling * np.abs(sides.sum(axis=0)).max())
    if largest == 0.0:
        raise ValueError(
            "Ill-posed l1_min_c calculation: l1 will always select zero coefficients "
            "for this data. Check that X is not all zero, and centre it if the "
            "classes are balanced."
        )
    return float(_LOSSES[loss] / largest)
