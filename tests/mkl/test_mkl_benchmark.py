"""The benchmark of multiple kernel learning runs, tiny."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments):
    hidden = ("MERCER_DATA", "MERCER_MKLPY")
    environment = {k: v for k, v in os.environ.items() if k not in hidden}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.mkl", *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True,
    )  # fmt: skip


def test_smoke_run(tmp_path):
    done = run("--fast", "--output", str(tmp_path), "loop", "mklpy", "large")
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*.jsonl")
    loop, mklpy, large = (json.loads(line) for line in path.read_text().splitlines())
    assert loop["p=1"]["mercer"]["converged"]
    assert loop["p=2"]["scikit-learn"]["relative_gap"] <= 1e-3
    assert "MERCER_MKLPY" in mklpy["skipped"]
    assert large["p=2"]["converged"]


def test_wrong_calls_are_explained():
    assert "unknown: easy. Known: mnist, loop" in run("--fast", "easy").stderr
    assert "MERCER_DATA is not set" in run("mnist").stderr
