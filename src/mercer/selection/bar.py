"""The progress bar of a search, which names the best candidate so far."""

from __future__ import annotations

import math
from typing import Any

from mercer.runtime.bar import Bar as ProgressBar

__all__ = ["Bar"]


class Bar(ProgressBar):
    """Counts fits and names the best candidate.

    With ``verbose`` of 2 and more, or where no bar can be drawn, lines of text are
    written. With 3 and more, the scores of each fit are printed too.
    """

    def __init__(self, name: str, total: int, verbose: int):
        super().__init__(name, total, "fits", draws=verbose == 1, writes=verbose > 0)
        self._best = -math.inf
        self._prints = verbose > 2

    def tell(self, split: str, params: dict[str, Any], result: dict[str, Any]) -> None:
        """Print the scores of a fit, if the user wants to see them."""
        if not self._prints or "test_scores" not in result:
            return
        test, train = result["test_scores"], result.get("train_scores")
        if not isinstance(test, dict):
            test, train = {"score": test}, None if train is None else {"score": train}
        parts = [f"{name}={value}" for name, value in sorted(params.items())]
        for name, value in sorted(test.items()):
            text = f"{value:.3f}"
            if train is not None:
                text = f"(train={train[name]:.3f}, test={text})"
            parts.append(f"{name}={text}")
        seconds = result["fit_time"] + result["score_time"]
        print(f"[CV {split}] {', '.join(parts)}, {seconds:.2g} s", flush=True)

    def offer(self, score: float, params: dict[str, Any]) -> None:
        """Take note of the mean score of a candidate."""
        with self._lock:
            if math.isfinite(score) and score > self._best:
                self._best = score
                named = ", ".join(f"{name}={value}" for name, value in params.items())
                self.note(f"best so far {score:.4g}" + (f" ({named})" if named else ""))
