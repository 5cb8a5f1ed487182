"""Panels of figures in the sizes of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mercer.plots import CurvesDisplay
from mercer.plots.rendering import inline_svg

__all__ = ["curves_panel", "plane_panel"]

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
