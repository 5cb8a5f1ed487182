"""Panels of figures in the sizes of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.plots import CurvesDisplay
from mercer.plots.rendering import inline_svg
from mercer.plots.style import COLORS, MARKERS

__all__ = ["curves_panel", "plane_panel", "space_panel"]

# More names than this have no room inside a panel.
MOST_INSIDE = 3


def curves_panel(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    xlabel: str,
    ylabel: str,
    title: str = "",
    **kwargs: Any,
) -> str:
    """Return a panel with curves; many names stand below it."""
    return inline_svg(
        CurvesDisplay.from_curves,
        curves,
        xlabel=xlabel,
        ylabel=ylabel,
        title=title,
        legend="below" if len(curves) > MOST_INSIDE else True,
        **kwargs,
    )


def plane_panel(plot: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """Return a small panel with samples in the plane, as a display draws them."""
    return inline_svg(plot, *args, figsize=(3.4, 3.0), size=12, legend=False, **kwargs)


def space_panel(X: NDArray, classes: NDArray, title: str) -> str:
    """Return a small panel with samples in three dimensions, seen from the side."""

    def plot(ax: Any, title: str) -> None:
        for label, color, marker in zip(
            np.unique(classes), COLORS, MARKERS, strict=False
        ):
            ax.scatter(*X[classes == label].T, s=8, color=color, marker=marker)
        ax.set_title(title)
        ax.view_init(elev=18, azim=-60)
        ax.tick_params(labelsize=6, pad=-2)

    return inline_svg(plot, figsize=(3.4, 3.0), projection="3d", title=title)
