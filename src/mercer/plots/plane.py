"""The plane of two features: a grid of points, samples, and rings around samples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline

from mercer.plots.style import COLORS, MARKERS, distinct

__all__ = [
    "Plane",
    "feature_labels",
    "final_step",
    "mark_support",
    "points_in_plane",
    "scatter_classes",
]


class Plane(NamedTuple):
    """A grid of points; columns follow the first feature, rows the second."""

    x: NDArray
    y: NDArray

    @classmethod
    def around(cls, points: NDArray, resolution: int, share: float) -> Plane:
        """Make the grid that covers the points and some room around them."""
        if resolution < 2:
            raise ValueError(f"grid_resolution must be at least 2, got {resolution!r}.")
        low, high = points.min(axis=0), points.max(axis=0)
        # Points that all share a coordinate need a grid with an area, too.
        room = np.where(high > low, share * (high - low), 0.5)
        axes = (
            np.linspace(a, b, resolution)
            for a, b in zip(low - room, high + room, strict=True)
        )
        return cls(*axes)

    @property
    def mesh(self) -> tuple[NDArray, NDArray]:
        """The coordinates of the points of the grid."""
        xx, yy = np.meshgrid(self.x, self.y)
        return xx, yy

    def samples_like(self, X: Any) -> Any:
        """Return the points of the grid as samples, in a data frame if X is one."""
        samples = np.stack([part.ravel() for part in self.mesh], axis=1)
        if hasattr(X, "columns") and hasattr(X, "iloc"):
            return type(X)(samples, columns=X.columns)
        return samples

    def fold(self, values: Any) -> NDArray:
        """Return the values of all points in the shape of the grid."""
        return np.asarray(values).reshape(len(self.y), len(self.x))

    def limits(self, axis: int) -> tuple[float, float]:
        """Return the ends of an axis."""
        return float(self[axis][0]), float(self[axis][-1])

    def frame(self, ax: Any, labels: tuple[str, str], title: str | None) -> None:
        """Let axes show the whole grid, and name them."""
        ax.set(xlabel=labels[0], ylabel=labels[1], title=title)
        ax.set(xlim=self.limits(0), ylim=self.limits(1))


def final_step(estimator: Any) -> Any:
    """Return the last step of a pipeline; return any other estimator as it is."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def points_in_plane(X: Any, caller: str) -> NDArray:
    """Return samples of two features as floating-point numbers."""
    points = X.toarray() if sparse.issparse(X) else np.asarray(X)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) == 0:
        raise ValueError(
            f"{caller}: X must have one sample or more and two features, got shape "
            f"{points.shape}. Fit a model on two columns, or on two components of PCA."
        )
    points = points.astype(np.float64)
    if not np.isfinite(points).all():
        raise ValueError(
            f"{caller}: X has NaN or infinity. All values must be finite: drop or "
            "replace the others."
        )
    return points


def feature_labels(X: Any) -> tuple[str, str]:
    """Return the names of two columns."""
    names = getattr(X, "columns", ("feature 0", "feature 1"))
    return str(names[0]), str(names[1])


def scatter_classes(
    ax: Any, points: NDArray, y: Any, classes: Any, size: float, prefix: str = "class "
) -> list[Any]:
    """Draw the points; each class has a colour and a marker of its own."""
    y = np.asarray(y)
    if len(y) != len(points):
        raise ValueError(
            f"X has {len(points)} samples and y has {len(y)}: give one class for each."
        )
    kinds = zip(
        classes,
        distinct(COLORS, len(classes)),
        distinct(MARKERS, len(classes)),
        strict=True,
    )
    return [
        ax.scatter(
            *points[y == name].T,
            s=size,
            c=color,
            marker=marker,
            edgecolors="black",
            linewidths=0.4,
            label=f"{prefix}{name}",
            zorder=2,
        )
        for name, color, marker in kinds
    ]


def mark_support(ax: Any, support: Any, size: float) -> tuple[Any, Any]:
    """Draw rings: thin around free support vectors, thick around those at a bound."""
    if support.is_bound is None:
        kinds = [(np.ones(len(support.points), dtype=bool), "support vector", 0.9)]
    else:
        kinds = [
            (~support.is_bound, "support vector, free", 0.9),
            (support.is_bound, "support vector, at bound", 2.2),
        ]
    rings: list[Any] = [None, None]
    scale = np.sqrt(size / 28.0)  # widths are those of samples of the usual size
    for k, (chosen, label, width) in enumerate(kinds):
        if chosen.any():
            rings[k] = ax.scatter(
                *support.points[chosen].T,
                s=4.0 * size,
                facecolors="none",
                edgecolors="black",
                linewidths=scale * width,
                label=label,
                zorder=3,
            )
    return rings[0], rings[1]
