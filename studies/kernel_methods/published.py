"""The report behind ``kernel-methods``; it has pictures and prints no numbers."""

from __future__ import annotations

from studies.published import Published, Source

__all__ = ["PUBLISHED", "SOURCE"]

SOURCE = Source(
    "Advanced Machine Learning: Kernel Methods",
    "Duy Anh Philippe Pham",
    "A course report of November 2020, with pictures and without tables of numbers.",
    "The report does not say on which computer its times were measured.",
)
PUBLISHED: dict[str, dict[str, dict[str, Published]]] = {}
