"""What a step of a study gives: rows, figures and findings, in JSON and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

__all__ = [
    "Comparison",
    "Figure",
    "Finding",
    "Item",
    "Row",
    "Unavailable",
    "compare",
    "from_json",
    "to_json",
]


class Unavailable(RuntimeError):
    """A step cannot run here; the text says what it needs and how to get it."""


@dataclass(frozen=True)
class Row:
    """A row of a table: ours, and what a report printed for the same.

    ``values`` and ``published`` go by column.  ``n_test`` is how many samples a
    percentage of ours was counted on, by column if they differ, and ``n_published``
    the same for the report; None is as many as ours.
    """

    table: str
    label: str
    values: Mapping[str, Any]
    published: Mapping[str, float] = field(default_factory=dict)
    n_test: int | Mapping[str, int] | None = None
    n_published: int | None = None
    seconds: float | None = None
    gap: float | None = None
    note: str = ""

    def counted_on(self, column: str) -> int | None:
        """Return on how many samples of ours the percentage in a column was counted."""
        if isinstance(self.n_test, Mapping):
            return self.n_test.get(column)
        return self.n_test


@dataclass(frozen=True)
class Figure:
    """Panels that share a caption, each an SVG."""

    name: str
    caption: str
    panels: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """A claim of a report, or one of ours, and whether the numbers bear it out.

    ``holds`` is None where chance is enough to explain the numbers; ``test`` says what
    was counted as a difference.
    """

    claim: str
    holds: bool | None
    evidence: str
    test: str = ""


Item = Row | Figure | Finding
KINDS: dict[str, type] = {"row": Row, "figure": Figure, "finding": Finding}


def to_json(item: Item) -> dict[str, Any]:
    """Return an item in what JSON can hold."""
    kind = next(k for k, v in KINDS.items() if isinstance(item, v))
    return {"kind": kind, **_plain(asdict(item))}


def from_json(stored: Mapping[str, Any]) -> Item:
    """Return the item that :func:`to_json` took apart.

    >>> row = Row("main", "linear", {"test": 90.5}, {"test": 90.7}, n_test=1000)
    >>> from_json(to_json(row)) == row
    True
    """
    facts = dict(stored)
    made = KINDS[facts.pop("kind")]
    if made is Figure:
        facts["panels"] = tuple(facts["panels"])
    return made(**facts)


def _plain(value: Any) -> Any:
    """Turn NumPy's numbers into Python's, and what is not finite into None."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class Comparison(NamedTuple):
    """Ours minus published, twice its standard error, and what that means."""

    difference: float
    error: float
    verdict: str  #: "beaten", "matched" or "below"


def compare(
    ours: float, published: float, n_ours: int, n_published: int | None = None
) -> Comparison:
    """Compare two percentages of hits on two sets of test samples.

    With both drawn from one population, the difference has the variance
    p(1 - p)(1/n + 1/m); it counts when it is more than two standard errors.

    >>> compare(95.0, 94.5, 1000).verdict, compare(97.0, 94.5, 1000).verdict
    ('matched', 'beaten')
    """
    m = n_published or n_ours
    p = (ours * n_ours + published * m) / (n_ours + m) / 100
    # One hit more or less never counts, however few there are.
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
