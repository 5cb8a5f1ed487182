"""The benchmark of cards runs, tiny, with NumPy in the place of the card."""

import json
import shutil
from types import SimpleNamespace

from benchmarks import __main__ as comparison
from benchmarks import cuda as benchmark
from benchmarks import environment, scaling, scaling_worker


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
    assert "run 300 cpu / cuda" in found["gram"]


def test_a_part_that_fails_leaves_the_others(
    run_benchmark, tmp_path, cuda, monkeypatch, capsys
):
    def fails(options):
        raise MemoryError("The card is full.")

    monkeypatch.setitem(benchmark.PARTS, "grid", fails)
    monkeypatch.setitem(benchmark.PARTS, "gram", lambda options: {"a": 1.0})
    options = ("--fast", "--output", str(tmp_path))
    assert run_benchmark(benchmark, *options, "grid", "gram") == 1
    assert "The card is full." in capsys.readouterr().err
    (path,) = tmp_path.glob("*.jsonl")
    assert json.loads(path.read_text())["part"] == "gram"


def test_one_run_has_cores_and_the_card(run_benchmark, tmp_path, cuda, monkeypatch):
    # A process of its own would have no stand-in for the card.
    monkeypatch.setattr(scaling, "run_job", scaling_worker.rows)
    monkeypatch.setenv("MERCER_COMMIT", "abc123")
    few = scaling_worker.FAST["digits"]._replace(n=120, n_test=50)
    monkeypatch.setitem(scaling_worker.FAST, "digits", few)
    path = tmp_path / "2-cores-and-card.jsonl"
    options = ("--fast", "--threads", "1,2", "--device", "cuda", "--repeats", "2")
    peers = ("--peers", "mercer,scikit-learn")
    assert run_benchmark(comparison, *options, *peers, "--merge", str(path)) == 0
    facts = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(f["peer"], f["threads"], f["device"]) for f in facts] == [
        ("mercer", 1, "cpu"),
        ("mercer", 2, "cpu"),
        ("scikit-learn", 1, "cpu"),
        ("mercer", 2, "cuda"),
    ]
    for f in facts:
        assert f["status"] == "ok" and f["converged"] and f["peak_mb"] > 0
        assert f["accuracy"] == facts[0]["accuracy"]
        assert len(f["runs"]["fit_seconds"]) == f["repeats"] == 2
        assert f["environment"]["card"] == {"name": cuda.name}
        assert f["environment"]["commit"] == "abc123"
        assert f["peer"] != "mercer" or f["kkt_gap"] <= 1e-3
    assert facts[3]["card_mb"] > 0 and "parts" not in facts[3]
    # A second run replaces the rows of its cases.
    assert run_benchmark(comparison, *options, *peers, "--merge", str(path)) == 0
    assert len(path.read_text().splitlines()) == len(facts)


def test_cases_that_take_too_long_are_left_out(monkeypatch):
    job = {
        "peer": "scikit-learn", "threads": 1, "device": "cpu", "cases": ["digits"],
        "repeats": 1, "is_fast": True, "cache_mb": 100.0, "limit": 1e-9,
    }  # fmt: skip
    (row,) = scaling_worker.rows(job)
    assert row["status"] == "too long" and "limit is 1e-09 s" in row["message"]
    monkeypatch.setitem(scaling_worker.CLASSES, "scikit-learn", "no_such_package")
    (row,) = scaling_worker.rows(job)
    assert row["status"] == "not installed" and "no_such_package" in row["message"]


def test_the_card_is_described():
    properties = {"name": b"A card", "totalGlobalMem": 3 * 2**30}
    runtime = SimpleNamespace(
        getDeviceProperties=lambda number: properties,
        runtimeGetVersion=lambda: 13020,
        driverGetVersion=lambda: 13000,
    )
    xp = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime), __version__="14.0")
    found = environment.card_facts(SimpleNamespace(xp=xp, name="cuda:0"), 0)
    assert found.pop("driver") is None or shutil.which("nvidia-smi")
    assert found == {
        "name": "A card", "memory_mb": 3072.0, "cupy": "14.0", "cuda": "13.2",
        "driver_cuda": "13.0",
    }  # fmt: skip
