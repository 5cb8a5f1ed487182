import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments):
    environment = {k: v for k, v in os.environ.items() if k != "MERCER_DATA"}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.selection", *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True,
    )  # fmt: skip


def test_smoke_run(tmp_path):
    peer = "scikit-learn over mercer"
    done = run("--fast", "--output", str(tmp_path), "mercer", peer)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*.jsonl")
    mercer, other = (json.loads(line) for line in path.read_text().splitlines())
    assert mercer["ratio"] == 1.0
    assert other["seconds"] > 0
    assert other["largest_difference"] <= 1
    assert other["best_params"] == mercer["best_params"]


def test_wrong_calls_are_explained():
    assert "unknown: optuna. Known: mercer" in run("--fast", "optuna").stderr
    assert "MERCER_DATA is not set" in run().stderr
