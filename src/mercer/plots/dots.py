"""Values by name, as dots on lines."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.plots.bars import BarsDisplay
from mercer.plots.style import COLORS, MARKERS, distinct
from mercer.runtime.public import public

__all__ = ["DotsDisplay"]


@public("mercer.plots")
class DotsDisplay(BarsDisplay):
    """Values by name, one dot for each; several sets of values share a line.

    Unlike bars, dots need no axis that begins at zero, so that values close to each
    other can be told apart. Values that are not finite are left out.

    Parameters
    ----------
    values, names, sets : as for :class:`~mercer.plots.BarsDisplay`

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    dots_ : list of Line2D
        One for each set.

    See Also
    --------
    BarsDisplay : values from zero.

    Examples
    --------
    >>> from mercer.plots import DotsDisplay
    >>> display = DotsDisplay.from_values([97.1, 98.3], ["linear", "rbf"], xlabel="%")
    >>> display.dots_[0].get_xdata().tolist()
    [97.1, 98.3]
    """

    def plot(
        self,
        ax: Any = None,
        *,
        values_format: str = "",
        xlabel: str | None = None,
        title: str | None = None,
    ) -> Any:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        values_format : str, default=""
            Format of the numbers beside the dots; an empty string omits them.
        xlabel : str, default=None
            What the values are.
        title : str, default=None
        """
        n_sets, n_names = self.values.shape
        ax = self._open(ax, (6.0, max(2.0, 0.25 * n_names + 1.0)))
        styles = zip(distinct(COLORS, n_sets), distinct(MARKERS, n_sets), strict=True)
        self.dots_ = [
            ax.plot(
                self.values[k],
                np.arange(n_names),
                linestyle="",
                marker=marker,
                markersize=5,
                color=color,
                label=None if self.sets is None else self.sets[k],
            )[0]
            for k, (color, marker) in enumerate(styles)
        ]
        if values_format:
            for place, value in (
                (p, v) for row in self.values for p, v in enumerate(row)
            ):
                ax.annotate(
                    format(value, values_format),
                    (value, place),
                    xytext=(5, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize="small",
                )
        self._label(ax, xlabel, title)
        ax.grid(axis="both", alpha=0.3)
        if self.sets is not None:
            self.figure_.legend(
                handles=self.dots_, loc="outside lower center", ncols=min(n_sets, 3)
            )
        return self
