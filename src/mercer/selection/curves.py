"""Curves, paths along C, out-of-fold decisions, and studies with a held-out part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, indexable

from mercer.datasets import train_validation_test_split
from mercer.engines.cpu.engine import CpuEngine
from mercer.machines.svc import SVC
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import num_samples, safe_indexing
from mercer.selection.candidates import MACHINES, Request, weight_name
from mercer.selection.evaluation import Evaluation, bar_of
from mercer.selection.search import GridSearchCV

__all__ = [
    "HoldoutResult",
    "PathPoint",
    "cross_val_decision",
    "holdout_search",
    "svm_path",
    "validation_curve",
]


@public("mercer.selection")
def validation_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    param_name: str,
    param_range: Sequence[Any],
    cv: Any = None,
    scoring: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    error_score: Any = np.nan,
    cache_size: float | str = "auto",
    fit_params: dict[str, Any] | None = None,
) -> tuple[NDArray, NDArray]:
    """Return training and test scores for values of one parameter.

    It takes and returns what scikit-learn's function of this name does, and shares
    kernel values as :class:`GridSearchCV` does.

    Parameters
    ----------
    estimator : estimator
        A machine, or a pipeline that ends in one. Other estimators have no kernel
        values to share, but are evaluated too.
    X : array or CSR matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,) or None
    param_name : str
        The parameter, such as "C" or "svc__gamma".
    param_range : sequence
        Its values.
    cv, scoring, n_jobs, verbose, error_score, cache_size : as in :class:`GridSearchCV`
    fit_params : dict, default=None
        What ``fit`` of the search takes: ``sample_weight`` and ``groups``.

    Returns
    -------
    train_scores, test_scores : ndarray of shape (n_values, n_folds)

    See Also
    --------
    svm_path : the solutions themselves.
    mercer.plots.CurvesDisplay : draws curves.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC
    >>> from mercer.selection import validation_curve
    >>> X, y = load_iris(return_X_y=True)
    >>> train, test = validation_curve(
    ...     SVC(), X, y, param_name="C", param_range=[0.01, 1, 100], cv=3
    ... )
    >>> train.shape, test.shape
    ((3, 3), (3, 3))
    """
    search = GridSearchCV(
        estimator,
        {param_name: list(param_range)},
        scoring=scoring,
        n_jobs=n_jobs,
        refit=False,
        cv=cv,
        verbose=verbose,
        error_score=error_score,
        return_train_score=True,
        cache_size=cache_size,
    ).fit(X, y, **(fit_params or {}))
    if getattr(search, "interrupted_", False):
        raise KeyboardInterrupt
    if search.multimetric_:
        raise ValueError(
            "validation_curve takes one scorer; scoring asks for several. Name one."
        )
    train, test = (
        np.column_stack(
            [
                search.cv_results_[f"split{k}_{part}_score"]
                for k in range(search.n_splits_)
            ]
        )
        for part in ("train", "test")
    )
    return train, test


@public("mercer.selection")
class PathPoint(NamedTuple):
    """One solution of a path along C.

    Attributes
    ----------
    C : float
    model : estimator
        The fitted machine.
    support : ndarray of shape (n_SV,)
        Indices of the support vectors.
    dual_coef, intercept : ndarray
        The coefficients and intercepts, as in the machine.
    objective : float or ndarray of shape (n_tasks,)
        The dual objective of each problem, to be minimised.
    dual_gap : float or ndarray of shape (n_tasks,)
        Primal minus dual objective of each problem.
    n_support : int
        Number of support vectors.
    n_iter : int or ndarray of shape (n_tasks,)
        Number of steps from the solution before.
    converged : bool
        Whether the solution is certified to ``tol``.
    """

    C: float
    model: Any
    support: NDArray
    dual_coef: Any
    intercept: NDArray
    objective: Any
    dual_gap: Any
    n_support: int
    n_iter: Any
    converged: bool


@public("mercer.selection")
def svm_path(
    X: Any,
    y: Any,
    Cs: Sequence[float] | None = None,
    *,
    estimator: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    cache_size: float | str = "auto",
) -> list[PathPoint]:
    r"""Return the solutions for values of C, each begun where the next smaller ended.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    Cs : sequence of numbers > 0, default=None
        None means ten values from 0.01 to 1000, evenly spaced on a logarithmic scale.
    estimator : SVC, SVR or NuSVR, default=None
        The machine to fit; None means ``SVC()``.
    sample_weight : array of shape (n_samples,), default=None
    n_jobs, verbose, cache_size : as in :class:`GridSearchCV`

    Returns
    -------
    list of PathPoint
        The solutions by ascending C, each with a fitted model that is certified to its
        ``tol``.

    See Also
    --------
    validation_curve : scores on folds.
    GridSearchCV : C together with other parameters.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer.selection import svm_path
    >>> X, y = load_iris(return_X_y=True)
    >>> [point.n_support for point in svm_path(X, y, [0.1, 1, 10])]
    [125, 60, 27]
    """
    estimator = SVC() if estimator is None else estimator
    if not isinstance(estimator, MACHINES) or "C" not in estimator.get_params():
        what = f"{type(estimator).__module__}.{type(estimator).__name__}"
        raise TypeError(
            f"svm_path takes a machine of Mercer with a C (mercer.SVC, mercer.SVR, "
            f"mercer.NuSVR), got {estimator!r} of the class {what}."
        )
    values = np.sort(np.logspace(-2, 3, 10) if Cs is None else np.asarray(Cs, float))
    if values.ndim != 1 or not len(values) or not (values > 0).all():
        raise ValueError(f"Cs must be one or more numbers > 0, got {Cs!r}.")
    X, y = indexable(X, y)
    everything = np.arange(num_samples(X))
    request = Request(
        estimator,
        X,
        y,
        [(everything, everything[:0])],
        None,
        {} if sample_weight is None else {"sample_weight": sample_weight},
        {},
        False,
        "raise",
        cache_size,
        keeps_models=True,
    )
    candidates = [{"C": float(C)} for C in values]
    fitted = _fitted(request, candidates, n_jobs, verbose, "svm_path")
    return [_point(C["C"], fitted[c, 0][0]) for c, C in enumerate(candidates)]


def _point(C: float, model: Any) -> PathPoint:
    return PathPoint(
        C,
        model,
        model.support_,
        model.dual_coef_,
        model.intercept_,
        model.objective_,
        model.dual_gap_,
        len(model.support_),
        model.n_iter_,
        model.converged_,
    )


def _fitted(
    request: Request,
    candidates: list[dict[str, Any]],
    n_jobs: int | None,
    verbose: int,
    name: str,
) -> dict[tuple[int, int], tuple[Any, Any]]:
    """Return fitted models and their test samples, by candidate and split."""
    total = len(candidates) * len(request.splits)
    with bar_of(name, total, verbose) as bar, CpuEngine(n_jobs) as engine:
        evaluation = Evaluation(request, engine, bar)
        evaluation.run(candidates)
    return evaluation.models


@public("mercer.selection")
def cross_val_decision(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    cv: Any = None,
    method: str = "decision_function",
    sample_weight: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    cache_size: float | str = "auto",
) -> NDArray:
    """Return, for each sample, the decision of a machine that has not seen it.

    ROC curves and Platt scaling need such values. The function is scikit-learn's
    ``cross_val_predict`` with one Gram matrix for all folds.

    Parameters
    ----------
    estimator : machine, or a pipeline that ends in one
        What is fitted on each fold.
    X : array or CSR matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,) or None
    groups : array of shape (n_samples,), default=None
        For splitters that take them.
    cv : int, cross-validation generator or iterable, default=None
        Its test parts must have each sample exactly once.
    method : str, default="decision_function"
        Any method of the estimator with an answer for each sample, such as "predict".
    sample_weight : array of shape (n_samples,), default=None
        Passed to ``fit`` of the machine.
    n_jobs, verbose, cache_size : as in :class:`GridSearchCV`

    Returns
    -------
    ndarray of shape (n_samples,) or (n_samples, n_classes)

    See Also
    --------
    mercer.plots.RocCurvesDisplay : draws ROC curves of such values.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC
    >>> from mercer.selection import cross_val_decision
    >>> X, y = load_iris(return_X_y=True)
    >>> cross_val_decision(SVC(), X, y).shape
    (150, 3)
    """
    X, y = indexable(X, y)
    splitter = check_cv(cv, y, classifier=is_classifier(estimator))
    splits = list(splitter.split(X, y, groups))
    n = num_samples(X)
    tests = np.concatenate([np.arange(n)[test] for _, test in splits])
    if not np.array_equal(np.sort(tests), np.arange(n)):
        raise ValueError(
            "cross_val_decision needs test parts that contain each sample exactly "
            f"once; cv={cv!r} gives {len(tests)} test samples for {n} samples."
        )
    fit_params = {}
    if sample_weight is not None:
        fit_params[weight_name(estimator)] = sample_weight
    request = Request(
        clone(estimator), X, y, splits, None, fit_params, {}, False, "raise",
        cache_size, keeps_models=True,
    )  # fmt: skip
    fitted = _fitted(request, [{}], n_jobs, verbose, "cross_val_decision")
    found = [fitted[0, k] for k in range(len(splits))]
    answers = [getattr(model, method)(X_test) for model, X_test in found]
    _check_classes([model for model, _ in found], y, method)
    order = np.argsort(tests)
    return np.concatenate(answers)[order]


def _check_classes(models: list[Any], y: Any, method: str) -> None:
    """Refuse to combine columns that belong to different classes."""
    if method == "predict" or not hasattr(models[0], "classes_"):
        return
    n_classes = len(np.unique(np.asarray(y)))
    fewest = min(len(model.classes_) for model in models)
    if fewest < n_classes:
        raise ValueError(
            f"A training part has only {fewest} of the {n_classes} classes, so that "
            f"its {method} has other columns. Use a stratified cv, or fewer folds."
        )


@public("mercer.selection")
class HoldoutResult(NamedTuple):
    """The result of a search with a validation part and a test part.

    Attributes
    ----------
    best_params : dict
        The parameters of the best candidate.
    validation_score : float
        The score of the best candidate on the validation part.
    test_score : float
        The score of ``model`` on the test part, computed once, after everything was
        chosen.
    model : estimator
        The best candidate, fitted again as ``refit_on`` says.
    search : GridSearchCV
        The search; its ``cv_results_`` have one split.
    train, validation, test : ndarray of int
        Rows of the parts.
    """

    best_params: dict[str, Any]
    validation_score: float
    test_score: float
    model: Any
    search: GridSearchCV
    train: NDArray[np.intp]
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
    best is fitted again, and this one model is scored on the test part, once: no choice
    depends on the test part.

    Parameters
    ----------
    estimator : estimator
        What is fitted, with the parameters of each candidate.
    param_grid : dict or list of dicts
        Values to try, by the name of the parameter.
    X : array or CSR matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    ratios : sequence of three numbers, default=(0.6, 0.2, 0.2)
        Shares of training, validation and test; classes have equal shares in each.
    scoring : str or callable, default=None
        One scorer; None means the estimator's ``score``.
    refit_on : {"train+validation", "train"}, default="train+validation"
        The samples on which the chosen candidate is fitted before it is tested.
    random_state : int, RandomState instance or None, default=None
        Seed of the split.
    n_jobs, verbose, cache_size : as in :class:`GridSearchCV`

    Returns
    -------
    HoldoutResult

    See Also
    --------
    GridSearchCV : folds in place of one validation part.
    mercer.datasets.train_validation_test_split : makes the parts.

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
