"""The base of all displays: axes to draw on, and a legend beside them."""

from __future__ import annotations

from typing import Any

from mercer.plots.style import load_pyplot

__all__ = ["Display"]


class Display:
    """Base of the displays; a subclass draws in ``plot``."""

    ax_: Any
    figure_: Any

    def _open(self, ax: Any, size: tuple[float, float] = (6.0, 4.5)) -> Any:
        """Return the axes to draw on, and keep them; None makes a new figure."""
        if ax is None:
            pyplot = load_pyplot(f"{type(self).__name__}.plot")
            _, ax = pyplot.subplots(figsize=size, layout="constrained")
        self.ax_ = ax
        self.figure_ = ax.figure
        return ax

    def _legend_beside(self, **kwargs: Any) -> None:
        """Draw the legend to the right of the axes: inside it would hide samples."""
        self.ax_.legend(
            loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, **kwargs
        )
