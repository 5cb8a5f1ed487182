"""Figures as the contents of files, and as SVG inside a page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

from mercer.plots.style import INK, STYLE

__all__ = ["figure_bytes", "inline_svg"]

# Resolution of parts that are images, in dots per inch.
DPI = 150


def figure_bytes(
    plot: Callable[..., Any],
    *args: Any,
    figsize: tuple[float, float],
    ending: str,
    **kwargs: Any,
) -> bytes:
    """Return a figure as the content of a file.

    Parameters
    ----------
    plot : callable
        Draws on axes that it takes as ``ax``, such as ``RocCurvesDisplay.from_scores``
        or the ``plot`` of a display.
    *args, **kwargs
        Arguments of ``plot``.
    figsize : pair of float
        Width and height in inches.
    ending : str
        The format: "png", "svg", "pdf" or another one that matplotlib can write.
    """
    content, _ = _render(plot, args, kwargs, figsize, ending, transparent=False)
    return content


def inline_svg(
    plot: Callable[..., Any],
    *args: Any,
    figsize: tuple[float, float] = (4.4, 3.1),
    projection: str | None = None,
    **kwargs: Any,
) -> str:
    """Return a figure as an SVG element for a page of HTML.

    The element has no size, so that the page decides on it; its text remains text, and
    its background is transparent. Axes and their text have the colour of the page's
    text, so that the figure suits a dark page too.

    Parameters
    ----------
    plot : callable
        Draws on axes that it takes as ``ax``.
    *args, **kwargs
        Arguments of ``plot``.
    figsize : pair of float, default=(4.4, 3.1)
        Width and height in inches. The text has 9 points at this size.
    projection : str, default=None
        The kind of axes, such as "3d"; None is the plane.

    Examples
    --------
    >>> from mercer.plots import KernelWeightsDisplay
    >>> from mercer.plots.rendering import inline_svg
    >>> svg = inline_svg(KernelWeightsDisplay.from_weights, [0.3, 0.7], title="Weights")
    >>> svg[:36]
    '<svg role="img" aria-label="Weights"'
    """
    content, title = _render(
        plot, args, kwargs, figsize, "svg", transparent=True, projection=projection
    )
    svg = content.decode().replace(INK, "currentColor")
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    label = re.sub(r"[<>&\"]", " ", title) or "figure"
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def _render(
    plot: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    figsize: tuple[float, float],
    ending: str,
    transparent: bool,
    projection: str | None = None,
) -> tuple[bytes, str]:
    """Return the content of a file with the figure, and the title of the axes."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        # A figure that pyplot does not know needs no screen and leaves no state.
        figure = Figure(figsize=figsize, layout="constrained")
        ax = figure.add_subplot(projection=projection)
        plot(*args, ax=ax, **kwargs)
        _make_room(figure)
        out = io.BytesIO()
        # Without a date two files of the same figure are the same.
        metadata = {"metadata": {"Date": None}} if ending == "svg" else {}
        figure.savefig(out, format=ending, dpi=DPI, transparent=transparent, **metadata)
    return out.getvalue(), ax.get_title(loc="left") or ax.get_title()


def _make_room(figure: Any) -> None:
    """Make a figure taller by its legends below the axes: the axes keep their size."""
    if figure.legends:
        figure.draw_without_rendering()
        heights = [legend.get_window_extent().height for legend in figure.legends]
        figure.set_figheight(figure.get_figheight() + max(heights) / figure.dpi)
