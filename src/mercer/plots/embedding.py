"""Samples in two dimensions, such as components of PCA or kernel PCA."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from mercer.plots.display import Display
from mercer.plots.plane import final_step, scatter_classes
from mercer.plots.style import COLORS, load_pyplot
from mercer.runtime.public import public

__all__ = ["EmbeddingDisplay"]


@public("mercer.plots")
class EmbeddingDisplay(Display):
    """Samples by two of their coordinates, coloured by class or by a number.

    Parameters
    ----------
    embedding : array of shape (n_samples, n_components)
        The coordinates.
    y : array of shape (n_samples,), default=None
        Classes, or continuous numbers, which become shades.
    components : pair of int, default=(0, 1)
        The coordinates to draw, counted from 0.
    shares : array of shape (n_components,), default=None
        Shares of the variance, which the labels of the axes show.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_ : list of PathCollection
        One for each class, or a single one without classes.
    colorbar_ : Colorbar or None

    See Also
    --------
    mercer.KernelPCA : an embedding.
    mercer.KernelKMeans : clusters to colour it by.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from mercer.datasets import load_digits
    >>> from mercer.plots import EmbeddingDisplay
    >>> X, y = load_digits()
    >>> display = EmbeddingDisplay.from_estimator(PCA(2).fit(X), X, y)
    >>> len(display.points_)
    10
    """

    def __init__(
        self,
        embedding: Any,
        *,
        y: Any = None,
        components: tuple[int, int] = (0, 1),
        shares: Any = None,
    ):
        self.embedding = np.asarray(embedding)
        self.y = None if y is None else np.asarray(y)
        self.components = components
        self.shares = shares
        shape = self.embedding.shape
        if len(shape) != 2 or not 0 <= min(components) <= max(components) < shape[1]:
            raise ValueError(
                f"EmbeddingDisplay: components={components!r} are not among those of "
                f"an embedding of shape {shape}. Count from 0."
            )

    @classmethod
    def from_embedding(
        cls,
        embedding: Any,
        y: Any = None,
        *,
        components: tuple[int, int] = (0, 1),
        **kwargs: Any,
    ) -> EmbeddingDisplay:
        """Draw coordinates.

        Parameters
        ----------
        embedding, y, components : as for the class
        **kwargs
            For :meth:`plot`.
        """
        return cls(embedding, y=y, components=components).plot(**kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        components: tuple[int, int] = (0, 1),
        **kwargs: Any,
    ) -> EmbeddingDisplay:
        """Draw samples as a fitted transformer maps them.

        Parameters
        ----------
        estimator : transformer
            If it has ``explained_variance_ratio_``, the labels of the axes show it.
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,), default=None
            Classes, or continuous numbers, which become shades.
        components : pair of int, default=(0, 1)
            The coordinates to draw, counted from 0.
        **kwargs
            For :meth:`plot`.
        """
        load_pyplot(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        shares = getattr(final_step(estimator), "explained_variance_ratio_", None)
        made = estimator.transform(X)
        return cls(made, y=y, components=components, shares=shares).plot(**kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        size: float = 26.0,
        legend: bool = True,
        prefix: str = "component",
        equal: bool = False,
        title: str | None = None,
    ) -> EmbeddingDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        size : float, default=26.0
            Area of a marker in square points.
        legend : bool, default=True
            Whether to name the classes to the right of the axes.
        prefix : str, default="component"
            Name of the coordinates; their numbers follow.
        equal : bool, default=False
            Whether a unit has the same length on both axes.
        title : str, default=None
        """
        ax = self._open(ax, (6.5, 4.8))
        points = self.embedding[:, list(self.components)]
        self.colorbar_ = None
        if self.y is None:
            edge = {"edgecolors": "black", "linewidths": 0.4}
            self.points_ = [ax.scatter(*points.T, s=size, c=COLORS[0], **edge)]
        elif type_of_target(self.y) == "continuous":
            cloud = ax.scatter(*points.T, s=size, c=self.y, cmap="viridis")
            self.points_ = [cloud]
            self.colorbar_ = self.figure_.colorbar(cloud, ax=ax)
        else:
            self.points_ = scatter_classes(
                ax, points, self.y, np.unique(self.y), size, prefix=""
            )
            if legend:
                self._legend_beside(title="class")
        ax.set(
            xlabel=self._label(0, prefix), ylabel=self._label(1, prefix), title=title
        )
        if equal:
            ax.set_aspect("equal", adjustable="datalim")
        return self

    def _label(self, axis: int, prefix: str) -> str:
        k = self.components[axis]
        text = f"{prefix} {k + 1}"
        if self.shares is not None:
            text += f" ({100 * self.shares[k]:.1f} % of the variance)"
        return text
