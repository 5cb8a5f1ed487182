"""Studies with one training, one validation and one test part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils import check_random_state, indexable

from mercer.datasets import train_validation_test_split
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import num_samples, safe_indexing
from mercer.selection.search import GridSearchCV

__all__ = ["HoldoutResult", "holdout_search"]


@public("mercer.selection")
class HoldoutResult(NamedTuple):
    """What a held-out study comes to."""

    best_params: dict[str, Any]
    validation_score: float  #: of the best candidate
    test_score: float  #: of ``model``, computed once, after everything was chosen
    model: Any  #: the best candidate, fitted on training and validation part
    search: GridSearchCV  #: has ``cv_results_``, with one split
    train: NDArray[np.intp]  #: rows of the parts
    validation: NDArray[np.intp]
    test: NDArray[np.intp]


@public("mercer.selection")
def holdout_search(
    estimator: Any,
    param_grid: Any,
    X: Any,
    y: Any,
    *,
    ratios: Sequence[float] = (0.6, 0.2, 0.2),
    scoring: Any = None,
    refit_on: str = "train+validation",
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    cache_size: float | str = "auto",
) -> HoldoutResult:
    """Choose parameters on a validation part, then score once on a test part.

    Candidates are fitted on the training part and compared on the validation part. The
    best is fitted again, and this one model meets the test part, once: no choice
    depends on it.

    Parameters
    ----------
    estimator : estimator
    param_grid : dict or list of dicts
    X : array or CSR matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    ratios : sequence of three numbers, default=(0.6, 0.2, 0.2)
        Shares of training, validation and test; classes have equal shares in each.
    scoring : str or callable, default=None
        One scorer; None is the estimator's own.
    refit_on : {"train+validation", "train"}, default="train+validation"
        What the chosen candidate is fitted on before it is tested.
    random_state : int, RandomState instance or None, default=None
        Seed of the split.
    n_jobs, verbose, cache_size : as in :class:`GridSearchCV`

    Returns
    -------
    HoldoutResult

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC
    >>> from mercer.selection import holdout_search
    >>> X, y = load_iris(return_X_y=True)
    >>> found = holdout_search(SVC(), {"C": [0.1, 1, 10]}, X, y, random_state=0)
    >>> [len(part) for part in (found.train, found.validation, found.test)]
    [90, 30, 30]
    """
    if refit_on not in ("train+validation", "train"):
        raise ValueError(
            f"refit_on must be 'train+validation' or 'train', got {refit_on!r}."
        )
    if isinstance(scoring, list | tuple | set | dict):
        raise ValueError(f"holdout_search takes one scorer, got {scoring!r}.")
    if isinstance(getattr(estimator, "kernel", None), str) and (
        estimator.kernel == "precomputed"
    ):
        raise ValueError(
            "holdout_search splits samples, not a precomputed kernel matrix. Use "
            "GridSearchCV with cv=[(train, validation)] on the part of the matrix."
        )
    X, y = indexable(X, y)
    train, validation, test = _parts(estimator, y, ratios, random_state)
    seen = np.concatenate([train, validation])
    split = np.arange(len(train)), np.arange(len(train), len(seen))
    search = GridSearchCV(
        estimator,
        param_grid,
        scoring=scoring,
        n_jobs=n_jobs,
        refit=refit_on == "train+validation",
        cv=[split],
        verbose=verbose,
        cache_size=cache_size,
    ).fit(safe_indexing(X, seen), safe_indexing(y, seen))
    if refit_on == "train":
        search._refit(safe_indexing(X, train), safe_indexing(y, train), {})
    model = search.best_estimator_
    scorer = check_scoring(model, scoring)
    score = scorer(model, safe_indexing(X, test), safe_indexing(y, test))
    return HoldoutResult(
        search.best_params_,
        float(search.best_score_),
        float(score),
        model,
        search,
        train,
        validation,
        test,
    )


def _parts(
    estimator: Any, y: Any, ratios: Sequence[float], random_state: Any
) -> list[NDArray[np.intp]]:
    """Return the rows of the three parts, stratified where there are classes."""
    n = num_samples(y)
    labels = np.asarray(y) if is_classifier(estimator) else np.zeros(n, dtype=np.intp)
    rows = np.arange(n)
    random = check_random_state(random_state).randint(2**31 - 1)
    parts = train_validation_test_split(
        rows, labels, ratios=ratios, random_state=random
    )
    return parts[:3]
