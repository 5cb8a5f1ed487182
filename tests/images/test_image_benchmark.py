"""The benchmark runs, tiny."""

import json

import pytest
from benchmarks import images


def test_smoke_run(run_benchmark, tmp_path):
    assert (
        run_benchmark(
            images, "--fast", "--output", str(tmp_path), "hog", "clean", "mnist-5000"
        )
        == 0
    )
    (path,) = tmp_path.glob("*.jsonl")
    hog, clean, mnist = (json.loads(line) for line in path.read_text().splitlines())
    assert hog["largest_difference"] < 1e-6
    assert hog["ratio"] > 1
    assert clean["hough_seconds"] > 0
    assert mnist["test_accuracy"] > 0.9
    assert mnist["is_converged"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--fast", "sift"), "unknown: sift. Known: hog, clean"),
        (("hog",), "MERCER_DATA is not set"),
    ],
)
def test_wrong_calls_are_explained(run_benchmark, arguments, message, capsys):
    with pytest.raises(SystemExit):
        run_benchmark(images, *arguments)
    assert message in " ".join(capsys.readouterr().err.split())
