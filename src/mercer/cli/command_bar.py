"""The progress bar of commands, which also shows how far a fit is."""

from __future__ import annotations

import math
from typing import Any

from mercer.cli.models import last_step
from mercer.runtime.bar import Bar
from mercer.runtime.progress import FitCallback

__all__ = ["CommandBar"]

# The KKT gap with which most machines begin.
USUAL_GAP = 2.0


class CommandBar(Bar, FitCallback):
    """Shows what a command does; nothing is shown where there is no terminal."""

    def __init__(self, quiet: bool = False):
        super().__init__(draws=not quiet, writes=False)
        self._first_gap = USUAL_GAP

    def watch(self, estimator: Any, what: str) -> Any:
        """Show the fit of a pipeline that begins next, and return the pipeline."""
        self.begin(what)
        self._first_gap = USUAL_GAP
        last_step(estimator).set_callbacks(self)
        return estimator

    def receive(self, estimator: Any, task: str, metadata: dict[str, Any]) -> bool:
        """Show how many problems are solved, or how far the only one is."""
        if "gap" not in metadata:  # machines that learn row by row know their loss
            self.show(0.0, ", ".join(f"{k} {v:.2g}" for k, v in metadata.items()))
            return False
        gap, solved, problems = (metadata[k] for k in ("gap", "solved", "problems"))
        if problems > 1:
            self.show(solved / problems, f"{solved} of {problems} problems")
        elif gap < math.inf:
            # The number of digits measures the way from the first gap to ``tol``.
            tol = min(estimator.tol, 0.5)
            first = self._first_gap = max(self._first_gap, gap)
            done = math.log(first / max(gap, tol)) / math.log(first / tol)
            self.show(done, f"KKT gap {gap:.1e}")
        return False
