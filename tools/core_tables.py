"""Tables of one run on one machine: few cores, many cores, and a graphics card.

The results are those of ``python -m benchmarks --threads 2,16 --device cuda`` and of
``python -m benchmarks.cuda``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cells import Facts, grid, place_of, seconds, times

__all__ = ["card_table", "machine_table", "quality_table", "scaling_table"]

INTELEX = "scikit-learn-intelex"
KINDS = {"fit_seconds": "fit", "predict_seconds": "predict"}
# The title of each part of benchmarks/cuda.py.
TITLES = {
    "digits": "MNIST",
    "schemes": "MNIST",
    "sigmoids": "MNIST with probabilities",
    "parity": "MNIST, even against odd",
    "a9a": "a9a",
    "ijcnn1": "ijcnn1",
    "covtype": "covtype-like",
    "whole": "covtype-like",
    "grid": "MNIST, 18 settings in 5 folds",
    "gram": "MNIST, kernel matrix",
    "components": "MNIST, kernel PCA",
    "clusters": "MNIST, kernel k-means",
    "kernels": "MNIST, three kernels (MKL)",
}
MEASURE = re.compile(r"(?P<work>.*?\d+) (?P<device>cpu|cuda(?::\d+)?) (?P<what>.*)")


class Run:
    """The results of one run by case, library, device and number of threads."""

    def __init__(self, results: list[Facts]):
        self.results = results
        self.cases = list(dict.fromkeys(facts["case"] for facts in results))
        self.threads = sorted(
            {f["threads"] for f in results if f["peer"] == "mercer" and _is_cpu(f)}
        )
        self.has_card = any(not _is_cpu(facts) for facts in results)

    def mercer(self, case: str, threads: int) -> Facts | None:
        return self._found(case, "mercer", threads)

    def intelex(self, case: str, threads: int) -> Facts | None:
        return self._found(case, INTELEX, threads)

    def sklearn(self, case: str) -> Facts | None:
        return self._found(case, "scikit-learn", 1)

    def card(self, case: str) -> Facts | None:
        return next(
            (f for f in self.results if f["case"] == case and not _is_cpu(f)), None
        )

    def _found(self, case: str, peer: str, threads: int) -> Facts | None:
        wanted = (case, peer, threads)
        for facts in self.results:
            found = (facts["case"], facts["peer"], facts["threads"])
            if found == wanted and _is_cpu(facts):
                return facts
        return None

    def foot(self, *sentences: str) -> str:
        runs = max(facts.get("repeats", 0) for facts in self.results)
        once = {f["peer"] for f in self.results if f.get("repeats") == 1}
        start = (
            f"{place_of(self.results[0])}; medians of up to {runs} runs, after one "
            "that warms up and does not count."
        )
        if once:
            start += f" Those of {' and '.join(sorted(once))} are of its first run."
        return " ".join([start, *sentences])


def _is_cpu(facts: Facts) -> bool:
    return facts["device"] == "cpu"


def _time(facts: Facts | None, kind: str, own: Facts | None = None) -> str:
    """Return a time, and how many times that of ``own`` it is."""
    if facts is None:
        return "–"
    if facts["status"] != "ok":
        return facts["status"]
    text = seconds(facts[kind])
    if own is not None and own["status"] == "ok":
        text += f" ({times(facts[kind] / own[kind])})"
    return text


def _names(run: Run, case: str) -> Iterable[tuple[str, str]]:
    """Return the two kinds of time of a case, and the names of their rows."""
    facts = next(facts for facts in run.results if facts["case"] == case)
    yield "fit_seconds", f"{facts['about']}: fit"
    yield "predict_seconds", f"predict {facts['n_test']:,}"


def machine_table(results: list[Facts]) -> str:
    """Return the times of all libraries on the fewest and the most cores and a card."""
    run = Run(results)
    few, many = run.threads[0], run.threads[-1]
    groups = [(few, _cores(few)), (many, _cores(many))]
    groups = groups[: 1 if few == many else 2]
    heads = [""]
    for count, text in groups:
        heads += [f"{text}: Mercer", INTELEX]
        if count == few:
            heads.append("scikit-learn, one core")
    if run.has_card:
        heads.append("Graphics card: Mercer")
    lines = [heads]
    for case in run.cases:
        for kind, name in _names(run, case):
            line = [name]
            for count, _ in groups:
                own = run.mercer(case, count)
                line += [_time(own, kind), _time(run.intelex(case, count), kind, own)]
                if count == few:
                    line.append(_time(run.sklearn(case), kind, own))
            if run.has_card:
                most = run.mercer(case, many)
                line.append(_time(run.card(case), kind, most))
            lines.append(line)
    told = f"In brackets: how many times the time of Mercer on {_cores(few).lower()}"
    if few != many:
        told += f" and, from the next column of Mercer on, on {_cores(many).lower()}"
    told += "; below 1 is faster."
    if any(facts["status"] == "too long" for facts in results):
        told += (
            ' "Too long" was not measured: judging by fewer samples, the fit and the '
            "predictions together would take more than a minute and a half."
        )
    return grid(lines) + "\n\n" + run.foot(told)


def _cores(count: int) -> str:
    words = {1: "One", 2: "Two", 4: "Four", 8: "Eight", 16: "Sixteen"}
    return f"{words.get(count, count)} core{'s' if count > 1 else ''}"


def scaling_table(results: list[Facts]) -> str:
    """Return Mercer's times by number of threads, and how many times faster each is."""
    run = Run(results)
    first, *more = run.threads
    heads = ["", *(_cores(count) for count in run.threads)]
    lines = [[*heads, "Graphics card"] if run.has_card else heads]
    for case in run.cases:
        for kind, name in _names(run, case):
            base = run.mercer(case, first)
            line = [name, _time(base, kind)]
            line += [_faster(run.mercer(case, count), kind, base) for count in more]
            if run.has_card:
                line.append(_faster(run.card(case), kind, base))
            lines.append(line)
    told = f"In brackets: how many times as fast as {_cores(first).lower()}."
    return grid(lines) + "\n\n" + run.foot(told)


def _faster(facts: Facts | None, kind: str, base: Facts | None) -> str:
    text = _time(facts, kind)
    if facts and base and facts["status"] == base["status"] == "ok":
        text += f" ({times(base[kind] / facts[kind])})"
    return text


def quality_table(results: list[Facts]) -> str:
    """Return how good the solutions are, and the memory that each library took."""
    run = Run(results)
    lines = [["", "", "accuracy", "KKT gap", "converged", "peak memory"]]
    if run.has_card:
        lines[0].append("memory of the card")
    for case in run.cases:
        title = None
        for facts in (f for f in results if f["case"] == case and f["status"] == "ok"):
            title = facts["about"] if title is None else ""
            place = _cores(facts["threads"]).lower()
            peer = "Mercer" if facts["peer"] == "mercer" else facts["peer"]
            line = [
                title,
                f"{peer}, {place if _is_cpu(facts) else 'card'}",
                f"{facts['accuracy']:.2%}",
                f"{facts['kkt_gap']:.0e}" if "kkt_gap" in facts else "–",
                "yes" if facts["converged"] else "no",
                f"{facts['peak_mb']:,.0f} MB",
            ]
            if run.has_card:
                held = facts.get("card_mb")
                line.append("–" if held is None else f"{held:,.0f} MB")
            lines.append(line)
    told = (
        "The KKT gap is the largest of all machines, as Mercer's fit reports it; other "
        "libraries report none."
    )
    return grid(lines) + "\n\n" + run.foot(told)


def card_table(results: list[Facts]) -> str:
    """Return the processor and the card beside each other, piece of work by piece."""
    heads = ["", "processor", "card", "KKT gap: processor", "card"]
    heads += ["objectives differ by", "memory of the card"]
    lines, runs = [heads], 0
    for facts in results:
        for work, (here, there) in _works(facts).items():
            runs = max(runs, len(there["runs"]))
            ratio = f" ({times(here['seconds'] / there['seconds'])})" if here else ""
            lines.append(
                [
                    f"{TITLES[facts['part']]}: {_with_commas(work)}",
                    seconds(here["seconds"]) if here else "–",
                    seconds(there["seconds"]) + ratio,
                    *(f"{d['gap']:.0e}" if "gap" in d else "–" for d in (here, there)),
                    _difference(here, there),
                    f"{there['megabytes of the card']:,.0f} MB",
                ]
            )
    told = (
        f"{place_of(results[0])}; medians of up to {runs} runs on each, in turn, after "
        "a warm-up. The processor uses all its threads, and copies to the card and "
        "back count. In brackets: how many times as fast as the processor. Objectives "
        "differ by a part of their value, summed over all machines."
    )
    return grid(lines) + "\n\n" + told


def _works(facts: Facts) -> dict[str, tuple[Facts, Facts]]:
    """Return what was measured of each piece of work, on the processor and the card."""
    found: dict[str, tuple[Facts, Facts]] = {}
    for name, value in facts.items():
        if match := MEASURE.fullmatch(name):
            both = found.setdefault(match["work"], ({}, {}))
            both[match["device"] != "cpu"][match["what"]] = value
    return found


def _with_commas(work: str) -> str:
    return re.sub(r"\d{4,}", lambda number: f"{int(number[0]):,}", work)


def _difference(here: Facts, there: Facts) -> str:
    if "objective" not in here or "objective" not in there:
        return "–"
    part = abs(there["objective"] / here["objective"] - 1)
    return f"{part:.0e}" if part else "0"
