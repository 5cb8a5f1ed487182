"""Compare two commits: ways taken, results to the last bit, certificates and times.

    python tools/compare_commits.py main              # the working tree against main
    python tools/compare_commits.py main HEAD --long  # two commits, more rounds
    python tools/compare_commits.py main --only ways,bits --allow bits

Code may move and change; what users get may not. Each side runs in fresh processes and
with an empty cache of compiled functions (:mod:`recorded_work` says what), and these
are compared:

- ways: which parts of the engines run in each case, by the table ``PLACES``. A move
  that renames a part adds the new place there. A side that has none of the places of a
  way is an error, so that a way cannot vanish unseen.
- bits: what each machine has learnt and predicts, to the last bit.
- certificates: what has converged stays so, and objectives agree within the dual gaps.
  This holds where bits may change, too.
- compilations: how many functions a first fit compiles; there may be fewer.
- times: the best of each process, of both sides in turn. A job is slower if the best of
  all and the median of the ratios are above the limit, and the lower quartile above 1.
  Other work on the computer hides what is a little slower.

It takes about ten minutes on two quiet cores. With ``MERCER_DATA``, digits are those of
MNIST. The exit status is 1 if anything has changed that ``--allow`` does not name.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("ways", "bits", "certificates", "compilations", "times")
# Processes of each side that measure times: by default, and with --long.
ROUNDS, LONG_ROUNDS = 5, 15
# A job may take so many times as long; one of less than so many seconds, longer.
SLOWER, BRIEF_SLOWER, BRIEF = 1.05, 1.2, 0.005


class Line(NamedTuple):
    """A line of the table: what was compared, and what came of it."""

    kind: str
    name: str
    changed: bool
    text: str


def largest_difference(old: Sequence[float], new: Sequence[float]) -> float:
    """Return the largest difference, relative to the largest value that differs."""
    first, second = np.asarray(old), np.asarray(new)
    if first.shape != second.shape:
        return np.inf
    differs = (first != second) & ~(np.isnan(first) & np.isnan(second))
    first, second = first[differs], second[differs]
    if not differs.any():
        return 0.0
    if not np.isfinite([first, second]).all():
        return np.inf
    return float(np.abs(first - second).max() / np.abs([first, second]).max())


def worsening(old: Mapping[str, list[float]], new: Mapping[str, list[float]]) -> str:
    """Tell how certificates are worse or contradict each other; "" if they are not."""
    if {k: len(v) for k, v in old.items()} != {k: len(v) for k, v in new.items()}:
        return "other certificates"
    before, after = (side.get("converged_", []) for side in (old, new))
    if any(a > b for a, b in zip(before, after, strict=True)):
        return "no longer converged"
    if {"objective_", "dual_gap_"} <= old.keys():
        values = (side[k] for k in ("objective_", "dual_gap_") for side in (old, new))
        for a, b, *gaps in zip(*values, strict=True):
            # Both are within their gaps of the same optimum.
            if not abs(a - b) <= max(*gaps, 0.0) + 1e-6 * max(abs(a), abs(b)):
                return (
                    f"objective {a:.8g} -> {b:.8g}, gaps {gaps[0]:.1e}, {gaps[1]:.1e}"
                )
    return ""


def compare_cases(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Line]:
    """Yield lines about ways, bits and certificates of all cases of both sides."""
    for name in dict.fromkeys([*old, *new]):
        if name not in old or name not in new:
            yield Line("ways", name, True, "on one side only")
            continue
        a, b = old[name], new[name]
        gone = [way for way in a["ways"] if way not in b["ways"]]
        come = [way for way in b["ways"] if way not in a["ways"]]
        text = f"{'; '.join(gone) or 'nothing'} -> {'; '.join(come) or 'nothing'}"
        is_other = bool(gone or come)
        yield Line("ways", name, is_other, text if is_other else "; ".join(a["ways"]))
        apart = largest_difference(a["values"], b["values"])
        yield Line(
            "bits", name, a["bits"] != b["bits"], f"largest difference {apart:.1e}"
        )
        worse = worsening(a["certificates"], b["certificates"])
        gap = max(b["certificates"].get("kkt_gap_", []), default=np.nan)
        yield Line("certificates", name, bool(worse), worse or f"KKT gap {gap:.1e}")


def compare_compilations(old: Mapping[str, Any], new: Mapping[str, Any]) -> Line:
    """Return the line about what a first fit ever compiles and takes."""
    a, b = old["compilations"], new["compilations"]
    text = f"{a} -> {b}, {old['seconds']:.1f} s -> {new['seconds']:.1f} s"
    return Line("compilations", "first fit of 5,000 samples", b > a, text)


def compare_times(
    old: Sequence[Mapping[str, float]], new: Sequence[Mapping[str, float]]
) -> Iterator[Line]:
    """Yield a line for each job; processes of the same place ran after each other."""
    for name in old[0]:
        before, after = ([process[name] for process in side] for side in (old, new))
        ratios = [b / a for a, b in zip(before, after, strict=True)]
        a, b = statistics.median(before), statistics.median(after)
        ratio, quartile = np.quantile(ratios, [0.5, 0.25])
        limit = BRIEF_SLOWER if a < BRIEF else SLOWER
        least = min(after) / min(before)
        text = f"{1e3 * a:.4g} -> {1e3 * b:.4g} ms, {ratio:.2f}"
        text += f" ({min(ratios):.2f} to {max(ratios):.2f}), best {least:.2f}"
        is_slower = min(ratio, least) > limit and quartile > 1.0
        yield Line("times", name, bool(is_slower), text)


def run(task: str, side: Path, place: Path, match: str) -> Any:
    """Do a task in a fresh process that imports the package of one side."""
    place.mkdir(exist_ok=True)
    out = place / f"{task}.json"
    script = Path(__file__).with_name("recorded_work.py")
    paths = {
        "PYTHONPATH": str(side / "src"),
        "NUMBA_CACHE_DIR": str(place / "compiled"),
    }
    command = [sys.executable, str(script), task, str(out), f"--match={match}"]
    subprocess.run(command, check=True, env={**os.environ, **paths}, cwd=place)
    told = json.loads(out.read_text())
    if not Path(told["package"]).resolve().is_relative_to(side.resolve()):
        raise RuntimeError(f"{told['package']} was imported, which is not in {side}.")
    return told["found"]


def compare(
    sides: Sequence[Path], kinds: Collection[str], rounds: int, match: str, place: Path
) -> Iterator[Line]:
    """Run both sides, and yield what came of it."""

    def both(task: str, at_once: int = 1, turn: int = 0) -> list[Any]:
        """Return what both sides found; they begin in turn."""
        order = [0, 1] if turn % 2 == 0 else [1, 0]
        with ThreadPoolExecutor(at_once) as pool:
            found = {
                i: pool.submit(run, task, sides[i], place / f"files-{i}", match)
                for i in order
            }
        return [found[i].result() for i in (0, 1)]

    if "compilations" in kinds:
        yield compare_compilations(*both("first"))
    if {"ways", "bits", "certificates"} & set(kinds):
        lines = [*compare_cases(*both("record", at_once=2))]
        yield from (
            line for kind in KINDS for line in lines if line.kind == kind in kinds
        )
    if "times" in kinds:
        both("measure", at_once=2)  # compiles what is not compiled yet
        yield from compare_times(
            *zip(*(both("measure", turn=turn) for turn in range(rounds)), strict=True)
        )


def report(lines: Iterable[Line], allowed: Collection[str], is_full: bool) -> bool:
    """Print a table of each kind; return whether something changed that may not."""
    is_changed = False
    for kind, group in groupby(lines, key=lambda line: line.kind):
        own = list(group)
        n_changed = sum(line.changed for line in own)
        is_changed |= n_changed > 0 and kind not in allowed
        sys.stdout.write(f"\n{kind}: {n_changed} of {len(own)} changed\n")
        for line in own:
            if line.changed or is_full or kind in ("times", "compilations"):
                mark = "CHANGED" if line.changed else "       "
                sys.stdout.write(f"  {mark} {line.name}: {line.text}\n")
        sys.stdout.flush()
    return is_changed


def checkout(name: str, place: Path) -> Path:
    """Return a folder as it is, or a commit as a new work tree."""
    if (Path(name) / "src" / "mercer").is_dir():
        return Path(name).resolve()
    command = ["git", "-C", str(ROOT), "worktree", "add", "--detach", str(place), name]
    subprocess.run(command, check=True, capture_output=True)
    return place


def main() -> int:
    """Compare two sides; return 1 if what must not change has changed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("old", help="a commit, or a folder")
    parser.add_argument("new", nargs="?", default=str(ROOT), help="this work tree")
    parser.add_argument("--only", default=",".join(KINDS), help="kinds to compare")
    parser.add_argument("--allow", default="", help="kinds that may change")
    parser.add_argument("--match", default="", help="cases whose names have this text")
    parser.add_argument("--long", action="store_true", help="more rounds of times")
    parser.add_argument(
        "--full", action="store_true", help="print what is the same too"
    )
    told = parser.parse_args()
    kinds, allowed = ([k for k in t.split(",") if k] for t in (told.only, told.allow))
    if unknown := {*kinds, *allowed} - set(KINDS):
        parser.error(f"unknown kinds {sorted(unknown)}; there are {', '.join(KINDS)}")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        try:
            sides = [
                checkout(told.old, place / "old"),
                checkout(told.new, place / "new"),
            ]
            rounds = LONG_ROUNDS if told.long else ROUNDS
            lines = compare(sides, kinds, rounds, told.match, place)
            return int(report(lines, allowed, told.full))
        finally:
            for name in ("old", "new"):
                if (place / name).exists():
                    remove = ["git", "-C", str(ROOT), "worktree", "remove", "--force"]
                    subprocess.run([*remove, str(place / name)], check=False)


if __name__ == "__main__":
    sys.exit(main())
