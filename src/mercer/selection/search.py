"""Grid and randomised search that compute each kernel matrix once."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn import model_selection

from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval, StrOptions
from mercer.selection.searching import SharedSearch

__all__ = ["GridSearchCV", "RandomizedSearchCV"]

_CACHE_SIZE = [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")]


@public("mercer.selection")
class GridSearchCV(SharedSearch, model_selection.GridSearchCV):
    """Search over all combinations of parameters, each kernel matrix computed once.

    It takes what scikit-learn's ``GridSearchCV`` takes and has its attributes. For
    ``SVC``, ``NuSVC``, ``SVR``, ``NuSVR`` and ``OneClassSVM``, alone or last in a
    ``Pipeline``, the Gram matrix of all samples serves all folds and all candidates
    with the same kernel; kernels of the same distances share those; solutions begin
    where the next smaller C ended. Each is certified to ``tol``, as in a plain fit.
    Where a kernel machine cannot share, it is fitted in the plain way, and a warning
    says which candidates and why. For an estimator that has no kernel the search is
    scikit-learn's in every respect.

    Parameters
    ----------
    estimator : estimator
    param_grid : dict or list of dicts
        Values to try, by the name of the parameter.
    scoring : str, callable, list, tuple or dict, default=None
    n_jobs : int, default=None
        Threads; None means as many as BLAS may use. The results do not depend on it.
    refit : bool, str or callable, default=True
    cv : int, cross-validation generator or iterable, default=None
    verbose : int, default=0
        1 draws a bar, with the best so far, 2 writes lines.
    pre_dispatch : int or str, default="2*n_jobs"
        For plain searches only.
    error_score : "raise" or number, default=nan
    return_train_score : bool, default=False
    cache_size : float or "auto", default="auto"
        Memory in MB for all kernel values of the search together; "auto" is a quarter
        of what is free, or the estimator's ``cache_size`` if that is a number. Where
        the Gram matrix does not fit, fits are plain ones. Plain fits and the last fit
        on all samples keep to it too, unless the estimator has a number of its own.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_ : as in
        scikit-learn, as are ``scorer_``, ``n_splits_``, ``refit_time_``,
        ``multimetric_``, ``classes_``, ``n_features_in_`` and ``feature_names_in_``.
    sharing_ : Sharing
        How many fits shared kernel values, how many did not and why, and how many
        Gram matrices were computed; only where the estimator is a kernel machine.
    interrupted_ : bool
        Whether Ctrl-C ended the search; only where the estimator is a kernel machine.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC
    >>> from mercer.selection import GridSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearchCV(SVC(), {"C": [0.1, 1, 10], "gamma": [0.1, 1]}).fit(X, y)
    >>> search.best_params_
    {'C': 1, 'gamma': 0.1}
    >>> search.sharing_.n_shared, search.sharing_.n_grams
    (30, 2)
    """

    _parameter_constraints: ClassVar[dict] = {
        **model_selection.GridSearchCV._parameter_constraints,
        "cache_size": _CACHE_SIZE,
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
        cache_size: float | str = "auto",
    ):
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.cache_size = cache_size

    def _searched(self) -> Any:
        return self.param_grid


@public("mercer.selection")
class RandomizedSearchCV(SharedSearch, model_selection.RandomizedSearchCV):
    """Search over random combinations of parameters, with all that can be shared.

    As :class:`GridSearchCV`. Values drawn from a continuous distribution of a kernel's
    parameter make as many Gram matrices as draws, but these share their distances.

    Parameters
    ----------
    estimator : estimator
    param_distributions : dict or list of dicts
        Lists of values, or distributions with ``rvs``, by the name of the parameter.
    n_iter : int, default=10
        How many candidates are drawn.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch : as in :class:`GridSearchCV`
    random_state : int, RandomState instance or None, default=None
        Seed of the drawing.
    error_score, return_train_score, cache_size : as in :class:`GridSearchCV`

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC
    >>> from mercer.selection import RandomizedSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> choices = {"C": loguniform(0.1, 100), "gamma": [0.01, 0.1]}
    >>> search = RandomizedSearchCV(SVC(), choices, n_iter=8, random_state=0).fit(X, y)
    >>> search.sharing_.n_shared, search.sharing_.n_grams
    (40, 2)
    """

    _parameter_constraints: ClassVar[dict] = {
        **model_selection.RandomizedSearchCV._parameter_constraints,
        "cache_size": _CACHE_SIZE,
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        cache_size: float | str = "auto",
    ):
        super().__init__(
            estimator,
            param_distributions,
            n_iter=n_iter,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            random_state=random_state,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.cache_size = cache_size

    def _searched(self) -> Any:
        return self.param_distributions
