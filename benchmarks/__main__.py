"""Compare Mercer with its peers: ``python -m benchmarks --help``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import scaling
from benchmarks.cases import CASES, PARTS, PEERS, select
from benchmarks.data import missing_data
from benchmarks.environment import environment
from benchmarks.merging import MergeError, merged, read_facts
from benchmarks.parts import RESULTS, console
from benchmarks.record import slopes
from benchmarks.runner import SLOW_SECONDS, Options, Session
from benchmarks.table import markdown, show
from mercer.runtime.writing import write_file

# The width of a pipe is 80, which is too narrow for the tables.
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


def _counts(text: str) -> list[int]:
    return sorted({_count(name) for name in _names(text)})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add(
        "--cases", type=_names, default=[], metavar="A,B",
        help="cases or groups of cases to run (default: all)",
    )  # fmt: skip
    add(
        "--peers", type=_names, default=list(PEERS), metavar="A,B",
        help=f"peers to run, of {', '.join(PEERS)} (default: all)",
    )  # fmt: skip
    add(
        "--part", choices=PARTS, metavar="NAME",
        help="cases and peers of one part of the published tables, which takes a few "
        f"minutes: {', '.join(PARTS)}",
    )  # fmt: skip
    add(
        "--merge", type=Path, metavar="FILE",
        help="put the results into this .jsonl file, beside those of other cases; all "
        "must be of one commit and one machine",
    )  # fmt: skip
    add(
        "--repeats", type=_count, metavar="N",
        help="runs of each peer (default 3, with --fast 1); a peer that takes more "
        f"than {SLOW_SECONDS:g} s is run once",
    )  # fmt: skip
    add("--fast", action="store_true", help="smoke run on tiny data, without files")
    add("--list", action="store_true", help="list the cases and exit")
    add(
        "--no-certify", action="store_true",
        help="do not compute objectives and KKT gaps",
    )  # fmt: skip
    add(
        "--time-limit", type=_positive, default=3600.0, metavar="S",
        help="seconds that one process may take (default %(default)g)",
    )  # fmt: skip
    add(
        "--cache-size", type=_positive, metavar="MB",
        help="memory for kernel values, for every peer (default: Mercer's own default, "
        "and the same amount, but at least 1000, for the others)",
    )  # fmt: skip
    add(
        "--threads", type=_counts, default=[], metavar="1,2,4",
        help="numbers of threads: measure large cases with each of them; Mercer, "
        "scikit-learn-intelex, and scikit-learn with one",
    )  # fmt: skip
    add(
        "--device", default="cpu", metavar="cuda",
        help="with --threads: measure Mercer on this graphics card too",
    )  # fmt: skip
    add(
        "--output", type=Path, default=RESULTS, metavar="DIR",
        help="folder for the results (default: benchmarks/results)",
    )  # fmt: skip
    add(
        "--report", type=Path, metavar="FILE",
        help="show the tables of an earlier .jsonl file and exit",
    )  # fmt: skip
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
    lines = "".join(json.dumps(f) + "\n" for f in facts)
    write_file(path, lines, makes_folder=True)
    write_file(path.with_suffix(".md"), markdown(facts))


def _scale(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    """Print the table of times by number of threads."""
    problem = scaling.missing(arguments.fast, arguments.cases)
    if problem:
        parser.error(problem)
    try:
        place = environment(arguments.device)
    except (ImportError, OSError, ValueError) as error:  # there is no such card
        parser.error(str(error))
    path = arguments.output / f"{time.strftime('%Y-%m-%d-%H%M%S')}-threads.jsonl"
    if arguments.merge:
        path = arguments.merge
        problem = _differs(path, place)
        if problem:
            parser.error(problem)
    old, found, status = read_facts(path), [], 0
    try:
        for fact in scaling.measure(
            arguments.threads,
            _say,
            cases=arguments.cases,
            peers=arguments.peers,
            repeats=arguments.repeats or (1 if arguments.fast else 3),
            is_fast=arguments.fast,
            cache_mb=arguments.cache_size or 4000.0,
            device=arguments.device,
        ):
            found.append(fact | {"environment": place})
            lines = "".join(json.dumps(f) + "\n" for f in merged(old, found))
            write_file(path, lines, makes_folder=True)
    except ValueError as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        _say("Interrupted. The results so far:")
        status = 130
    if not found:
        return status or 1
    write_file(path.with_suffix(".md"), scaling.markdown(merged(old, found)))
    scaling.show(console, found)
    _say(f"Results are in {path} and {path.with_suffix('.md').name}")
    return status


def _differs(path: Path, place: dict[str, Any]) -> str | None:
    """Say why results from this place cannot go into a file, before any work."""
    try:
        merged(read_facts(path), [{"case": "", "environment": place}])
    except MergeError as error:
        return f"--merge {path}: {error}"
    return None


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
    if arguments.threads:
        return _scale(parser, arguments)
    names, peers = arguments.cases, arguments.peers
    if arguments.part:
        names, peers = PARTS[arguments.part]
    try:
        cases = select(names, peers, arguments.fast)
    except ValueError as error:
        parser.error(str(error))
    problem = missing_data(cases)
    if problem:
        parser.error(problem)
    if arguments.device != "cpu":
        parser.error(
            "--device goes with --threads; python -m benchmarks.cuda has more."
        )

    options = Options(
        repeats=arguments.repeats or (1 if arguments.fast else 3),
        is_fast=arguments.fast,
        is_certified=not arguments.no_certify,
        time_limit=arguments.time_limit,
        cache_mb=arguments.cache_size,
    )
    place = environment()
    path = arguments.output / f"{time.strftime('%Y-%m-%d-%H%M%S')}.jsonl"
    if arguments.merge:
        path = arguments.merge
        problem = _differs(path, place)
        if problem:
            parser.error(problem)
    session = Session(options, _say)

    def facts() -> list[dict[str, Any]]:
        known = [r.summary(place, options.repeats) for r in session.records]
        return known + [s | {"environment": place} for s in slopes(known)]

    old = read_facts(path)
    status = 0
    try:
        for case in cases:
            session.measure(case)
            _write(merged(old, facts()), path)
    except KeyboardInterrupt:
        _say("Interrupted. The results so far:")
        status = 130
    found = facts()
    if found:
        _write(merged(old, found), path)
        show(console, found)
        _say(f"Results are in {path} and {path.with_suffix('.md').name}")
    return status


if __name__ == "__main__":
    sys.exit(main())
