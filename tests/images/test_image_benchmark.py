import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments):
    environment = {k: v for k, v in os.environ.items() if k != "MERCER_DATA"}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.images", *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True,
    )  # fmt: skip


def test_smoke_run(tmp_path):
    done = run("--fast", "--output", str(tmp_path), "hog", "clean", "mnist-5000")
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*.jsonl")
    hog, clean, mnist = (json.loads(line) for line in path.read_text().splitlines())
    assert hog["largest_difference"] < 1e-6
    assert hog["ratio"] > 1
    assert clean["hough_seconds"] > 0
    assert mnist["test_accuracy"] > 0.9
    assert mnist["is_converged"]


def test_wrong_calls_are_explained():
    assert "unknown: sift. Known: hog, clean" in run("--fast", "sift").stderr
    assert "MERCER_DATA is not set" in run("hog").stderr
