"""Time and its parts by number of threads: ``python -m benchmarks --threads 1,2,4``.

Each number of threads has a process of its own, which may use as many cores.  It fits
every case, once to warm up, and then several times; medians count.  The parts of a fit
are measured in one more fit, where clocks are read between them.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.cases import Case, Setting
from benchmarks.data import Data, covtype_like, load, missing_files
from benchmarks.memory import claim_memory

__all__ = ["CASES", "PARTS", "markdown", "measure", "missing", "show"]

ROOT = Path(__file__).resolve().parents[1]
PEER = "scikit-learn-intelex"
# More samples than one thread would compute by itself.
WARM_ROWS = 4000
# A fit that takes longer than this is not repeated; the first one may compile.
SLOW_SECONDS = 10.0


class Problem(NamedTuple):
    """What is fitted."""

    data: str
    n: int
    n_test: int
    setting: Setting


MNIST = Setting(C=10.0, gamma=0.02)
CASES = {
    "mnist-5000": Problem("mnist", 5000, 10_000, MNIST),
    "mnist-20000": Problem("mnist", 20_000, 10_000, MNIST),
    "mnist-60000": Problem("mnist", 60_000, 10_000, MNIST),
    "a9a": Problem("a9a", 32_561, 16_281, Setting(C=1.0, gamma=0.05)),
    "ijcnn1": Problem("ijcnn1", 49_990, 91_701, Setting(C=10.0, gamma=1.0)),
    "covtype-like": Problem("covtype", 20_000, 10_000, Setting(C=3.0, gamma=0.05)),
}
FAST = {"digits": Problem("digits", 900, 300, Setting(C=10.0, gamma=0.02))}

# Parts of a fit, and the functions that belong to them.
PARTS: dict[str, tuple[tuple[str, str], ...]] = {
    "checks": (
        ("mercer.machines.base.machine", "KernelMachine._validated"),
        ("mercer.machines.base.classifier", "KernelClassifier._plan_for"),
    ),
    "frame": (
        ("mercer.engines.cpu.tiles", "_warm_up"),
        ("mercer.engines.cpu.solve", "_prepare"),
    ),
    "matrix": (("mercer.engines.cpu.gram", "symmetric_matrix"),),
    "rows": (("mercer.engines.cpu.gram", "RowGram.provide"),),
    "steps": (
        ("mercer.engines.cpu.decompose", "_play"),
        ("mercer.engines.cpu.solve", "solve_many"),
        ("mercer.engines.cpu.engine", "solve_small"),
        ("mercer.engines.cpu.engine", "solve_small_pairs"),
    ),
    "certificates": (("mercer.engines.cpu.solve", "rounding_errors"),),
    "keep": (("mercer.machines.base.classifier", "KernelClassifier._keep_support"),),
}


def missing(is_fast: bool) -> str | None:
    """Return a message if the data are not on this machine, or None."""
    return None if is_fast else missing_files(["mnist.npz", "a9a.npz", "ijcnn1.npz"])


def _data(problem: Problem) -> Data:
    if problem.data != "covtype":
        case = Case("", "", "fit", problem.data, problem.n, problem.n_test)
        return load(case)
    X, y = covtype_like(problem.n + problem.n_test, scaling="standard")
    X, n = X.astype(np.float32), problem.n
    return Data(X[:n], y[:n], X[n:], y[n:])


@contextmanager
def _clocks() -> Iterator[dict[str, float]]:
    """Measure how long the main thread is in each part, and in none that is inside."""
    spent: dict[str, float] = {}
    inside: list[float] = []

    def clocked(part: str, work: Callable) -> Callable:
        def timed(*args: Any, **options: Any) -> Any:
            started = time.perf_counter()
            inside.append(0.0)
            try:
                return work(*args, **options)
            finally:
                whole = time.perf_counter() - started
                spent[part] = spent.get(part, 0.0) + whole - inside.pop()
                if inside:
                    inside[-1] += whole

        return timed

    with ExitStack() as patches:
        for part, functions in PARTS.items():
            for module, name in functions:
                place: Any = import_module(module)
                *outer, last = name.split(".")
                for step in outer:
                    place = getattr(place, step)
                work = clocked(part, getattr(place, last))
                patches.enter_context(patch.object(place, last, work))
        yield spent


def _worker(job: dict[str, Any]) -> None:
    """Fit every case with a number of threads; print a line of JSON for each."""
    threads, peer = job["threads"], job["peer"]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    if peer == "mercer":
        SVC, more = import_module("mercer").SVC, {"n_jobs": threads}
    else:
        SVC, more = import_module("sklearnex.svm").SVC, {}
    cases = FAST if job["is_fast"] else CASES
    for name in job["cases"]:
        problem = cases[name]
        data = _data(problem)
        options = {**problem.setting._asdict(), "cache_size": job["cache_mb"], **more}
        SVC(**options).fit(data.X[:WARM_ROWS], data.y[:WARM_ROWS]).predict(data.X_test)
        claim_memory()
        fits, predictions = [], []
        for _ in range(job["repeats"] + 1):  # the first is to warm up
            started = time.perf_counter()
            model = SVC(**options).fit(data.X, data.y)
            fitted = time.perf_counter()
            model.predict(data.X_test)
            predictions.append(time.perf_counter() - fitted)
            fits.append(fitted - started)
            if len(fits) > 1 and fits[-1] > SLOW_SECONDS:
                break
        found = {
            "case": name,
            "peer": peer,
            "threads": threads,
            "fit_seconds": statistics.median(fits[1:] or fits),
            "predict_seconds": statistics.median(predictions[1:] or predictions),
        }
        if peer == "mercer":
            with _clocks() as parts:
                started = time.perf_counter()
                SVC(**options).fit(data.X, data.y)
                whole = time.perf_counter() - started
            found["parts"] = {**parts, "rest": whole - sum(parts.values())}
        print(json.dumps(found), flush=True)


def measure(
    threads: Sequence[int],
    say: Callable[[str], None],
    *,
    cases: Sequence[str] = (),
    peers: Sequence[str] = ("mercer", PEER),
    repeats: int = 3,
    is_fast: bool = False,
    cache_mb: float = 4000.0,
) -> list[dict[str, Any]]:
    """Return the times of all cases; the peer runs with the most threads only."""
    known = list(FAST if is_fast else CASES)
    chosen = [name for name in known if not cases or name in cases]
    if not chosen:
        raise ValueError(
            f"--threads measures {', '.join(known)}, not {', '.join(cases)}."
        )
    facts: list[dict[str, Any]] = []
    jobs = [("mercer", count) for count in threads]
    if PEER in peers and not is_fast:
        jobs.append((PEER, max(threads)))
    for peer, count in jobs:
        job = {
            "peer": peer, "threads": count, "cases": chosen, "repeats": repeats,
            "is_fast": is_fast, "cache_mb": cache_mb,
        }  # fmt: skip
        command = [sys.executable, "-m", "benchmarks.scaling", json.dumps(job)]
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            if line.startswith("{"):
                facts.append(json.loads(line))
                say(_sentence(facts[-1]))
        errors = process.stderr.read()
        if process.wait():
            say(f"{peer}, {count} threads: {(errors.splitlines() or ['failed'])[-1]}")
    return facts


def _sentence(fact: dict[str, Any]) -> str:
    return (
        f"{fact['case']:<14} {fact['peer']:<20} {fact['threads']:>3} threads  "
        f"fit {fact['fit_seconds']:.3f} s  predict {fact['predict_seconds']:.3f} s"
    )


Lines = tuple[str, list[str], list[list[str]]]


def _in_order(facts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    mine = [fact for fact in facts if fact["peer"] == "mercer"]
    return sorted(mine, key=lambda fact: list(CASES | FAST).index(fact["case"]))


def _times(facts: Sequence[dict[str, Any]]) -> Lines:
    """Return title, headings and rows of the times of fits and predictions."""
    peers = {(f["case"], f["threads"]): f for f in facts if f["peer"] != "mercer"}
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


def show(console: Console, facts: Sequence[dict[str, Any]]) -> None:
    """Print the tables."""
    for title, headings, rows in (_times(facts), _parts(facts)):
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
    for title, headings, rows in (_times(facts), _parts(facts)):
        rule = ["---" if heading == "case" else "---:" for heading in headings]
        lines = [f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows)]
        parts.append("\n".join([f"### {title}", "", *lines]))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    _worker(json.loads(sys.argv[1]))
