"""Weights of kernels, as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.plots.bars import BarsDisplay
from mercer.plots.plane import final_step
from mercer.plots.style import load_pyplot
from mercer.runtime.public import public

__all__ = ["KernelWeightsDisplay"]


@public("mercer.plots")
class KernelWeightsDisplay(BarsDisplay):
    """Weights of the kernels of a sum, one bar for each.

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

    See Also
    --------
    mercer.MKLClassifier : learns the weights.
    BarsDisplay : any values by name.

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
        if names is None:
            names = [f"kernel {k}" for k in range(np.shape(weights)[-1])]
        super().__init__(weights, names=names, sets=sets)

    @property
    def weights(self) -> NDArray:
        """The weights, of shape (n_sets, n_kernels)."""
        return self.values

    @classmethod
    def from_weights(
        cls,
        weights: Any,
        names: Sequence[Any] | None = None,
        *,
        sets: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> KernelWeightsDisplay:
        """Draw weights.

        Parameters
        ----------
        weights, names, sets : as for the class
        **kwargs
            For :meth:`plot`.
        """
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
            Names of the kernels; None takes them from the parameter ``kernels`` of the
            estimator, which may be a list, pairs of names and kernels, or a mapping.
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
        xlabel: str | None = "weight",
        title: str | None = None,
    ) -> KernelWeightsDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        values_format : str, default=".2f"
            Format of the numbers at the bars; an empty string omits them.
        xlabel : str, default="weight"
        title : str, default=None
        """
        return super().plot(ax, values_format=values_format, xlabel=xlabel, title=title)


def _names(kernels: Any, count: int) -> list[str] | None:
    if isinstance(kernels, Mapping):
        kernels = list(kernels)
    if not isinstance(kernels, Sequence) or isinstance(kernels, str):
        return None
    pairs = all(isinstance(k, tuple) and len(k) == 2 for k in kernels)
    names = [str(k[0] if pairs else k) for k in kernels]
    return names if len(names) == count else None
