"""One measurement: the runs of one peer on one case, and their summary."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from benchmarks.cases import Case

__all__ = ["Record", "slopes"]

# Names of the numbers that differ from run to run.
TIMED = (
    "prepare_seconds",
    "fit_seconds",
    "predict_seconds",
    "gram_seconds",
    "import_seconds",
    "process_seconds",
    "floor_seconds",
    "sgemm_gflops",
    "others_cores",
    "resident_mb",
    "peak_mb",
)


@dataclass
class Record:
    """The runs of one peer on one case."""

    case: Case
    peer: str
    cache_mb: float | None
    variant: str = ""
    runs: list[dict] = field(default_factory=list)
    status: str = "ok"
    message: str = ""
    certificate: dict = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name of the peer, and its variant if it has one."""
        return f"{self.peer}, {self.variant}" if self.variant else self.peer

    def add(self, answer: dict) -> None:
        """Add the answer of a process."""
        if answer["status"] == "ok":
            self.runs.append(answer)
        else:
            self.status, self.message = answer["status"], answer["message"]

    def is_finished(self, slow_seconds: float) -> bool:
        """Whether there should be no more runs, after a failure or a slow run."""
        if self.status != "ok":
            return True
        return sum(self.runs[0].get(name, 0.0) for name in TIMED[:4]) > slow_seconds

    def summary(self, environment: dict[str, Any], repeats: int) -> dict[str, Any]:
        """Return all facts as a JSON object.

        ``fit_seconds`` and the like are medians; ``runs`` has the values of every run.
        """
        case = self.case
        # A record that was interrupted before the end of its first run is not "ok".
        status = self.status if self.runs or self.status != "ok" else "not run"
        facts: dict[str, Any] = {
            "case": case.name,
            "group": case.group,
            "about": case.about,
            "peer": self.label,
            "status": status,
            "message": self.message,
            "data": case.data,
            "n": case.n,
            "n_test": case.n_test,
            "dtype": case.dtype,
            "setting": case.setting._asdict() if case.setting else None,
            "cache_mb": self.cache_mb,
            "seed": case.seed,
            "scheme": case.scheme,
            "repeats": len(self.runs),
            "repeats_wanted": repeats,
        }
        if self.runs:
            facts |= {k: v for k, v in self.runs[0].items() if k not in TIMED}
            facts["status"] = status
            for name in TIMED:
                values = [run[name] for run in self.runs if run.get(name) is not None]
                if values:
                    facts[name] = median(values)
        if "floor_seconds" in facts:
            facts["fit_over_floor"] = facts["fit_seconds"] / facts["floor_seconds"]
        names = [name for name in TIMED if any(name in run for run in self.runs)]
        facts["runs"] = {name: [run[name] for run in self.runs] for name in names}
        return facts | self.certificate | {"environment": environment}


def slopes(facts: list[dict]) -> list[dict[str, Any]]:
    """Return for each peer the exponent with which the fit time grows with n."""
    found = []
    for peer in dict.fromkeys(f["peer"] for f in facts if f["group"] == "growth"):
        points = [
            (f["n"], f["fit_seconds"])
            for f in facts
            if f["group"] == "growth" and f["peer"] == peer and "fit_seconds" in f
        ]
        if len(points) > 1:
            n, seconds = np.log(np.array(points, dtype=float)).T
            slope = float(np.polyfit(n, seconds, 1)[0])
            found.append({"case": "growth", "group": "slope", "peer": peer,
                          "status": "ok", "slope": slope,
                          "n": [int(p[0]) for p in points]})  # fmt: skip
    return found
