"""Weights of kernels, as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.plots.display import Display
from mercer.plots.plane import final_step
from mercer.plots.style import COLORS, HATCHES, distinct, load_pyplot

__all__ = ["KernelWeightsDisplay"]


class KernelWeightsDisplay(Display):
    """Weights of the kernels of a sum, a bar for each.

    Parameters
    ----------
    weights : array of shape (n_kernels,) or (n_sets, n_kernels)
        Several sets of weights, of classes or of methods, stand side by side.
    names : sequence of str, default=None
        Names of the kernels; None numbers them.
    sets : sequence of str, default=None
        Names of the sets.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    bars_ : list of BarContainer
        One for each set.

    Examples
    --------
    >>> from mercer.plots import KernelWeightsDisplay
    >>> display = KernelWeightsDisplay.from_weights([0.3, 0.7], ["linear", "rbf"])
    >>> [float(bar.get_width()) for bar in display.bars_[0]]
    [0.3, 0.7]
    """

    def __init__(
        self,
        weights: Any,
        *,
        names: Sequence[Any] | None = None,
        sets: Sequence[Any] | None = None,
    ):
        self.weights = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        n_sets, n_kernels = self.weights.shape
        if not n_kernels:
            raise ValueError("KernelWeightsDisplay: there are no weights.")
        if names is None:
            names = [f"kernel {k}" for k in range(n_kernels)]
        self.names = [str(name) for name in names]
        self.sets = None if sets is None else [str(name) for name in sets]
        for what, given, count in (
            ("kernels", self.names, n_kernels),
            ("sets", self.sets, n_sets),
        ):
            if given is not None and len(given) != count:
                raise ValueError(
                    f"KernelWeightsDisplay: weights of shape {self.weights.shape} need "
                    f"names of {count} {what}, got {len(given)}."
                )

    @classmethod
    def from_weights(
        cls,
        weights: Any,
        names: Sequence[Any] | None = None,
        *,
        sets: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> KernelWeightsDisplay:
        """Draw weights; further keywords are those of :meth:`plot`."""
        return cls(weights, names=names, sets=sets).plot(**kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        names: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> KernelWeightsDisplay:
        """Draw ``weights_`` of a fitted estimator, or of the last step of a pipeline.

        Parameters
        ----------
        estimator : estimator with ``weights_`` of shape (n_kernels,), or a row for each
            of its machines
        names : sequence of str, default=None
            Names of the kernels; None takes them from its parameter ``kernels``, which
            may be a list, pairs of names and kernels, or a mapping.
        **kwargs
            For :meth:`plot`.
        """
        load_pyplot(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        machine = final_step(estimator)
        if not hasattr(machine, "weights_"):
            raise TypeError(
                f"KernelWeightsDisplay: {type(machine).__name__} has no weights_. Use "
                "from_weights."
            )
        weights = np.atleast_2d(machine.weights_)
        sets = None
        if len(weights) > 1:
            classes = getattr(machine, "classes_", ())
            is_by_class = len(classes) == len(weights)
            sets = [f"class {c}" for c in classes] if is_by_class else None
            sets = sets or [f"machine {k}" for k in range(len(weights))]
        if names is None:
            names = _names(getattr(machine, "kernels", None), weights.shape[1])
        return cls(weights, names=names, sets=sets).plot(**kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        values_format: str = ".2f",
        xlabel: str = "weight",
        title: str | None = None,
    ) -> KernelWeightsDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        values_format : str, default=".2f"
            How the numbers at the bars are written; empty for none.
        xlabel : str, default="weight"
        title : str, default=None
        """
        n_sets, n_kernels = self.weights.shape
        height = max(2.0, 0.4 * n_kernels * max(1.0, 0.6 * n_sets) + 1.0)
        ax = self._open(ax, (6.0, height))
        thickness = 0.8 / n_sets
        styles = zip(distinct(COLORS, n_sets), distinct(HATCHES, n_sets), strict=True)
        self.bars_ = []
        for k, (color, hatch) in enumerate(styles):
            places = np.arange(n_kernels) + (k - (n_sets - 1) / 2) * thickness
            bars = ax.barh(
                places,
                self.weights[k],
                thickness,
                color=color,
                hatch=hatch,
                edgecolor="black",
                linewidth=0.6,
                label=None if self.sets is None else self.sets[k],
            )
            self.bars_.append(bars)
            if values_format:
                texts = [format(w, values_format) for w in self.weights[k]]
                ax.bar_label(bars, texts, padding=3, fontsize="small")
        ax.set_yticks(range(n_kernels), self.names)
        ax.invert_yaxis()  # the first kernel on top
        ax.margins(x=0.12)
        ax.axvline(0.0, color="black", lw=0.8)
        ax.set(xlabel=xlabel, title=title)
        if self.sets is not None:
            ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
        return self


def _names(kernels: Any, count: int) -> list[str] | None:
    if isinstance(kernels, Mapping):
        kernels = list(kernels)
    if not isinstance(kernels, Sequence) or isinstance(kernels, str):
        return None
    pairs = all(isinstance(k, tuple) and len(k) == 2 for k in kernels)
    names = [str(k[0] if pairs else k) for k in kernels]
    return names if len(names) == count else None
