"""Grid and randomised search that compute each kernel matrix once."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from inspect import signature
from typing import Any, ClassVar, NamedTuple

from sklearn import model_selection
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import indexable

from mercer.engines.cpu.engine import CpuEngine
from mercer.machines.base.machine import CACHE_SIZE, KernelMachine
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import (
    BaseLibSVM,
    BaseSearchCV,
    MultimetricScorer,
    check_method_params,
    insert_error_scores,
    warn_or_raise_about_fit_failures,
)
from mercer.runtime.user_warnings import warn_user
from mercer.runtime.validation import all_or_nothing, stores_parameters_of
from mercer.selection.bar import Bar
from mercer.selection.candidates import (
    LINEAR_MACHINES,
    MACHINES,
    Request,
    last_of,
    not_shared,
    within_budget,
)
from mercer.selection.evaluation import Evaluation, bar_of

__all__ = ["GridSearchCV", "RandomizedSearchCV", "Sharing"]

# Candidates that a warning names, for each reason.
MOST_NAMED = 5


@public("mercer.selection")
class Sharing(NamedTuple):
    """How many fits of a search shared kernel values, or passes over the samples.

    Attributes
    ----------
    n_shared : int
        Number of fits on kernel values, or in passes, that other fits used too.
    n_plain : int
        Number of fits on their own.
    n_grams : int
        Number of Gram matrices that were computed.
    reasons : dict of str to int
        Why fits did not share, and how many for each reason.
    """

    n_shared: int
    n_plain: int
    n_grams: int
    reasons: dict[str, int]


class SharedSearch(BaseSearchCV):
    """The parts of both searches that differ from scikit-learn's."""

    cv_results_: dict[str, Any]

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Evaluate all candidates, and fit the best on all samples.

        Ctrl-C ends the search early: the candidates that are finished are compared,
        and the best of them is fitted. If none is finished, or if Ctrl-C interrupts
        that last fit, the search keeps its state from before the call.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; the kernel matrix for a precomputed kernel.
        y : array of shape (n_samples,), default=None
            Their classes or values.
        **params : dict
            ``sample_weight`` and ``groups``, as in scikit-learn.

        Returns
        -------
        self
        """
        self._validate_params()
        for name in ("interrupted_", "sharing_"):
            if hasattr(self, name):
                delattr(self, name)
        if not self._may_share():
            return super().fit(X, y, **params)
        self.interrupted_ = False
        reason = self._why_plain()
        if reason is not None:
            _warn_plain(reason, self.estimator)
            super().fit(X, y, **params)
            n_fits = len(self.cv_results_["params"]) * self.n_splits_
            self.sharing_ = Sharing(0, n_fits, 0, {reason: n_fits})
            return self
        return self._fit_shared(X, y, params)

    def _may_share(self) -> bool:
        """Tell whether fits could share kernel values or passes over the samples."""
        machine = last_of(self.estimator)
        if isinstance(machine, (KernelMachine, BaseLibSVM, *LINEAR_MACHINES)):
            return True
        return self._replaces_machine()

    def _why_plain(self) -> str | None:
        """Return why no fit at all can share kernel values, or None."""
        if getattr(self, "_skl_callbacks", None):
            return "the search has callbacks, which watch every fit"
        machine = last_of(self.estimator)
        if isinstance(machine, MACHINES + LINEAR_MACHINES):
            return None
        if self._replaces_machine():
            return None
        return not_shared(machine)

    def _replaces_machine(self) -> bool:
        """Tell whether candidates put machines of their own into a pipeline."""
        if last_of(self.estimator) is self.estimator:
            return False
        last = self.estimator.steps[-1][0]
        return any(last in grid for grid in _as_list(self._searched()))

    def _searched(self) -> Any:
        raise NotImplementedError

    def _fit_shared(self, X: Any, y: Any, params: dict[str, Any]) -> Any:
        scorers, refit_metric = self._get_scorers()
        X, y = indexable(X, y)
        params = check_method_params(X, params=params)
        routed = self._get_routed_params_for_fit(params)
        context = self._init_callback_context(
            max_subtasks=1 + (self.refit is not False)
        ).call_on_fit_task_begin(estimator=self, X=X, y=y)
        self._checked_cv_orig = check_cv(
            self.cv, y, classifier=is_classifier(self.estimator)
        )
        self.n_splits_ = self._checked_cv_orig.get_n_splits(
            X, y, **routed.splitter.split
        )
        self.sharing_ = Sharing(0, 0, 0, {})
        record = _Record(self)

        def evaluate(
            candidates: Any, cv: Any = None, more_results: Any = None, **_: Any
        ) -> dict[str, Any]:
            splitter = cv or self._checked_cv_orig
            request = Request(
                self.estimator,
                X,
                y,
                list(splitter.split(X, y, **routed.splitter.split)),
                scorers,
                routed.estimator.fit,
                routed.scorer.score,
                self.return_train_score,
                self.error_score,
                self.cache_size,
            )
            record.add(*self._evaluate(request, list(candidates)), more_results)
            return record.results

        if "callback_ctx" in signature(self._run_search).parameters:
            self._run_search(evaluate, callback_ctx=context)
        else:  # a subclass that follows scikit-learn's documentation
            self._run_search(evaluate)
        self._choose(record, refit_metric)
        if self.refit:
            self._refit(X, y, routed.estimator.fit)
        is_many = isinstance(scorers, MultimetricScorer)
        self.scorer_ = scorers._scorers if is_many else scorers
        self.cv_results_ = record.results
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def _evaluate(
        self, request: Request, candidates: list[dict[str, Any]]
    ) -> tuple[list[int], list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the numbers of finished candidates, these, and their results."""
        n_splits = len(request.splits)
        if n_splits != self.n_splits_:
            raise ValueError(
                "cv.split and cv.get_n_splits return inconsistent results. Expected "
                f"{self.n_splits_} splits, got {n_splits}"
            )
        if not candidates or not n_splits:
            raise ValueError(
                "No fits were performed. Was the CV iterator empty? Were there no "
                "candidates?"
            )
        name = type(self).__name__
        total = len(candidates) * n_splits
        evaluation: Any = None
        try:
            with (
                bar_of(name, total, int(self.verbose)) as bar,
                CpuEngine(self.n_jobs) as engine,
            ):
                evaluation = self._evaluation(request, engine, bar)
                evaluation.run(candidates)
        except KeyboardInterrupt:
            self.interrupted_ = True
        done = [] if evaluation is None else evaluation.finished()
        if self.interrupted_:
            if not done:
                raise KeyboardInterrupt
            warn_user(
                f"{name} was interrupted: {len(done)} of {len(candidates)} candidates "
                "are finished, and the best of them is taken."
            )
        self._note_sharing(evaluation)
        out = [evaluation.results[c, k] for c in done for k in range(n_splits)]
        warn_or_raise_about_fit_failures(out, self.error_score)
        if callable(self.scoring):
            insert_error_scores(out, self.error_score)
        return done, [candidates[c] for c in done], out

    def _evaluation(
        self, request: Request, engine: CpuEngine, bar: Bar | None
    ) -> Evaluation:
        """Return what evaluates candidates."""
        return Evaluation(request, engine, bar)

    def _note_sharing(self, evaluation: Evaluation) -> None:
        counts = {reason: len(fits) for reason, fits in evaluation.plain.items()}
        n_plain = sum(counts.values())
        n_shared = len(evaluation.results) - n_plain
        old = self.sharing_
        self.sharing_ = Sharing(
            old.n_shared + n_shared,
            old.n_plain + n_plain,
            old.n_grams + evaluation.n_grams,
            dict(Counter(old.reasons) + Counter(counts)),
        )
        if counts:
            _warn_plain("; ".join(_fits_in_words(evaluation)), self.estimator)

    def _choose(self, record: _Record, refit_metric: Any) -> None:
        """Find the best candidate."""
        first = record.out[0]["test_scores"]
        self.multimetric_ = isinstance(first, dict)
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(first)
            refit_metric = self.refit
        if self.refit or not self.multimetric_:
            results = record.results
            self.best_index_ = self._select_best_index(
                self.refit, refit_metric, results
            )
            if not callable(self.refit):
                scores = results[f"mean_test_{refit_metric}"]
                self.best_score_ = scores[self.best_index_]
            self.best_params_ = results["params"][self.best_index_]

    def _refit(self, X: Any, y: Any, fit_params: dict[str, Any]) -> None:
        """Fit the best candidate on all samples."""
        self.best_estimator_ = clone(self.estimator).set_params(
            **clone(self.best_params_, safe=False)
        )
        began = time.time()
        targets = () if y is None else (y,)
        with within_budget(self.best_estimator_, self.cache_size):
            self.best_estimator_.fit(X, *targets, **fit_params)
        self.refit_time_ = time.time() - began
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


class _Record:
    """The results of a search so far, in scikit-learn's form."""

    def __init__(self, search: Any):
        self._search = search
        self._params: list[dict[str, Any]] = []
        self._more: dict[str, list] = defaultdict(list)
        self.out: list[dict[str, Any]] = []
        self.results: dict[str, Any] = {}

    def add(
        self,
        done: list[int],
        params: list[dict[str, Any]],
        out: list[dict[str, Any]],
        more: dict[str, list] | None,
    ) -> None:
        self._params.extend(params)
        self.out.extend(out)
        for key, values in (more or {}).items():
            self._more[key].extend(values[c] for c in done)
        self.results = self._search._format_results(
            self._params, self._search.n_splits_, self.out, self._more
        )


def _as_list(grid: Any) -> list[Any]:
    return [grid] if hasattr(grid, "keys") else list(grid)


def _fits_in_words(evaluation: Evaluation) -> Iterator[str]:
    """Say why fits did not share kernel values, and which candidates they were."""
    for reason, fits in evaluation.plain.items():
        if len(fits) == len(evaluation.results):
            yield f"{reason} (all {len(fits)} fits)"
            continue
        splits: dict[int, list[str]] = {}
        for c, split in fits:
            splits.setdefault(c, []).append(str(split))
        named = [
            f"{evaluation.describe(c)} on split {', '.join(numbers)}"
            for c, numbers in list(splits.items())[:MOST_NAMED]
        ]
        if len(splits) > MOST_NAMED:
            named.append(f"{len(splits) - MOST_NAMED} more candidates")
        yield f"{reason} ({len(fits)} fits: {'; '.join(named)})"


def _warn_plain(told: str, estimator: Any) -> None:
    if isinstance(last_of(estimator), LINEAR_MACHINES):
        warn_user(
            "Passes over the samples could not be shared between all fits, and some "
            f"fits were made on their own: {told}."
        )
        return
    warn_user(
        "Kernel values could not be shared between all fits, and some were computed "
        f"on their own: {told}."
    )


@public("mercer.selection")
class GridSearchCV(SharedSearch, model_selection.GridSearchCV):
    """Search over all combinations of parameters, each kernel matrix computed once.

    It takes what scikit-learn's ``GridSearchCV`` takes and has its attributes. For
    ``SVC``, ``NuSVC``, ``SVR``, ``NuSVR`` and ``OneClassSVM``, alone or last in a
    ``Pipeline``, the Gram matrix of all samples serves all folds and all candidates
    with the same kernel. Kernels of the same distances share the distances, and each
    solver starts from the solution of the next smaller C. Each solution is certified to
    ``tol``, as in a fit on its own. The folds of ``LinearSVC`` and ``LinearSVR`` share
    the passes over the samples, and what Newton's method computes for one C serves the
    next. Machines that cannot share are fitted on their own, and a warning names these
    candidates and the reason. For any other estimator the search is exactly that of
    scikit-learn.

    Parameters
    ----------
    estimator : estimator
        What is fitted, with the parameters of each candidate.
    param_grid : dict or list of dicts
        Values to try, by the name of the parameter.
    scoring : str, callable, list, tuple or dict, default=None
        One score or several, by name or as functions, as in scikit-learn; None means
        the estimator's ``score``.
    n_jobs : int, default=None
        Number of threads; None means as many as BLAS may use. The results do not depend
        on it.
    refit : bool, str or callable, default=True
        Whether to fit the best candidate on all samples. With several scores it is the
        name of the one that decides; a function gets ``cv_results_`` and returns the
        number of the candidate to take.
    cv : int, cross-validation generator or iterable, default=None
        The folds, or their number; None means five.
    verbose : int, default=0
        1 draws a progress bar with the best score so far, 2 writes lines of text, and 3
        prints the scores of each fit as well.
    pre_dispatch : int or str, default="2*n_jobs"
        Only used if no fits share kernel values.
    error_score : "raise" or number, default=nan
        The score of a fit that fails; "raise" raises the error.
    return_train_score : bool, default=False
        Whether to score the training parts too.
    cache_size : float or "auto", default="auto"
        Megabytes for all kernel values of the search together; "auto" is a quarter of
        the free memory, or the estimator's ``cache_size`` if that is a number. If the
        Gram matrix needs more, candidates are fitted on their own. These fits and the
        last fit on all samples have the same limit, unless the estimator has a number
        of its own.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_ : as in
        scikit-learn, as are ``scorer_``, ``n_splits_``, ``refit_time_``,
        ``multimetric_``, ``classes_``, ``n_features_in_`` and ``feature_names_in_``.
    sharing_ : Sharing
        How many fits shared kernel values or passes over the samples, how many did not
        and why, and how many Gram matrices were computed; only if the estimator is a
        kernel machine or a linear machine.
    interrupted_ : bool
        Whether Ctrl-C ended the search; only if the estimator is one of these.

    See Also
    --------
    RandomizedSearchCV : draws settings at random.
    holdout_search : one validation part in place of folds.
    svm_path : all solutions along C.
    mercer.dask.GridSearchCV : the same on a cluster.

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
        "cache_size": CACHE_SIZE,
    }

    @stores_parameters_of(model_selection.GridSearchCV)
    def __init__(self, *, cache_size: float | str = "auto"): ...

    def _searched(self) -> Any:
        return self.param_grid


@public("mercer.selection")
class RandomizedSearchCV(SharedSearch, model_selection.RandomizedSearchCV):
    """Search over random combinations of parameters that shares kernel values.

    Kernel values are shared as in :class:`GridSearchCV`. If a parameter of a kernel is
    drawn from a continuous distribution, each draw needs a Gram matrix of its own, but
    the matrices share their distances.

    Parameters
    ----------
    estimator : estimator
        What is fitted, with the parameters of each candidate.
    param_distributions : dict or list of dicts
        Lists of values, or distributions with ``rvs``, by the name of the parameter.
    n_iter : int, default=10
        Number of candidates that are drawn.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch : as in :class:`GridSearchCV`
    random_state : int, RandomState instance or None, default=None
        Seed of the drawing.
    error_score, return_train_score, cache_size : as in :class:`GridSearchCV`

    See Also
    --------
    GridSearchCV : tries all settings of a grid.
    mercer.dask.RandomizedSearchCV : the same on a cluster.

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
        "cache_size": CACHE_SIZE,
    }

    @stores_parameters_of(model_selection.RandomizedSearchCV)
    def __init__(self, *, cache_size: float | str = "auto"): ...

    def _searched(self) -> Any:
        return self.param_distributions
