"""Decoding: from the decision values of the tasks to a score for each class.

Every machine gives one decision value for each task. The code matrix (see
:mod:`mercer.multiclass.codes`) says on which side of each task a class is.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics import pairwise_distances_argmin

from mercer.core.tiles import ranges
from mercer.multiclass.codes import one_vs_rest
from mercer.runtime.threads import one_blas_thread

__all__ = [
    "DECODINGS",
    "class_means",
    "count_pair_votes",
    "count_votes",
    "most_voted",
    "nearest_of_best",
    "score_classes",
    "votes_and_margins",
]

# From this number of classes on, votes of pairs are counted one by one.
MANY = 32
# Number of votes that are counted at a time.
PART = 2**20
# Up to this many multiplications, BLAS uses one thread anyway.
SMALL = 100_000

DECODINGS = ("votes", "margin", "platt", "barycentre", "hamming", "loss")


def count_votes(decisions: NDArray, code: NDArray) -> NDArray:
    """Count the votes for each class, shape (n, n_classes); 0 counts as negative."""
    return _count(decisions > 0, code)


def _sums(values: NDArray, code: NDArray) -> NDArray:
    """Return ``values @ code.T``, by one thread.

    Threads of BLAS would go on waiting for work for some time after a product, and so
    keep cores busy that the next prediction needs.
    """
    signs = code.T.astype(values.dtype)
    with one_blas_thread() if values.size * len(code) > SMALL else nullcontext():
        return values @ signs


def _count(is_positive: NDArray, code: NDArray) -> NDArray:
    # Counts are whole numbers, which single precision holds exactly.
    votes = _sums(is_positive.astype(np.float32), code)
    return votes.astype(np.float64) + (code < 0).sum(axis=1)


@lru_cache(maxsize=4)
def _pairs(n_classes: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the classes of all pairs, in the order of their machines."""
    return np.triu_indices(n_classes, 1)


def _in_parts(n_rows: int, n_pairs: int) -> list[slice]:
    """Divide rows so that tables of all pairs stay small."""
    return ranges(0, n_rows, max(1, PART // n_pairs), even=False)


def count_pair_votes(is_positive: NDArray, n_classes: int) -> NDArray:
    """Count the votes of one-vs-one machines, shape (n, n_classes).

    With many classes most of the code matrix is zeros, and counting takes less time
    than a product with it.
    """
    first, second = _pairs(n_classes)
    votes = np.empty((len(is_positive), n_classes))
    for rows in _in_parts(*is_positive.shape):
        winner = np.where(is_positive[rows], first, second)
        winner += n_classes * np.arange(len(winner))[:, None]
        counts = np.bincount(winner.ravel(), minlength=len(winner) * n_classes)
        votes[rows] = counts.reshape(-1, n_classes)
    return votes


def most_voted(decisions: NDArray, code: NDArray) -> NDArray[np.intp]:
    """Return the class with the most votes of one-vs-one machines; 0 is negative."""
    n_classes = len(code)
    if n_classes >= MANY:
        return count_pair_votes(decisions > 0, n_classes).argmax(axis=1)
    return count_votes(decisions, code).argmax(axis=1)


def _sum_pair_margins(decisions: NDArray, n_classes: int) -> NDArray:
    """Return the summed margins of one-vs-one machines, shape (n, n_classes)."""
    first, second = _pairs(n_classes)
    sums = np.empty((len(decisions), n_classes))
    for rows in _in_parts(*decisions.shape):
        some = decisions[rows]
        table = np.zeros((len(some), n_classes, n_classes))
        table[:, first, second] = some
        table[:, second, first] = -some
        sums[rows] = table.sum(axis=2)
    return sums


def votes_and_margins(decisions: NDArray, code: NDArray, is_by_pair: bool) -> NDArray:
    """Return votes, plus a number below one half that grows with the summed margins.

    This orders classes by votes, and classes with equal votes by how clear the votes
    were, like scikit-learn's ``decision_function`` of one-vs-rest shape, where 0 counts
    as a positive vote. ``is_by_pair`` says whether the code is that of one-vs-one.
    """
    n_classes = len(code)
    if is_by_pair and n_classes >= MANY:
        votes = count_pair_votes(decisions >= 0, n_classes)
        margins = _sum_pair_margins(decisions, n_classes)
    else:
        votes = _count(decisions >= 0, code)
        margins = _sums(decisions, code)
    return votes + margins / (3.0 * (np.abs(margins) + 1.0))


def _sum_margins(decisions: NDArray, code: NDArray) -> NDArray:
    n_classes = len(code)
    if code.shape == (n_classes, n_classes) and (code == one_vs_rest(n_classes)).all():
        return decisions  # the same order as the sums have, without rounding errors
    return _sums(decisions, code)


def _agree_in_signs(decisions: NDArray, code: NDArray) -> NDArray:
    signs = np.where(decisions > 0, 1.0, -1.0)
    return 0.5 * (_sums(signs, code) - code.shape[1])


def _lose_least(decisions: NDArray, code: NDArray) -> NDArray:
    if_positive = _sums(np.maximum(0.0, 1.0 - decisions), code > 0)
    if_negative = _sums(np.maximum(0.0, 1.0 + decisions), code < 0)
    return -(if_positive + if_negative + (code == 0).sum(axis=1))


_SCORES = {
    "votes": count_votes,
    "margin": _sum_margins,
    "hamming": _agree_in_signs,
    "loss": _lose_least,
}


def score_classes(decisions: NDArray, code: NDArray, decode: str) -> NDArray:
    r"""Return a score for each class, shape (n, n_classes); the largest wins.

    With the decision values :math:`f_t` and the code :math:`c_t` of a class,

    * ``votes``: the number of tasks that decide for the class;
    * ``margin``: :math:`\sum_t c_t f_t`, or for one-vs-rest :math:`f_t` itself, which
      orders the classes alike;
    * ``hamming``: minus the Hamming distance of the signs of :math:`f` from the code,
      where a 0 in the code counts as half a difference;
    * ``loss``: :math:`-\sum_t \max\{0, 1 - c_t f_t\}`.
    """
    return _SCORES[decode](decisions, code)


def nearest_of_best(
    X: Any, means: NDArray, decisions: NDArray, code: NDArray
) -> NDArray[np.intp]:
    """Return the class whose code is closest to the signs of the decision values.

    Among several classes it is the one whose mean is nearest to the sample.  In
    one-vs-rest all classes with a positive sign are equally close, or all classes if
    there is no positive sign.
    """
    scores = score_classes(decisions, code, "hamming")
    is_best = scores == scores.max(axis=1, keepdims=True)
    winner = scores.argmax(axis=1)
    # Only a few different sets of classes are tied, so that a loop over them is short.
    tied, which = np.unique(is_best, axis=0, return_inverse=True)
    for t, candidates in enumerate(tied):
        classes = np.flatnonzero(candidates)
        rows = np.flatnonzero(which.ravel() == t)
        if len(classes) > 1:
            nearest = pairwise_distances_argmin(X[rows], means[classes])
            winner[rows] = classes[nearest]
    return winner


def class_means(X: Any, y: NDArray, n_classes: int) -> NDArray:
    """Return the means of the classes, one row for each class."""
    if X.dtype == object:
        raise ValueError(
            "decode='barycentre' needs samples that are numbers. Use decode='hamming'."
        )
    members = sparse.csr_array(
        (np.ones(len(y)), (y, np.arange(len(y)))), shape=(n_classes, len(y))
    )
    sums = members @ X
    if sparse.issparse(sums):
        sums = sums.toarray()
    return sums / np.bincount(y, minlength=n_classes)[:, None]
