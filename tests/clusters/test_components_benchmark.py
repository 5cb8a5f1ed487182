import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments):
    environment = {k: v for k, v in os.environ.items() if k != "MERCER_DATA"}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.components", *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True,
    )  # fmt: skip


def test_components_smoke_run(tmp_path):
    done = run("--fast", "--repeats", "1", "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*.jsonl")
    pca, plain, kernel = (json.loads(line) for line in path.read_text().splitlines())
    assert pca["largest_relative_difference_of_eigenvalues"] < 1e-5
    assert abs(plain["inertia_over_sklearn"] - 1) < 1e-3
    assert abs(kernel["objective"] / kernel["reported"] - 1) < 1e-5


def test_wrong_parts_are_explained():
    assert "unknown: ica. Known: kernel-pca" in run("--fast", "ica").stderr
    assert "MERCER_DATA is not set" in run("k-means").stderr
