"""Run the studies on full data, and write docs/studies_full.md from the results.

    python tools/full_studies.py run --data DIR --out report-full --remark TEXT
    python tools/full_studies.py run --data DIR --only "three-vs-eight/best model"
    python tools/full_studies.py            # write the page from the committed results
    python tools/full_studies.py --check    # exit with 1 if the page is not up to date

``run`` goes on with an interrupted run, and writes all rows and findings to
``benchmarks/results/studies-full.json``, with the machine, the versions, the commit and
the times, and without panels of figures. The page is made from that file, from the
published numbers and from the manifests in ``studies``, and from nothing else.
``--only`` computes some steps again, after their code has changed; the page says which,
and with which commit.
``--remark`` is what a reader must know about the run: which recipes were scored before,
and what else the computer did.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from mercer.runtime.writing import write_file  # noqa: E402
from studies import STUDIES, reproduce  # noqa: E402
from studies.data import Data, data_folder  # noqa: E402
from studies.report.outcomes import Outcome, StudyReport  # noqa: E402
from studies.report.page import Cell, Line, Section, section_of, summarise  # noqa: E402
from studies.report.running import run_step  # noqa: E402
from studies.results import Figure, from_json, to_json  # noqa: E402
from studies.study import Run  # noqa: E402

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
        "seconds": round(sum(r.seconds for r in report.studies), 1),
        "processor_seconds": round(sum(r.processor_seconds for r in report.studies), 1),
        "remark": "",
        "studies": {
            r.study.name: [_kept(o) for o in r.outcomes] for r in report.studies
        },
    }


def run_again(data: str | None, names: Sequence[str]) -> dict[str, Any]:
    """Run some steps of the committed results again, and return all results."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    with data_folder(data):
        for name in names:
            study, _, own = name.partition("/")
            shared = Run(Data(), results["seed"])
            (step,) = [s for s in STUDIES[study].steps(shared) if s.name == own]
            outcome = run_step(step, shared)
            if outcome.status != "done":
                sys.exit(f"{name}: {outcome.status}: {outcome.message}")
            kept = results["studies"][study]
            place = [one["step"] for one in kept].index(own)
            kept[place] = _kept(outcome) | {"commit": _commit()}
    return results


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip()[:10]


def _kept(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as JSON, without the panels of figures, which are large."""
    items = [
        to_json(replace(i, panels=()) if isinstance(i, Figure) else i)
        for i in outcome.items
    ]
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
                    Outcome(
                        kept["step"],
                        kept["status"],
                        kept["seconds"],
                        [from_json(item) for item in kept["items"]],
                    )
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
    counts = summary.counts
    numbers, claims = counts.numbers, counts.claims
    reports = [section.report for section in sections]
    n_steps = sum(len(report.outcomes) for report in reports)
    wall, worked = results["seconds"], results["processor_seconds"]
    versions = ", ".join(
        f"{name} {place[name]}"
        for name in ("Python", "numpy", "scipy", "scikit-learn", "numba")
    )
    yield "# The studies on full data\n"
    yield (
        "This page is made by `python tools/full_studies.py` from the results that are "
        "committed in\n`benchmarks/results/studies-full.json`. [The five "
        "studies](studies.md) explains the protocols and\nthe intervals. `python "
        "-m studies --data DIR` computes all of it again, with figures.\n"
    )
    yield (
        f"{results['data']} CIFAR-10: 500 training and 100 test images of each class.\n"
        f"All {n_steps} steps took {minutes(wall)}, and {minutes(worked)} of "
        "processor time, on\n"
        f"{place['Cores']} cores of {place['Processor']} with {place['Memory']} of "
        f"memory; {versions};\n{place['Date']}, commit {results['commit']}, seed "
        f"{results['seed']}. {results['remark']}\n"
    )
    again = [
        f"{study}: {kept['step']} ({kept['commit']}, "
        f"{minutes(kept['processor_seconds'])})"
        for study, outcomes in results["studies"].items()
        for kept in outcomes
        if "commit" in kept
    ]
    if again:
        yield (
            "These steps were computed again after their code had changed (commit and "
            f"processor time): {'; '.join(again)}.\n"
        )
    yield (
        f"The reports print {counts.total} items, of which {counts.status['shown']} "
        f"are computed here and {counts.status['reason']} are left out for a reason.\n"
        f"Published numbers: {numbers['beaten']} are beaten by more than sampling "
        f"error, {numbers['matched']} are matched within it, {numbers['below']} not "
        f"reached,\nand {numbers['beside']} stand beside ours without a judgement.\n"
        + _judged(claims)
    )
    # Steps that were computed again ran at another time, beside other work.
    yield table(
        ("study", "steps", "time of the steps that were computed once"),
        (
            (
                f"`{study}`",
                str(len(outcomes)),
                minutes(sum(one["seconds"] for one in outcomes if "commit" not in one)),
            )
            for study, outcomes in results["studies"].items()
        ),
    )


def _judged(claims: Mapping[str, int]) -> str:
    """Return a sentence on the claims."""
    if not any(claims[word] for word in ("holds", "fails", "open")):
        return "The claims were not yet judged when these results were computed.\n"
    return (
        f"Claims: {claims['holds']} hold, {claims['fails']} do not, "
        f"{claims['open']} are not decided.\n"
    )


def _best(sections: list[Section]) -> Iterator[str]:
    """Yield the table of models that go beyond the reports, and what was tried."""
    yield "## Beyond the reports\n"
    yield (
        "Recipes are chosen on training or validation images, then scored on test "
        "images. ± is twice\nthe standard error of the difference from the best "
        "published figure.\n"
    )
    found = [
        (
            section.report.study.name,
            dict(zip(shown.headings, line.cells, strict=True)),
            line,
        )
        for section in sections
        for shown in section.tables
        if shown.table.name == "best"
        for line in shown.lines
    ]
    heads = (
        "study",
        "model",
        "left out %",
        "test %",
        "published %",
        "difference",
        "fit",
    )
    yield table(heads, (_best_row(*one) for one in found))
    yield "What the recipes tried on images that were left out of training:\n"
    notes = (
        (line.label.split(":")[0], line.note.partition(": ")[2]) for _, _, line in found
    )
    yield "\n".join(f"- {model}: {note}" for model, note in notes if note) + "\n"


def _best_row(study: str, cells: dict[str, Cell], line: Line) -> list[str]:
    test = cells["test %"]
    validation = [cells[h].value for h in ("folds %", "validation %") if h in cells]
    published = (
        [test.published, difference(test.comparison)] if test.published else ["–", "–"]
    )
    model = [f"`{study}`", line.label, *(validation or ["–"]), test.value]
    return [*model, *published, line.seconds]


def difference(found: Any) -> str:
    """Return a difference with its interval."""
    return f"{found.difference:+.2f} ± {found.error:.2f}".replace("-", "−")


def _all(sections: list[Section]) -> Iterator[str]:
    """Yield a table of all comparisons for each study."""
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
    parser.add_argument("--only", nargs="+", metavar="STUDY/STEP")
    parser.add_argument("--remark", help="what a reader must know about the run")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args(arguments)
    if given.action == "run":
        kept = (
            run_again(given.data, given.only)
            if given.only
            else run(given.data, given.out)
        )
        if given.remark is not None:
            kept["remark"] = given.remark
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
