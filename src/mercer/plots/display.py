"""What all pictures share: axes to draw on."""

from __future__ import annotations

from typing import Any

from mercer.plots.style import load_pyplot

__all__ = ["Display"]


class Display:
    """Base of the pictures; a subclass draws in ``plot``."""

    ax_: Any
    figure_: Any

    def _open(self, ax: Any, size: tuple[float, float] = (6.0, 4.5)) -> Any:
        """Return the axes to draw on, new ones if there are none, and keep them."""
        pyplot = load_pyplot(f"{type(self).__name__}.plot")
        if ax is None:
            _, ax = pyplot.subplots(figsize=size, layout="constrained")
        self.ax_ = ax
        self.figure_ = ax.figure
        return ax
