"""Write the tables of figures in the README and the documentation.

The tables are made from the results that are committed in ``benchmarks/results``, and
from nothing else::

    python tools/figures.py            # write the tables
    python tools/figures.py --check    # exit with 1 if a table is not up to date

A table stands between ``<!-- figures NAME -->`` and ``<!-- end of figures -->``. With
``<!-- figures NAME cases=mnist-5000,a9a -->`` it has these cases only, in this order.
The case ``cold-start`` has a table of its own, since it measures other things.

``kind=machine``, ``kind=scaling`` and ``kind=quality`` make tables of a run of
``python -m benchmarks --threads``, ``kind=card`` makes one of ``benchmarks.cuda``. A
NAME with a ``*`` stands for the newest file of such a name.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from cells import Facts, grid, listed, place_of, seconds, times
from core_tables import card_table, machine_table, quality_table, scaling_table

from mercer.runtime.writing import write_file

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = ("README.md", "docs/benchmarks.md", "docs/device.md")
PLACE = re.compile(
    r"(?P<start><!-- figures (?P<name>[\w.*-]+)(?: cases=(?P<cases>[\w,-]+))?"
    r"(?: kind=(?P<kind>\w+))? -->\n).*?(?P<end><!-- end of figures -->)",
    re.S,
)
KINDS = {
    "machine": machine_table,
    "scaling": scaling_table,
    "quality": quality_table,
    "card": card_table,
}
PEERS = (
    "mercer",
    "scikit-learn",
    "scikit-learn-parallel",
    "scikit-learn-intelex",
    "libsvm",
    "numpy",
)
TITLES = {
    "mercer": "Mercer",
    "scikit-learn-parallel": "scikit-learn, all cores",
    "libsvm": "LIBSVM",
    "numpy": "NumPy",
}
# What a row of a table measures, and how it is called.
TIMES = {
    "fit_seconds": "fit",
    "predict_seconds": "predict",
    "gram_seconds": "matrix",
}


def load(name: str) -> list[Facts]:
    """Return the results of one run; of several that fit a pattern, the newest.

    A pattern that no file fits has no results.
    """
    paths = sorted(RESULTS.glob(f"{name}.jsonl"))
    if not paths and "*" in name:
        return []
    if not paths:
        raise SystemExit(f"There are no results {name} in {RESULTS}.")
    lines = paths[-1].read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def cell(facts: Facts | None, own: Facts, kind: str) -> str:
    """Return a time, and how many times Mercer's time it is."""
    if facts is None:
        return "–"
    if kind not in facts:
        return facts["status"] if facts["status"] != "ok" else "–"
    text = seconds(facts[kind])
    if facts is not own:
        text += f" ({times(facts[kind] / own[kind])})"
    if kind != "predict_seconds" and "peak_mb" in facts:
        text += f", {facts['peak_mb']:.0f} MB"
    return text


def what(facts: Facts, kind: str) -> str:
    """Return the name of a row."""
    if kind == "predict_seconds":
        return f"predict {facts['n_test']:,}"
    return f"{facts['about']}: {TIMES[kind]}"


def chosen(results: list[Facts], names: str | None) -> dict[str, dict[str, Facts]]:
    """Return the results by case and peer: those of some cases, or all that fit."""
    cases: dict[str, dict[str, Facts]] = {}
    for facts in results:
        if facts["group"] not in ("slope", "growth"):
            cases.setdefault(facts["case"], {})[facts["peer"]] = facts
    if names is None:
        return cases
    wanted = names.split(",")
    if absent := [name for name in wanted if name not in cases]:
        raise SystemExit(f"The results have no case {absent[0]}.")
    return {name: cases[name] for name in wanted}


def warm_table(cases: dict[str, dict[str, Facts]]) -> list[list[str]]:
    """Return a row for each time of each case, with a column for each library."""
    having = [
        peer for peer in PEERS if any(peer in by_peer for by_peer in cases.values())
    ]
    lines = [["", *(TITLES.get(peer, peer) for peer in having), "KKT gap"]]
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
                    *(cell(by_peer.get(peer), own, kind) for peer in having),
                    f"{gap:.0e}" if is_first and gap is not None else "",
                ]
            )
    return lines


def cold_table(by_peer: dict[str, Facts]) -> list[list[str]]:
    """Return what a fresh process takes: the import, the first fit, and all of it."""
    lines = [["in a fresh process", "import", "first fit", "whole process"]]
    kinds = ("import_seconds", "fit_seconds", "process_seconds")
    for label, facts in by_peer.items():
        name, _, variant = label.partition(", ")
        title = ", ".join(filter(None, (TITLES.get(name, name), variant)))
        lines.append([title, *(seconds(facts[k]) for k in kinds if k in facts)])
    return lines


def table(results: list[Facts], names: str | None = None) -> str:
    """Return the tables of warm and of cold times, and how they were measured."""
    cases = chosen(results, names)
    cold = cases.pop("cold-start", None)
    parts = [grid(warm_table(cases))] if cases else []
    if cold is not None:
        parts.append(grid(cold_table(cold)))
    return "\n\n".join([*parts, foot(results, cases)]) + "\n"


def foot(results: list[Facts], cases: dict[str, dict[str, Facts]]) -> str:
    """Return where and how the results were measured."""
    anew = [
        by_peer["mercer"]["about"].split()[0]
        for by_peer in cases.values()
        if "kkt_gap" in by_peer.get("mercer", {})
    ]
    runs = max(facts.get("repeats", 0) for facts in results)
    return (
        f"{place_of(results[0])}; medians of up to {runs} runs, peers in turn, warm "
        "unless said. In brackets: how many times Mercer's time; then the peak memory "
        "of the process. The KKT gap is that of Mercer's solution: computed anew in "
        f"double precision for {listed(anew)}, otherwise as the fit reports it."
    )


def made(place: re.Match[str]) -> str:
    """Return a table that stands at a place of a page."""
    results = load(place["name"])
    if not results:
        text = "No run of this kind has been committed yet.\n"
    elif place["kind"] is None:
        text = table(results, place["cases"])
    elif place["kind"] in KINDS:
        text = KINDS[place["kind"]](results) + "\n"
    else:
        raise SystemExit(
            f"There is no table of the kind {place['kind']}; there are "
            f"{', '.join(KINDS)}."
        )
    return place["start"] + text + place["end"]


def rewritten(text: str) -> str:
    """Return a page with its tables made anew."""
    return PLACE.sub(made, text)


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
