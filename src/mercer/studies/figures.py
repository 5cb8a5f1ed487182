"""Panels of figures as SVG: small enough for a phone, with text that stays text."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["bars", "grid_of_images", "heat_map", "lines", "panel", "plane", "scatter"]

# Told apart by people who see few colours, and in grey (Okabe & Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mercer",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555",
    "axes.labelcolor": "#222",
    "axes.titlesize": 10,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.facecolor": "none",
}
WIDTH, HEIGHT = 4.4, 3.1


def panel(
    draw: Callable[[Any], None],
    title: str = "",
    size: tuple[float, float] | None = None,
) -> str:
    """Return the SVG of one pair of axes that ``draw`` draws on."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size or (WIDTH, HEIGHT), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        axes.set_prop_cycle(color=COLOURS)
        draw(axes)
        if title:
            axes.set_title(title, loc="left")
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return _for_a_page(buffer.getvalue(), title)


def _for_a_page(svg: str, title: str) -> str:
    """Drop what is for files only, and let the page decide on the size."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    label = re.sub(r"[<>&\"]", " ", title) or "figure"
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def lines(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    x: str,
    y: str,
    title: str = "",
    *,
    log_x: bool = False,
    log_y: bool = False,
    marker: str = "o",
    diagonal: bool = False,
) -> str:
    """Return a panel of curves by name."""

    def draw(axes: Any) -> None:
        for name, (a, b) in series.items():
            axes.plot(a, b, marker=marker, label=name)
        if diagonal:
            axes.plot([0, 1], [0, 1], color="#999", linewidth=0.8, linestyle=":")
        if log_x:
            axes.set_xscale("log")
        if log_y:
            axes.set_yscale("log")
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        if len(series) > 3:
            axes.figure.legend(loc="outside lower center", ncols=2)
        elif len(series) > 1 or next(iter(series), ""):
            axes.legend()

    height = HEIGHT + (0.25 * len(series) / 2 if len(series) > 3 else 0)
    return panel(draw, title, (WIDTH, height))


def bars(names: Sequence[str], values: Sequence[float], x: str, title: str = "") -> str:
    """Return a panel of horizontal bars."""

    def draw(axes: Any) -> None:
        at = np.arange(len(names))[::-1]
        axes.barh(at, values, color=COLOURS[0], height=0.6)
        axes.set_yticks(at, names)
        axes.grid(axis="y", visible=False)
        for place, value in zip(at, values, strict=True):
            axes.annotate(
                f"{value:.3g}",
                (value, place),
                (3, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        axes.margins(x=0.15)
        axes.set_xlabel(x)

    return panel(draw, title, (WIDTH, 0.9 + 0.3 * len(names)))


def scatter(points: NDArray, classes: NDArray, title: str = "", **more: Any) -> str:
    """Return a panel of points in the plane, coloured by class."""
    return plane(points, classes, None, title, **more)


def plane(
    points: NDArray,
    classes: NDArray,
    score: Callable[[NDArray], NDArray] | None,
    title: str = "",
    *,
    levels: Sequence[float] = (0.0,),
    marked: NDArray | None = None,
) -> str:
    """Return a panel of points, the lines where a score has given values, and marks."""

    def draw(axes: Any) -> None:
        for k, c in enumerate(np.unique(classes)):
            own = points[classes == c]
            axes.scatter(
                *own.T[:2], s=10, color=COLOURS[k % len(COLOURS)], linewidths=0
            )
        if marked is not None and len(marked):
            axes.scatter(
                *points[marked].T[:2],
                s=42,
                facecolors="none",
                edgecolors="#009e73",
                linewidths=1.3,
            )
        if score is not None:
            low, high = points.min(axis=0), points.max(axis=0)
            margin = 0.15 * (high - low)
            a = np.linspace(low[0] - margin[0], high[0] + margin[0], 90)
            b = np.linspace(low[1] - margin[1], high[1] + margin[1], 90)
            grid = np.stack(np.meshgrid(a, b), axis=-1).reshape(-1, 2)
            values = score(grid).reshape(len(b), len(a))
            styles = ["-" if level == 0 else "--" for level in levels]
            axes.contour(
                a,
                b,
                values,
                levels=list(levels),
                colors="#333",
                linewidths=1.2,
                linestyles=styles,
            )
        axes.grid(visible=False)
        axes.set_aspect("equal", adjustable="datalim")

    return panel(draw, title, (3.4, 3.0))


def heat_map(
    values: NDArray,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str = "",
    x: str = "",
    y: str = "",
    form: str = "{:.0f}",
) -> str:
    """Return a panel with a number in every cell."""

    def draw(axes: Any) -> None:
        shown = np.log1p(np.maximum(values, 0))
        axes.imshow(shown, cmap="Blues", aspect="auto", interpolation="nearest")
        middle = 0.4 * shown.min() + 0.6 * shown.max()
        for i, j in np.ndindex(*values.shape):
            if values[i, j]:
                axes.text(
                    j,
                    i,
                    form.format(values[i, j]),
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if shown[i, j] > middle else "#222",
                )
        axes.set_xticks(range(len(columns)), columns)
        axes.set_yticks(range(len(rows)), rows)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.grid(visible=False)

    return panel(draw, title, (WIDTH, 3.7))


def grid_of_images(
    images: NDArray, labels: Sequence[str], title: str = "", columns: int = 6
) -> str:
    """Return a panel of small grey images with a word above each."""
    side = images.shape[1]
    n_rows = -(-len(images) // columns)
    gap, head = 2, 9
    sheet = np.zeros((n_rows * (side + head), columns * (side + gap)))
    places = []
    for k, image in enumerate(images):
        r, c = divmod(k, columns)
        top, left = r * (side + head) + head, c * (side + gap)
        sheet[top : top + side, left : left + side] = image
        places.append((left, top - 2))

    def draw(axes: Any) -> None:
        axes.imshow(255 - sheet, cmap="gray", vmin=0, vmax=255)
        for (left, top), label in zip(places, labels, strict=True):
            axes.text(left, top, label, fontsize=6.5, color="#222")
        axes.axis("off")

    width = WIDTH
    return panel(draw, title, (width, 0.3 + width * sheet.shape[0] / sheet.shape[1]))
