"""How long each step takes, so that the progress bar knows how long is left.

The seconds were measured on one computer. Only their proportions count: the time that
is left follows from how fast the steps of the present run were.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from statistics import median

__all__ = ["expected_seconds"]

MEASURED = Path(__file__).with_name("costs.json")
# The seconds that a step is expected to take if its kind of run was not measured.
USUAL = 1.0


def expected_seconds(study: str, step: str, kind: str) -> float:
    """Return the seconds that a step took when it was measured.

    ``kind`` is "full", "sample" or "quick". A step that was not measured counts like
    the median of the others.
    """
    known = _measured().get(kind, {})
    usual = median(known.values()) if known else USUAL
    return known.get(f"{study}/{step}", usual)


@cache
def _measured() -> dict[str, dict[str, float]]:
    return json.loads(MEASURED.read_text(encoding="utf-8"))
