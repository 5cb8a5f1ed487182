"""Results on disk: one JSON file for each study, which is complete at any moment."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mercer.runtime.writing import write_file
from studies.report.outcomes import Outcome
from studies.results import from_json, to_json

__all__ = ["StoredResults", "step_key"]

# Raise this number when the meaning of stored results changes.
FORMAT = 3


def step_key(study: str, step: str, settings: Mapping[str, Any], facts: Any) -> str:
    """Return a digest of everything that decides the results of a step."""
    everything = [FORMAT, study, step, settings, facts]
    text = json.dumps(everything, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


class StoredResults:
    """The outcomes of the steps of one study, by key.

    A file that cannot be read is renamed, and the study starts again.
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
        """Return the outcome with this key, or None if there is none."""
        stored = self._steps.get(key)
        if stored is None:
            return None
        items = tuple(from_json(item) for item in stored["items"])
        return Outcome(**{**stored, "items": items})

    def put(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome; it is on disk when this function returns."""
        items = [to_json(item) for item in outcome.items]
        self._steps[key] = {**outcome._asdict(), "items": items}
        everything = {"format": FORMAT, "study": self._study, "steps": self._steps}
        text = json.dumps(everything, indent=1, allow_nan=False)
        write_file(self.path, text, makes_folder=True)
