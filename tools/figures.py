"""Write the tables of figures in the README and the documentation.

The tables are made from the results that are committed in ``benchmarks/results``, and
from nothing else::

    python tools/figures.py            # write the tables
    python tools/figures.py --check    # exit with 1 if a table is not up to date

A table stands between ``<!-- figures NAME -->`` and ``<!-- end of figures -->``.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from mercer.runtime.writing import write_file

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = ("README.md", "docs/benchmarks.md")
PLACE = re.compile(
    r"(<!-- figures (?P<name>[\w.-]+) -->\n).*?(<!-- end of figures -->)", re.S
)
PEERS = ("mercer", "scikit-learn", "scikit-learn-intelex", "libsvm")
TITLES = {"mercer": "Mercer", "libsvm": "LIBSVM"}
# What a row of a table measures, and how it is called.
TIMES = {
    "fit_seconds": "fit",
    "predict_seconds": "predict",
    "gram_seconds": "matrix",
}

Facts = dict[str, Any]


def load(name: str) -> list[Facts]:
    """Return the results of one run."""
    path = RESULTS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def seconds(value: float) -> str:
    """Return a time with as many digits as are worth reading."""
    if value < 0.1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def cell(facts: Facts | None, own: Facts, kind: str) -> str:
    """Return a time, and how many times Mercer's time it is."""
    if facts is None:
        return "–"
    if kind not in facts:
        return facts["status"] if facts["status"] != "ok" else "–"
    ratio = facts[kind] / own[kind]
    # A tenth decides whether a row is ahead or behind.
    return (
        f"{seconds(facts[kind])} ({ratio:.1f}×)"
        if ratio < 10
        else (f"{seconds(facts[kind])} ({ratio:.0f}×)")
    )


def what(facts: Facts, kind: str) -> str:
    """Return the name of a row."""
    if kind == "predict_seconds":
        return f"predict {facts['n_test']:,}"
    return f"{facts['about']}: {TIMES[kind]}"


def table(results: list[Facts]) -> str:
    """Return a row for each time of each case, with a column for each library."""
    cases: dict[str, dict[str, Facts]] = {}
    for facts in results:
        if facts["group"] not in ("slope", "growth"):
            cases.setdefault(facts["case"], {})[facts["peer"]] = facts
    having = [
        peer for peer in PEERS if any(peer in by_peer for by_peer in cases.values())
    ]
    lines = [
        ["", *(TITLES.get(peer, peer) for peer in having), "KKT gap", "peak memory"],
        ["---"] * (len(having) + 3),
    ]
    for by_peer in cases.values():
        own = by_peer.get("mercer")
        if own is None or own["status"] != "ok":
            continue
        for kind in TIMES:
            if kind not in own:
                continue
            is_first = kind != "predict_seconds"
            gap = own.get("kkt_gap", own.get("own_kkt_gap"))
            lines.append(
                [
                    what(own, kind),
                    seconds(own[kind]),
                    *(cell(by_peer.get(peer), own, kind) for peer in having[1:]),
                    f"{gap:.0e}" if is_first and gap is not None else "",
                    f"{own['peak_mb']:.0f} MB" if is_first and "peak_mb" in own else "",
                ]
            )
    place = results[0]["environment"]
    versions = place["versions"]
    named = ", ".join(
        f"{name} {versions[name]}"
        for name in ("numpy", "numba", "scikit-learn", "scikit-learn-intelex")
        if versions.get(name)
    )
    runs = max(facts.get("repeats", 0) for facts in results)
    foot = (
        f"{place['cores']} cores of {place['cpu']}, Python {versions['python']}, "
        f"{named}; {place['date'][:10]}, commit {place['commit'][:10]}; medians of up "
        f"to {runs} "
        "runs, peers in turn, warm. In brackets: how many times Mercer's time. The KKT "
        "gap is Mercer's, computed from scratch in double precision where the table of "
        "results has it, and so is the peak memory of the process."
    )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + f"\n\n{foot}\n"


def rewritten(text: str) -> str:
    """Return a page with its tables made anew."""
    return PLACE.sub(lambda m: m[1] + table(load(m["name"])) + m[3], text)


def main(arguments: list[str]) -> int:
    """Write the tables, or compare them with what is written."""
    stale = []
    for page in PAGES:
        path = ROOT / page
        text = path.read_text(encoding="utf-8")
        wanted = rewritten(text)
        if wanted == text:
            continue
        stale.append(page)
        if "--check" not in arguments:
            write_file(path, wanted)
    if stale and "--check" in arguments:
        sys.stderr.write(
            f"The tables of {', '.join(stale)} are not those of the committed results. "
            "Run python tools/figures.py.\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
