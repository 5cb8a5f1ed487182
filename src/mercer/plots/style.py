"""The look of all figures: colours, markers, lines and the settings of matplotlib.

Colours differ for people with any kind of colour vision; markers, lines and hatches
differ in grey print too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "COLORS",
    "COUNT_SHADES",
    "HATCHES",
    "INK",
    "LINES",
    "MARKERS",
    "SHADES",
    "STYLE",
    "brightness",
    "distinct",
    "lighten",
    "line_styles",
    "load_pyplot",
    "tick_rotation",
]

#: The colour of axes and of text outside them; pages replace it by the text's colour.
INK = "#1d1f23"
# These are the colours of Okabe & Ito and two more, in an order in which neighbours
# differ in brightness. Instead of black there is the colour of text, which pages make
# bright on a dark background. The numbers of colours, markers, lines and hatches have
# few common factors, so that pairs of them repeat late.
COLORS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    INK,
    "#F0E442",
    "#999999",
    "#882255",
)
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", "*", ">", "p")
LINES: tuple[Any, ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (5, 1, 1, 1, 1, 1)),
    (0, (8, 2)),
    (0, (3, 1, 1, 1)),
)
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "++")
#: The colour map of values; its brightness rises all the way.
SHADES = "cividis"
#: The colour map of counts, in which 0 is white.
COUNT_SHADES = "Blues"
#: Settings of matplotlib for the figures that Mercer writes to files and pages.
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mercer",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
}


def load_pyplot(caller: str) -> Any:
    """Import matplotlib when it is needed: it is optional, and its import is slow."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib. Install it: pip install matplotlib."
        ) from error
    return pyplot


def distinct(kinds: tuple[Any, ...], count: int) -> list[Any]:
    """Return ``count`` colours, markers, lines or hatches, which repeat if needed."""
    return list(islice(cycle(kinds), count))


def line_styles(count: int, markers: bool = True) -> list[dict[str, Any]]:
    """Return colour, line and marker of ``count`` lines, as keywords of ``plot``."""
    kinds = {
        "color": COLORS,
        "linestyle": LINES,
        "marker": MARKERS if markers else ("",),
    }
    drawn = {name: distinct(kind, count) for name, kind in kinds.items()}
    return [{name: drawn[name][k] for name in drawn} for k in range(count)]


def tick_rotation(names: Sequence[str]) -> int:
    """Return the angle in degrees at which names fit below an axis."""
    return 90 if max(map(len, names), default=0) * len(names) > 40 else 0


def lighten(color: Any, share: float = 0.7) -> NDArray:
    """Mix a colour with this share of white; return red, green and blue in [0, 1]."""
    from matplotlib.colors import to_rgb

    return (1.0 - share) * np.array(to_rgb(color)) + share


def brightness(rgb: Any) -> float:
    """Return the brightness of a colour in grey print, from 0 to 1."""
    return float(np.dot(np.asarray(rgb)[:3], (0.299, 0.587, 0.114)))
