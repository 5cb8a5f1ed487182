"""Decision regions in the plane, with margins and support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.plots.display import Display
from mercer.plots.plane import (
    Plane,
    feature_labels,
    final_step,
    mark_support,
    points_in_plane,
    scatter_classes,
)
from mercer.plots.style import COLORS, distinct, lighten, load_pyplot
from mercer.plots.support import Support, find_support
from mercer.runtime.public import public

__all__ = ["DecisionRegionsDisplay"]


@public("mercer.plots")
class DecisionRegionsDisplay(Display):
    r"""Regions of the classes of a classifier on two features.

    For two classes with decision function :math:`f` the lines are the boundary
    :math:`f(x) = 0` and the margins :math:`f(x) = \pm 1`. Support vectors carry rings:
    a thin ring means a free coefficient, :math:`0 < \alpha_i < C_i`, on the margin; a
    thick ring means a coefficient at its bound, :math:`\alpha_i = C_i`, for a sample
    inside the margin or on the wrong side.

    Parameters
    ----------
    plane : Plane
        The grid in the plane.
    regions : ndarray of int with the shape of the grid
        The number of the predicted class at every point, counted from 0.
    classes : ndarray of shape (n_classes,)
        Names of the classes.
    decision : ndarray with the shape of the grid, default=None
        Decision values, for two classes.
    points : ndarray of shape (n_samples, 2), default=None
        The samples.
    y : array of shape (n_samples,), default=None
        Their classes.
    support : Support, default=None
        The support vectors.
    labels : pair of str, default=("feature 0", "feature 1")
        Names of the features.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    surface_ : QuadMesh
        The regions.
    boundary_ : list of QuadContourSet
        The boundaries between classes.
    margin_ : QuadContourSet or None
    points_ : list of PathCollection
        The samples, class by class.
    free_, bound_ : PathCollection or None
        Rings around the support vectors.

    See Also
    --------
    OneClassDisplay : the boundary of a one-class machine.

    Examples
    --------
    >>> from mercer import SVC
    >>> from mercer.datasets import make_moons
    >>> from mercer.plots import DecisionRegionsDisplay
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> model = SVC(C=10).fit(X, y)
    >>> display = DecisionRegionsDisplay.from_estimator(model, X, y)
    >>> display.ax_.get_xlabel()
    'feature 0'
    """

    def __init__(
        self,
        *,
        plane: Plane,
        regions: NDArray,
        classes: Any,
        decision: NDArray | None = None,
        points: NDArray | None = None,
        y: Any = None,
        support: Support | None = None,
        labels: tuple[str, str] = ("feature 0", "feature 1"),
    ):
        self.plane = plane
        self.regions = regions
        self.classes = classes
        self.decision = decision
        self.points = points
        self.y = y
        self.support = support
        self.labels = labels

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        support: bool = True,
        sample_weight: Any = None,
        grid_resolution: int = 300,
        margin_around: float = 0.1,
        ax: Any = None,
        **kwargs: Any,
    ) -> DecisionRegionsDisplay:
        """Draw the regions of a fitted classifier, or a pipeline that ends in one.

        Parameters
        ----------
        estimator : classifier
            A classifier of Mercer or any other; its support vectors are drawn if it has
            some.
        X : array of shape (n_samples, 2)
            Samples to draw. The support vectors of a pipeline can be drawn only among
            the samples of its fit.
        y : array of shape (n_samples,)
            Their classes.
        support : bool, default=True
            Whether to mark the support vectors.
        sample_weight : array of shape (n_samples,), default=None
            The weights of the fit if it had some: they are factors of the bounds.
        grid_resolution : int, default=300
            Number of points of the grid in each direction.
        margin_around : float, default=0.1
            Room around the samples as a share of their range.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **kwargs
            For :meth:`plot`.
        """
        load_pyplot(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        points = points_in_plane(X, cls.__name__)
        plane = Plane.around(points, grid_resolution, margin_around)
        grid = plane.samples_like(X)
        classes = estimator.classes_
        regions = np.searchsorted(classes, estimator.predict(grid))
        decision = None
        if len(classes) == 2 and hasattr(estimator, "decision_function"):
            decision = plane.fold(estimator.decision_function(grid))
        found = None
        if support and hasattr(final_step(estimator), "dual_coef_"):
            found = find_support(estimator, X, points, y, sample_weight)
        return cls(
            plane=plane,
            regions=plane.fold(regions),
            classes=classes,
            decision=decision,
            points=points,
            y=np.asarray(y),
            support=found,
            labels=feature_labels(X),
        ).plot(ax=ax, **kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        margins: bool = True,
        legend: bool = True,
        title: str | None = None,
        size: float = 28.0,
    ) -> DecisionRegionsDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        margins : bool, default=True
            Whether to draw the lines where the decision value is ±1.
        legend : bool, default=True
            Whether to explain the marks to the right of the axes.
        title : str, default=None
        size : float, default=28.0
            Area of a marker in square points.
        """
        ax = self._open(ax, (7.0, 4.5))
        self._draw_regions(ax, margins)
        self.points_, self.free_, self.bound_ = [], None, None
        if self.points is not None:
            self.points_ = scatter_classes(ax, self.points, self.y, self.classes, size)
        if self.support is not None:
            self.free_, self.bound_ = mark_support(ax, self.support, size)
        self.plane.frame(ax, self.labels, title)
        if legend and ax.get_legend_handles_labels()[0]:
            self._legend_beside()
        return self

    def _draw_regions(self, ax: Any, margins: bool) -> None:
        n_classes = len(self.classes)
        colors = np.array([lighten(c) for c in distinct(COLORS, n_classes)])
        xx, yy = self.plane.mesh
        self.surface_ = ax.pcolormesh(
            xx, yy, colors[self.regions], shading="nearest", rasterized=True, zorder=0
        )
        self.margin_ = None
        thick: dict[str, Any] = {"colors": "black", "linewidths": 1.5, "zorder": 1}
        if self.decision is None:
            # A contour of class numbers would show a second class between the first and
            # the third, so each class has a contour of its own.
            self.boundary_ = [
                ax.contour(xx, yy, (self.regions == k).astype(float), [0.5], **thick)
                for k in np.unique(self.regions)[1:]
            ]
            return
        low, high = self.decision.min(), self.decision.max()
        self.boundary_ = []
        if low < 0 < high:
            self.boundary_ = [ax.contour(xx, yy, self.decision, [0.0], **thick)]
            ax.plot([], [], "k-", linewidth=1.6, label="boundary, f = 0")
        levels = [level for level in (-1.0, 1.0) if low < level < high]
        if margins and levels:
            thin = {"colors": "black", "linewidths": 1.0, "linestyles": "--"}
            self.margin_ = ax.contour(xx, yy, self.decision, levels, **thin, zorder=1)
            ax.plot([], [], "k--", linewidth=1.0, label="margin, f = ±1")
