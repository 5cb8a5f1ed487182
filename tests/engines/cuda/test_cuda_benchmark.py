"""The benchmark of cards runs, tiny, with NumPy in the place of the card."""

import json

from benchmarks import cuda as benchmark


def test_smoke_run(run_benchmark, tmp_path, cuda):
    parts = ("digits", "grid", "gram", "components", "clusters", "kernels")
    options = ("--fast", "--repeats", "1", "--output", str(tmp_path))
    assert run_benchmark(benchmark, *options, *parts) == 0
    (path,) = tmp_path.glob("*.jsonl")
    found = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        found[row["part"]] = row
    assert set(found) == set(parts)
    digits = found["digits"]
    assert digits["fit 300 cpu converged"] and digits["fit 300 cuda converged"]
    assert digits["fit 300 cuda gap"] <= 1e-3
    close = abs(digits["fit 300 cuda objective"] / digits["fit 300 cpu objective"] - 1)
    assert close <= 1e-4
    assert digits["predict 100 cuda predictions that differ"] == 0
    assert digits["fit 300 cuda megabytes of the card"] > 0
    assert "run cpu / cuda" in found["gram"]
