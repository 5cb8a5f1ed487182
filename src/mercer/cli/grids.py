"""The grid of ``--search``: parameters, each with a range of values.

``C,gamma=0.01:1`` searches both parameters, ``C`` over its usual range. A range is
``LOW:HIGH`` or ``LOW:HIGH:STEP``, where STEP is a factor for parameters that are
searched in powers, and is added for the others. Numbers may be powers, such as 2^-5.
Values are computed in decimal arithmetic, so that 0.1 stays 0.1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import NamedTuple

from mercer.cli.failures import UsageFailure

__all__ = ["DIGITS", "PARAMETERS", "Grid", "at_the_edge", "parse_grid", "written"]

#: For each parameter that is searched, its values.
Grid = dict[str, list[float | int]]

#: Digits of scores that count: equal shares of correct answers differ by rounding.
DIGITS = 9
# A search of more candidates is a slip of the pen.
MOST_CANDIDATES = 10_000


class Usual(NamedTuple):
    """How a parameter is searched if only its name is given."""

    low: str
    high: str
    step: str
    multiplies: bool = True
    is_whole: bool = False


PARAMETERS = {
    "C": Usual("0.01", "10000", "10"),
    "gamma": Usual("0.0001", "10", "10"),
    "epsilon": Usual("0.001", "1", "10"),
    "nu": Usual("0.1", "0.9", "0.2", multiplies=False),
    "degree": Usual("2", "5", "1", multiplies=False, is_whole=True),
    "coef0": Usual("0", "2", "1", multiplies=False),
}


def parse_grid(text: str) -> Grid:
    """Return the values of all parameters that a text names."""
    grid: Grid = {}
    for part in text.split(","):
        name, has_range, ends = (piece.strip() for piece in part.partition("="))
        if name not in PARAMETERS:
            alike = {known.lower(): known for known in PARAMETERS}
            close = get_close_matches(name.lower(), alike, n=1)
            hint = f" Did you mean {alike[close[0]]!r}?" if close else ""
            raise UsageFailure(
                f"--search cannot search {name!r}.{hint} It searches "
                f"{', '.join(PARAMETERS)}, as in --search C,gamma or --search "
                "C=0.1:100,gamma=0.001:1."
            )
        if name in grid:
            raise UsageFailure(f"--search names {name} twice. Name it once.")
        grid[name] = _values(name, ends if has_range else "")
    count = math.prod(map(len, grid.values()))
    if count > MOST_CANDIDATES:
        raise UsageFailure(
            f"--search {text} has {count} combinations, and {MOST_CANDIDATES} are the "
            "most. Take a larger step or a smaller range."
        )
    return grid


def _values(name: str, ends: str) -> list[float | int]:
    usual = PARAMETERS[name]
    texts = ends.split(":") if ends else [usual.low, usual.high]
    if len(texts) not in (2, 3):
        raise _wrong_range(name, ends)
    numbers = [_number(name, ends, piece) for piece in (*texts, usual.step)[:3]]
    low, high, step = numbers
    if high < low:
        raise UsageFailure(
            f"--search {name}={ends}: the range ends below its beginning. Write the "
            "smaller number first."
        )
    if usual.multiplies and not (low > 0 and step > 1):
        raise UsageFailure(
            f"--search {name}={ends}: {name} is searched in powers, so its range "
            "begins above 0 and its step is a factor above 1."
        )
    if step <= 0:
        raise UsageFailure(f"--search {name}={ends}: the step must be above 0.")
    if usual.is_whole and any(number % 1 for number in (low, step)):
        raise UsageFailure(f"--search {name}={ends}: {name} is a whole number.")
    found: list[float | int] = []
    # The end belongs to the range, also where rounding puts the last value above it.
    last = high * (1 + Decimal("1e-9")) if high > 0 else high
    while low <= last and len(found) <= MOST_CANDIDATES:
        found.append(int(low) if usual.is_whole else float(low))
        low = low * step if usual.multiplies else low + step
    return found


def _number(name: str, ends: str, text: str) -> Decimal:
    """Return a number that may be written as a power."""
    power = re.fullmatch(r"\s*(\d+)\s*\^\s*(-?\d{1,3})\s*", text)
    try:
        value = Decimal(power[1]) ** int(power[2]) if power else Decimal(text.strip())
    except (InvalidOperation, ArithmeticError):
        raise _wrong_range(name, ends) from None
    if not math.isfinite(float(value)):
        raise _wrong_range(name, ends)
    return value


def _wrong_range(name: str, ends: str) -> UsageFailure:
    return UsageFailure(
        f"--search {name}={ends}: a range is LOW:HIGH or LOW:HIGH:STEP, such as "
        f"{name}=0.1:100 or {name}=2^-5:2^15:4."
    )


def at_the_edge(grid: Grid, best: Mapping[str, float | int]) -> list[str]:
    """Return the parameters whose best value is the first or the last of its range."""
    return [
        name
        for name, values in grid.items()
        if len(values) > 1 and best[name] in (values[0], values[-1])
    ]


def written(value: float | int) -> str:
    """Return a value of a parameter as people write it."""
    return f"{value:g}"
