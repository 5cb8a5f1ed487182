"""How long a fit takes, and how many predictions are right."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Fitted", "percent", "timed_fit"]


class Fitted(NamedTuple):
    """A model, the seconds that its fit took, and its dual gap."""

    model: Any
    seconds: float
    gap: float | None


def timed_fit(model: Any, X: Any, y: NDArray, **more: Any) -> Fitted:
    """Fit a model; return it with the time and the sum of its dual gaps."""
    started = time.perf_counter()
    model.fit(X, y, **more)
    seconds = time.perf_counter() - started
    gap = getattr(model, "dual_gap_", None)
    return Fitted(model, seconds, None if gap is None else float(np.sum(gap)))


def percent(predicted: NDArray, truth: NDArray) -> float:
    """Return the percentage of predictions that are right."""
    return 100.0 * float(np.mean(np.asarray(predicted) == np.asarray(truth)))
