"""Code matrices: how a problem of several classes becomes problems of two.

A scheme is a matrix over {-1, 0, +1} with a row per class and a column per task: class
``c`` is on the side ``code[c, t]`` of task ``t``, or takes no part in it.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

__all__ = ["count_votes", "one_vs_one", "votes_and_margins"]


def one_vs_one(n_classes: int) -> NDArray[np.int8]:
    """Return the code of all pairs of classes, (0, 1), (0, 2), ..., (1, 2), ...

    The first of a pair is the positive side, except for two classes, where the second
    is, as everywhere in scikit-learn.

    >>> one_vs_one(3)
    array([[ 1,  1,  0],
           [-1,  0,  1],
           [ 0, -1, -1]], dtype=int8)
    """
    if n_classes == 2:
        return np.array([[-1], [1]], dtype=np.int8)
    pairs = list(combinations(range(n_classes), 2))
    code = np.zeros((n_classes, len(pairs)), dtype=np.int8)
    for task, (first, second) in enumerate(pairs):
        code[first, task] = 1
        code[second, task] = -1
    return code


def count_votes(decisions: NDArray, code: NDArray) -> NDArray:
    """Count the votes for each class, shape (n, n_classes); 0 is a negative vote."""
    return _count(decisions > 0, code)


def _count(is_positive: NDArray, code: NDArray) -> NDArray:
    positive = is_positive.astype(np.float64)
    return positive @ (code.T > 0) + (1.0 - positive) @ (code.T < 0)


def votes_and_margins(decisions: NDArray, code: NDArray) -> NDArray:
    """Return votes plus a share below one half for the summed margins.

    It orders classes by votes, and among equals by how clear the votes were, as
    scikit-learn's one-vs-rest shaped ``decision_function``; there 0 is a positive vote.
    """
    margins = decisions @ code.T.astype(np.float64)
    return _count(decisions >= 0, code) + margins / (3.0 * (np.abs(margins) + 1.0))
