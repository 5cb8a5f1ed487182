"""Run each measurement in a process of its own, and collect the answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.cases import Case
from benchmarks.record import Record

__all__ = ["SLOW_SECONDS", "Options", "Session"]

ROOT = Path(__file__).resolve().parents[1]
# A peer whose first run takes longer than this is not run again.
SLOW_SECONDS = 60.0
LEAST_CACHE_MB = 1000.0


class Options(NamedTuple):
    """How to measure."""

    repeats: int = 3
    is_fast: bool = False
    is_certified: bool = True
    time_limit: float = 3600.0
    cache_mb: float | None = None


@dataclass
class Session:
    """Measurements of one run of the program."""

    options: Options
    say: Callable[[str], None]
    records: list[Record] = field(default_factory=list)
    _primed: set[str] = field(default_factory=set)
    _absent: dict[str, dict] = field(default_factory=dict)

    def measure(self, case: Case) -> None:
        """Measure one case, and add a record for each of its peers."""
        if case.kind == "cold":
            self._measure_cold(case)
            return
        with tempfile.TemporaryDirectory(prefix="mercer-bench-") as folder:
            if case.kind == "fit" and not self.options.is_fast:
                for peer in case.peers:
                    self._prime(case, peer, folder)
            mine: dict[str, Record] = {}
            for repeat, peer in self._turns(case.peers):
                if peer not in mine:
                    mine[peer] = Record(case, peer, self._cache_mb(case, peer))
                    self.records.append(mine[peer])
                record = mine[peer]
                if repeat > 0 and record.is_finished(SLOW_SECONDS):
                    continue
                job = self._job(case, peer, f"{folder}/{peer}-{repeat}.npz")
                answer = self._absent.get(peer) or self._call("worker", job)
                self._keep(record, answer, repeat)
            if case.kind == "fit" and case.is_certified and self.options.is_certified:
                self._certify(case, mine, folder)

    def _turns(self, peers: tuple[str, ...]) -> Iterator[tuple[int, str]]:
        """Yield (repeat, peer); each repeat begins with another peer."""
        for repeat in range(self.options.repeats):
            first = repeat % len(peers)
            for peer in peers[first:] + peers[:first]:
                yield repeat, peer

    def _measure_cold(self, case: Case) -> None:
        variants = [
            (peer, variant)
            for peer in case.peers
            for variant in (
                ("empty cache", "filled cache") if peer == "mercer" else ("",)
            )
        ]
        mine = {v: Record(case, v[0], None, variant=v[1]) for v in variants}
        self.records.extend(mine.values())
        for repeat in range(self.options.repeats):
            with tempfile.TemporaryDirectory(prefix="mercer-numba-") as folder:
                for peer, variant in variants:
                    job = {"peer": peer, "n": case.n, "seed": case.seed}
                    started = time.perf_counter()
                    answer = self._call("first_fit", job, NUMBA_CACHE_DIR=folder)
                    answer["process_seconds"] = time.perf_counter() - started
                    self._keep(mine[peer, variant], answer, repeat)

    def _prime(self, case: Case, peer: str, folder: str) -> None:
        """Run a process that only compiles, so that measured processes find a cache.

        Compilation takes memory, which would count in the peak.
        """
        # Only Mercer compiles, and the code that it compiles depends on the case.
        key = f"{peer} {case.name}" if peer == "mercer" else peer
        if key in self._primed:
            return
        self._primed.add(key)
        job = self._job(case, peer, f"{folder}/{peer}.npz") | {"warm_only": True}
        answer = self._call("worker", job)
        if answer["status"] == "not installed":
            self._absent[peer] = answer

    def _certify(self, case: Case, mine: dict[str, Record], folder: str) -> None:
        files = {
            peer: f"{folder}/{peer}-0.npz"
            for peer, record in mine.items()
            if record.runs
        }
        if not files:
            return
        job = {"kind": "certify", "case": case.name, "is_fast": self.options.is_fast}
        answer = self._call("worker", job | {"duals": files})
        if answer["status"] != "ok":
            self.say(f"{case.name}: certificates failed: {answer['message']}")
        for peer, certificate in answer.get("certificates", {}).items():
            mine[peer].certificate = certificate

    def _cache_mb(self, case: Case, peer: str) -> float | None:
        """Return the megabytes for kernel values; None is Mercer's default.

        The other peers get as much as Mercer's default is on this machine.
        """
        given = self.options.cache_mb or case.cache_mb
        if given is not None or peer == "mercer":
            return given
        return self._default_mb

    @cached_property
    def _default_mb(self) -> float:
        from mercer.engines.cpu.tiles import budget_bytes

        return max(LEAST_CACHE_MB, round(budget_bytes("auto") / 2**20))

    def _job(self, case: Case, peer: str, duals: str) -> dict[str, Any]:
        return {
            "kind": case.kind,
            "case": case.name,
            "is_fast": self.options.is_fast,
            "peer": peer,
            "cache_mb": self._cache_mb(case, peer),
            "duals": duals,
            "warm_only": False,
        }

    def _keep(self, record: Record, answer: dict, repeat: int) -> None:
        record.add(answer)
        if answer["status"] == "not installed":
            self._absent[record.peer] = answer
        times = "  ".join(
            f"{name.removesuffix('_seconds')} {seconds:.3f} s"
            for name, seconds in answer.items()
            if name.endswith("_seconds") and name != "floor_seconds"
        )
        outcome = times if answer["status"] == "ok" else answer["message"]
        self.say(
            f"{record.case.name:<22} {record.label:<22} "
            f"{repeat + 1}/{self.options.repeats}  {outcome}"
        )

    def _call(self, module: str, job: dict, **variables: str) -> dict[str, Any]:
        """Run a process for a job; return its answer, with a status and a message."""
        environment = os.environ | variables
        if "MERCER_DATA" in environment:
            environment["MERCER_DATA"] = os.path.abspath(environment["MERCER_DATA"])
        command = [sys.executable, "-m", f"benchmarks.{module}", json.dumps(job)]
        limit = self.options.time_limit if job.get("kind") != "certify" else None
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True,
                timeout=limit,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"status": "time limit", "message": f"more than {limit:g} s"}
        if done.returncode < 0:
            message = f"killed by signal {-done.returncode}"
            return {"status": "failed", "message": message}
        if done.returncode > 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return {"status": "failed", "message": last}
        return json.loads(done.stdout.splitlines()[-1])
