"""Scores against the values of a parameter, as lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.plots.display import Display
from mercer.plots.search_results import label_of, table_of
from mercer.plots.style import line_styles, load_pyplot
from mercer.runtime.public import public

__all__ = ["AblationDisplay"]


@public("mercer.plots")
class AblationDisplay(Display):
    """Scores against the values of one parameter, with a line for each variant.

    Parameters
    ----------
    values : sequence of length n_values
        Values of the parameter: numbers, or names such as those of parts left out.
    scores : array of shape (n_values,) or (n_lines, n_values)
        NaN means that there is no score.
    deviations : array of the same shape, default=None
        Half-lengths of the error bars.
    names : sequence of str, default=None
        Names of the lines.
    xlabel : str, default=None
        Name of the parameter.
    ylabel : str, default="score"
        Name of the score.
    legend_title : str, default=None
        Name of what tells the lines apart.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of Line2D
    errorbars_ : list of ErrorbarContainer

    See Also
    --------
    HeatMapDisplay : two parameters at once.
    CurvesDisplay : any curves by name.

    Examples
    --------
    >>> from mercer.plots import AblationDisplay
    >>> display = AblationDisplay.from_arrays(
    ...     [0.1, 1.0, 10.0, 100.0], [[0.8, 0.9, 0.95, 0.94]], xlabel="C"
    ... )
    >>> display.ax_.get_xscale()
    'log'
    """

    def __init__(
        self,
        values: Sequence[Any],
        scores: Any,
        *,
        deviations: Any = None,
        names: Sequence[str] | None = None,
        xlabel: str | None = None,
        ylabel: str | None = "score",
        legend_title: str | None = None,
    ):
        self.values = list(values)
        self.scores = np.atleast_2d(np.asarray(scores, dtype=np.float64))
        self.deviations = None
        if deviations is not None:
            self.deviations = np.atleast_2d(np.asarray(deviations, dtype=np.float64))
        self.names = names
        self.xlabel = xlabel
        self.ylabel = ylabel
        self.legend_title = legend_title
        self._check()

    def _check(self) -> None:
        shape = self.scores.shape
        if not self.values or shape[1:] != (len(self.values),):
            raise ValueError(
                f"AblationDisplay: scores must have a column for each of the "
                f"{len(self.values)} values, got shape {shape}."
            )
        if self.deviations is not None and self.deviations.shape != shape:
            raise ValueError(
                f"AblationDisplay: deviations must have the scores' shape, {shape}, "
                f"got {self.deviations.shape}."
            )
        if self.names is not None and len(self.names) != shape[0]:
            raise ValueError(
                f"AblationDisplay: {shape[0]} lines need as many names, got "
                f"{len(self.names)}."
            )

    @classmethod
    def from_arrays(
        cls,
        values: Sequence[Any],
        scores: Any,
        *,
        deviations: Any = None,
        names: Sequence[str] | None = None,
        xlabel: str | None = None,
        ylabel: str | None = "score",
        **kwargs: Any,
    ) -> AblationDisplay:
        """Draw arrays.

        Parameters
        ----------
        values, scores, deviations, names, xlabel, ylabel : as for the class
        **kwargs
            For :meth:`plot`.
        """
        labels = {"xlabel": xlabel, "ylabel": ylabel}
        display = cls(values, scores, deviations=deviations, names=names, **labels)
        return display.plot(**kwargs)

    @classmethod
    def from_cv_results(
        cls,
        search: Any,
        param: str,
        *,
        line: str | None = None,
        score: str = "test_score",
        **kwargs: Any,
    ) -> AblationDisplay:
        """Draw the results of a search.

        Parameters
        ----------
        search : fitted search, or its ``cv_results_``
        param : str
            The parameter on the horizontal axis.
        line : str, default=None
            The parameter that has a line for each of its values. If the search has
            further parameters, the best score over their values counts.
        score : str, default="test_score"
            The score; its mean and its deviation over the folds are drawn.
        **kwargs
            For :meth:`plot`.
        """
        load_pyplot(f"{cls.__name__}.from_cv_results")
        table = table_of(search, param, line, score)
        return cls(
            table.columns,
            table.scores,
            deviations=table.deviations,
            names=None if line is None else [label_of(value) for value in table.rows],
            xlabel=param,
            ylabel=score.replace("_", " "),
            legend_title=line,
        ).plot(**kwargs)

    def plot(
        self, ax: Any = None, *, log: bool | None = None, title: str | None = None
    ) -> AblationDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        log : bool, default=None
            Whether the axis of the values is logarithmic; None makes it so if all
            values are positive and span more than one power of ten.
        title : str, default=None
        """
        ax = self._open(ax)
        is_number = all(
            isinstance(v, int | float | np.number) and not isinstance(v, bool)
            for v in self.values
        )
        places = self.values if is_number else range(len(self.values))
        self.errorbars_ = [
            ax.errorbar(
                places,
                self.scores[k],
                yerr=None if self.deviations is None else self.deviations[k],
                label=None if self.names is None else self.names[k],
                markersize=5,
                capsize=3,
                elinewidth=0.9,
                **style,
            )
            for k, style in enumerate(line_styles(len(self.scores)))
        ]
        self.lines_ = [bar.lines[0] for bar in self.errorbars_]
        self._dress(ax, is_number, log, title)
        return self

    def _dress(self, ax: Any, is_number: bool, log: bool | None, title: Any) -> None:
        if not is_number:
            names = [label_of(value) for value in self.values]
            is_long = sum(map(len, names)) > 40
            ax.set_xticks(
                range(len(names)),
                names,
                rotation=30 if is_long else 0,
                ha="right" if is_long else "center",
            )
        else:
            span = np.array(self.values, dtype=np.float64)
            if log is None:
                log = bool(span.min() > 0 and np.ptp(np.log10(span)) > 1)
            if log:
                ax.set_xscale("log")
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel, title=title)
        ax.grid(alpha=0.3)
        if self.names is not None:
            ax.legend(title=self.legend_title)
