"""Values by two parameters or by two classes, as a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from mercer.plots.display import Display
from mercer.plots.search_results import label_of, table_of
from mercer.plots.style import (
    COLORS,
    COUNT_SHADES,
    SHADES,
    brightness,
    load_pyplot,
    tick_rotation,
)
from mercer.runtime.public import public

__all__ = ["HeatMapDisplay"]


@public("mercer.plots")
class HeatMapDisplay(Display):
    """Scores by two parameters, or counts by two classes, as colours and numbers.

    The best score has a frame.

    Parameters
    ----------
    scores : array of shape (n_rows, n_columns)
        NaN means that there is no score.
    rows, columns : sequences
        Values of the parameters, or names of the classes.
    xlabel, ylabel : str, default=None
        What the columns and the rows are.
    zlabel : str, default="score"
        What the values are.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    image_ : AxesImage
    texts_ : list of Text
        The numbers, row by row.
    best_ : Rectangle or None
        The frame.
    colorbar_ : Colorbar or None

    See Also
    --------
    AblationDisplay : lines in place of a map.

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
        """Draw an array.

        Parameters
        ----------
        scores, rows, columns : as for the class
        **kwargs
            ``xlabel``, ``ylabel`` and ``zlabel`` are for the class, and others for
            :meth:`plot`.
        """
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
            The parameters of the columns and of the rows. If the search has further
            parameters, the best score over their values counts.
        score : str, default="test_score"
            The score; its mean over the folds is drawn.
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

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any, *, labels: Any = None, **kwargs: Any
    ) -> HeatMapDisplay:
        """Draw a confusion matrix, with shades in which rare mistakes are visible.

        Parameters
        ----------
        y_true, y_pred : arrays of shape (n_samples,)
            The true and the predicted classes.
        labels : array of shape (n_classes,), default=None
            The classes in the order of the rows; None sorts those that occur.
        **kwargs
            For :meth:`plot`.
        """
        if labels is None:
            labels = np.unique(np.concatenate([np.ravel(y_true), np.ravel(y_pred)]))
        return cls(
            confusion_matrix(y_true, y_pred, labels=labels),
            rows=labels,
            columns=labels,
            xlabel="predicted",
            ylabel="true",
            zlabel="samples",
        ).plot(counts=True, **kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        values_format: str | None = None,
        cmap: str | None = None,
        counts: bool = False,
        colorbar: bool = True,
        title: str | None = None,
    ) -> HeatMapDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        values_format : str, default=None
            Format of the numbers; an empty string omits them, and None means ".3f", or
            ".0f" for counts.
        cmap : str, default=None
            The colour map; None means "cividis", or "Blues" for counts.
        counts : bool, default=False
            Whether the values are counts. Then shades follow their logarithm, so that
            small counts are visible beside large ones, zeros have no number, the first
            row is on top, and no value has a frame.
        colorbar : bool, default=True
        title : str, default=None
        """
        n_rows, n_columns = self.scores.shape
        size = max(4.5, 0.8 * n_columns + 2.0), max(3.0, 0.5 * n_rows + 1.5)
        ax = self._open(ax, size)
        self.image_ = ax.imshow(
            self.scores,
            cmap=cmap or (COUNT_SHADES if counts else SHADES),
            norm=self._count_norm() if counts else None,
            aspect="auto",
            origin="upper" if counts else "lower",
            interpolation="nearest",
        )
        if values_format is None:
            values_format = ".0f" if counts else ".3f"
        self.texts_ = []
        if values_format:
            self.texts_ = [
                self._write(ax, place, value, values_format)
                for place, value in np.ndenumerate(self.scores)
                if value or not counts
            ]
        self.best_ = None
        if not counts and np.isfinite(self.scores).any():
            self.best_ = self._frame(ax)
        names = [label_of(v) for v in self.columns]
        ax.set_xticks(range(n_columns), names, rotation=tick_rotation(names))
        ax.set_yticks(range(n_rows), [label_of(v) for v in self.rows])
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel, title=title)
        self.colorbar_ = None
        if colorbar:
            bar = self.figure_.colorbar(self.image_, ax=ax, label=self.zlabel)
            self.colorbar_ = bar
        return self

    def _count_norm(self) -> Any:
        """Return the scale of counts: linear from 0 to 1, and logarithmic above."""
        from matplotlib.colors import SymLogNorm

        return SymLogNorm(1.0, vmin=0.0, vmax=max(1.0, float(self.scores.max())))

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
