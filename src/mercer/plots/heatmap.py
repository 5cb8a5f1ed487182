"""Scores by two parameters, as a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.plots.display import Display
from mercer.plots.results import label_of, table_of
from mercer.plots.style import COLORS, SHADES, brightness, load_pyplot

__all__ = ["HeatMapDisplay"]


class HeatMapDisplay(Display):
    """Scores by two parameters, as colours and numbers; the best has a frame.

    Parameters
    ----------
    scores : array of shape (n_rows, n_columns)
        NaN where there is none.
    rows, columns : sequences
        Values of the parameters.
    xlabel, ylabel : str, default=None
        Names of the parameters of the columns and of the rows.
    zlabel : str, default="score"
        Name of the score.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    image_ : AxesImage
    texts_ : list of Text
        The numbers, row by row.
    best_ : Rectangle or None
        The frame.
    colorbar_ : Colorbar

    Examples
    --------
    >>> from mercer.plots import HeatMapDisplay
    >>> display = HeatMapDisplay.from_arrays([[0.8, 0.9]], rows=[1], columns=[2, 3])
    >>> [text.get_text() for text in display.texts_]
    ['0.800', '0.900']
    """

    def __init__(
        self,
        scores: Any,
        *,
        rows: Sequence[Any],
        columns: Sequence[Any],
        xlabel: str | None = None,
        ylabel: str | None = None,
        zlabel: str = "score",
    ):
        self.scores = np.asarray(scores, dtype=np.float64)
        self.rows = list(rows)
        self.columns = list(columns)
        self.xlabel = xlabel
        self.ylabel = ylabel
        self.zlabel = zlabel
        if self.scores.shape != (len(self.rows), len(self.columns)):
            raise ValueError(
                f"HeatMapDisplay: scores must have shape ({len(self.rows)}, "
                f"{len(self.columns)}), as there are rows and columns, got "
                f"{self.scores.shape}."
            )

    @classmethod
    def from_arrays(
        cls, scores: Any, *, rows: Sequence[Any], columns: Sequence[Any], **kwargs: Any
    ) -> HeatMapDisplay:
        """Draw an array; further keywords are those of the class and :meth:`plot`."""
        names = ("xlabel", "ylabel", "zlabel")
        labels = {name: kwargs.pop(name) for name in names if name in kwargs}
        return cls(scores, rows=rows, columns=columns, **labels).plot(**kwargs)

    @classmethod
    def from_cv_results(
        cls, search: Any, x: str, y: str, *, score: str = "test_score", **kwargs: Any
    ) -> HeatMapDisplay:
        """Draw the results of a search.

        Parameters
        ----------
        search : fitted search, or its ``cv_results_``
        x, y : str
            The parameters of the columns and of the rows. Over all others the best
            score counts.
        score : str, default="test_score"
            Which score: its mean over the folds.
        **kwargs
            For :meth:`plot`.
        """
        load_pyplot(f"{cls.__name__}.from_cv_results")
        table = table_of(search, x, y, score)
        return cls(
            table.scores,
            rows=table.rows,
            columns=table.columns,
            xlabel=x,
            ylabel=y,
            zlabel=score.replace("_", " "),
        ).plot(**kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        values_format: str = ".3f",
        cmap: str = SHADES,
        title: str | None = None,
    ) -> HeatMapDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        values_format : str, default=".3f"
            How the numbers are written; empty for none.
        cmap : str, default="cividis"
        title : str, default=None
        """
        n_rows, n_columns = self.scores.shape
        size = max(4.5, 0.8 * n_columns + 2.0), max(3.0, 0.5 * n_rows + 1.5)
        ax = self._open(ax, size)
        self.image_ = ax.imshow(self.scores, cmap=cmap, aspect="auto", origin="lower")
        self.texts_ = []
        if values_format:
            self.texts_ = [
                self._write(ax, place, value, values_format)
                for place, value in np.ndenumerate(self.scores)
            ]
        self.best_ = None
        if np.isfinite(self.scores).any():
            self.best_ = self._frame(ax)
        ax.set_xticks(range(n_columns), [label_of(v) for v in self.columns])
        ax.set_yticks(range(n_rows), [label_of(v) for v in self.rows])
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel, title=title)
        self.colorbar_ = self.figure_.colorbar(self.image_, ax=ax, label=self.zlabel)
        return self

    def _write(self, ax: Any, place: tuple[int, ...], value: float, form: str) -> Any:
        is_known = bool(np.isfinite(value))
        shade = brightness(self.image_.to_rgba(value)) if is_known else 1.0
        return ax.text(
            place[1],
            place[0],
            format(value, form) if is_known else "–",
            ha="center",
            va="center",
            color="black" if shade > 0.5 else "white",
        )

    def _frame(self, ax: Any) -> Any:
        from matplotlib.patches import Rectangle

        row, column = np.unravel_index(np.nanargmax(self.scores), self.scores.shape)
        box = Rectangle(
            (column - 0.47, row - 0.46),
            0.94,
            0.92,
            fill=False,
            edgecolor=COLORS[5],
            lw=3,
        )
        return ax.add_patch(box)
