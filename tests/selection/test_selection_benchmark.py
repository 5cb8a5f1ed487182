"""The benchmark runs, tiny."""

import json

import pytest
from benchmarks import selection


def test_smoke_run(run_benchmark, tmp_path):
    peer = "scikit-learn over mercer"
    assert (
        run_benchmark(selection, "--fast", "--output", str(tmp_path), "mercer", peer)
        == 0
    )
    (path,) = tmp_path.glob("*.jsonl")
    mercer, other = (json.loads(line) for line in path.read_text().splitlines())
    assert mercer["ratio"] == 1.0
    assert other["seconds"] > 0
    assert other["largest_difference"] <= 1
    assert other["best_params"] == mercer["best_params"]


@pytest.mark.parametrize("data", ["letter", "pipeline", "wine", "three"])
def test_tables(run_benchmark, tmp_path, data):
    arguments = ("--fast", "--data", data, "--output", str(tmp_path))
    assert run_benchmark(selection, *arguments, "mercer") == 0
    (path,) = tmp_path.glob("*.jsonl")
    found = json.loads(path.read_text())
    assert found["data"] == data
    assert 0.2 < found["best_score"] <= 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--fast", "optuna"), "unknown: optuna. Known: mercer"),
        ((), "MERCER_DATA is not set"),
    ],
)
def test_wrong_calls_are_explained(run_benchmark, arguments, message, capsys):
    with pytest.raises(SystemExit):
        run_benchmark(selection, *arguments)
    assert message in " ".join(capsys.readouterr().err.split())
