"""Run the studies on full data, and write docs/studies_full.md from the results.

    python tools/full_studies.py run --data DIR --out report-full
    python tools/full_studies.py            # write the page from the committed results
    python tools/full_studies.py --check    # exit with 1 if the page is not up to date

``run`` goes on with an interrupted run, and writes all rows and findings to
``benchmarks/results/studies-full.json``, with the machine, the versions, the commit and
the times, and without figures. The page is made from that file and from the published
numbers in ``mercer.studies``, and from nothing else.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mercer.runtime.writing import write_file
from mercer.studies import STUDIES, reproduce
from mercer.studies.report.outcomes import Outcome, StudyReport
from mercer.studies.report.page import Section, section_of, summarise
from mercer.studies.results import Figure, from_json, to_json

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "studies-full.json"
PAGE = ROOT / "docs" / "studies_full.md"
VERDICTS = {"beaten": "beaten", "matched": "matched", "below": "not reached"}


def run(data: str | None, out: Path) -> dict[str, Any]:
    """Run all studies and return what is kept of the results."""
    report = reproduce(data=data, out=out)
    if not report.is_full:
        sys.exit("MNIST is not available: name its folder with --data.")
    if report.failed:
        sys.exit(f"These steps failed: {', '.join(report.failed)}.")
    return {
        "commit": _commit(),
        "computer": report.computer,
        "data": report.data,
        "seed": report.seed,
        "studies": {
            r.study.name: [_kept(o) for o in r.outcomes] for r in report.studies
        },
    }


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip()[:10]


def _kept(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as JSON, without figures, which are large."""
    items = [to_json(i) for i in outcome.items if not isinstance(i, Figure)]
    kept = {"step": outcome.step, "status": outcome.status, "items": items}
    times = {k: round(getattr(outcome, k), 2) for k in ("seconds", "processor_seconds")}
    return kept | times | {"message": outcome.message}


def sections_of(results: dict[str, Any]) -> list[Section]:
    """Return the studies with the published numbers joined to their rows."""
    return [
        section_of(
            StudyReport(
                STUDIES[name],
                [
                    Outcome(**{**kept, "items": [from_json(i) for i in kept["items"]]})
                    for kept in outcomes
                ],
            )
        )
        for name, outcomes in results["studies"].items()
    ]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def minutes(seconds: float) -> str:
    """Return a time in words."""
    return f"{seconds / 60:.1f} min" if seconds >= 90 else f"{seconds:.0f} s"


def page_of(results: dict[str, Any]) -> str:
    """Return the text of the page."""
    sections = sections_of(results)
    return "\n".join([*_opening(results, sections), *_best(sections), *_all(sections)])


def _opening(results: dict[str, Any], sections: list[Section]) -> Iterator[str]:
    summary, place = summarise(sections), results["computer"]
    counts, claims = summary.counts, summary.claims
    reports = [section.report for section in sections]
    n_steps = sum(len(report.outcomes) for report in reports)
    wall = sum(report.seconds for report in reports)
    worked = sum(report.processor_seconds for report in reports)
    versions = ", ".join(
        f"{name} {place[name]}"
        for name in ("Python", "numpy", "scipy", "scikit-learn", "numba")
    )
    yield "# The studies on full data\n"
    yield (
        "This page is made by `python tools/full_studies.py` from the results that are "
        "committed in\n`benchmarks/results/studies-full.json`. [The five "
        "studies](studies.md) explains the protocols and\nthe intervals. `mercer "
        "reproduce --data DIR` computes all of it again, with figures.\n"
    )
    yield (
        f"{results['data']} CIFAR-10: 500 training and 100 test images of each class.\n"
        f"All {n_steps} steps took {minutes(wall)}, and {minutes(worked)} of "
        "processor time, on\n"
        f"{place['Cores']} cores of {place['Processor']} with {place['Memory']} of "
        f"memory; {versions};\n{place['Date']}, commit {results['commit']}, seed "
        f"{results['seed']}.\n"
    )
    yield (
        f"Of the published percentages {counts['beaten']} are beaten by more than "
        f"sampling error, {counts['matched']} are matched within it,\nand "
        f"{counts['below']} are not reached. Of the claims {claims[True]} hold, "
        f"{claims[False]} do not, and {claims[None]} are not decided.\n"
    )
    yield table(
        ("study", "steps", "time", "processor time"),
        (
            (
                f"`{s.report.study.name}`",
                str(len(s.report.outcomes)),
                minutes(s.report.seconds),
                minutes(s.report.processor_seconds),
            )
            for s in sections
        ),
    )


def _best(sections: list[Section]) -> Iterator[str]:
    yield "## Beyond the reports\n"
    yield (
        "Recipes are chosen on training or validation images, and scored once on test "
        "images. ± is twice\nthe standard error of the difference from the best "
        "published figure.\n"
    )
    rows, notes = [], []
    for section in sections:
        for shown in section.tables:
            if shown.table.name != "best":
                continue
            for line in shown.lines:
                cells = dict(zip(shown.headings, line.cells, strict=True))
                scored = next(c for c in cells.values() if c.comparison)
                validation = next(
                    (
                        c.value
                        for h, c in cells.items()
                        if h in ("folds %", "validation %")
                    ),
                    "–",
                )
                rows.append(
                    (
                        f"`{section.report.study.name}`",
                        line.label,
                        validation,
                        scored.value,
                        scored.published,
                        difference(scored.comparison),
                        line.seconds,
                    )
                )
                if line.note:
                    notes.append(f"- {line.label.split(':')[0]}: {line.note}")
    yield table(
        ("study", "model", "left out %", "test %", "published %", "difference", "fit"),
        rows,
    )
    yield "What the recipes tried:\n"
    yield "\n".join(notes) + "\n"


def difference(found: Any) -> str:
    """Return a difference with its interval."""
    return f"{found.difference:+.2f} ± {found.error:.2f}".replace("-", "−")


def _all(sections: list[Section]) -> Iterator[str]:
    yield "## Every published percentage\n"
    for section in sections:
        rows = [
            (f"{shown.table.title}: {line.label}", heading, cell.value, cell.published,
             difference(cell.comparison), VERDICTS[cell.comparison.verdict])
            for shown in section.tables
            if shown.table.name != "best"
            for line in shown.lines
            for heading, cell in zip(shown.headings, line.cells, strict=True)
            if cell.comparison
        ]  # fmt: skip
        if rows:
            yield f"### {section.report.study.title}\n"
            heads = ("row", "column", "ours", "published", "difference", "verdict")
            yield table(heads, rows)


def main(arguments: list[str]) -> int:
    """Run the studies, write the page, or compare the page with the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", nargs="?", choices=["run"])
    parser.add_argument("--data", help="folder with MNIST and CIFAR-10")
    parser.add_argument("--out", type=Path, default=Path("report-full"))
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args(arguments)
    if given.action == "run":
        kept = run(given.data, given.out)
        write_file(RESULTS, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    wanted = page_of(json.loads(RESULTS.read_text(encoding="utf-8")))
    if given.check:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != wanted:
            sys.stderr.write(
                "docs/studies_full.md is not that of the committed results. Run python "
                "tools/full_studies.py.\n"
            )
            return 1
        return 0
    write_file(PAGE, wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
