"""The text that is compiled for a card, and the functions in it.

The files of ``code/`` are one module of CUDA C++, which CuPy lets NVRTC compile for the
card that is there. The tests have a twin of equal meaning for each function, in NumPy;
they also compile the same text for the processor, and compare the two.
"""

from __future__ import annotations

import re
from importlib import resources

import numpy as np

__all__ = [
    "FUNCTIONS",
    "GOES_ON",
    "MOST_THREADS",
    "NOBODY",
    "OF_GRADIENTS",
    "OPTIONS",
    "SOLVED",
    "SOURCE",
    "STALLED",
    "STEMS",
    "grid_of",
    "typed",
]

#: the files, in the order in which they build on each other
FILES = ("reductions.cu", "pair_steps.cu", "members.cu", "rows.cu", "tiles.cu")
# Products and sums are rounded one by one, as on the processor: solvers then take the
# very same steps on a card as in the tests. Fast but inexact functions of single
# precision are not asked for either: they would flush small numbers to 0.
OPTIONS = ("--std=c++17", "--fmad=false")


def _read() -> str:
    folder = resources.files("mercer.engines.cuda") / "code"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in FILES)


SOURCE = _read()
#: the names of functions, such as "add_rows", each with a version for every type
STEMS = (
    "take_pair_steps",
    "load_members",
    "add_rows",
    "gather",
    "store_rows",
    "gaussian_in_place",
    "manhattan",
    "minima",
    "squared_differences",
    "chi2",
)
#: those that see no kernel values, and so have one version only
OF_GRADIENTS = (
    "find_extremes",
    "rank_violators",
    "select_strongest",
    "store_members",
)
FUNCTIONS = (
    *(f"{stem}_{kind}" for stem in STEMS for kind in ("float", "double")),
    *(f"{stem}_double" for stem in OF_GRADIENTS),
)


def typed(stem: str, dtype: np.dtype | type) -> str:
    """Return the name of a function for values of a floating-point type."""
    return f"{stem}_{'float' if np.dtype(dtype) == np.float32 else 'double'}"


def number(name: str) -> int:
    """Return a number that the text defines, such as ``SIDE``."""
    found = re.search(rf"#define {name} (0x[0-9a-f]+|\d+)", SOURCE)
    assert found is not None, name
    return int(found[1], 0)


# How a problem stands after some steps.
GOES_ON, SOLVED, STALLED = (number(name) for name in ("GOES_ON", "SOLVED", "STALLED"))

# Stands where there is no variable.
NOBODY = number("NOBODY")

# Threads of a block, and blocks, that look at all variables of a problem.
LOOKERS = 256
# Threads that a block may have on every card.
MOST_THREADS = 1024
MOST_LOOKING = 256

# CUDA allows more blocks than this side by side, but not one above the other.
MOST_ABOVE = 65535


def grid_of(stem: str, m: int, n: int = 1) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return grid and block for a function on m rows and n columns.

    Functions of variables have m of them, in the largest of n groups. The sizes are
    usual ones for memory-bound work; others have not been measured.
    """
    if stem == "add_rows":
        columns, parts = number("COLUMNS"), number("PARTS")
        return (max(1, -(-m // columns)),), (columns, parts)
    if stem in ("find_extremes", "rank_violators"):
        return (max(1, min(-(-m // LOOKERS), MOST_LOOKING)), n), (LOOKERS,)
    if stem == "select_strongest":
        return (2,), (MOST_THREADS,)
    if stem in ("load_members", "store_members"):
        return (max(1, -(-m // LOOKERS)),), (LOOKERS,)
    if stem in ("gaussian_in_place", "gather", "store_rows"):
        return (max(1, -(-n // 256)), max(1, min(m, MOST_ABOVE))), (256,)
    side = number("SIDE")
    above = max(1, min(-(-m // side), MOST_ABOVE))
    return (max(1, -(-n // side)), above), (side, side)
