"""Splits by seed, with exact sizes: per class, into three parts, into folds.

All work on the labels alone and return rows, in ascending order, so that one split
serves any number of arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.utils import indexable

from mercer.datasets.checks import Seed, as_generator, check_count, check_number

__all__ = ["per_class_split", "stratified_folds", "train_validation_test_split"]

Rows = NDArray[np.intp]
PART_NAMES = ("train", "validation", "test")
# What is nearer than this to a whole number is one.
ROUNDING = 1e-9


def per_class_split(
    y: ArrayLike,
    sizes: Sequence[int] = (500, 100),
    *,
    shuffle: bool = True,
    random_state: Seed = None,
) -> list[Rows]:
    """Draw disjoint sets with a given number of samples of every class.

    Parameters
    ----------
    y : array-like of shape (n,)
        The classes of the samples.
    sizes : sequence of int, default=(500, 100)
        For each set, how many samples of every class it has.
    shuffle : bool, default=True
        Whether samples are drawn at random, or the first of each class go to the first
        set, the next to the second, and so on.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the drawing; None makes it different each time.

    Returns
    -------
    rows : list of ndarray
        The rows of each set, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.datasets import per_class_split
    >>> y = np.array(list("abababbb"))
    >>> train, test = per_class_split(y, (2, 1), shuffle=False)
    >>> train, test
    (array([0, 1, 2, 3]), array([4, 5]))
    """
    counts = [check_count("an entry of sizes", size) for size in sizes]
    if not counts:
        raise ValueError("sizes must have at least one entry, got none.")
    pools = _rows_by_class(y, as_generator(random_state) if shuffle else None)
    for name, pool in pools.items():
        if len(pool) < sum(counts):
            raise ValueError(
                f"Class {name!r} has {len(pool)} samples, too few for "
                f"{' + '.join(map(str, counts))} = {sum(counts)} per class. Lower "
                "sizes."
            )
    stops = np.cumsum([0, *counts])
    return [
        np.sort(np.concatenate([pool[start:stop] for pool in pools.values()]))
        for start, stop in pairwise(stops)
    ]


def train_validation_test_split(
    X: Any,
    y: ArrayLike,
    *more: Any,
    ratios: Sequence[float] = (0.6, 0.2, 0.2),
    random_state: Seed = None,
) -> list[Any]:
    """Split samples into three parts, in each of which the classes have equal shares.

    The sizes of the parts are the whole numbers nearest to the ratios that sum to n,
    and each class has, in each part, its exact share rounded down or up.

    Parameters
    ----------
    X : array-like of shape (n, ...)
        The samples; arrays, sparse matrices, data frames and lists are split alike.
    y : array-like of shape (n,)
        Their classes.
    *more : array-like of shape (n, ...)
        More to be split the same way.
    ratios : sequence of three numbers, default=(0.6, 0.2, 0.2)
        Shares of training, validation and test; only their proportions count.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the split; None makes it different each time.

    Returns
    -------
    parts : list
        ``X_train, X_validation, X_test, y_train, y_validation, y_test``, and so on.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.datasets import train_validation_test_split
    >>> X, y = np.arange(20).reshape(10, 2), np.repeat([3, 8], 5)
    >>> parts = train_validation_test_split(X, y, random_state=0)
    >>> [len(part) for part in parts]
    [6, 2, 2, 6, 2, 2]
    >>> parts[3]
    array([3, 3, 3, 8, 8, 8])
    """
    arrays = indexable(X, y, *more)
    shares = _shares(ratios)
    pools = _rows_by_class(y, as_generator(random_state))
    least = int(np.ceil(1 / shares.min() - ROUNDING))
    for name, pool in pools.items():
        if len(pool) < least:
            raise ValueError(
                f"Class {name!r} has {len(pool)} samples, too few for each part to "
                f"have its share: with ratios {tuple(ratios)} a class needs {least}."
            )
    table = _apportion(np.array([len(pool) for pool in pools.values()]), shares)
    stops = np.cumsum(table, axis=1)[:, :-1]
    pieces = [
        np.split(pool, stop) for pool, stop in zip(pools.values(), stops, strict=True)
    ]
    parts = [np.sort(np.concatenate(piece)) for piece in zip(*pieces, strict=True)]
    return [_take(array, rows) for array in arrays for rows in parts]


def stratified_folds(
    y: ArrayLike, n_folds: int = 5, *, random_state: Seed = None
) -> list[tuple[Rows, Rows]]:
    """Split samples into folds that differ by one at most, in all and per class.

    The result can be given as ``cv`` to scikit-learn's searches and scores.

    Parameters
    ----------
    y : array-like of shape (n,)
        The classes of the samples.
    n_folds : int, default=5
        How many folds, at least 2.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the split; None makes it different each time.

    Returns
    -------
    folds : list of (ndarray, ndarray)
        For each fold the rows to train on, and the rows of the fold itself.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.datasets import stratified_folds
    >>> y = np.repeat([0, 1], [10, 15])
    >>> [np.bincount(y[test]) for _, test in stratified_folds(y, random_state=0)][0]
    array([2, 3])
    """
    n_folds = check_count("n_folds", n_folds, least=2)
    pools = _rows_by_class(y, as_generator(random_state))
    for name, pool in pools.items():
        if len(pool) < n_folds:
            raise ValueError(
                f"Class {name!r} has {len(pool)} samples, too few for {n_folds} folds. "
                "Lower n_folds."
            )
    order = np.concatenate(list(pools.values()))
    fold = np.empty(len(order), dtype=np.intp)
    fold[order] = np.arange(len(order)) % n_folds
    return [
        (np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)
    ]


def _rows_by_class(y: ArrayLike, rng: np.random.Generator | None) -> dict[Any, Rows]:
    """Return the rows of each class, shuffled if there is a generator."""
    labels = np.asarray(y)
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(
            f"y must have one class for each sample, shape (n,), got {labels.shape}."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y has NaN or infinity, which are no classes.")
    classes, index = np.unique(labels, return_inverse=True)
    order = np.argsort(index, kind="stable")
    pools = np.split(order, np.cumsum(np.bincount(index))[:-1])
    if rng is not None:
        pools = [rng.permutation(pool) for pool in pools]
    return dict(zip(classes.tolist(), pools, strict=True))


def _take(array: Any, rows: Rows) -> Any:
    """Return some rows of whatever can be split."""
    if hasattr(array, "iloc"):
        return array.iloc[rows]
    if isinstance(array, list | tuple):
        return [array[row] for row in rows]
    return array[rows]


def _shares(ratios: Sequence[float]) -> NDArray[np.float64]:
    """Return the three ratios, summing to one."""
    if len(ratios) != len(PART_NAMES):
        raise ValueError(
            f"ratios must have three entries, {', '.join(PART_NAMES)}; got "
            f"{tuple(ratios)}."
        )
    numbers = [check_number("an entry of ratios", ratio) for ratio in ratios]
    if min(numbers) == 0:
        raise ValueError(f"Every entry of ratios must be > 0, got {tuple(ratios)}.")
    return np.array(numbers) / sum(numbers)


def _apportion(counts: NDArray, shares: NDArray) -> NDArray[np.intp]:
    """Round ``counts × shares`` so that rows and columns sum to what they should.

    Every entry is rounded down or up.  What rounding down leaves over in each class is
    handed out, one at most to each entry, so that the parts get their sizes and the
    largest fractions go first.  It is a transport problem, and for three parts it
    always has a solution.
    """
    exact = counts[:, None] * shares
    floor = np.floor(exact + ROUNDING)
    sizes = _round_to_sum(counts.sum() * shares)
    n_classes, n_parts = exact.shape
    by_class = sparse.kron(sparse.eye(n_classes), np.ones((1, n_parts)))
    by_part = sparse.kron(np.ones((1, n_classes)), sparse.eye(n_parts))
    left = np.concatenate([counts - floor.sum(axis=1), sizes - floor.sum(axis=0)])
    fraction = (exact - floor).ravel()
    solved = milp(
        -fraction,
        constraints=LinearConstraint(sparse.vstack([by_class, by_part]), left, left),
        bounds=Bounds(0, fraction > ROUNDING),
        integrality=np.ones(exact.size),
    )
    extra = np.rint(solved.x).reshape(exact.shape)
    return (floor + extra).astype(np.intp)


def _round_to_sum(exact: NDArray) -> NDArray:
    """Round numbers down or up, largest fractions up, so that their sum stays."""
    floor = np.floor(exact + ROUNDING)
    n_up = round(exact.sum() - floor.sum())
    floor[np.argsort(floor - exact, kind="stable")[:n_up]] += 1
    return floor
