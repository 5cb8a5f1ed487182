"""Results on disk: one JSON file a study, whole at every moment."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mercer.studies.results import Item, from_json, to_json

__all__ = ["Outcome", "Store", "step_key", "write_atomically"]

# Raise it when stored results change their meaning.
FORMAT = 1


class Outcome(NamedTuple):
    """What became of a step."""

    step: str
    status: str  #: "done", "failed" or "unavailable"
    seconds: float
    items: Sequence[Item] = ()
    message: str = ""


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one, and no third."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def step_key(study: str, step: str, settings: Mapping[str, Any], run: Any) -> str:
    """Return a digest of all that decides the results of a step."""
    facts = [FORMAT, study, step, settings, run]
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


class Store:
    """The outcomes of one study's steps, by key.

    A file that cannot be read is put aside, and the study starts afresh.
    """

    def __init__(self, folder: Path, study: str):
        self.path = folder / f"{study}.json"
        self._study = study
        self._steps: dict[str, dict[str, Any]] = {}
        self._read()

    def _read(self) -> None:
        try:
            stored = json.loads(self.path.read_text(encoding="utf-8"))
            if stored["format"] == FORMAT:
                self._steps = {
                    key: dict(value) for key, value in stored["steps"].items()
                }
                for key in self._steps:
                    self.get(key)
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError, AttributeError):
            self._steps = {}
            self.path.replace(self.path.with_suffix(".damaged.json"))

    def get(self, key: str) -> Outcome | None:
        """Return the outcome with this key, if there is one."""
        stored = self._steps.get(key)
        if stored is None:
            return None
        items = tuple(from_json(item) for item in stored["items"])
        return Outcome(**{**stored, "items": items})

    def put(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome, on disk when this returns."""
        items = [to_json(item) for item in outcome.items]
        self._steps[key] = {**outcome._asdict(), "items": items}
        everything = {"format": FORMAT, "study": self._study, "steps": self._steps}
        write_atomically(self.path, json.dumps(everything, indent=1, allow_nan=False))
