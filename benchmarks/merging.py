"""One file of results from several runs, all of one commit on one machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["MergeError", "merged", "read_facts"]

# What must agree between runs whose results stand in one table.
ALIKE = ("commit", "cpu", "cores", "versions", "card")

Facts = dict[str, Any]


class MergeError(ValueError):
    """Results that do not belong together."""


def read_facts(path: Path) -> list[Facts]:
    """Return the results of a file; a file that does not exist has none."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def merged(old: list[Facts], new: list[Facts]) -> list[Facts]:
    """Return old results with new ones, which replace all rows of their cases.

    A case is replaced with all of its peers, since a ratio compares times of one run.
    """
    for name in ALIKE:
        values = {_text(facts["environment"].get(name)) for facts in old + new}
        if len(values) > 1:
            raise MergeError(
                f"The results differ in {name}: {' and '.join(sorted(values))}. "
                "Measure all parts again, or write to another file."
            )
    taken = {facts["case"] for facts in new}
    return [facts for facts in old if facts["case"] not in taken] + new


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
