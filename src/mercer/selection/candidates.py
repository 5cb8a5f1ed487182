"""Candidates of a search: whether they can share, their samples, and their scores.

A machine that stands alone sees the same samples in every fold.  Behind transformers
that learn from the training part, each fold has samples of its own.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from mercer.engines.engine import Plan
from mercer.machines.base.machine import Validated
from mercer.machines.linear import LinearSVC, LinearSVR
from mercer.machines.nusvc import NuSVC
from mercer.machines.one_class import OneClassSVM
from mercer.machines.svc import SVC
from mercer.machines.svr import SVR, NuSVR
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
from mercer.runtime.validation import validate_samples

__all__ = [
    "LINEAR_MACHINES",
    "MACHINES",
    "Fold",
    "Request",
    "Samples",
    "asks_predictions_only",
    "fit_plainly",
    "group_of",
    "is_stateless",
    "last_of",
    "make_candidate",
    "not_shared",
    "prepare",
    "prepare_fold",
    "score_model",
    "score_plainly",
    "told",
    "weight_name",
    "within_budget",
]

Split = tuple[NDArray[np.intp], NDArray[np.intp]]

#: the machines that can share kernel values
MACHINES = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)
#: the machines that can share passes over the samples
LINEAR_MACHINES = (LinearSVC, LinearSVR)


@dataclass(eq=False)
class Fold:
    """One split of the samples, validated."""

    train: NDArray[np.intp]  #: rows of the shared samples
    test: NDArray[np.intp]
    valid: Validated  #: the training part
    X_test: Any
    y_test: Any
    before: Any = None  #: the fitted steps before the machine
    plans: dict[Any, Plan] = field(default_factory=dict)  #: plans with C = 1
    stated: dict[Any, Any] = field(default_factory=dict)  #: problems of several plans
    convex: dict[Any, Any] = field(default_factory=dict)  #: which problems are convex


@dataclass(eq=False)
class Samples:
    """A validated matrix, and folds of it by the number of their split."""

    X: Any
    folds: dict[int, Fold]
    is_matrix: bool = False  #: whether it is the kernel matrix itself


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
    is_linear = isinstance(machine, LINEAR_MACHINES)
    reason = why_not_linear(machine) if is_linear else why_not(machine)
    if reason is None and isinstance(estimator, Pipeline):
        if not is_linear and machine._is_precomputed():
            reason = "the pipeline computes the kernel matrix"
        elif set(request.fit_params) - {weight_name(estimator)}:
            reason = "steps of the pipeline take parameters of their own in fit"
    elif reason is None and set(request.fit_params) - {"sample_weight"}:
        reason = "fit takes parameters other than sample_weight"
    return estimator, reason


def weight_name(estimator: Any) -> str:
    """Return the name of the sample weights among the parameters of ``fit``."""
    if isinstance(estimator, Pipeline):
        return f"{estimator.steps[-1][0]}__sample_weight"
    return "sample_weight"


def group_of(estimator: Any, params: dict[str, Any]) -> Any:
    """Return a key that is equal for candidates that see the same samples."""
    machine = last_of(estimator)
    kind: tuple[Any, ...] = ("linear",)
    if not isinstance(machine, LINEAR_MACHINES):
        kind = (machine._takes_targets, machine._is_precomputed(), machine.device)
    if not isinstance(estimator, Pipeline):
        return kind
    last = estimator.steps[-1][0]
    before = {
        name: value
        for name, value in params.items()
        if name != last and not name.startswith(f"{last}__")
    }
    return (*kind, joblib.hash(before))


def not_shared(estimator: Any) -> str:
    """Say that an estimator cannot share kernel values, and which ones can."""
    name = type(estimator).__name__
    if name in {kind.__name__ for kind in MACHINES}:
        module = type(estimator).__module__.split(".")[0]
        owner = "scikit-learn" if module == "sklearn" else module
        return (
            f"this {name} is the one of {owner}, and only Mercer's can share kernel "
            f"values. Use mercer.{name} instead"
        )
    known = [kind.__name__ for kind in MACHINES]
    return f"{name} is not an {', '.join(known[:-1])} or {known[-1]} of Mercer"


def why_not(estimator: Any) -> str | None:
    """Return why an estimator cannot share a Gram matrix, or None if it can."""
    if not isinstance(estimator, MACHINES):
        return not_shared(estimator)
    kind = next(kind for kind in MACHINES if isinstance(estimator, kind))
    if type(estimator).fit is not kind.fit:
        return f"{type(estimator).__name__} has a fit of its own"
    if estimator.solver not in ("auto", "smo"):
        return f"solver={estimator.solver!r} needs its own matrix"
    if estimator._is_function():
        return "the kernel is a function of all samples at once"
    if getattr(estimator, "_skl_callbacks", None):
        return "the estimator has callbacks, which watch its own fits"
    return None


def why_not_linear(estimator: Any) -> str | None:
    """Return why a linear machine cannot share passes over X, or None if it can."""
    kind = next(kind for kind in LINEAR_MACHINES if isinstance(estimator, kind))
    if type(estimator).fit is not kind.fit:
        return f"{type(estimator).__name__} has a fit of its own"
    if getattr(estimator, "multi_class", "ovr") == "crammer_singer":
        return "multi_class='crammer_singer' is one problem for all classes"
    if getattr(estimator, "probability", False):
        return "probability=True deals out its own folds in each fit"
    if getattr(estimator, "_skl_callbacks", None):
        return "the estimator has callbacks, which watch its own fits"
    return None


def score_model(
    request: Request, model: Any, whole: Any, fold: Fold, split: int
) -> dict[str, Any]:
    """Score a fitted machine, which may be the last step of a ``whole`` pipeline."""
    train, test = request.splits[split]
    parts = {"test_scores": (fold.X_test, fold.y_test, test)}
    if request.return_train_score:
        y_train = None if request.y is None else safe_indexing(request.y, train)
        parts["train_scores"] = (fold.valid.X, y_train, train)
    estimator: Any = model
    is_raw = not asks_predictions_only(request.scorer) and (
        isinstance(whole, Pipeline) or not isinstance(request.X, np.ndarray)
    )
    if is_raw and isinstance(whole, Pipeline):
        estimator = _rejoined(whole, fold.before, model)
    scores = {}
    for name, (X, y, rows) in parts.items():
        own = check_method_params(request.X, request.score_params, rows)
        if is_raw:
            X = safe_indexing(request.X, rows)
        scores[name] = score(estimator, X, y, request.scorer, own, request.error_score)
    return scores


@contextmanager
def within_budget(estimator: Any, cache_size: float | str) -> Iterator[None]:
    """Give a machine without a ``cache_size`` of its own that of the search."""
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


def asks_predictions_only(scorer: Any) -> bool:
    """Tell whether a scorer is one of scikit-learn's that look at predictions only."""
    if isinstance(scorer, MultimetricScorer):
        return all(asks_predictions_only(s) for s in scorer._scorers.values())
    return isinstance(scorer, BaseScorer | PassthroughScorer)


def _rejoined(pipeline: Pipeline, before: Any, machine: Any) -> Pipeline:
    """Return the pipeline with its fitted steps and the fitted machine."""
    joined = clone(pipeline)
    steps = [] if before is None else before.steps
    joined.steps = [*steps, (pipeline.steps[-1][0], machine)]
    return joined


def last_of(estimator: Any) -> Any:
    """Return the machine: an estimator itself, or the last step of a pipeline."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def is_stateless(estimator: Any) -> bool:
    """Tell whether the steps before the machine learn nothing from the samples."""
    if not isinstance(estimator, Pipeline):
        return True
    return all(
        step is None or step == "passthrough" or not get_tags(step).requires_fit
        for _, step in estimator.steps[:-1]
    )


def prepare(estimator: Any, X: Any, y: Any, splits: Sequence[Split]) -> Samples:
    """Validate all samples at once, for steps that learn nothing."""
    before = None
    if isinstance(estimator, Pipeline) and len(estimator.steps) > 1:
        before = clone(estimator)[:-1]
        X = before.fit_transform(X, y)
    machine = clone(last_of(estimator))
    valid = _validated(machine, X, y)
    is_matrix, n = machine._is_precomputed(), valid.X.shape[0]
    rows = [(_as_rows(train, n), _as_rows(test, n)) for train, test in splits]
    order = np.arange(n)
    if not is_matrix:
        order = _arranged(_labels(machine, valid.y, n), rows)
    place = np.argsort(order)
    folds = {}
    for number, (train, test) in enumerate(rows):
        X_train, X_test, learnt = valid.X[train], valid.X[test], dict(valid.learnt)
        if is_matrix:
            X_train, X_test = X_train[:, train], X_test[:, train]
            learnt["n_features_in_"] = len(train)
        learnt["shape_fit_"] = X_train.shape
        y_train = None if valid.y is None else valid.y[train]
        folds[number] = Fold(
            place[train],
            place[test],
            Validated(X_train, y_train, learnt, valid.views),
            X_test,
            None if y is None else safe_indexing(y, test),
            before,
        )
    return Samples(valid.X if is_matrix else valid.X[order], folds, is_matrix)


def prepare_fold(estimator: Any, X: Any, y: Any, number: int, split: Split) -> Samples:
    """Fit the steps before the machine on one training part; validate both parts."""
    train, test = split
    X_train, X_test = safe_indexing(X, train), safe_indexing(X, test)
    y_train = None if y is None else safe_indexing(y, train)
    before = clone(estimator)[:-1]
    X_train = before.fit_transform(X_train, y_train)
    X_test = before.transform(X_test)
    machine = clone(last_of(estimator))
    valid = _validated(machine, X_train, y_train)
    vars(machine).update(valid.learnt)
    X_test = validate_samples(machine, X_test, reset=False)
    n, m = valid.X.shape[0], X_test.shape[0]
    if sparse.issparse(valid.X):
        both = sparse.vstack([valid.X, X_test]).tocsr()
    else:
        both = np.vstack([valid.X, X_test])
    labels = np.concatenate([_labels(machine, valid.y, n), np.full(m, -1)])
    order = _arranged(labels, [])
    place = np.argsort(order)
    fold = Fold(
        place[:n],
        place[n:],
        valid,
        X_test,
        None if y is None else safe_indexing(y, test),
        before,
    )
    return Samples(both[order], {number: fold})


def _labels(machine: Any, targets: Any, n: int) -> NDArray[np.intp]:
    """Return the class number of each sample; 0 for all if there are no classes."""
    if not is_classifier(machine):
        return np.zeros(n, dtype=np.intp)
    return np.unique(np.asarray(targets).ravel(), return_inverse=True)[1]


def _arranged(labels: NDArray[np.intp], splits: Sequence[Split]) -> NDArray[np.intp]:
    """Return the order of samples by class and fold.

    The kernel values of a problem then lie in a few contiguous parts of the matrix.
    """
    fold = np.zeros(len(labels), dtype=np.intp)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
    return np.lexsort((fold, labels))


def _validated(machine: Any, X: Any, y: Any) -> Validated:
    """Validate samples for a machine, and targets if it takes any."""
    if machine._is_precomputed() and not hasattr(X, "shape"):
        raise ValueError("A precomputed kernel must be an array, not a list of lists.")
    return machine._validated(X, y if machine._takes_targets else None)


def _as_rows(part: Any, n: int) -> NDArray[np.intp]:
    """Return row numbers for a part of a split, which may be a mask."""
    part = np.asarray(part)
    return np.flatnonzero(part) if part.dtype == bool else part.astype(np.intp) % n


def told(error: Exception) -> str:
    """Return the message of an exception in one line."""
    words = textwrap.shorten(str(error), 300)
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
