"""Tables of results for the terminal, and in Markdown for the README."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

__all__ = ["markdown", "show"]

Facts = dict[str, Any]

TITLES = {
    "mnist": "MNIST, ten classes",
    "binary": "Two classes",
    "tables": "Tables with many classes",
    "growth": "Fit seconds by number of samples (MNIST, RBF)",
    "memory": "Memory (MNIST, 60000 samples)",
    "cold-start": "First fit in a fresh process",
    "kernels": "Gram matrices of histogram kernels",
    "schemes": "Schemes of several classes",
    "machines": "Regression, novelty and sparse samples",
}
# A violation of constraints by more than this, in units of C, is worth a remark.
BROKEN = 1e-4
LONGEST_REMARK = 160
# A log-loss that exceeds that of another peer by this factor is worth a remark.
WORSE_LOSS = 1.02
# A time is spoilt if other processes keep more than this many cores busy.
BUSY = 0.1


class Column(NamedTuple):
    """A heading, and a function ``cell(facts, base)`` that returns the text of a cell.

    ``base`` are the facts of Mercer for the same case.
    """

    heading: str
    cell: Callable[[Facts, Facts], str]


def _number(name: str, form: str) -> Callable[[Facts, Facts], str]:
    def cell(facts: Facts, base: Facts) -> str:
        value = facts.get(name)
        return "" if value is None else form.format(value)

    return cell


def _seconds(name: str) -> Callable[[Facts, Facts], str]:
    def cell(facts: Facts, base: Facts) -> str:
        if name in facts:
            return f"{facts[name]:.3g}" if facts[name] < 100 else f"{facts[name]:.0f}"
        return "" if facts["status"] == "ok" else facts["status"]

    return cell


def _ratio(name: str) -> Callable[[Facts, Facts], str]:
    def cell(facts: Facts, base: Facts) -> str:
        if name not in facts or name not in base:
            return ""
        return f"{facts[name] / base[name]:.3g}×"

    return cell


def _runs(facts: Facts, base: Facts) -> str:
    mark = "*" if 0 < facts["repeats"] < facts["repeats_wanted"] else ""
    return f"{facts['repeats']}{mark}"


def _gap(facts: Facts, base: Facts) -> str:
    if "kkt_gap" not in facts:
        return ""
    n_classes = facts["n_classes"]
    is_part = facts["n_gap_pairs"] < n_classes * (n_classes - 1) // 2
    return f"{facts['kkt_gap']:.1e}" + ("†" if is_part else "")


CASE = Column("case", _number("case", "{}"))
PEER = Column("peer", _number("peer", "{}"))
FIT = Column("fit s", _seconds("fit_seconds"))
RUNS = Column("runs", _runs)
PEAK = Column("peak MB", _number("peak_mb", "{:.0f}"))
SPEED_COLUMNS = (
    CASE,
    PEER,
    FIT,
    Column("fit ratio", _ratio("fit_seconds")),
    Column("predict s", _seconds("predict_seconds")),
    Column("predict ratio", _ratio("predict_seconds")),
    Column("accuracy", _number("accuracy", "{:.4f}")),
    Column("score", _number("score", "{:.4f}")),
    Column("log-loss", _number("log_loss", "{:.4f}")),
    Column("SVs", _number("n_support", "{}")),
)
SOLVER_COLUMNS = (
    *SPEED_COLUMNS,
    Column("dual objective", _number("objective", "{:.8g}")),
    Column("KKT gap", _gap),
    Column("fit / floor", _number("fit_over_floor", "{:.2f}")),
    RUNS,
)
SCHEME_COLUMNS = (
    *SPEED_COLUMNS,
    Column("own KKT gap", _number("own_kkt_gap", "{:.1e}")),
    PEAK,
    RUNS,
)
COLUMNS = {
    "mnist": SOLVER_COLUMNS,
    "binary": SOLVER_COLUMNS,
    "tables": SOLVER_COLUMNS,
    "memory": (
        PEER,
        PEAK,
        Column("peak ratio", _ratio("peak_mb")),
        Column("before fit MB", _number("resident_mb", "{:.0f}")),
        FIT,
        Column("fit ratio", _ratio("fit_seconds")),
        RUNS,
    ),
    "cold-start": (
        PEER,
        Column("import s", _seconds("import_seconds")),
        FIT,
        Column("predict s", _seconds("predict_seconds")),
        Column("whole process s", _seconds("process_seconds")),
        RUNS,
    ),
    "kernels": (
        CASE,
        PEER,
        Column("seconds", _seconds("gram_seconds")),
        Column("ratio", _ratio("gram_seconds")),
        Column("largest error", _number("error", "{:.1e}")),
        RUNS,
    ),
    "schemes": SCHEME_COLUMNS,
    "machines": SCHEME_COLUMNS,
}


def _lines(group: str, facts: Sequence[Facts]) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the rows of a group's table, without empty columns."""
    if group == "growth":
        return _growth(facts)
    mine = [f for f in facts if f["group"] == group]
    base = {f["case"]: f for f in mine if f["peer"] == "mercer"}
    rows = [[c.cell(f, base.get(f["case"], {})) for c in COLUMNS[group]] for f in mine]
    kept = [i for i, cells in enumerate(zip(*rows, strict=True)) if any(cells)]
    headings = [COLUMNS[group][i].heading for i in kept]
    return headings, [[row[i] for i in kept] for row in rows]


def _growth(facts: Sequence[Facts]) -> tuple[list[str], list[list[str]]]:
    mine = [f for f in facts if f["group"] == "growth"]
    slope = {f["peer"]: f"{f['slope']:.2f}" for f in facts if f["group"] == "slope"}
    sizes = sorted({f["n"] for f in mine})
    rows = []
    for peer in dict.fromkeys(f["peer"] for f in mine):
        by_n = {f["n"]: FIT.cell(f, {}) for f in mine if f["peer"] == peer}
        times = [by_n.get(n, "") for n in sizes]
        rows.append([peer, *times, slope.get(peer, "")])
    return ["peer", *(f"n = {n}" for n in sizes), "exponent"], rows


def _remarks(group: str, facts: Sequence[Facts]) -> list[str]:
    """Return the remarks that belong below the table of a group."""
    mine = [f for f in facts if f["group"] == group]
    found = []
    if any("*" in _runs(f, {}) for f in mine):
        found.append("* Fewer runs than requested: slow, failed or interrupted.")
    if any("†" in _gap(f, {}) for f in mine):
        found.append("† The KKT gap of three pairs of classes only.")
    if any(f["peer"] == "libsvm" and f["repeats"] for f in mine):
        found.append(
            "LIBSVM: fit excludes the conversion of the training data, and predict "
            "includes that of the test data. Other load slows LIBSVM's threads most."
        )
    for f in mine:
        where = f"{f['case']}, {f['peer']}"
        if f["status"] != "ok":
            found.append(f"{where}: {f['status']}: {f['message'] or 'interrupted'}")
        if f.get("infeasibility", 0.0) > BROKEN:
            found.append(
                f"{where}: constraints are violated by {f['infeasibility']:.1e} C."
            )
        busiest = max((v or 0.0 for v in f["runs"].get("others_cores", ())), default=0)
        if busiest > BUSY:
            found.append(
                f"{where}: times may be spoilt: other processes kept {busiest:.2f} "
                "cores busy."
            )
        found += [f"{where} warns: {w}" for w in f.get("warnings", ())]
    found += _worse_losses(mine)
    return [r if len(r) <= LONGEST_REMARK else f"{r[:LONGEST_REMARK]}…" for r in found]


def _worse_losses(facts: Sequence[Facts]) -> list[str]:
    """Return remarks on cases in which Mercer's log-loss exceeds that of a peer."""
    having = [f for f in facts if "log_loss" in f]
    return [
        f"{f['case']}: Mercer's log-loss is {own['log_loss'] / f['log_loss'] - 1:.1%} "
        f"above that of {f['peer']}."
        for own in having
        for f in having
        if own["peer"] == "mercer"
        and own["case"] == f["case"]
        and own["log_loss"] > WORSE_LOSS * f["log_loss"]
    ]


def _groups(facts: Sequence[Facts]) -> list[str]:
    present = {f["group"] for f in facts}
    return [group for group in TITLES if group in present]


def show(console: Console, facts: Sequence[Facts]) -> None:
    """Print a table for each group."""
    for group in _groups(facts):
        headings, rows = _lines(group, facts)
        table = Table(title=TITLES[group], title_justify="left")
        for heading in headings:
            is_text = heading in ("case", "peer")
            table.add_column(
                heading, justify="left" if is_text else "right", no_wrap=True
            )
        for row, following in zip(rows, [*rows[1:], None], strict=True):
            ends = headings[0] == "case" and following and following[0] != row[0]
            table.add_row(*row, end_section=bool(ends))
        console.print(table)
        for remark in _remarks(group, facts):
            console.print(remark, style="dim", markup=False, highlight=False)


def markdown(facts: Sequence[Facts]) -> str:
    """Return the same tables in Markdown."""
    parts = []
    for group in _groups(facts):
        headings, rows = _lines(group, facts)
        rule = ["---" if h in ("case", "peer") else "---:" for h in headings]
        lines = [f"### {TITLES[group]}", ""]
        lines += [f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows)]
        remarks = [r.replace("*", "\\*").replace("|", "\\|")
                   for r in _remarks(group, facts)]  # fmt: skip
        if remarks:
            lines += ["", *(f"- {remark}" for remark in remarks)]
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, _where(facts)]) + "\n"


def _where(facts: Sequence[Facts]) -> str:
    place = next(f["environment"] for f in facts if "environment" in f)
    versions = ", ".join(f"{k} {v}" for k, v in place["versions"].items() if v)
    return (
        f"Medians; ratios are to Mercer. {place['cpu']}, {place['cores']} cores; "
        f"{', '.join(place['threads']['blas'])}; {versions}; commit "
        f"{place['commit'] or 'unknown'}; {place['date']}."
    )
