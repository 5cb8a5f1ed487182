"""The boundary of a one-class machine in the plane."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.plots.display import Display
from mercer.plots.plane import Plane, feature_labels, final_step, points_in_plane
from mercer.plots.style import COLORS, lighten, load_pyplot
from mercer.plots.support import AT_BOUND, dense, training_rows
from mercer.runtime.public import public

__all__ = ["OneClassDisplay"]


@public("mercer.plots")
class OneClassDisplay(Display):
    """The region that a one-class machine or a ball encloses, on two features.

    The region is where the decision function is positive. The marks of samples of the
    fit follow from their coefficients: a sample is inside (coefficient 0), on the
    boundary (free coefficient) or an outlier (coefficient at its bound). The marks of
    other samples follow from the sign of their decision values.

    Parameters
    ----------
    plane : Plane
        The grid in the plane.
    decision : ndarray with the shape of the grid
        Decision values.
    points : ndarray of shape (n_samples, 2)
        The samples.
    kinds : ndarray of int of shape (n_samples,)
        0 inside, 1 on the boundary, 2 outside.
    others : ndarray of shape (n_others, 2), default=None
        Further samples that do not belong to the class.
    labels : pair of str, default=("feature 0", "feature 1")
        Names of the features.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    surface_ : QuadContourSet
        The enclosed region.
    line_ : QuadContourSet or None
        The boundary; None if it lies outside the part of the plane that is drawn.
    levels_ : QuadContourSet or None
        Lines of equal decision value.
    inside_, on_boundary_, outliers_ : PathCollection
        The samples.
    others_ : PathCollection or None
        The further samples.

    See Also
    --------
    DecisionRegionsDisplay : regions of classes.

    Examples
    --------
    >>> from mercer import SVDD
    >>> from mercer.datasets import make_clouds
    >>> from mercer.plots import OneClassDisplay
    >>> X, _ = make_clouds(60, random_state=0)
    >>> model = SVDD(C=0.1, gamma=0.1).fit(X)
    >>> display = OneClassDisplay.from_estimator(model, X)
    >>> len(display.on_boundary_.get_offsets()) == len(model.boundary_)
    True
    """

    def __init__(
        self,
        *,
        plane: Plane,
        decision: NDArray,
        points: NDArray,
        kinds: NDArray,
        others: NDArray | None = None,
        labels: tuple[str, str] = ("feature 0", "feature 1"),
    ):
        self.plane = plane
        self.decision = decision
        self.points = points
        self.kinds = kinds
        self.others = others
        self.labels = labels

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        others: Any = None,
        grid_resolution: int = 200,
        margin_around: float = 0.25,
        ax: Any = None,
        **kwargs: Any,
    ) -> OneClassDisplay:
        """Draw the boundary of a fitted machine, or a pipeline that ends in one.

        Parameters
        ----------
        estimator : outlier detector
            ``SVDD``, ``OneClassSVM``, or any other with a ``decision_function``.
        X : array of shape (n_samples, 2)
            The samples of the fit, or other samples.
        others : array of shape (n_others, 2), default=None
            Further samples to draw, such as those of another class.
        grid_resolution : int, default=200
            Number of points of the grid in each direction.
        margin_around : float, default=0.25
            Room around the samples as a share of their range.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **kwargs
            For :meth:`plot`.
        """
        load_pyplot(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        points = points_in_plane(X, cls.__name__)
        far = None if others is None else points_in_plane(others, cls.__name__)
        seen = points if far is None else np.concatenate([points, far])
        plane = Plane.around(seen, grid_resolution, margin_around)
        return cls(
            plane=plane,
            decision=plane.fold(estimator.decision_function(plane.samples_like(X))),
            points=points,
            kinds=_kinds(estimator, X),
            others=far,
            labels=feature_labels(X),
        ).plot(ax=ax, **kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        levels: bool = True,
        legend: bool = True,
        title: str | None = None,
        size: float = 28.0,
    ) -> OneClassDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        levels : bool, default=True
            Whether to draw thin lines of equal decision value.
        legend : bool, default=True
            Whether to explain the marks to the right of the axes.
        title : str, default=None
        size : float, default=28.0
            Area of a marker in square points.
        """
        ax = self._open(ax, (7.0, 4.5))
        xx, yy = self.plane.mesh
        self.levels_ = self.line_ = None
        low, high = float(self.decision.min()), float(self.decision.max())
        self.surface_ = ax.contourf(
            xx,
            yy,
            self.decision,
            [0.0, max(high, 0.0) + 1.0],
            colors=[lighten(COLORS[0])],
        )
        if levels and high > low:
            self.levels_ = ax.contour(
                xx, yy, self.decision, 8, colors="0.6", linewidths=0.6, linestyles="-"
            )
        if low < 0 < high:
            self.line_ = ax.contour(
                xx, yy, self.decision, [0.0], colors="black", linewidths=1.6
            )
            ax.plot([], [], "k-", linewidth=1.6, label="boundary, f = 0")
        self._scatter(ax, size)
        self.plane.frame(ax, self.labels, title)
        if legend:
            self._legend_beside()
        return self

    def _scatter(self, ax: Any, size: float) -> None:
        inside, boundary, outside = (self.points[self.kinds == k].T for k in range(3))
        edge = {"edgecolors": "black", "linewidths": 0.4}
        self.inside_ = ax.scatter(
            *inside, s=size, c=COLORS[0], label="inside", zorder=2, **edge
        )
        self.on_boundary_ = ax.scatter(
            *boundary,
            s=1.8 * size,
            c=COLORS[1],
            marker="s",
            edgecolors="black",
            linewidths=1.0,
            label="on the boundary",
            zorder=4,
        )
        self.outliers_ = ax.scatter(
            *outside,
            s=1.8 * size,
            c=COLORS[5],
            marker="x",
            linewidths=1.8,
            label="outlier",
            zorder=3,
        )
        self.others_ = None
        if self.others is not None:
            self.others_ = ax.scatter(
                *self.others.T,
                s=size,
                c="0.75",
                marker="^",
                label="other sample",
                zorder=2,
                **edge,
            )


def _kinds(estimator: Any, X: Any) -> NDArray:
    """Return for every sample 0 (inside), 1 (on the boundary) or 2 (outside)."""
    machine = final_step(estimator)
    if hasattr(machine, "dual_coef_"):
        rows = training_rows(estimator, X)
        if rows is not None:
            return _kinds_of_fit(machine, rows, estimator.decision_function(X))
    return np.where(estimator.decision_function(X) < 0, 2, 0)


def _kinds_of_fit(machine: Any, rows: NDArray, decision: NDArray) -> NDArray:
    kinds = np.zeros(len(decision), dtype=np.intp)
    if hasattr(machine, "boundary_"):
        kinds[machine.boundary_] = 1
        kinds[machine.outliers_] = 2
        return kinds
    coef = dense(machine.dual_coef_)[0]
    is_bound = coef >= 1.0 - AT_BOUND
    if (coef > 1.0 + AT_BOUND).any():
        # The bounds are the sample weights of the fit, which the machine does not keep.
        is_bound = decision[rows] < -machine.tol
    kinds[rows] = np.where(is_bound, 2, 1)
    return kinds
