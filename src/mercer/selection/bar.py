"""The progress bar of a search, which names the best candidate so far."""

from __future__ import annotations

import math
from typing import Any

from mercer.runtime.bar import Bar as ProgressBar

__all__ = ["Bar"]


class Bar(ProgressBar):
    """Counts fits and names the best candidate.

    With ``verbose`` of 2 and more, or where no bar can be drawn, lines of text are
    written.
    """

    def __init__(self, name: str, total: int, verbose: int):
        super().__init__(name, total, "fits", draws=verbose == 1, writes=verbose > 0)
        self._best = -math.inf

    def offer(self, score: float, params: dict[str, Any]) -> None:
        """Take note of the mean score of a candidate."""
        with self._lock:
            if math.isfinite(score) and score > self._best:
                self._best = score
                named = ", ".join(f"{name}={value}" for name, value in params.items())
                self.note(f"best so far {score:.4g}" + (f" ({named})" if named else ""))
