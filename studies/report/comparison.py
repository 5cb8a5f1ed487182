"""Whether our percentage differs from a published one by more than chance."""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["Comparison", "compare"]


class Comparison(NamedTuple):
    """Our value minus the published one, twice its standard error, and a verdict."""

    difference: float
    error: float
    verdict: str  #: "beaten", "matched" or "below"


def compare(
    ours: float, published: float, n_ours: int, n_published: int | None = None
) -> Comparison:
    """Compare two percentages of hits on two sets of test samples.

    If both sets come from one population, the difference has the variance
    p(1 - p)(1/n + 1/m). It counts if it is larger than two standard errors.

    >>> compare(95.0, 94.5, 1000).verdict, compare(97.0, 94.5, 1000).verdict
    ('matched', 'beaten')
    """
    m = n_published or n_ours
    p = (ours * n_ours + published * m) / (n_ours + m) / 100
    # One hit more or less never counts, however few samples there are.
    spread = math.sqrt(max(p * (1 - p), 0.0) * (1 / n_ours + 1 / m))
    error = max(200 * spread, 100 / min(n_ours, m))
    difference = ours - published
    if difference > error:
        verdict = "beaten"
    elif difference < -error:
        verdict = "below"
    else:
        verdict = "matched"
    return Comparison(difference, error, verdict)
