"""Measure Mercer beside its peers: ``python -m benchmarks --help``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.cases import CASES, PEERS, select
from benchmarks.data import missing_data
from benchmarks.machine import environment
from benchmarks.record import slopes
from benchmarks.runner import SLOW_SECONDS, Options, Session
from benchmarks.table import markdown, show

RESULTS = Path(__file__).parent / "results"
console = Console()
# A pipe says 80, too narrow for the tables.
console.width = max(console.width, 170)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"must be > 0, got {text}")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("--cases", type=_names, default=[], metavar="A,B", help="cases or groups")
    add("--peers", type=_names, default=list(PEERS), metavar="A,B", help="who")
    add(
        "--repeats", type=_count, metavar="N",
        help="runs of each peer, 3 unless --fast; a peer that takes over "
        f"{SLOW_SECONDS:g} s is run once",
    )  # fmt: skip
    add("--fast", action="store_true", help="tiny sizes, no data files: a smoke run")
    add("--list", action="store_true", help="list the cases and stop")
    add("--no-certify", action="store_true", help="skip objective and KKT gap")
    add(
        "--time-limit", type=_positive, default=3600.0, metavar="S",
        help="seconds for one process (default %(default)g)",
    )  # fmt: skip
    add(
        "--cache-size", type=_positive, metavar="MB",
        help="for everybody's kernel values; without it Mercer has its default, and "
        "the others as much as that is, at least 1000",
    )  # fmt: skip
    add("--output", type=Path, default=RESULTS, metavar="DIR", help="for the results")
    add("--report", type=Path, metavar="FILE", help="show the tables of a .jsonl file")
    return parser


def _list() -> None:
    for case in CASES:
        console.print(
            f"{case.name:<22} {case.group:<11} {case.about}  [{', '.join(case.peers)}]",
            markup=False, highlight=False, soft_wrap=True,
        )  # fmt: skip


def _say(text: str) -> None:
    line = f"{time.strftime('%H:%M:%S')}  {text}"
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _write(facts: list[dict[str, Any]], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(f) + "\n" for f in facts))
    path.with_suffix(".md").write_text(markdown(facts))


def main() -> int:
    """Run the program; the exit status is 130 after Ctrl-C, 2 for a wrong call."""
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.list:
        _list()
        return 0
    if arguments.report:
        lines = arguments.report.read_text().splitlines()
        show(console, [json.loads(line) for line in lines])
        return 0
    try:
        cases = select(arguments.cases, arguments.peers, arguments.fast)
    except ValueError as error:
        parser.error(str(error))
    problem = missing_data(cases)
    if problem:
        parser.error(problem)

    options = Options(
        repeats=arguments.repeats or (1 if arguments.fast else 3),
        is_fast=arguments.fast,
        is_certified=not arguments.no_certify,
        time_limit=arguments.time_limit,
        cache_mb=arguments.cache_size,
    )
    place = environment()
    path = arguments.output / f"{time.strftime('%Y-%m-%d-%H%M%S')}.jsonl"
    session = Session(options, _say)

    def facts() -> list[dict[str, Any]]:
        known = [r.summary(place, options.repeats) for r in session.records]
        return known + [s | {"environment": place} for s in slopes(known)]

    status = 0
    try:
        for case in cases:
            session.measure(case)
            _write(facts(), path)
    except KeyboardInterrupt:
        _say("Interrupted; this is what is done.")
        status = 130
    found = facts()
    if found:
        _write(found, path)
        show(console, found)
        _say(f"{path} and {path.with_suffix('.md').name}")
    return status


if __name__ == "__main__":
    sys.exit(main())
