"""The benchmark runs, tiny."""

import json

from benchmarks import linear


def test_linear_smoke_run(run_benchmark, tmp_path):
    assert run_benchmark(linear, "--fast", "--output", str(tmp_path)) == 0
    (path,) = tmp_path.glob("*.jsonl")
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert [facts["part"] for facts in found] == list(linear.PARTS)
    for facts in found[:-1]:
        assert facts["mercer_excess"] <= facts["sklearn_excess"] + 1e-6
    assert found[-1]["mercer_converged"]
