"""Colours, markers and lines that eyes of every kind and grey print tell apart."""

from __future__ import annotations

from itertools import cycle, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "COLORS",
    "HATCHES",
    "LINES",
    "MARKERS",
    "SHADES",
    "brightness",
    "distinct",
    "lighten",
    "load_pyplot",
]

# Okabe & Ito's colours, with neighbours of unlike brightness, and two more of the kind.
# The number of markers, lines and hatches is such that pairs repeat late.
COLORS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#000000",
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
#: Map of values to colours: its brightness rises all the way.
SHADES = "cividis"


def load_pyplot(caller: str) -> Any:
    """Import matplotlib when it is needed: it is an extra, and takes a second."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib. Install it: pip install 'mercer[all]' or pip "
            "install matplotlib."
        ) from error
    return pyplot


def distinct(kinds: tuple[Any, ...], count: int) -> list[Any]:
    """Return so many colours, markers, lines or hatches, then the first ones again."""
    return list(islice(cycle(kinds), count))


def lighten(color: Any, share: float = 0.7) -> NDArray:
    """Mix a colour with so much white, to red, green and blue in [0, 1]."""
    from matplotlib.colors import to_rgb

    return (1.0 - share) * np.array(to_rgb(color)) + share


def brightness(rgb: Any) -> float:
    """Return how bright a colour is in grey print, 0 to 1."""
    return float(np.dot(np.asarray(rgb)[:3], (0.299, 0.587, 0.114)))
