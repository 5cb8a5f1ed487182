"""Which samples a stream classifier holds, where they are, and products with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engines.cpu.held import HeldRows, Moves
from mercer.engines.cpu.tiles import Weights, coefficient_matrix
from mercer.engines.engine import engine_of
from mercer.kernels.base import Kernel

__all__ = ["SampleIndex", "products_with_held"]


class SampleIndex:
    """The places of held samples, by their keys.

    See :func:`mercer.engines.cpu.held.sample_keys`.
    """

    def __init__(self, keys: Iterable[bytes]):
        self.keys = list(keys)  #: by place
        self._place = {key: place for place, key in enumerate(self.keys)}

    def copy(self) -> SampleIndex:
        """Return an index that can change while this one stays as it is."""
        twin = SampleIndex.__new__(SampleIndex)
        twin.keys, twin._place = self.keys.copy(), self._place.copy()
        return twin

    def get(self, key: bytes) -> int | None:
        """Return the place of a sample, or None if it is not held."""
        return self._place.get(key)

    def add(self, keys: Iterable[bytes]) -> tuple[NDArray[np.int64], list[int]]:
        """Append the samples that are not held yet.

        Return the place of every given sample, and which of them were appended.
        """
        places: list[int] = []
        fresh: list[int] = []
        for r, key in enumerate(keys):
            place = self._place.setdefault(key, len(self.keys))
            if place == len(self.keys):
                self.keys.append(key)
                fresh.append(r)
            places.append(place)
        return np.array(places, dtype=np.int64), fresh

    def remove(self, leaving: NDArray, moves: Moves) -> None:
        """Remove the samples at some places; others move to these places."""
        for place in leaving:
            del self._place[self.keys[place]]
        for target, source in zip(moves.target, moves.source, strict=True):
            self.keys[target] = self.keys[source]
            self._place[self.keys[target]] = int(target)
        del self.keys[moves.count :]


def products_with_held(
    kernel: Kernel, X: Any, rows: HeldRows, beta: NDArray, n_jobs: int | None
) -> NDArray:
    """Return ``K(X, rows) @ beta.T`` for coefficients of shape (n_tasks, n_held)."""
    n = len(rows)
    matrix = coefficient_matrix(n, [(np.arange(n), values) for values in beta])
    with engine_of(X, n_jobs=n_jobs) as engine:
        return engine.apply(kernel, X, rows, Weights(matrix, [0, n]))
