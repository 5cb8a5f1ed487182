"""The opening picture: our figures against the published ones, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

from markupsafe import escape

from studies.report.comparison import Comparison

__all__ = ["Point", "draw_overview"]

TICKS = (-30, -10, -3, -1, 0, 1, 3, 10, 30)
# Pixels at the scale of the drawing.
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 1000, 330, 44, 14, 44
NARROW, LINE, HEADER = 360, 9, 22


class Point(NamedTuple):
    """One published figure: where it stands on the page, and our difference."""

    study: str
    label: str
    anchor: str
    comparison: Comparison


def draw_overview(points: Sequence[Point], narrow: bool = False) -> str:
    """Return an SVG image of all differences, in points, with twice their errors.

    The axis is linear near 0 and logarithmic far from it. Each study has its part, in
    which the largest difference comes first. With ``narrow`` the image is tall, for
    small screens: values run from left to right, and not from bottom to top.
    """
    ordered = [
        (study, sorted(own, key=lambda point: -point.comparison.difference))
        for study, own in groupby(points, key=lambda point: point.study)
    ]
    ends = [
        sign * c.error + c.difference
        for c in (point.comparison for point in points)
        for sign in (-1, 1)
    ]
    lowest, highest = _scale(min([*ends, -1.0])), _scale(max([*ends, 1.0]))
    first, last = (14, NARROW - 14) if narrow else (HEIGHT - BOTTOM, TOP)

    def place(value: float) -> float:
        share = (_scale(value) - lowest) / (highest - lowest)
        return first + share * (last - first)

    slots = len(points) + 1.5 * len(ordered)
    step = LINE if narrow else (WIDTH - LEFT - 8) / max(slots, 1)
    gap = HEADER if narrow else 1.5 * step
    at = 0.0 if narrow else LEFT - 0.5 * step
    parts = []
    for k, (study, own) in enumerate(ordered):
        at += gap
        where = f"x='4' y='{at - 7:.1f}'"
        if not narrow:
            middle = at + step * (len(own) - 1) / 2
            below = HEIGHT - BOTTOM + 18 + 15 * (k % 2)  # neighbours must not touch
            where = f"x='{middle:.1f}' y='{below}' text-anchor='middle'"
        parts.append(f"<a href='#{study}'><text {where}>{study}</text></a>")
        for point in own:
            parts.append(_mark(point, place, at, narrow))
            at += step
    width, height = (NARROW, at + 26) if narrow else (WIDTH, HEIGHT)
    ticks = []
    for tick in (t for t in TICKS if lowest <= _scale(t) <= highest):
        kind = "zero" if tick == 0 else "grid"
        text = f"{tick:+d}".replace("-", "−") if tick else "0"
        span = (0, height - 20) if narrow else (LEFT, WIDTH)
        where = f"x='{LEFT - 6}' y='{place(tick) + 4:.1f}' text-anchor='end'"
        if narrow:
            where = f"x='{place(tick):.1f}' y='{height - 6}' text-anchor='middle'"
        line = _line(f"class='{kind}'", (place(tick), place(tick)), span, narrow)
        ticks.append(f"{line}<text {where}>{text}</text>")
    words = "Our figures minus the published ones, in percentage points, with intervals"
    return (
        f'<svg class="overview {"tall" if narrow else "wide"}" '
        f'viewBox="0 0 {width} {height:.0f}" role="img" aria-label="{words}">'
        f"{''.join([*ticks, *parts])}</svg>"
    )


def _scale(value: float) -> float:
    return math.copysign(math.log10(1 + abs(value)), value)


def _line(
    more: str, values: tuple[float, float], span: tuple[float, float], narrow: bool
) -> str:
    """Return a line between two values, and between two places across them."""
    value, across = ("x", "y") if narrow else ("y", "x")
    ends = {
        f"{value}1": values[0],
        f"{value}2": values[1],
        f"{across}1": span[0],
        f"{across}2": span[1],
    }
    written = " ".join(f"{name}='{end:.1f}'" for name, end in ends.items())
    return f"<line {more} {written}/>"


def _mark(
    point: Point, place: Callable[[float], float], at: float, narrow: bool
) -> str:
    """Return a link with the interval, the dot, and the words that hovering shows."""
    c = point.comparison
    words = f"{point.study}: {point.label}: {c.difference:+.2f} ± {c.error:.2f} points"
    ends = place(c.difference - c.error), place(c.difference + c.error)
    x, y = (place(c.difference), at) if narrow else (at, place(c.difference))
    return (
        f'<a href="#{escape(point.anchor)}" class="{c.verdict}">'
        f"<title>{escape(words)}</title>{_line('', ends, (at, at), narrow)}"
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3.2'/></a>"
    )
