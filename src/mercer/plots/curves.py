"""Curves by name, each with points of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer.plots.display import Display
from mercer.plots.style import line_styles
from mercer.runtime.public import public

__all__ = ["CurvesDisplay"]

# Up to so many values have their own marks on a logarithmic axis, if each is larger
# than the one before by this factor.
MOST_MARKED = 6
APART = 1.5


@public("mercer.plots")
class CurvesDisplay(Display):
    """Several curves on one pair of axes, such as times against numbers of samples.

    Parameters
    ----------
    curves : mapping of str to pair of arrays
        For each name the values along the horizontal and along the vertical axis.
    xlabel, ylabel : str, default=None
        Names of the axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of Line2D
        One for each curve.
    legend_ : Legend or None

    See Also
    --------
    AblationDisplay : scores of a search.
    RocCurvesDisplay : ROC curves.

    Examples
    --------
    >>> from mercer.plots import CurvesDisplay
    >>> display = CurvesDisplay.from_curves(
    ...     {"fit": ([100, 1000], [0.1, 4.0]), "predict": ([100, 1000], [0.1, 1.0])},
    ...     xlabel="samples", ylabel="seconds", log_x=True, log_y=True,
    ... )
    >>> len(display.lines_)
    2
    """

    def __init__(
        self,
        curves: Mapping[str, tuple[Any, Any]],
        *,
        xlabel: str | None = None,
        ylabel: str | None = None,
    ):
        if not curves:
            raise ValueError("CurvesDisplay: curves is empty. Give at least one curve.")
        for name, (x, y) in curves.items():
            if np.shape(x) != np.shape(y) or np.ndim(x) != 1:
                raise ValueError(
                    f"CurvesDisplay: the curve {name!r} has values of shapes "
                    f"{np.shape(x)} and {np.shape(y)}. Give two arrays of one length."
                )
        self.curves = curves
        self.xlabel = xlabel
        self.ylabel = ylabel

    @classmethod
    def from_curves(
        cls,
        curves: Mapping[str, tuple[Any, Any]],
        *,
        xlabel: str | None = None,
        ylabel: str | None = None,
        **kwargs: Any,
    ) -> CurvesDisplay:
        """Draw curves.

        Parameters
        ----------
        curves, xlabel, ylabel : as for the class
        **kwargs
            For :meth:`plot`.
        """
        return cls(curves, xlabel=xlabel, ylabel=ylabel).plot(**kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        log_x: bool = False,
        log_y: bool = False,
        legend: bool | str = True,
        title: str | None = None,
    ) -> CurvesDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        log_x, log_y : bool, default=False
            Whether an axis is logarithmic.
        legend : bool or "below", default=True
            Whether to name the curves inside the axes; "below" names them below the
            figure, where there is room for many names.
        title : str, default=None
        """
        ax = self._open(ax)
        styles = line_styles(len(self.curves))
        self.lines_ = [
            ax.plot(x, y, label=name, markersize=4, clip_on=False, **style)[0]
            for (name, (x, y)), style in zip(self.curves.items(), styles, strict=True)
        ]
        ends = [e for x, _ in self.curves.values() for e in (np.min(x), np.max(x))]
        if log_x:
            ax.set_xscale("log")
            self._mark_few(ax)
        if log_y:
            ax.set_yscale("log")
        if min(ends) < max(ends):
            ax.set_xlim(min(ends), max(ends))  # the axis ends where the curves do
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel, title=title)
        ax.grid(alpha=0.3)
        self.legend_ = None
        if legend == "below":
            self.legend_ = self.figure_.legend(
                handles=self.lines_, loc="outside lower center", ncols=2
            )
        elif legend:
            self.legend_ = ax.legend()
        return self

    def _mark_few(self, ax: Any) -> None:
        """Mark the values themselves on a logarithmic axis, if they are few and apart.

        Powers of ten, and what matplotlib writes between them, are further from what a
        reader looks for, and can overlap.
        """
        values = np.unique(np.concatenate([x for x, _ in self.curves.values()]))
        is_apart = bool(np.all(values[1:] >= APART * values[:-1]))
        if len(values) <= MOST_MARKED and is_apart:
            ax.set_xticks(values, [f"{value:,g}" for value in values])
            ax.set_xticks([], minor=True)
