"""The page: all results of a run in one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mercer.studies.report.comparison import Comparison, compare
from mercer.studies.report.outcomes import Report, StudyReport
from mercer.studies.results import Figure, Finding, Row
from mercer.studies.study import ResultTable

__all__ = ["Cell", "Section", "render", "summarise"]

TEMPLATE = "page.html.j2"


class Cell(NamedTuple):
    """A value, and its comparison with the published value if there is one."""

    value: str
    published: str = ""
    comparison: Comparison | None = None


class Line(NamedTuple):
    """A row of a table as the page shows it."""

    label: str
    cells: list[Cell]
    seconds: str
    gap: str
    note: str


class ShownTable(NamedTuple):
    """A table as the page shows it.

    ``compared`` says for each column whether it has published values.
    """

    table: ResultTable
    headings: list[str]
    compared: list[bool]
    lines: list[Line]


class Trouble(NamedTuple):
    """Steps that did not finish, all for the same reason."""

    status: str
    message: str
    steps: list[str]


class Section(NamedTuple):
    """Everything that the page shows of one study."""

    report: StudyReport
    tables: list[ShownTable]
    figures: list[Figure]
    findings: list[Finding]
    troubles: list[Trouble]


class Best(NamedTuple):
    """The best model of a study, beside the published one."""

    study: str
    label: str
    cell: Cell


class Summary(NamedTuple):
    """The first section of the page."""

    counts: dict[str, int]
    below: list[tuple[str, str, str, Cell]]
    best: list[Best]
    refuted: list[tuple[str, Finding]]
    undecided: list[tuple[str, Finding]]
    held: int
    n_failed: int
    n_unavailable: int


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
    environment.filters["signed"] = lambda v: f"{v:+.2f}".replace("-", "−")
    environment.filters["duration"] = _duration
    sections = [_section(study) for study in report.studies]
    return environment.get_template(TEMPLATE).render(
        report=report, sections=sections, summary=summarise(sections)
    )


def _section(report: StudyReport) -> Section:
    items = [item for outcome in report.outcomes for item in outcome.items]
    rows = [item for item in items if isinstance(item, Row)]
    tables = [
        _shown(table, [row for row in rows if row.table == table.name])
        for table in report.study.tables
    ]
    return Section(
        report,
        [shown for shown in tables if shown.lines],
        [item for item in items if isinstance(item, Figure)],
        [item for item in items if isinstance(item, Finding)],
        _troubles(report),
    )


def _troubles(report: StudyReport) -> list[Trouble]:
    """Group the steps that did not finish by their reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for outcome in report.outcomes:
        if outcome.status != "done":
            key = (outcome.status, outcome.message)
            found.setdefault(key, []).append(outcome.step)
    return [Trouble(*key, steps) for key, steps in found.items()]


def _shown(table: ResultTable, rows: Sequence[Row]) -> ShownTable:
    compared = [any(key in row.published for row in rows) for key in table.columns]
    lines = [
        Line(
            row.label,
            [_cell(row, key, table) for key in table.columns],
            "" if row.seconds is None else _duration(row.seconds),
            "" if row.gap is None else f"{row.gap:.1e}",
            row.note,
        )
        for row in rows
    ]
    return ShownTable(table, list(table.columns.values()), compared, lines)


def _cell(row: Row, key: str, table: ResultTable) -> Cell:
    ours, theirs = row.values.get(key), row.published.get(key)
    comparison = None
    is_percentage = key in table.percentages
    counts = is_percentage and key not in table.shown_only
    n = row.counted_on(key)
    if counts and n and isinstance(ours, (int, float)) and theirs is not None:
        comparison = compare(float(ours), theirs, n, row.n_published)
    return Cell(_text(ours, is_percentage), _text(theirs, is_percentage), comparison)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: Any, is_percentage: bool) -> str:
    if value is None:
        return ""
    if not _is_number(value):
        return str(value)
    if is_percentage:
        return f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _duration(seconds: float) -> str:
    if seconds >= 90:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def summarise(sections: Sequence[Section]) -> Summary:
    """Count how our figures compare with the published ones, and list the best."""
    counts = {"beaten": 0, "matched": 0, "below": 0}
    below, best, findings = [], [], []
    for section in sections:
        name = section.report.study.name
        for shown in section.tables:
            for line in shown.lines:
                for heading, cell in zip(shown.headings, line.cells, strict=True):
                    if shown.table.name == "best" and (
                        cell.comparison or cell.published
                    ):
                        best.append(Best(name, line.label, cell))
                    elif cell.comparison:
                        counts[cell.comparison.verdict] += 1
                        if cell.comparison.verdict == "below":
                            where = f"{line.label}, {heading}"
                            below.append((name, where, line.note, cell))
        findings += [(name, finding) for finding in section.findings]
    lost = {"failed": 0, "unavailable": 0}
    for section in sections:
        for trouble in section.troubles:
            lost[trouble.status] += len(trouble.steps)
    refuted = [(name, f) for name, f in findings if f.holds is False]
    undecided = [(name, f) for name, f in findings if f.holds is None]
    held = sum(f.holds is True for _, f in findings)
    return Summary(counts, below, best, refuted, undecided, held, *lost.values())
