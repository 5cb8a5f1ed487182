"""The course of a fit: its reports, and the quality of the model after some steps."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer.runtime.progress import FitCallback
from mercer.runtime.public import public

__all__ = ["FitHistory", "trace_fit"]


@public("mercer.plots")
class FitHistory(FitCallback):
    """A callback of scikit-learn that keeps the reports of a fit: its gap and the time.

    Parameters
    ----------
    clock : callable, default=time.perf_counter
        Returns the time in seconds.

    Attributes
    ----------
    history : dict of str to list
        "report" (1, 2, ...), "seconds" since the start, and all numbers of the reports,
        such as "gap". Each fit starts a new history.

    See Also
    --------
    trace_fit : a history with objective and accuracy, by several fits.
    ConvergenceDisplay : draws a history.

    Examples
    --------
    >>> from mercer import SVC
    >>> from mercer.datasets import make_moons
    >>> from mercer.plots import FitHistory
    >>> record = FitHistory()
    >>> model = SVC(solver="decompose").set_callbacks(record)
    >>> model = model.fit(*make_moons(100, random_state=0))
    >>> record.history["gap"][-1] <= model.tol
    True
    """

    def __init__(self, clock: Any = time.perf_counter):
        self.clock = clock
        self.history: dict[str, list[float]] = {}
        self._started = 0.0

    def setup(self, estimator: Any, context: Any) -> None:
        """Start a new history."""
        self.history = {}
        self._started = self.clock()

    def receive(self, estimator: Any, task: str, metadata: dict[str, Any]) -> bool:
        """Keep the numbers of a report; never ask the fit to stop."""
        count = len(self.history.get("report", ())) + 1
        numbers = {"report": count, "seconds": self.clock() - self._started}
        for name, value in {**numbers, **metadata}.items():
            if isinstance(value, int | float | np.number):
                self.history.setdefault(name, []).append(float(value))
        return False


@public("mercer.plots")
def trace_fit(
    estimator: Any,
    X: Any,
    y: Any,
    steps: Sequence[int],
    *,
    X_test: Any = None,
    y_test: Any = None,
) -> dict[str, NDArray]:
    """Fit an estimator several times with more and more steps.

    A solver takes the same steps each time, so the results are the course of one fit.
    Each of them comes from a complete model, and no fit is slowed down by measurements.

    Parameters
    ----------
    estimator : estimator of Mercer with ``max_iter``
    X, y : samples and classes or targets
    steps : sequence of int
        Values of ``max_iter``.
    X_test, y_test : arrays, default=None
        The samples on which the accuracy is measured; None means X and y.

    Returns
    -------
    dict of str to ndarray
        "n_iter", "gap", "dual_gap", "objective" and "accuracy" (the ``score``), up to
        the first model that converged.

    See Also
    --------
    FitHistory : records the gap of one fit as it goes.
    ConvergenceDisplay : draws a history.

    Examples
    --------
    >>> from mercer import SVC
    >>> from mercer.datasets import make_moons
    >>> from mercer.plots import trace_fit
    >>> X, y = make_moons(100, random_state=0)
    >>> course = trace_fit(SVC(), X, y, [1, 10, 100, 1000])
    >>> bool(course["gap"][0] > course["gap"][-1])
    True
    """
    given = (X, y) if X_test is None else (X_test, y_test)
    rows: list[dict[str, Any]] = []
    for limit in sorted(steps):
        model = clone(estimator).set_params(max_iter=int(limit))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        n_iter = int(np.max(model.n_iter_))
        row = {
            "n_iter": n_iter,
            "gap": np.max(model.kkt_gap_),
            "dual_gap": np.sum(model.dual_gap_),
            "objective": np.sum(model.objective_),
            "accuracy": model.score(*given),
        }
        if not rows or n_iter > rows[-1]["n_iter"]:
            rows.append(row)
        if model.converged_:
            break
    if not rows:
        raise ValueError("steps is empty. Give the values of max_iter to fit with.")
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}
