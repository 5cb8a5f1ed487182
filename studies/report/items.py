"""The items of a report's manifest, and where this page has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from studies.manifest import Entry, Link
from studies.report.comparison import Comparison
from studies.results import Finding

__all__ = ["Place", "Targets", "Told", "anchor_of_verdict", "tell"]

# What an item is called that is on the page, that needs data, and that has a reason.
SHOWN, ABSENT, REASON = "shown", "absent", "reason"


class Place(NamedTuple):
    """A row of the page: its anchor, and its cells by column."""

    anchor: str
    cells: Mapping[str, tuple[str, Comparison | None]]


class Targets(NamedTuple):
    """Everything on the page that an item of a study can lead to, with its anchor."""

    study: str
    rows: Mapping[tuple[str, str], Place]  #: by table, and by key or label
    tables: frozenset[str]
    figures: frozenset[str]
    findings: Mapping[str, Finding]

    def find(self, link: Link) -> str | None:
        """Return the anchor of a link's target; None if this page has no such target.

        What every page of the study has is below its protocol or errata.
        """
        parts = link.parts
        if link.kind in ("cell", "row"):
            place = self.row(*parts[:2])
            if place is None:
                return None
            if link.kind == "cell" and not place.cells.get(parts[2], ("", None))[0]:
                return None
            return place.anchor
        if link.kind == "table" and parts[0] in self.tables:
            return f"{self.study}-table-{parts[0].replace(' ', '-')}"
        if link.kind == "figure" and parts[0] in self.figures:
            return f"{self.study}-{parts[0]}"
        if link.kind == "verdict" and parts[0] in self.findings:
            return anchor_of_verdict(self.study, parts[0])
        if link.kind in ("erratum", "protocol"):
            return f"{self.study}-{link.kind}"
        return None

    def row(self, table: str, name: str) -> Place | None:
        """Return a row by its key or label, of which "*" may be the end."""
        if not name.endswith("*"):
            return self.rows.get((table, name))
        begins = (
            place
            for (own, label), place in self.rows.items()
            if own == table and label.startswith(name[:-1])
        )
        return next(begins, None)


class Told(NamedTuple):
    """An item as the page shows it: its links with their anchors, and its status."""

    entry: Entry
    status: str  #: "shown", "absent" or "reason"
    links: Sequence[tuple[Link, str | None]]
    comparison: Comparison | None = None  #: of a number
    anchor: str = ""  #: where a number stands
    holds: tuple[bool | None, ...] = ()  #: of the verdict of a claim

    @property
    def verdict(self) -> str:
        """Return what became of a number or a claim, in a word."""
        if self.status != SHOWN:
            return self.status
        if self.entry.kind == "claim":
            words = {True: "holds", False: "fails", None: "open"}
            return words[self.holds[0]] if self.holds else "shown"
        return self.comparison.verdict if self.comparison else "beside"


def anchor_of_verdict(study: str, key: str) -> str:
    """Return the name of a verdict for links."""
    return f"{study}-verdict-{key.replace(' ', '-')}"


def tell(entries: Sequence[Entry], targets: Targets) -> list[Told]:
    """Return all items, with what this page has of them."""
    return [_told(entry, targets) for entry in entries]


def _told(entry: Entry, targets: Targets) -> Told:
    if entry.reason:
        return Told(entry, REASON, ())
    links = [(link, targets.find(link)) for link in entry.links]
    is_shown = all(anchor or link.kind == "option" for link, anchor in links)
    told = Told(entry, SHOWN if is_shown else ABSENT, links)
    if not is_shown:
        return told
    for link, anchor in links:
        if link.kind == "cell":
            table, name, column = link.parts
            place = targets.row(table, name)
            assert place is not None and anchor is not None
            return told._replace(comparison=place.cells[column][1], anchor=anchor)
    found = [
        targets.findings[link.text] for link in entry.links if link.kind == "verdict"
    ]
    return told._replace(holds=tuple(finding.holds for finding in found))
