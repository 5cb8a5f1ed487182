"""The page: all results of a run in one HTML file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from studies.published import Late, Published
from studies.report.comparison import Comparison, compare
from studies.report.downloads import csv_link
from studies.report.items import Place, Targets, Told, anchor_of_verdict, tell
from studies.report.outcomes import Report, StudyReport
from studies.report.overview import Point, draw_overview
from studies.results import Figure, Finding, Row
from studies.study import ResultTable, Study

__all__ = ["Cell", "Line", "Section", "render", "section_of", "summarise"]

TEMPLATE = "page.html.j2"
# Panels narrower than this, in points, were drawn for several columns.
SMALL = 260.0
# Pixels of the page for each point of a panel at most: letters of 9 points have 13.5.
MOST_PIXELS = 1.5
# Cells with more letters need a line of their own on a small screen.
MOST_LETTERS = 12


class Cell(NamedTuple):
    """A value, and its comparison with the published value if there is one."""

    value: str
    published: str = ""
    comparison: Comparison | None = None
    is_known: bool = True  #: whether the report says how many samples it tested on

    @property
    def is_short(self) -> bool:
        """Whether the value is a number or a word, which must not be cut in two."""
        return len(self.value) <= MOST_LETTERS


class Line(NamedTuple):
    """A row of a table as the page shows it."""

    label: str
    key: str  #: the name of the published row
    anchor: str
    cells: list[Cell]
    seconds: str
    gap: str
    converged: bool | None
    note: str


class Counts(NamedTuple):
    """How many items the reports print, by what this page has of them.

    All counts of the page are these. ``status`` has three that sum up to ``total``;
    ``numbers`` and ``claims`` are the items of these two kinds, by their verdict.
    """

    total: int
    status: Mapping[str, int]  #: "shown", "absent" and "reason"
    numbers: Mapping[str, int]  #: "beaten", "matched", "below", "beside", "absent"
    claims: Mapping[str, int]  #: "holds", "fails", "open", "absent", "reason"

    @property
    def compared(self) -> int:
        """The number of marks in the picture."""
        return sum(self.numbers[word] for word in ("beaten", "matched", "below"))

    @property
    def n_numbers(self) -> int:
        """How many numbers the reports print."""
        return sum(self.numbers.values())

    @property
    def n_claims(self) -> int:
        """How many claims the reports make."""
        return sum(self.claims.values())


STATUSES = ("shown", "absent", "reason")
NUMBERS = ("beaten", "matched", "below", "beside", "absent", "reason")
CLAIMS = ("holds", "fails", "open", "absent", "reason")


def count(items: Sequence[Told]) -> Counts:
    """Count items by their status, and numbers and claims by their verdict."""

    def by(kind: str, words: Sequence[str]) -> dict[str, int]:
        found = [told.verdict for told in items if told.entry.kind == kind]
        return {word: found.count(word) for word in words}

    statuses = [told.status for told in items]
    return Counts(
        len(items),
        {word: statuses.count(word) for word in STATUSES},
        by("number", NUMBERS),
        by("claim", CLAIMS),
    )


class ShownTable(NamedTuple):
    """A table as the page shows it, without empty columns and rows, and its figures."""

    table: ResultTable
    headings: list[str]
    lines: list[Line]
    figures: list[Figure]
    csv: str

    @property
    def is_timed(self) -> bool:
        """Whether any row has a time."""
        return any(line.seconds for line in self.lines)

    @property
    def has_gaps(self) -> bool:
        """Whether any row has a duality gap."""
        return any(line.gap for line in self.lines)

    @property
    def fits(self) -> bool:
        """Whether the table fits a small screen as it is, and needs no cards."""
        n_columns = len(self.headings) + self.is_timed + self.has_gaps
        cells = [cell for line in self.lines for cell in line.cells]
        is_short = all(cell.is_short for cell in cells)
        room = 4 if max(len(line.label) for line in self.lines) <= MOST_LETTERS else 2
        return is_short and n_columns <= room and not any(c.published for c in cells)

    @property
    def assumes_sizes(self) -> bool:
        """Whether any comparison rests on a size that the report does not say."""
        return any(
            cell.comparison and not cell.is_known
            for line in self.lines
            for cell in line.cells
        )


class Trouble(NamedTuple):
    """Steps that did not finish, all for the same reason."""

    status: str
    message: str
    steps: list[str]


class Section(NamedTuple):
    """Everything that the page shows of one study."""

    report: StudyReport
    telling: list[Figure]
    tables: list[ShownTable]
    figures: list[Figure]
    findings: list[Finding]
    troubles: list[Trouble]
    items: list[Told]

    @property
    def counts(self) -> Counts:
        """How many of the report's items are on the page, and what became of them."""
        return count(self.items)


class Reading(NamedTuple):
    """The items of one place of a report, in its order."""

    place: str
    items: list[Told]


class Best(NamedTuple):
    """The best model of a study, beside the published one."""

    study: str
    label: str
    cell: Cell


class Below(NamedTuple):
    """A published figure that was not reached."""

    study: str
    anchor: str
    where: str
    note: str
    cell: Cell


class Summary(NamedTuple):
    """The first section of the page."""

    counts: Counts
    points: list[Point]
    below: list[Below]
    best: list[Best]
    n_failed: int
    n_unavailable: int

    @property
    def csv(self) -> str:
        """A link that contains all comparisons as a CSV file."""
        rows = [
            [p.study, p.label, f"{c.difference:.2f}", f"{c.error:.2f}", c.verdict]
            for p, c in ((point, point.comparison) for point in self.points)
        ]
        return csv_link([["study", "figure", "difference", "±", "verdict"], *rows])

    @property
    def best_csv(self) -> str:
        """A link that contains the table of the best models as a CSV file."""
        rows = [[b.study, b.label, b.cell.value, b.cell.published] for b in self.best]
        return csv_link([["study", "model", "ours %", "published %"], *rows])


def render(report: Report) -> str:
    """Return the page of a report."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["svg"] = Markup
    environment.filters["panel"] = lambda svg: Markup(panel_of(svg))
    environment.filters["counted"] = _counted
    environment.filters["signed"] = lambda v: f"{v:+.2f}".replace("-", "−")
    environment.filters["duration"] = _duration
    environment.filters["shape"] = shape_of
    environment.filters["verdict_anchor"] = lambda key, study: anchor_of_verdict(
        study, key
    )
    environment.filters["by_place"] = by_place
    sections = [section_of(study) for study in report.studies]
    summary = summarise(sections)
    pictures = [
        draw_overview(summary.points, narrow) if summary.points else ""
        for narrow in (False, True)
    ]
    return environment.get_template(TEMPLATE).render(
        report=report,
        sections=sections,
        summary=summary,
        pictures=pictures,
        late=_late([section.report.study for section in sections]),
    )


def _late(studies: Sequence[Study]) -> list[tuple[Late, list[str]]]:
    """Return choices that no run makes, with the studies that they concern."""
    found: dict[Late, list[str]] = {}
    for study in studies:
        for choice in study.late:
            found.setdefault(choice, []).append(study.name)
    return list(found.items())


def section_of(report: StudyReport) -> Section:
    """Return what the page shows of a study, beside the published numbers."""
    items = [item for outcome in report.outcomes for item in outcome.items]
    rows = [item for item in items if isinstance(item, Row)]
    figures = [item for item in items if isinstance(item, Figure)]
    telling = [f for name in report.study.telling for f in figures if f.name == name]
    others = [figure for figure in figures if figure not in telling]
    tables = [
        _shown(
            report.study,
            table,
            [row for row in rows if row.table == table.name],
            [figure for figure in others if figure.table == table.name],
        )
        for table in report.study.tables
    ]
    shown = [table for table in tables if table.lines]
    placed = [figure for table in shown for figure in table.figures]
    keys = [link.text for entry in report.study.manifest for link in entry.links]
    findings = sorted(
        (item for item in items if isinstance(item, Finding)),
        key=lambda finding: keys.index(finding.key) if finding.key in keys else -1,
    )
    targets = Targets(
        report.study.name,
        {
            (table.table.name, name): _place(table, line)
            for table in shown
            for line in table.lines
            for name in (line.label, line.key)
        },
        frozenset(table.table.name for table in shown),
        frozenset(figure.name for figure in figures),
        {finding.key: finding for finding in findings if finding.key},
    )
    return Section(
        report,
        telling,
        shown,
        [figure for figure in others if figure not in placed],
        findings,
        _troubles(report),
        tell(report.study.manifest, targets),
    )


def _place(shown: ShownTable, line: Line) -> Place:
    """Return a row as a target of the manifest."""
    columns = {words: name for name, words in shown.table.columns.items()}
    cells = {
        columns[heading]: (cell.value, cell.comparison)
        for heading, cell in zip(shown.headings, line.cells, strict=True)
    }
    return Place(line.anchor, cells)


def by_place(items: Sequence[Told]) -> list[Reading]:
    """Gather the items of a report by the place where it prints them."""
    return [
        Reading(place, list(own))
        for place, own in groupby(items, key=lambda told: told.entry.place)
    ]


def shape_of(figure: Figure) -> str:
    """Return how many columns the panels of a figure have, as classes of the page.

    Two or four panels stand in two columns, more in three. A single panel is "small" if
    it was drawn small, and "wide" if it is a strip.

    >>> shape_of(Figure("f", "", ('<svg viewBox="0 0 600 100">',)))
    'one wide'
    """
    count = len(figure.panels)
    if count > 1:
        return "two" if count in (2, 4) else "three"
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', figure.panels[0])
    width, height = map(float, found.groups()) if found else (400.0, 300.0)
    if width > 3 * height:
        return "one wide"
    return "one small" if width < SMALL else "one"


def panel_of(svg: str) -> str:
    """Return a panel that is not drawn larger than a reader needs.

    Without a limit a figure with little in it would fill the page, in large letters.

    >>> panel_of('<svg viewBox="0 0 200 100">')
    '<svg style="max-width: 300px" viewBox="0 0 200 100">'
    """
    found = re.search(r'viewBox="0 0 ([\d.]+) ', svg)
    if not found:
        return svg
    widest = MOST_PIXELS * float(found.group(1))
    return svg.replace("<svg ", f'<svg style="max-width: {widest:.0f}px" ', 1)


def _counted(count: int, noun: str) -> str:
    """Return a count with its noun: "1 claim", "2 claims"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _troubles(report: StudyReport) -> list[Trouble]:
    """Group the steps that did not finish by their reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for outcome in report.outcomes:
        if outcome.status != "done":
            key = (outcome.status, outcome.message)
            found.setdefault(key, []).append(outcome.step)
    return [Trouble(*key, steps) for key, steps in found.items()]


def _shown(
    study: Study, table: ResultTable, rows: Sequence[Row], figures: list[Figure]
) -> ShownTable:
    published = study.published.get(table.name, {})
    lines = []
    for row in rows:
        theirs = published.get(row.published_as, {})
        cells = [_cell(row, key, table, theirs) for key in table.columns]
        if any(cell.value for cell in cells):
            lines.append(_line(study, row, cells))
    kept = [
        k
        for k in range(len(table.columns))
        if any(line.cells[k].value or line.cells[k].published for line in lines)
    ]
    headings = [list(table.columns.values())[k] for k in kept]
    lines = [line._replace(cells=[line.cells[k] for k in kept]) for line in lines]
    return ShownTable(
        table, headings, lines, figures, _csv(study, table, headings, lines)
    )


def _line(study: Study, row: Row, cells: list[Cell]) -> Line:
    return Line(
        row.label,
        row.published_as,
        anchor_of(study.name, row.table, row.label),
        cells,
        "" if row.seconds is None else _duration(row.seconds),
        "" if row.gap is None else f"{row.gap:.1e}",
        row.converged,
        row.note,
    )


def anchor_of(study: str, table: str, label: str) -> str:
    """Return the name of a row for links; only what would end the link is replaced.

    >>> anchor_of("a", "b", "K1⊙K2; β = 3")
    'a-b-K1⊙K2;-β-=-3'
    """
    return re.sub(r"[\s\"'<>&#%]+", "-", f"{study}-{table}-{label}")


def _csv(
    study: Study, table: ResultTable, headings: Sequence[str], lines: Sequence[Line]
) -> str:
    """Return a link that contains the table as a CSV file."""
    compared = [
        any(line.cells[k].published for line in lines) for k in range(len(headings))
    ]
    first = [""]
    for heading, is_compared in zip(headings, compared, strict=True):
        first.append(heading)
        if is_compared:
            first += [f"{heading}, published", f"{heading}, difference", "±"]
    first += ["time", "relative gap", "converged", "note"]
    body = []
    for line in lines:
        cells = [line.label]
        for cell, is_compared in zip(line.cells, compared, strict=True):
            cells.append(cell.value)
            if is_compared:
                c = cell.comparison
                numbers = (
                    ["", ""] if c is None else [f"{c.difference:.2f}", f"{c.error:.2f}"]
                )
                cells += [cell.published, *numbers]
        converged = {True: "yes", False: "no", None: ""}[line.converged]
        body.append([*cells, line.seconds, line.gap, converged, line.note])
    return csv_link([first, *body])


def _cell(
    row: Row, key: str, table: ResultTable, theirs: Mapping[str, Published]
) -> Cell:
    ours, published = row.values.get(key), theirs.get(key)
    is_percentage = key in table.percentages
    text = _text(ours, is_percentage)
    if published is None:
        return Cell(text)
    comparison = None
    counts = is_percentage and key not in table.shown_only
    n = row.counted_on(key)
    if counts and n and isinstance(ours, (int, float)):
        comparison = compare(float(ours), published.value, n, published.n_test)
    told = _text(published.value, is_percentage)
    return Cell(text, told, comparison, published.is_known)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: Any, is_percentage: bool) -> str:
    if value is None:
        return ""
    if not _is_number(value):
        return str(value)
    if is_percentage:
        return f"{value:.2f}"
    is_whole = isinstance(value, int) or abs(value) >= 1000
    return f"{value:,.0f}".replace("-", "−") if is_whole else _short(value)


def _short(value: float) -> str:
    """Return a number with three digits that count, and a minus sign."""
    return f"{value:.3g}".replace("-", "−")


def _duration(seconds: float) -> str:
    if seconds >= 90:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def summarise(sections: Sequence[Section]) -> Summary:
    """Count how our figures compare with the published ones, and list the best."""
    points: list[Point] = []
    below: list[Below] = []
    best: list[Best] = []
    lost = {"failed": 0, "unavailable": 0}
    for section in sections:
        name = section.report.study.name
        cells = {
            (line.anchor, id(cell.comparison)): (line, heading, cell, shown)
            for shown in section.tables
            for line in shown.lines
            for heading, cell in zip(shown.headings, line.cells, strict=True)
            if cell.comparison
        }
        for told in section.items:
            if told.comparison:
                line, heading, cell, _ = cells[told.anchor, id(told.comparison)]
                where = f"{line.label}, {heading}"
                points.append(Point(name, where, line.anchor, told.comparison))
                if told.comparison.verdict == "below":
                    below.append(Below(name, line.anchor, where, line.note, cell))
        best += [
            Best(name, line.label, cell)
            for line, _, cell, shown in cells.values()
            if shown.table.name == "best"
        ]
        for trouble in section.troubles:
            lost[trouble.status] += len(trouble.steps)
    items = [told for section in sections for told in section.items]
    return Summary(count(items), points, below, best, *lost.values())
