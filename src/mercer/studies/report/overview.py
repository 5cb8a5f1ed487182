"""The opening picture: our figures against the published ones, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from markupsafe import escape

from mercer.studies.report.comparison import Comparison

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
    small screens.
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
    draw = _tall if narrow else _wide
    return draw(ordered, lowest, highest)


def _scale(value: float) -> float:
    return math.copysign(math.log10(1 + abs(value)), value)


def _mark(point: Point, ends: str, dot: str) -> str:
    """Return a link with the interval, the dot, and the words that hovering shows."""
    c = point.comparison
    words = f"{point.study}: {point.label}: {c.difference:+.2f} ± {c.error:.2f} points"
    return (
        f'<a href="#{escape(point.anchor)}" class="{c.verdict}">'
        f"<title>{escape(words)}</title><line {ends}/><circle {dot} r='3.2'/></a>"
    )


def _wide(
    ordered: Sequence[tuple[str, Sequence[Point]]], lowest: float, highest: float
) -> str:
    bottom = HEIGHT - BOTTOM
    slots = sum(len(own) for _, own in ordered) + 1.5 * len(ordered)
    step = (WIDTH - LEFT - 8) / max(slots, 1)

    def y(value: float) -> float:
        share = (_scale(value) - lowest) / (highest - lowest)
        return bottom - share * (bottom - TOP)

    parts = []
    for tick in TICKS:
        if lowest <= _scale(tick) <= highest:
            kind = "zero" if tick == 0 else "grid"
            text = f"{tick:+d}".replace("-", "−") if tick else "0"
            parts.append(
                f"<line class='{kind}' x1='{LEFT}' x2='{WIDTH}' y1='{y(tick):.1f}' "
                f"y2='{y(tick):.1f}'/><text x='{LEFT - 6}' y='{y(tick) + 4:.1f}' "
                f"text-anchor='end'>{text}</text>"
            )
    x = LEFT + step
    for k, (study, own) in enumerate(ordered):
        begin = x
        for point in own:
            c = point.comparison
            top, low = y(c.difference + c.error), y(c.difference - c.error)
            ends = f"x1='{x:.1f}' x2='{x:.1f}' y1='{top:.1f}' y2='{low:.1f}'"
            dot = f"cx='{x:.1f}' cy='{y(c.difference):.1f}'"
            parts.append(_mark(point, ends, dot))
            x += step
        middle = (begin + x - step) / 2
        below = bottom + 18 + 15 * (k % 2)  # neighbours must not touch
        parts.append(
            f"<a href='#{study}'><text x='{middle:.1f}' y='{below}' "
            f"text-anchor='middle'>{study}</text></a>"
        )
        x += 1.5 * step
    return _image(WIDTH, HEIGHT, "wide", parts)


def _tall(
    ordered: Sequence[tuple[str, Sequence[Point]]], lowest: float, highest: float
) -> str:
    def x(value: float) -> float:
        return 14 + (_scale(value) - lowest) / (highest - lowest) * (NARROW - 28)

    height = sum(HEADER + LINE * len(own) for _, own in ordered) + 26
    parts = []
    for tick in TICKS:
        if lowest <= _scale(tick) <= highest:
            kind = "zero" if tick == 0 else "grid"
            text = f"{tick:+d}".replace("-", "−") if tick else "0"
            parts.append(
                f"<line class='{kind}' x1='{x(tick):.1f}' x2='{x(tick):.1f}' y1='0' "
                f"y2='{height - 20}'/><text x='{x(tick):.1f}' y='{height - 6}' "
                f"text-anchor='middle'>{text}</text>"
            )
    y = 0.0
    for study, own in ordered:
        y += HEADER
        parts.append(
            f"<a href='#{study}'><text x='4' y='{y - 7:.1f}'>{study}</text></a>"
        )
        for point in own:
            c = point.comparison
            left, right = x(c.difference - c.error), x(c.difference + c.error)
            ends = f"x1='{left:.1f}' x2='{right:.1f}' y1='{y:.1f}' y2='{y:.1f}'"
            parts.append(_mark(point, ends, f"cx='{x(c.difference):.1f}' cy='{y:.1f}'"))
            y += LINE
    return _image(NARROW, height, "tall", parts)


def _image(width: float, height: float, kind: str, parts: Sequence[str]) -> str:
    words = "Our figures minus the published ones, in percentage points, with intervals"
    return (
        f'<svg class="overview {kind}" viewBox="0 0 {width} {height:.0f}" role="img" '
        f'aria-label="{words}">{"".join(parts)}</svg>'
    )
