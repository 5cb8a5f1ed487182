"""Tables of few cores, many cores and a card are made from the results of one run."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import core_tables  # noqa: E402
import figures  # noqa: E402
from benchmarks import cuda  # noqa: E402

CARD = {"name": "A card", "memory_mb": 2048, "cupy": "14", "cuda": "13.0",
        "driver": "580"}  # fmt: skip


def place(card=None):
    versions = {"python": "3", "numpy": "2", "numba": "0", "scikit-learn": "1"}
    found = {"date": "2026-01-02T03", "commit": "abc", "cpu": "X", "cores": 16,
             "versions": versions}  # fmt: skip
    return found | ({"card": card} if card else {})


def row(peer, threads, fit, device="cpu", **more):
    return {
        "case": "a", "about": "Data 10", "peer": peer, "threads": threads,
        "device": device, "status": "ok", "n_test": 1000, "fit_seconds": fit,
        "predict_seconds": fit / 10, "repeats": 3, "accuracy": 0.9, "converged": True,
        "peak_mb": 1234.0, "environment": place(CARD), **more,
    }  # fmt: skip


@pytest.fixture
def run():
    return [
        row("mercer", 2, 1.0, kkt_gap=9e-4),
        row("scikit-learn-intelex", 2, 5.0),
        row("mercer", 16, 0.5, kkt_gap=8e-4),
        row("scikit-learn-intelex", 16, 0.4, converged=False),
        {**row("scikit-learn", 1, 1.0), "status": "too long", "message": ""},
        row("mercer", 16, 0.05, "cuda", card_mb=500.0, kkt_gap=7e-4),
    ]


def test_one_table_has_few_cores_many_cores_and_a_card(run):
    lines = core_tables.machine_table(run).splitlines()
    assert lines[0] == (
        "|  | Two cores: Mercer | scikit-learn-intelex | scikit-learn, one core "
        "| Sixteen cores: Mercer | scikit-learn-intelex | Graphics card: Mercer |"
    )
    # A column where another library is ahead stays in.
    assert lines[2] == (
        "| Data 10: fit | 1.00 s | 5.00 s (5.0×) | too long | 0.50 s | 0.40 s (0.8×) "
        "| 50 ms (0.1×) |"
    )
    assert lines[3].startswith("| predict 1,000 | 0.10 s | 0.50 s (5.0×) |")
    assert "16 cores of X and one A card with 2 GiB (driver 580, CUDA 13.0" in lines[-1]
    assert (
        "on two cores and," in lines[-1] and '"Too long" was not measured' in lines[-1]
    )


def test_a_run_may_have_no_card_and_one_number_of_threads(run):
    one = [facts for facts in run if facts["threads"] == 2]
    lines = core_tables.machine_table(one).splitlines()
    assert lines[0].count("|") == 5 and "card" not in lines[0]
    assert lines[2] == "| Data 10: fit | 1.00 s | 5.00 s (5.0×) | – |"


def test_scaling_and_quality(run):
    lines = core_tables.scaling_table(run).splitlines()
    assert lines[0] == "|  | Two cores | Sixteen cores | Graphics card |"
    assert lines[2] == "| Data 10: fit | 1.00 s | 0.50 s (2.0×) | 50 ms (20×) |"
    lines = core_tables.quality_table(run).splitlines()
    assert lines[2] == (
        "| Data 10 | Mercer, two cores | 90.00% | 9e-04 | yes | 1,234 MB | – |"
    )
    assert "| scikit-learn-intelex, sixteen cores | 90.00% | – | no |" in lines[5]
    assert lines[6].endswith(
        "| Mercer, card | 90.00% | 7e-04 | yes | 1,234 MB | 500 MB |"
    )
    assert "too long" not in "".join(lines)


def test_the_processor_and_the_card_stand_beside_each_other():
    work = {
        "fit 5000 cpu seconds": 1.0, "fit 5000 cpu runs": [1.0, 1.0],
        "fit 5000 cpu gap": 1e-3, "fit 5000 cpu objective": -10.0,
        "fit 5000 cuda:1 seconds": 0.5, "fit 5000 cuda:1 runs": [0.5, 0.5],
        "fit 5000 cuda:1 gap": 9e-4, "fit 5000 cuda:1 objective": -10.001,
        "fit 5000 cuda:1 megabytes of the card": 2000.4, "fit 5000 cpu / cuda:1": 2.0,
    }  # fmt: skip
    whole = {
        "fit 581012 cuda seconds": 30.0, "fit 581012 cuda runs": [30.0],
        "fit 581012 cuda gap": 1e-3, "fit 581012 cuda objective": -1.0,
        "fit 581012 cuda megabytes of the card": 10.0,
    }  # fmt: skip
    facts = [
        {"part": "digits", **work, "environment": place(CARD)},
        {"part": "whole", **whole, "environment": place(CARD)},
    ]
    lines = core_tables.card_table(facts).splitlines()
    assert lines[2] == (
        "| MNIST: fit 5,000 | 1.00 s | 0.50 s (2.0×) | 1e-03 | 9e-04 | 1e-04 "
        "| 2,000 MB |"
    )
    assert lines[3].startswith("| covtype-like: fit 581,012 | – | 30 s | – | 1e-03 | –")
    assert "medians of up to 2 runs" in lines[-1]


def test_every_part_of_the_benchmark_of_cards_has_a_title():
    assert set(core_tables.TITLES) == set(cuda.PARTS)


def test_a_pattern_takes_the_newest_results(tmp_path, monkeypatch, run):
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    page = "<!-- figures *-and-card kind=machine -->\n<!-- end of figures -->"
    assert "No run of this kind" in figures.rewritten(page)
    for day, name in ((1, "old"), (2, "new")):
        (tmp_path / f"2026-01-0{day}-16-cores-and-card.jsonl").write_text(
            figures.json.dumps(run[0] | {"about": name})
        )
    again = figures.rewritten(figures.rewritten(page))
    assert "| new: fit | 1.00 s |" in again and "old" not in again
    with pytest.raises(SystemExit, match="no results none"):
        figures.rewritten(page.replace("*-and-card", "none"))
    with pytest.raises(SystemExit, match="no table of the kind else; there are mach"):
        figures.rewritten(page.replace("machine", "else"))
