"""The samples that the driver has received: candidates and support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.engines.cluster.messages import Facts, Rows

__all__ = ["KnownRows"]


class KnownRows:
    """Samples by their numbers, in the batches in which they came."""

    def __init__(self) -> None:
        self.ids = np.empty(0, dtype=np.int64)  #: in ascending order
        self._facts = Facts(np.empty(0), np.empty(0), np.empty(0, dtype=np.intp))
        self._batch = np.empty(0, dtype=np.intp)  #: where the features are
        self._place = np.empty(0, dtype=np.intp)
        self._batches: list[Any] = []

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, rows: Rows, facts: Facts) -> None:
        """Take in samples; those that are known already are left as they are."""
        new = np.flatnonzero(~np.isin(rows.ids, self.ids))
        if not len(new) and self._batches:
            return
        number = len(self._batches)
        self._batches.append(rows.X if len(new) == len(rows.ids) else rows.X[new])
        ids = np.concatenate([self.ids, rows.ids[new]])
        order = np.argsort(ids, kind="stable")
        self.ids = ids[order]
        self._batch = np.append(self._batch, np.full(len(new), number))[order]
        self._place = np.append(self._place, np.arange(len(new)))[order]
        pairs = zip(self._facts, facts.take(new), strict=True)
        self._facts = Facts(*(np.concatenate(pair)[order] for pair in pairs))

    def rows(self, ids: NDArray) -> Rows:
        """Return some samples, in the order of ``ids``."""
        at = np.searchsorted(self.ids, ids)
        order = np.argsort(self._batch[at], kind="stable")
        batch, place = self._batch[at][order], self._place[at][order]
        cuts = np.flatnonzero(np.diff(batch)) + 1
        parts = [self._batches[0][:0]]
        for index, begin in zip(np.split(place, cuts), [0, *cuts], strict=True):
            if len(index):
                parts.append(self._batches[batch[begin]][index])
        back = np.argsort(order, kind="stable")
        if sparse.issparse(parts[0]):
            X = sparse.vstack(parts, format="csr")[back]
        else:
            X = np.concatenate(parts)[back]
        return Rows(np.asarray(ids, dtype=np.int64), X)

    def facts(self, ids: NDArray) -> Facts:
        """Return the facts about some samples."""
        return self._facts.take(np.searchsorted(self.ids, ids))

    def keep_only(self, ids: NDArray) -> NDArray[np.int64]:
        """Drop all samples but these; return the numbers of the dropped ones."""
        is_kept = np.isin(self.ids, ids)
        kept, dropped = self.ids[is_kept], self.ids[~is_kept]
        X = self.rows(kept).X
        self._facts = self._facts.take(is_kept)
        self.ids, self._batches = kept, [X]
        self._batch = np.zeros(len(kept), dtype=np.intp)
        self._place = np.arange(len(kept))
        return dropped
