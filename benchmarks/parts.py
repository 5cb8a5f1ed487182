"""The command line of a benchmark that has several named parts."""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.data import missing_files
from benchmarks.environment import environment

__all__ = ["RESULTS", "Part", "console", "run_parts"]

RESULTS = Path(__file__).parent / "results"
console = Console()

#: A part takes the options of the command line and returns what it measured.
Part = Callable[[argparse.Namespace], dict[str, Any]]


def run_parts(
    name: str,
    description: str | None,
    parts: Mapping[str, Part],
    files: Sequence[str],
    add_options: Callable[[argparse.ArgumentParser], None] | None = None,
) -> int:
    """Run the parts named on the command line, all of them by default.

    Every answer is printed, and written as a line of JSON.  ``files`` are the data
    files that the parts need, except with ``--fast``.  After a part that fails, the
    others are run all the same; the exit status is then 1.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("parts", nargs="*", metavar="PART", help=f"parts to run: {', '.join(parts)}")
    add("--fast", action="store_true", help="smoke run on tiny data, without files")
    add("--output", type=Path, default=RESULTS, metavar="DIR", help="results folder")
    if add_options is not None:
        add_options(parser)
    options = parser.parse_args()
    unknown = sorted(set(options.parts) - set(parts))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}. Known: {', '.join(parts)}.")
    problem = None if options.fast else missing_files(files)
    if problem:
        parser.error(problem)
    place = environment(getattr(options, "device", "cpu"))
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / f"{name}-{time.strftime('%Y-%m-%d-%H%M%S')}.jsonl"
    status = 0
    for part in options.parts or parts:
        console.print(f"{time.strftime('%H:%M:%S')}  {part}")
        try:
            answer = parts[part](options)
        except Exception:
            traceback.print_exc()
            status = 1
            continue
        for key, value in answer.items():
            text = f"{value:.5g}" if isinstance(value, float) else value
            console.print(f"  {key:<44} {text}", soft_wrap=True, highlight=False)
        with path.open("a") as file:
            facts = {"part": part, "is_fast": options.fast, **answer}
            file.write(json.dumps(facts | {"environment": place}) + "\n")
    if path.exists():
        console.print(str(path), soft_wrap=True)
    return status
