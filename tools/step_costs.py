"""Write what each step of the studies costs, for the bar of ``python -m studies``.

    python tools/step_costs.py sample=report full=report-full

Each folder is one of ``python -m studies --out``; several of one kind give the least
time of each step. Kinds that are not named keep their numbers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mercer.runtime.writing import write_file
from studies.report.costs import MEASURED


def read(folder: Path) -> dict[str, float]:
    """Return the seconds of all steps that a run has stored."""
    found: dict[str, float] = {}
    for path in sorted((folder / "results").glob("*.json")):
        stored = json.loads(path.read_text(encoding="utf-8"))
        for step in stored["steps"].values():
            if step["status"] == "done":
                found[f"{stored['study']}/{step['step']}"] = step["seconds"]
    return found


def main(arguments: list[str]) -> None:
    """Merge the times of all folders into the file."""
    known = json.loads(MEASURED.read_text(encoding="utf-8"))
    fresh: dict[str, dict[str, float]] = {}
    for argument in arguments:
        kind, _, folder = argument.partition("=")
        own = fresh.setdefault(kind, {})
        for name, seconds in read(Path(folder)).items():
            own[name] = round(min(seconds, own.get(name, seconds)), 2)
    text = json.dumps(known | fresh, indent=1, ensure_ascii=False, sort_keys=True)
    write_file(MEASURED, text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
