"""Candidates of a search: whether they can share, and how they are scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mercer.runtime.scikit_learn import (
    BaseScorer,
    MultimetricScorer,
    PassthroughScorer,
    check_method_params,
    fit_and_score,
    safe_indexing,
    safe_split,
    score,
)
from mercer.selection.samples import Split, last_of
from mercer.selection.sharing import why_not
from mercer.selection.units import Entry

__all__ = [
    "Request",
    "fit_plainly",
    "group_of",
    "make_candidate",
    "score_entry",
    "score_plainly",
    "weight_name",
    "within_budget",
]


class Request(NamedTuple):
    """What is to be evaluated, and how."""

    estimator: Any
    X: Any
    y: Any
    splits: Sequence[Split]
    scorer: Any
    fit_params: dict[str, Any]
    score_params: dict[str, Any]
    return_train_score: bool
    error_score: Any
    cache_size: float | str = "auto"
    keeps_models: bool = False


def make_candidate(request: Request, params: dict[str, Any]) -> tuple[Any, str | None]:
    """Return the estimator with its parameters, and why it cannot share, if so."""
    estimator = clone(request.estimator)
    try:
        estimator.set_params(**clone(params, safe=False))
    except Exception as error:
        return None, f"parameters could not be set: {error}"
    machine = last_of(estimator)
    reason = why_not(machine)
    if reason is None and isinstance(estimator, Pipeline):
        if machine._is_precomputed():
            reason = "a kernel matrix comes out of a pipeline"
        elif set(request.fit_params) - {weight_name(estimator)}:
            reason = "steps of the pipeline take parameters of their own in fit"
    elif reason is None and set(request.fit_params) - {"sample_weight"}:
        reason = "fit takes parameters other than sample_weight"
    return estimator, reason


def weight_name(estimator: Any) -> str:
    """Return what the weights of samples are called in ``fit``."""
    if isinstance(estimator, Pipeline):
        return f"{estimator.steps[-1][0]}__sample_weight"
    return "sample_weight"


def group_of(estimator: Any, params: dict[str, Any]) -> Any:
    """Return what candidates have in common that see the same samples."""
    machine = last_of(estimator)
    kind = (machine._takes_targets, machine._is_precomputed())
    if not isinstance(estimator, Pipeline):
        return kind
    last = estimator.steps[-1][0]
    before = {
        name: value
        for name, value in params.items()
        if name != last and not name.startswith(f"{last}__")
    }
    return (*kind, joblib.hash(before))


def score_entry(request: Request, entry: Entry) -> dict[str, Any]:
    """Score a fitted machine that shares its kernel values."""
    fold = entry.model._given.fold
    train, test = request.splits[entry.split]
    parts = {"test_scores": (fold.X_test, fold.y_test, test)}
    if request.return_train_score:
        y_train = None if request.y is None else safe_indexing(request.y, train)
        parts["train_scores"] = (fold.X_train, y_train, train)
    estimator: Any = entry.model
    is_raw = not _asks_predictions_only(request.scorer) and (
        isinstance(entry.whole, Pipeline) or not isinstance(request.X, np.ndarray)
    )
    if is_raw and isinstance(entry.whole, Pipeline):
        estimator = _rejoined(entry.whole, fold.before, entry.model)
    scores = {}
    for name, (X, y, rows) in parts.items():
        own = check_method_params(request.X, request.score_params, rows)
        if is_raw:
            X = safe_indexing(request.X, rows)
        scores[name] = score(estimator, X, y, request.scorer, own, request.error_score)
    return scores


@contextmanager
def within_budget(estimator: Any, cache_size: float | str) -> Iterator[None]:
    """Let a machine without a ``cache_size`` of its own keep to that of a search."""
    machine = last_of(estimator)
    takes = cache_size != "auto" and getattr(machine, "cache_size", None) == "auto"
    if takes:
        machine.cache_size = cache_size
    try:
        yield
    finally:
        if takes:
            machine.cache_size = "auto"


def score_plainly(
    request: Request, params: dict[str, Any], split: int
) -> dict[str, Any]:
    """Fit and score as scikit-learn does."""
    train, test = request.splits[split]
    model = clone(request.estimator).set_params(**clone(params, safe=False))
    with within_budget(model, request.cache_size):
        return _scored(request, model, train, test)


def _scored(
    request: Request, model: Any, train: NDArray, test: NDArray
) -> dict[str, Any]:
    return fit_and_score(
        model,
        request.X,
        request.y,
        scorer=request.scorer,
        train=train,
        test=test,
        verbose=0,
        parameters=None,
        fit_params=request.fit_params,
        score_params=request.score_params,
        return_train_score=request.return_train_score,
        return_n_test_samples=True,
        return_times=True,
        error_score=request.error_score,
    )


def fit_plainly(request: Request, params: dict[str, Any], split: int) -> Any:
    """Fit without scoring."""
    train = request.splits[split][0]
    model = clone(request.estimator).set_params(**params)
    X, y = safe_split(model, request.X, request.y, train)
    own = check_method_params(request.X, request.fit_params, train)
    with within_budget(model, request.cache_size):
        return model.fit(X, y, **own)


def _asks_predictions_only(scorer: Any) -> bool:
    """Tell whether a scorer is scikit-learn's, which looks at predictions only."""
    if isinstance(scorer, MultimetricScorer):
        return all(_asks_predictions_only(s) for s in scorer._scorers.values())
    return isinstance(scorer, BaseScorer | PassthroughScorer)


def _rejoined(pipeline: Pipeline, before: Any, machine: Any) -> Pipeline:
    """Return the pipeline with its fitted steps and the fitted machine."""
    joined = clone(pipeline)
    steps = [] if before is None else before.steps
    joined.steps = [*steps, (pipeline.steps[-1][0], machine)]
    return joined
