"""Products of pairs of samples that Newton's method needs again and again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.core.linear_pieces import add_chosen, dot_chosen, pick_products
from mercer.engines.cpu.linear.features import Features

__all__ = ["Pool"]

# A pool has room for so many times the samples that it is asked for at first, and
# forgets all others when it is full.
ROOM = 2.0


class Pool:
    """Samples that were free in some round, with the products of all pairs of them.

    The samples near the margin of a problem are almost the same from round to round.
    So a pair of them is multiplied once, as long as there is room.

    Parameters
    ----------
    features : Features
    """

    def __init__(self, features: Features):
        self._features = features
        self._count = 0
        self._place = np.full(features.n, -1, dtype=np.int32)
        self._samples = np.empty((0, features.d))
        self._products = np.empty((0, 0))

    def n_missing(self, rows: NDArray) -> int:
        """Return how many of some samples are not in the pool."""
        return int(np.count_nonzero(self._place[rows] < 0))

    def include(self, rows: NDArray) -> None:
        """Take in the samples of some rows, without repetition."""
        new = rows[self._place[rows] < 0]
        if not len(new):
            return
        if self._count + len(new) > len(self._samples):
            if len(rows) > len(self._samples):
                size = min(int(ROOM * len(rows)), self._features.n)
                self._samples = np.empty((size, self._features.d))
                self._products = np.empty((size, size))
            self._place[:] = -1
            self._count = 0
            new = rows
        first, end = self._count, self._count + len(new)
        self._samples[first:end] = self._features.gather(new, np.ones(len(new)))
        self._place[new] = np.arange(first, end)
        self._count = end
        part = self._samples[first:end] @ self._samples[:end].T
        self._products[first:end, :end] = part
        self._products[:end, first:end] = part.T

    def places(self, rows: NDArray) -> NDArray[np.int32]:
        """Return where samples are in the pool, which must have them."""
        return self._place[rows]

    def products(self, places: NDArray, diagonal: NDArray) -> NDArray[np.float64]:
        """Return the upper triangle of the products of samples, plus a diagonal."""
        result = np.empty((len(places), len(places)))
        pick_products(self._products, places, diagonal, result)
        return result

    def dot(self, places: NDArray, x: NDArray) -> NDArray[np.float64]:
        """Return the products of samples with a vector."""
        result = np.zeros(len(places))
        dot_chosen(self._samples, places, x, result)
        return result

    def combine(self, places: NDArray, factors: NDArray) -> NDArray[np.float64]:
        """Return a weighted sum of samples."""
        result = np.zeros(self._samples.shape[1])
        add_chosen(self._samples, places, factors, result)
        return result
