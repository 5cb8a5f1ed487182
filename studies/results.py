"""The results of a step: rows, figures and findings, and their form in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mercer.runtime.plain import as_plain

__all__ = [
    "Figure",
    "Finding",
    "Item",
    "Row",
    "Unavailable",
    "from_json",
    "to_json",
]


class Unavailable(RuntimeError):
    """A step cannot run here; the text says what it needs and how to get it."""


@dataclass(frozen=True)
class Row:
    """A row of a table: our values by column, and facts about the fit.

    Published values are not part of a row. The page finds them under ``table`` and
    ``key``, so that a corrected number needs no new run.

    Attributes
    ----------
    table, label : str
        The name of the table, and the words at the beginning of the row. A label that
        depends on the data is made from the data, not typed.
    values : mapping of str to number or str
        What was found, by column.
    n_test : int or mapping of str to int, default=None
        Number of samples behind our percentages, by column if the numbers differ.
    seconds : float, default=None
        How long the fit took, without compilation.
    gap : float, default=None
        Largest duality gap of the machines, as a fraction of their objective.
    converged : bool, default=None
        Whether every machine reached its tolerance; None if that has no meaning.
    note : str, default=""
        A remark below the table.
    key : str, default=""
        The name of the published row; "" means the label.
    """

    table: str
    label: str
    values: Mapping[str, Any]
    n_test: int | Mapping[str, int] | None = None
    seconds: float | None = None
    gap: float | None = None
    converged: bool | None = None
    note: str = ""
    key: str = ""

    @property
    def published_as(self) -> str:
        """The name under which the report has this row."""
        return self.key or self.label

    def counted_on(self, column: str) -> int | None:
        """Return the number of samples behind our percentage in a column."""
        if isinstance(self.n_test, Mapping):
            return self.n_test.get(column)
        return self.n_test


@dataclass(frozen=True)
class Figure:
    """Panels that share a caption; each panel is the text of an SVG image.

    ``table`` names the table that the figure belongs to: the page shows the figure
    below that table, or after all tables if it belongs to none.
    """

    name: str
    caption: str
    panels: tuple[str, ...]
    table: str = ""


@dataclass(frozen=True)
class Finding:
    """A claim, and whether the numbers support it.

    ``holds`` is None if the numbers do not decide, because chance can explain them or
    for another reason that the evidence names; ``test`` says what counted as a
    difference, and ``key`` names the verdict in the manifest of the study.
    """

    claim: str
    holds: bool | None
    evidence: str
    test: str = ""
    key: str = ""


Item = Row | Figure | Finding
KINDS: dict[str, type] = {"row": Row, "figure": Figure, "finding": Finding}


def to_json(item: Item) -> dict[str, Any]:
    """Return an item as values that JSON can hold."""
    kind = next(k for k, v in KINDS.items() if isinstance(item, v))
    return {"kind": kind, **as_plain(asdict(item))}


def from_json(stored: Mapping[str, Any]) -> Item:
    """Return the item from which :func:`to_json` made these values.

    >>> row = Row("main", "linear", {"test": 90.5}, n_test=1000)
    >>> from_json(to_json(row)) == row
    True
    """
    facts = dict(stored)
    made = KINDS[facts.pop("kind")]
    if made is Figure:
        facts["panels"] = tuple(facts["panels"])
    return made(**facts)
