"""Values by name, as horizontal bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.plots.display import Display
from mercer.plots.style import COLORS, HATCHES, distinct
from mercer.runtime.public import public

__all__ = ["BarsDisplay"]


@public("mercer.plots")
class BarsDisplay(Display):
    """Values by name, one bar for each; several sets of values stand side by side.

    Parameters
    ----------
    values : array of shape (n_names,) or (n_sets, n_names)
        The lengths of the bars.
    names : sequence of str
        Names of the bars.
    sets : sequence of str, default=None
        Names of the sets.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    bars_ : list of BarContainer
        One for each set.

    See Also
    --------
    DotsDisplay : values close to each other.

    Examples
    --------
    >>> from mercer.plots import BarsDisplay
    >>> display = BarsDisplay.from_values([0.2, 3.1], ["linear", "rbf"], xlabel="s")
    >>> [float(bar.get_width()) for bar in display.bars_[0]]
    [0.2, 3.1]
    """

    def __init__(
        self,
        values: Any,
        *,
        names: Sequence[Any],
        sets: Sequence[Any] | None = None,
    ):
        self.values = np.atleast_2d(np.asarray(values, dtype=np.float64))
        self.names = [str(name) for name in names]
        self.sets = None if sets is None else [str(name) for name in sets]
        n_sets, n_names = self.values.shape
        if not n_names:
            raise ValueError(f"{type(self).__name__}: there are no values to draw.")
        for what, given, count in (
            ("bars", self.names, n_names),
            ("sets", self.sets, n_sets),
        ):
            if given is not None and len(given) != count:
                raise ValueError(
                    f"{type(self).__name__}: values of shape {self.values.shape} need "
                    f"names of {count} {what}, got {len(given)}."
                )

    @classmethod
    def from_values(
        cls,
        values: Any,
        names: Sequence[Any],
        *,
        sets: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> BarsDisplay:
        """Draw values.

        Parameters
        ----------
        values, names, sets : as for the class
        **kwargs
            For :meth:`plot`.
        """
        return cls(values, names=names, sets=sets).plot(**kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        values_format: str = ".3g",
        xlabel: str | None = None,
        title: str | None = None,
    ) -> Any:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        values_format : str, default=".3g"
            Format of the numbers at the bars; an empty string omits them.
        xlabel : str, default=None
            What the values are.
        title : str, default=None
        """
        n_sets, n_names = self.values.shape
        height = max(2.0, 0.4 * n_names * max(1.0, 0.6 * n_sets) + 1.0)
        ax = self._open(ax, (6.0, height))
        thickness = 0.8 / n_sets
        styles = zip(distinct(COLORS, n_sets), distinct(HATCHES, n_sets), strict=True)
        self.bars_ = []
        for k, (color, hatch) in enumerate(styles):
            places = np.arange(n_names) + (k - (n_sets - 1) / 2) * thickness
            bars = ax.barh(
                places,
                self.values[k],
                thickness,
                color=color,
                hatch=hatch,
                edgecolor="black",
                linewidth=0.6,
                label=None if self.sets is None else self.sets[k],
            )
            self.bars_.append(bars)
            if values_format:
                texts = [format(value, values_format) for value in self.values[k]]
                ax.bar_label(bars, texts, padding=3, fontsize="small")
        self._label(ax, xlabel, title)
        ax.margins(x=0.12)
        ax.axvline(0.0, color="black", lw=0.8)
        if self.sets is not None:
            self._legend_beside()
        return self

    def _label(self, ax: Any, xlabel: str | None, title: str | None) -> None:
        """Write the names beside the lines, the first name on top."""
        ax.set_yticks(range(len(self.names)), self.names)
        ax.invert_yaxis()
        ax.set(xlabel=xlabel, title=title)
