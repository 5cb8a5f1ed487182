"""The benchmark runs, tiny."""

import json

from benchmarks import linear


def test_linear_smoke_run(run_benchmark, tmp_path):
    assert run_benchmark(linear, "--fast", "--output", str(tmp_path)) == 0
    (path,) = tmp_path.glob("*.jsonl")
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert [facts["part"] for facts in found] == list(linear.PARTS)
    for facts in found:
        if "mercer_excess" in facts:
            assert facts["mercer_excess"] <= facts["sklearn_excess"] + 1e-6
    by_part = {facts["part"]: facts for facts in found}
    assert by_part["grid"]["mercer_score"] == by_part["grid"]["plain_score"]
    assert by_part["raw-pixels"]["mercer_converged"]
