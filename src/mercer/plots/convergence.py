"""The progress of fits: gap, objective and accuracy against steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mercer.plots.display import Display
from mercer.plots.history import trace_fit
from mercer.plots.style import line_styles, load_pyplot
from mercer.runtime.public import public

__all__ = ["ConvergenceDisplay"]

#: Labels of the axes.
LABELS = {
    "gap": "KKT gap",
    "kkt_gap": "KKT gap",
    "dual_gap": "dual gap",
    "objective": "dual objective",
    "accuracy": "accuracy",
    "train_accuracy": "training accuracy",
    "n_iter": "iterations",
    "passes": "passes over the data",
    "seconds": "seconds",
    "report": "reports",
}
#: Quantities for the horizontal axis, in the order in which they are looked for.
CLOCKS = ("n_iter", "passes", "report", "seconds")


@public("mercer.plots")
class ConvergenceDisplay(Display):
    """Quantities of one or more fits against their steps, with a panel for each.

    Parameters
    ----------
    histories : mapping of str to mapping of str to array
        The quantities of each fit: "n_iter", "passes", "report" or "seconds", and
        "gap", "objective", "accuracy" or any others, all of the same length.
    clock : str, default=None
        The quantity of the horizontal axis. None takes the first of "n_iter", "passes",
        "report" and "seconds" that every fit has, or the position if there is none.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The first panel.
    axes_ : list of Axes
        All panels.
    figure_ : Figure
    lines_ : dict of str to list of Line2D
        The lines of each quantity, one for each fit.

    See Also
    --------
    FitHistory : records a fit as it goes.
    trace_fit : a history by fits with more and more steps.

    Examples
    --------
    >>> from mercer.plots import ConvergenceDisplay
    >>> course = {"n_iter": [1, 10, 100], "gap": [2.0, 0.1, 1e-3]}
    >>> display = ConvergenceDisplay.from_history(course)
    >>> display.ax_.get_yscale()
    'log'
    """

    def __init__(
        self,
        histories: Mapping[str, Mapping[str, Any]],
        *,
        clock: str | None = None,
    ):
        self.histories = histories
        self.clock = clock

    @classmethod
    def from_history(
        cls, history: Mapping[str, Any], *, clock: str | None = None, **kwargs: Any
    ) -> ConvergenceDisplay:
        """Draw the quantities of one fit.

        Parameters
        ----------
        history : mapping of str to array
            The quantities, such as those of :class:`FitHistory` or :func:`trace_fit`.
        clock : as for the class
        **kwargs
            For :meth:`plot`.
        """
        return cls({"": history}, clock=clock).plot(**kwargs)

    @classmethod
    def from_histories(
        cls,
        histories: Mapping[str, Mapping[str, Any]],
        *,
        clock: str | None = None,
        **kwargs: Any,
    ) -> ConvergenceDisplay:
        """Draw several fits by name.

        Parameters
        ----------
        histories, clock : as for the class
        **kwargs
            For :meth:`plot`.
        """
        return cls(histories, clock=clock).plot(**kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        steps: Sequence[int],
        *,
        X_test: Any = None,
        y_test: Any = None,
        **kwargs: Any,
    ) -> ConvergenceDisplay:
        """Fit an estimator with more and more steps, and draw the results.

        Parameters
        ----------
        estimator, X, y, steps, X_test, y_test : as for :func:`trace_fit`
        **kwargs
            For :meth:`plot`.
        """
        load_pyplot(f"{cls.__name__}.from_estimator")
        course = trace_fit(estimator, X, y, steps, X_test=X_test, y_test=y_test)
        return cls.from_history(course, clock="n_iter", **kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        quantities: Sequence[str] | None = None,
        log_clock: bool | None = None,
        title: str | None = None,
    ) -> ConvergenceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or list of them, default=None
            The axes, one for each quantity; None makes a figure with a row of them.
        quantities : sequence of str, default=None
            The quantities to draw; None draws all except those for the horizontal axis.
        log_clock : bool, default=None
            Whether the horizontal axis is logarithmic; None makes it so if the steps
            span more than two powers of ten.
        title : str, default=None
        """
        clock = self._find_clock()
        names = self._find_quantities(clock, quantities)
        if ax is None:
            pyplot = load_pyplot(f"{type(self).__name__}.plot")
            n = len(names)
            _, ax = pyplot.subplots(
                1, n, figsize=(4.0 * n, 3.4), squeeze=False, layout="constrained"
            )
        axes = list(np.ravel(ax))
        if len(axes) != len(names):
            raise ValueError(
                f"ConvergenceDisplay.plot: {len(names)} quantities "
                f"({', '.join(names)}) need as many axes, got {len(axes)}. Give a list "
                "of axes, or name fewer quantities with quantities=."
            )
        self._open(axes[0])
        self.axes_ = axes
        self.lines_ = {
            name: self._draw(panel, clock, name, log_clock)
            for panel, name in zip(axes, names, strict=True)
        }
        if any(self.histories):
            axes[0].legend()
        if title is not None:
            if len(axes) > 1:
                self.figure_.suptitle(title)
            else:
                axes[0].set_title(title)
        return self

    def _find_clock(self) -> str | None:
        if not self.histories:
            raise ValueError("ConvergenceDisplay: there are no histories to draw.")
        shared = set.intersection(*(set(h) for h in self.histories.values()))
        if self.clock is not None and self.clock not in shared:
            raise ValueError(
                f"ConvergenceDisplay: clock={self.clock!r} is not in every history. "
                f"There are: {', '.join(sorted(shared)) or 'none'}."
            )
        return self.clock or next((c for c in CLOCKS if c in shared), None)

    def _find_quantities(
        self, clock: str | None, quantities: Sequence[str] | None
    ) -> list[str]:
        known = list(dict.fromkeys(q for h in self.histories.values() for q in h))
        if quantities is None:
            quantities = [q for q in known if q not in CLOCKS and q != clock]
        missing = [q for q in quantities if q not in known]
        if missing or not quantities:
            raise ValueError(
                f"ConvergenceDisplay: no history has {', '.join(missing) or 'anything'}"
                f" to draw. There are: {', '.join(known) or 'none'}."
            )
        return list(quantities)

    def _draw(
        self, ax: Any, clock: str | None, quantity: str, log_clock: bool | None
    ) -> list[Any]:
        styles = line_styles(len(self.histories))
        is_log = "gap" in quantity
        lines, spans = [], []
        for (name, history), style in zip(self.histories.items(), styles, strict=True):
            if quantity not in history:
                continue
            values = np.asarray(history[quantity], dtype=np.float64)
            clocks = np.arange(1, len(values) + 1)
            if clock is not None:
                clocks = np.asarray(history[clock], dtype=np.float64)
            if len(clocks) != len(values):
                raise ValueError(
                    f"ConvergenceDisplay: {quantity!r} has {len(values)} values and "
                    f"{clock!r} has {len(clocks)}. They must have the same length."
                )
            if is_log:  # a gap of 0 has no place on a logarithmic axis
                values = np.where(values > 0, values, np.nan)
            every = max(1, len(values) // 15)
            lines += ax.plot(
                clocks, values, label=name, markersize=4, markevery=every, **style
            )
            spans.append(clocks)
        if is_log:
            ax.set_yscale("log")
        every_clock = np.concatenate(spans) if spans else np.ones(1)
        if log_clock is None:
            log_clock = every_clock.min() > 0 and np.ptp(np.log10(every_clock)) > 2
        if log_clock:
            ax.set_xscale("log")
        ax.set_xlabel(LABELS.get(clock or "", (clock or "step").replace("_", " ")))
        ax.set_ylabel(LABELS.get(quantity, quantity.replace("_", " ")))
        ax.grid(alpha=0.3)
        return lines
