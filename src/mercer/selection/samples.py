"""The samples of a search as the machines see them: all of them, and the folds.

An estimator that stands alone sees the same samples in every fold.  Behind
transformers that learn from the training part, each fold has samples of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from mercer.machines.base.machine import KernelMachine
from mercer.runtime.scikit_learn import safe_indexing
from mercer.runtime.validation import validate_data
from mercer.selection.sharing import Fold

__all__ = ["Samples", "is_stateless", "last_of", "prepare", "prepare_fold"]

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(eq=False)
class Samples:
    """A validated matrix, and folds of it by the number of their split."""

    X: Any
    folds: dict[int, Fold]
    is_matrix: bool = False  #: whether it is the kernel matrix itself


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


def _learnt(machine: KernelMachine) -> dict[str, Any]:
    """Return what validation leaves on an estimator, but for the number of samples."""
    names = ("_views", "n_features_in_", "feature_names_in_")
    return {name: vars(machine)[name] for name in names if name in vars(machine)}


def prepare(estimator: Any, X: Any, y: Any, splits: Sequence[Split]) -> Samples:
    """Validate all samples at once, for steps that learn nothing."""
    before = None
    if isinstance(estimator, Pipeline) and len(estimator.steps) > 1:
        before = clone(estimator)[:-1]
        X = before.fit_transform(X, y)
    machine = clone(last_of(estimator))
    valid, targets = _validate(machine, X, y)
    learnt, is_matrix = _learnt(machine), machine._is_precomputed()
    n = valid.shape[0]
    rows = [(_as_rows(train, n), _as_rows(test, n)) for train, test in splits]
    order, stretches = np.arange(n), [slice(0, n)]
    if not is_matrix:
        order, stretches = _arranged(_labels(machine, targets, n), rows)
    place = np.argsort(order)
    folds = {}
    for number, (train, test) in enumerate(rows):
        X_train, X_test = valid[train], valid[test]
        if is_matrix:
            X_train, X_test = X_train[:, train], X_test[:, train]
            learnt = {**learnt, "n_features_in_": len(train)}
        folds[number] = Fold(
            place[train],
            place[test],
            X_train,
            X_test,
            None if targets is None else targets[train],
            None if y is None else safe_indexing(y, test),
            stretches,
            learnt,
            before,
        )
    return Samples(valid if is_matrix else valid[order], folds, is_matrix)


def prepare_fold(estimator: Any, X: Any, y: Any, number: int, split: Split) -> Samples:
    """Fit the steps before the machine on one training part; validate both parts."""
    train, test = split
    X_train, X_test = safe_indexing(X, train), safe_indexing(X, test)
    y_train = None if y is None else safe_indexing(y, train)
    before = clone(estimator)[:-1]
    X_train = before.fit_transform(X_train, y_train)
    X_test = before.transform(X_test)
    machine = clone(last_of(estimator))
    X_train, targets = _validate(machine, X_train, y_train)
    X_test = validate_data(
        machine,
        X_test,
        dtype=[np.float64, np.float32],
        order="C",
        accept_sparse="csr",
        reset=False,
    )
    n, m = X_train.shape[0], X_test.shape[0]
    if sparse.issparse(X_train):
        both = sparse.vstack([X_train, X_test]).tocsr()
    else:
        both = np.vstack([X_train, X_test])
    labels = np.concatenate([_labels(machine, targets, n), np.full(m, -1)])
    order, stretches = _arranged(labels, [])
    place = np.argsort(order)
    fold = Fold(
        place[:n],
        place[n:],
        X_train,
        X_test,
        targets,
        None if y is None else safe_indexing(y, test),
        stretches,
        _learnt(machine),
        before,
    )
    return Samples(both[order], {number: fold})


def _labels(machine: Any, targets: Any, n: int) -> NDArray[np.intp]:
    """Return classes as numbers; without classes, one for all samples."""
    if not is_classifier(machine):
        return np.zeros(n, dtype=np.intp)
    return np.unique(np.asarray(targets).ravel(), return_inverse=True)[1]


def _arranged(
    labels: NDArray[np.intp], splits: Sequence[Split]
) -> tuple[NDArray[np.intp], list[slice]]:
    """Return samples class by class, and within them fold by fold; and the classes.

    What a problem needs of the matrix then lies in a few contiguous stretches.
    """
    fold = np.zeros(len(labels), dtype=np.intp)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
    order = np.lexsort((fold, labels))
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    ends = [0, *cuts.tolist(), len(labels)]
    return order, [slice(a, b) for a, b in pairwise(ends)]


def _validate(machine: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Validate samples for a machine, and targets if it takes any."""
    return machine._validate(X, y if machine._takes_targets else None)


def _as_rows(part: Any, n: int) -> NDArray[np.intp]:
    """Return the rows that an entry of ``cv`` stands for."""
    part = np.asarray(part)
    return np.flatnonzero(part) if part.dtype == bool else part.astype(np.intp) % n
