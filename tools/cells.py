"""What the cells of tables of figures have in common."""

from __future__ import annotations

from typing import Any

__all__ = ["Facts", "grid", "listed", "place_of", "seconds", "times"]

Facts = dict[str, Any]


def seconds(value: float) -> str:
    """Return a time with as many digits as are worth reading."""
    if value < 0.1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def times(ratio: float) -> str:
    """Return a ratio; a tenth decides whether a row is ahead or behind."""
    return f"{ratio:.1f}×" if ratio < 10 else f"{ratio:.0f}×"


def grid(lines: list[list[str]]) -> str:
    """Return cells as a table, the first line of which has the headings."""
    head, *body = ("| " + " | ".join(line) + " |" for line in lines)
    return "\n".join([head, "| " + " | ".join(["---"] * len(lines[0])) + " |", *body])


def listed(names: list[str]) -> str:
    """Return names as people write them, each once."""
    *first, last = dict.fromkeys(names) or ["none"]
    return f"{', '.join(first)} and {last}" if first else last


def place_of(facts: Facts) -> str:
    """Return the machine, the versions, the day and the commit of a result."""
    place = facts["environment"]
    versions = place["versions"]
    named = ", ".join(
        f"{name} {versions[name]}"
        for name in ("numpy", "numba", "scikit-learn", "scikit-learn-intelex")
        if versions.get(name)
    )
    card = place.get("card")
    return (
        f"{place['cores']} cores of {place['cpu']}{_card(card) if card else ''}, "
        f"Python {versions['python']}, {named}; {place['date'][:10]}, commit "
        f"{(place['commit'] or 'unknown')[:10]}"
    )


def _card(card: Facts) -> str:
    text = f" and one {card['name']}"
    if "memory_mb" in card:
        text += f" with {card['memory_mb'] / 1024:.0f} GiB"
        driver = f"driver {card['driver']}, " if card.get("driver") else ""
        text += f" ({driver}CUDA {card['cuda']}, CuPy {card['cupy']})"
    return text
