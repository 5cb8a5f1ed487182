"""Seeded splits with exact sizes: per class, into three parts, and into folds."""

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
from mercer.runtime.public import public

__all__ = ["per_class_split", "stratified_folds", "train_validation_test_split"]

Rows = NDArray[np.intp]
PART_NAMES = ("train", "validation", "test")
# Numbers that are closer than this to a whole number count as whole.
ROUNDING = 1e-9


@public("mercer.datasets")
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
        Number of samples of every class, for each set.
    shuffle : bool, default=True
        Whether samples are drawn at random. False puts the first samples of each class
        into the first set, the next ones into the second, and so on.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the random draw; None makes it different each time.

    Returns
    -------
    rows : list of ndarray
        The rows of each set, in ascending order.

    See Also
    --------
    train_validation_test_split : parts by ratios.
    stratified_folds : folds.

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


@public("mercer.datasets")
def train_validation_test_split(
    X: Any,
    y: ArrayLike,
    *more: Any,
    ratios: Sequence[float] = (0.6, 0.2, 0.2),
    random_state: Seed = None,
) -> list[Any]:
    """Split samples into three parts with the same proportions of the classes.

    The sizes of the parts sum to n and are the ratios times n, rounded down or up.  The
    number of samples that each part has of each class is rounded in the same way.

    Parameters
    ----------
    X : array-like of shape (n, ...)
        The samples: an array, a sparse matrix, a data frame or a list.
    y : array-like of shape (n,)
        Their classes.
    *more : array-like of shape (n, ...)
        More arrays to be split the same way.
    ratios : sequence of three numbers, default=(0.6, 0.2, 0.2)
        Shares of training, validation and test. They need not sum to 1.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the split; None makes it different each time.

    Returns
    -------
    parts : list
        ``X_train, X_validation, X_test, y_train, y_validation, y_test``, then the
        three parts of each array in ``more``.

    See Also
    --------
    mercer.datasets.per_class_split : parts with exact numbers of samples.

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
                f"Class {name!r} has {len(pool)} samples, too few for all three parts: "
                f"with ratios {tuple(ratios)} a class needs at least {least}. Add "
                "samples of this class, or drop it."
            )
    table = _apportion(np.array([len(pool) for pool in pools.values()]), shares)
    stops = np.cumsum(table, axis=1)[:, :-1]
    pieces = [
        np.split(pool, stop) for pool, stop in zip(pools.values(), stops, strict=True)
    ]
    parts = [np.sort(np.concatenate(piece)) for piece in zip(*pieces, strict=True)]
    return [_take(array, rows) for array in arrays for rows in parts]


@public("mercer.datasets")
def stratified_folds(
    y: ArrayLike, n_folds: int = 5, *, random_state: Seed = None
) -> list[tuple[Rows, Rows]]:
    """Split samples into folds of equal size with equal numbers of each class.

    The sizes of two folds, and their numbers of samples of one class, differ by one at
    most.  The result can be given as ``cv`` to scikit-learn's searches and to
    ``cross_val_score``.

    Parameters
    ----------
    y : array-like of shape (n,)
        The classes of the samples.
    n_folds : int, default=5
        Number of folds, at least 2.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the split; None makes it different each time.

    Returns
    -------
    folds : list of (ndarray, ndarray)
        For each fold the rows to train on and the rows of the fold itself, both in
        ascending order.

    See Also
    --------
    mercer.datasets.per_class_split : parts with exact numbers of samples.

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
    """Return the rows of each class, shuffled if a generator is given."""
    labels = np.asarray(y)
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(
            f"y must have one class for each sample, shape (n,), got {labels.shape}."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(
            "y has NaN or infinity, which are not classes. Replace them, or drop the "
            "samples."
        )
    classes, index = np.unique(labels, return_inverse=True)
    order = np.argsort(index, kind="stable")
    pools = np.split(order, np.cumsum(np.bincount(index))[:-1])
    if rng is not None:
        pools = [rng.permutation(pool) for pool in pools]
    return dict(zip(classes.tolist(), pools, strict=True))


def _take(array: Any, rows: Rows) -> Any:
    """Return some rows of an array, a sparse matrix, a data frame or a list."""
    if hasattr(array, "iloc"):
        return array.iloc[rows]
    if isinstance(array, list | tuple):
        return [array[row] for row in rows]
    return array[rows]


def _shares(ratios: Sequence[float]) -> NDArray[np.float64]:
    """Return the three ratios, scaled to sum to one."""
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
    """Round the table ``counts × shares`` (classes, parts) to whole numbers.

    The rows sum to ``counts``, the columns to the sizes of the parts, and every entry
    is rounded down or up.  First all entries are rounded down.  The samples that are
    left over are then distributed, at most one to an entry that is not whole, so that
    the fractions of the chosen entries have the largest sum.  This is a transport
    problem, and for three parts it always has a solution.
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
    """Round numbers down or up so that their sum stays, the largest fractions up."""
    floor = np.floor(exact + ROUNDING)
    n_up = round(exact.sum() - floor.sum())
    floor[np.argsort(floor - exact, kind="stable")[:n_up]] += 1
    return floor
