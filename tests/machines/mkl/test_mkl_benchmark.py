"""The benchmark of multiple kernel learning runs, tiny."""

import json
import sys

import pytest
from benchmarks import mkl


@pytest.fixture(autouse=True)
def without_mklpy(monkeypatch):
    monkeypatch.delenv("MERCER_MKLPY", raising=False)


def test_smoke_run(run_benchmark, tmp_path):
    assert (
        run_benchmark(
            mkl, "--fast", "--output", str(tmp_path), "loop", "mklpy", "large"
        )
        == 0
    )
    (path,) = tmp_path.glob("*.jsonl")
    loop, mklpy, large = (json.loads(line) for line in path.read_text().splitlines())
    assert loop["p=1, gap 0.001, SVC(tol=0.001)"]["mercer"]["converged"]
    plain = loop["p=2, gap 0.0001, SVC(tol=1e-05)"]["scikit-learn"]
    assert plain["relative_gap"] <= 1e-4
    assert "MERCER_MKLPY" in mklpy["skipped"]
    assert large["p=2"]["converged"]


def test_both_sides_get_the_same_matrices(run_benchmark, tmp_path, monkeypatch):
    """A Python without MKLpy answers with an error; Mercer's side is there anyway."""
    monkeypatch.setenv("MERCER_MKLPY", sys.executable)
    monkeypatch.setenv("MERCER_MKLPY_SIZE", "150")
    monkeypatch.setattr(mkl, "_MKLPY", "import sys; sys.exit('no MKLpy')")
    run_benchmark(mkl, "--fast", "--output", str(tmp_path), "mklpy")
    (path,) = tmp_path.glob("*.jsonl")
    facts = json.loads(path.read_text())
    assert facts["images"] == 150
    assert "no MKLpy" in facts["error"]
    for method in ("uniform", "alignment", "group-lasso"):
        assert facts[f"mercer {method}"]["converged"]
        assert facts[f"mercer {method}"]["accuracy"] > 0.8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--fast", "easy"), "unknown: easy. Known: mnist, loop"),
        (("mnist",), "MERCER_DATA is not set"),
    ],
)
def test_wrong_calls_are_explained(run_benchmark, arguments, message, capsys):
    with pytest.raises(SystemExit):
        run_benchmark(mkl, *arguments)
    assert message in " ".join(capsys.readouterr().err.split())
