"""The benchmark of multiple kernel learning runs, tiny."""

import json
import sys

import pytest
from benchmarks import mkl


@pytest.fixture
def run(monkeypatch):
    """Return what runs the program, in this process: a new one has to import again."""
    for name in ("MERCER_DATA", "MERCER_MKLPY"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["benchmarks.mkl", *arguments])
        return mkl.main()

    return call


def test_smoke_run(run, tmp_path):
    assert run("--fast", "--output", str(tmp_path), "loop", "mklpy", "large") == 0
    (path,) = tmp_path.glob("*.jsonl")
    loop, mklpy, large = (json.loads(line) for line in path.read_text().splitlines())
    assert loop["p=1, gap 0.001, SVC(tol=0.0001)"]["mercer"]["converged"]
    assert (
        loop["p=2, gap 0.001, SVC(tol=0.0001)"]["scikit-learn"]["relative_gap"] <= 1e-3
    )
    assert "MERCER_MKLPY" in mklpy["skipped"]
    assert large["p=2"]["converged"]


def test_both_sides_get_the_same_matrices(run, tmp_path, monkeypatch):
    """A Python without MKLpy answers with an error; Mercer's side is there anyway."""
    monkeypatch.setenv("MERCER_MKLPY", sys.executable)
    monkeypatch.setenv("MERCER_MKLPY_SIZE", "150")
    monkeypatch.setattr(mkl, "_MKLPY", "import sys; sys.exit('no MKLpy')")
    run("--fast", "--output", str(tmp_path), "mklpy")
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
def test_wrong_calls_are_explained(run, arguments, message, capsys):
    with pytest.raises(SystemExit):
        run(*arguments)
    assert message in " ".join(capsys.readouterr().err.split())
