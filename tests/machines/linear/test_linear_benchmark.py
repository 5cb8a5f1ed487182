"""The benchmarks run, tiny."""

import json

from benchmarks import linear, linear_gaps


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


def test_gaps_smoke_run(run_benchmark, tmp_path):
    some = ["mnist-5000-squared", "mnist-5000-hinge"]
    options = ["--fast", "--output", str(tmp_path)]
    assert run_benchmark(linear_gaps, *some, *options) == 0
    (path,) = tmp_path.glob("*.jsonl")
    for facts in map(json.loads, path.read_text().splitlines()):
        assert facts["mercer_default_excess"] <= 1e-4
        for name, runs in facts["runs"].items():
            excesses = [excess for excess, *_ in runs]
            assert min(excesses) > -1e-6, name  # nothing is below the lower bound
            assert excesses[-1] < excesses[0], name
