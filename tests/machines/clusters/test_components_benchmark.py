"""The benchmark runs, tiny."""

import json

import pytest
from benchmarks import components


def test_components_smoke_run(run_benchmark, tmp_path):
    assert (
        run_benchmark(components, "--fast", "--repeats", "1", "--output", str(tmp_path))
        == 0
    )
    (path,) = tmp_path.glob("*.jsonl")
    pca, plain, kernel = (json.loads(line) for line in path.read_text().splitlines())
    assert pca["largest_relative_difference_of_eigenvalues"] < 1e-5
    assert abs(plain["inertia_over_sklearn"] - 1) < 1e-3
    assert abs(kernel["objective"] / kernel["reported"] - 1) < 1e-5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--fast", "ica"), "unknown: ica. Known: kernel-pca"),
        (("k-means",), "MERCER_DATA is not set"),
    ],
)
def test_wrong_parts_are_explained(run_benchmark, arguments, message, capsys):
    with pytest.raises(SystemExit):
        run_benchmark(components, *arguments)
    assert message in " ".join(capsys.readouterr().err.split())
