"""Time by cores, and on a graphics card: ``python -m benchmarks --threads 2,16``.

One run on one machine: Mercer and scikit-learn-intelex with each number of threads,
scikit-learn, which uses one core, and with ``--device cuda`` Mercer on the card, where
copies to the card and back count. Each of them has a process of its own, which may use
as many cores as it has threads. It fits some samples of every case to warm up, then all
of them several times; medians count. The parts of a fit are measured in one more fit,
where clocks are read between them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.data import missing_files
from benchmarks.scaling_worker import CASES, CLASSES, FAST, PARTS

__all__ = ["CASES", "PARTS", "cores", "markdown", "measure", "missing", "show"]

ROOT = Path(__file__).resolve().parents[1]
PEER = "scikit-learn-intelex"
FILES = {"mnist": "mnist.npz", "a9a": "a9a.npz", "ijcnn1": "ijcnn1.npz"}
# scikit-learn leaves out cases that would take longer than this.
LIMIT_SECONDS = 90.0


def missing(is_fast: bool, cases: Sequence[str] = ()) -> str | None:
    """Return a message if the data are not on this machine, or None."""
    if is_fast:
        return None
    chosen = [CASES[name].data for name in CASES if not cases or name in cases]
    return missing_files({FILES[data] for data in chosen if data in FILES})


def measure(
    threads: Sequence[int],
    say: Callable[[str], None],
    *,
    cases: Sequence[str] = (),
    peers: Sequence[str] = tuple(CLASSES),
    repeats: int = 3,
    is_fast: bool = False,
    cache_mb: float = 4000.0,
    device: str = "cpu",
    limit: float = LIMIT_SECONDS,
) -> Iterator[dict[str, Any]]:
    """Yield the facts of each case, library and number of threads when it is done."""
    known = list(FAST if is_fast else CASES)
    if unknown := [name for name in cases if name not in known]:
        raise ValueError(
            f"--threads measures {', '.join(known)}, not {', '.join(unknown)}."
        )
    common = {
        "cases": [name for name in known if not cases or name in cases],
        "repeats": repeats, "is_fast": is_fast, "cache_mb": cache_mb, "limit": limit,
    }  # fmt: skip
    for peer, count, place in _work(threads, peers, device):
        job = {"peer": peer, "threads": count, "device": place, **common}
        try:
            for fact in run_job(job):
                say(_sentence(fact))
                yield fact
        except RuntimeError as error:
            say(f"{peer}, {count} threads: {error}")


def _work(
    threads: Sequence[int], peers: Sequence[str], device: str
) -> list[tuple[str, int, str]]:
    """Return libraries, numbers of threads and devices, in the order of the run."""
    work = [
        (peer, count, "cpu")
        for count in threads
        for peer in ("mercer", PEER)
        if peer in peers
    ]
    if "scikit-learn" in peers:
        work.append(("scikit-learn", 1, "cpu"))
    if device != "cpu" and "mercer" in peers:
        work.append(("mercer", max(threads), device))
    return work


def run_job(job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Do a job in a process that may use as many cores as it has threads."""
    command = [sys.executable, "-m", "benchmarks.scaling_worker", json.dumps(job)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # Libraries count the cores when they are imported.
        preexec_fn=_staying_on(cores(job["threads"])),
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
        errors = process.stderr.read()
    if process.returncode:
        raise RuntimeError((errors.splitlines() or ["failed"])[-1])


def _staying_on(chosen: Sequence[int]) -> Callable[[], None] | None:
    """Return what a new process does first, in order to stay on some cores."""
    if not chosen:
        return None
    return lambda: os.sched_setaffinity(0, chosen)


def cores(count: int) -> list[int]:
    """Return so many of the processors that this process may use.

    Of two processors that share a core, the second is taken only if there are more
    threads than cores. The list is empty where processes cannot be kept on cores.
    """
    if not hasattr(os, "sched_getaffinity"):
        return []
    usable = sorted(os.sched_getaffinity(0))
    seen: dict[str, int] = {}
    rounds = {}
    for number in usable:
        place = Path(f"/sys/devices/system/cpu/cpu{number}/topology/core_cpus_list")
        try:
            core = place.read_text()
        except OSError:
            core = str(number)
        rounds[number] = seen.get(core, 0)
        seen[core] = rounds[number] + 1
    return sorted(sorted(usable, key=lambda number: rounds[number])[:count])


def _sentence(fact: dict[str, Any]) -> str:
    place = f"{fact['threads']:>3} threads"
    if fact["device"] != "cpu":
        place = f"{fact['device']:>11}"
    start = f"{fact['case']:<14} {fact['peer']:<20} {place}  "
    if fact["status"] != "ok":
        return f"{start}{fact['status']}: {fact['message']}"
    return (
        f"{start}fit {fact['fit_seconds']:.3f} s  predict "
        f"{fact['predict_seconds']:.3f} s"
    )


Lines = tuple[str, list[str], list[list[str]]]


def _in_order(facts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    mine = [fact for fact in facts if fact["peer"] == "mercer" and "parts" in fact]
    return sorted(mine, key=lambda fact: list(CASES | FAST).index(fact["case"]))


def _times(facts: Sequence[dict[str, Any]]) -> Lines:
    """Return title, headings and rows of the times of fits and predictions."""
    peers = {
        (f["case"], f["threads"]): f
        for f in facts
        if f["peer"] == PEER and f["status"] == "ok"
    }
    headings = ["case", "threads"]
    for what in ("fit", "predict"):
        headings += [f"{what} s", "speed-up", "efficiency", f"{PEER} s", "ratio"]
    rows = []
    for fact in _in_order(facts):
        first = next(f for f in _in_order(facts) if f["case"] == fact["case"])
        other = peers.get((fact["case"], fact["threads"]))
        row = [fact["case"], str(fact["threads"])]
        for name in ("fit_seconds", "predict_seconds"):
            speed_up = first[name] / fact[name]
            efficiency = speed_up * first["threads"] / fact["threads"]
            row += [f"{fact[name]:.3f}", f"{speed_up:.2f}", f"{efficiency:.0%}"]
            if other:
                row += [f"{other[name]:.3f}", f"{other[name] / fact[name]:.2f}×"]
            else:
                row += ["", ""]
        rows.append(row)
    return "Time by number of threads", headings, rows


def _parts(facts: Sequence[dict[str, Any]]) -> Lines:
    """Return title, headings and rows of the parts of fits."""
    mine = _in_order(facts)
    parts = [p for p in (*PARTS, "rest") if any(p in f["parts"] for f in mine)]
    rows = [
        [fact["case"], str(fact["threads"]),
         *(f"{fact['parts'][p]:.3f}" if p in fact["parts"] else "" for p in parts)]
        for fact in mine
    ]  # fmt: skip
    return "Parts of a fit, in seconds", ["case", "threads", *parts], rows


def _others(facts: Sequence[dict[str, Any]]) -> Lines:
    """Return title, headings and rows of scikit-learn and of Mercer on the card."""
    headings = ["case", "library", "fit s", "predict s", "MB", "MB of the card"]
    order = list(CASES | FAST)
    rows = [
        [fact["case"], fact["peer"] if fact["device"] == "cpu" else fact["device"],
         *(_number(fact, name, 3) for name in ("fit_seconds", "predict_seconds")),
         *(_number(fact, name, 0) for name in ("peak_mb", "card_mb"))]
        for fact in sorted(facts, key=lambda fact: order.index(fact["case"]))
        if fact["peer"] == "scikit-learn" or fact["device"] != "cpu"
    ]  # fmt: skip
    return "One core of scikit-learn, and the card", headings, rows


def _number(fact: dict[str, Any], name: str, digits: int) -> str:
    if fact["status"] != "ok":
        return fact["status"]
    return f"{fact[name]:.{digits}f}" if name in fact else ""


def _tables(facts: Sequence[dict[str, Any]]) -> list[Lines]:
    tables = [_times(facts), _parts(facts), _others(facts)]
    return [table for table in tables if table[2]]


def show(console: Console, facts: Sequence[dict[str, Any]]) -> None:
    """Print the tables."""
    for title, headings, rows in _tables(facts):
        table = Table(title=title, title_justify="left")
        for heading in headings:
            is_name = heading == "case"
            table.add_column(heading, justify="left" if is_name else "right")
        for row, following in zip(rows, [*rows[1:], None], strict=True):
            table.add_row(*row, end_section=bool(following and following[0] != row[0]))
        console.print(table)


def markdown(facts: Sequence[dict[str, Any]]) -> str:
    """Return the same tables in Markdown."""
    parts = []
    for title, headings, rows in _tables(facts):
        rule = ["---" if heading == "case" else "---:" for heading in headings]
        lines = [f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows)]
        parts.append("\n".join([f"### {title}", "", *lines]))
    return "\n\n".join(parts) + "\n"
