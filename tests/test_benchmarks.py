import json
import os
import re
import subprocess
import sys
from argparse import Namespace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import SVC

import naive
from mercer.engines.cpu.zeros import LEAST_ROWS

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import figures  # noqa: E402
from benchmarks import tabular  # noqa: E402
from benchmarks.cases import PARTS, Setting, select  # noqa: E402
from benchmarks.data import WARM_ROWS, Data, warm_part  # noqa: E402
from benchmarks.floor import needed_values  # noqa: E402
from benchmarks.memory import peak_mb  # noqa: E402
from benchmarks.merging import MergeError, merged, read_facts  # noqa: E402
from benchmarks.objective import Duals, by_pair, certify  # noqa: E402
from benchmarks.peers import ScikitLearn  # noqa: E402
from benchmarks.processes import descendants, seconds_of_descendants  # noqa: E402
from benchmarks.table import markdown  # noqa: E402

RBF = Setting(C=20.0, gamma=2.0)
SETTINGS = [
    RBF,
    Setting(C=10.0, kernel="linear"),
    Setting(C=1.0, kernel="poly", gamma=0.3, degree=3, coef0=1.0),
]
LOOPS = {
    "rbf": (naive.rbf, ["gamma"]),
    "linear": (naive.linear, []),
    "poly": (naive.polynomial, ["gamma", "coef0", "degree"]),
}
FIELDS = {
    "case", "group", "peer", "status", "n", "n_test", "n_features", "n_classes",
    "dtype", "setting", "seed", "cache_mb", "repeats", "runs", "fit_seconds",
    "predict_seconds", "accuracy", "n_support", "objective", "kkt_gap",
    "infeasibility", "peak_mb", "environment",
}  # fmt: skip
PLACE = {"date", "commit", "cpu", "cores", "threads", "versions"}


def iris(n_classes):
    X, y = load_iris(return_X_y=True)
    # Setosa is easy; the binary problem is the hard pair.
    kept = y < 3 if n_classes == 3 else y > 0
    # Below 1: LIBSVM keeps kernel values in single precision, and what it prints for
    # a polynomial of large numbers is off by 2e-5.
    return (X[kept] / 8).astype(np.float32), y[kept] - y[kept].min()


def fitted(setting, n_classes):
    X, y = iris(n_classes)
    peer = ScikitLearn(setting, 100)
    peer.fit(peer.prepare(X, y))
    return X, y, peer.duals(y)


def run(*arguments, **variables):
    environment = {k: v for k, v in os.environ.items() if k != "MERCER_DATA"}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT, env=environment | variables, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_objective_is_what_libsvm_prints_inside_sklearn(setting, n_classes, capfd):
    X, y, duals = fitted(setting, n_classes)
    capfd.readouterr()
    SVC(**setting._asdict(), verbose=True).fit(X, y)
    printed = capfd.readouterr().out
    own = sum(float(part.split(",")[0]) for part in printed.split("obj = ")[1:])
    found = certify(X, y, duals, setting)
    assert found.objective == pytest.approx(own, rel=1e-6)
    assert 0.0 < found.kkt_gap <= 1.01e-3
    assert found.infeasibility < 1e-9
    assert found.n_gap_pairs == len(list(combinations(range(n_classes), 2)))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_gap_and_objective_equal_loops(setting, n_classes):
    X, y, duals = fitted(setting, n_classes)
    kernel, names = LOOPS[setting.kernel]
    numbers = {name: getattr(setting, name) for name in names}
    objective, gaps = 0.0, []
    for t, (a, b) in enumerate(combinations(range(n_classes), 2)):
        whole = np.zeros(len(y))
        whole[duals.support] = duals.coef[:, t]
        rows = np.flatnonzero((y == a) | (y == b))
        K = naive.block(kernel, X[rows], X[rows], **numbers)
        bound = np.full(len(rows), setting.C)
        problem = naive.c_svc(np.where(y[rows] == a, 1, -1), bound)
        objective += naive.objective(problem, K, whole[rows])
        gaps.append(naive.kkt_gap(problem, K, whole[rows]))
    found = certify(X, y, duals, setting)
    assert found.objective == pytest.approx(objective, rel=1e-10)
    assert found.kkt_gap == pytest.approx(max(gaps), rel=1e-6)


def test_gap_of_some_pairs_leaves_the_objective_alone():
    X, y, duals = fitted(RBF, 3)
    everything, part = certify(X, y, duals, RBF), certify(X, y, duals, RBF, [(0, 1)])
    assert part.n_gap_pairs == 1
    assert part.objective == pytest.approx(everything.objective, rel=1e-12)
    assert part.kkt_gap <= everything.kkt_gap


def test_a_wrong_solution_is_found_out():
    X, y, duals = fitted(RBF, 3)
    flipped = Duals(duals.support, -duals.coef)
    assert certify(X, y, flipped, RBF).infeasibility > 0.5
    smaller = certify(X, y, Duals(duals.support, 0.5 * duals.coef), RBF)
    assert smaller.kkt_gap > 0.1
    assert smaller.objective > certify(X, y, duals, RBF).objective


def test_order_of_classes_does_not_matter():
    # As LIBSVM has it, where classes come in the order of their first samples.
    X, y, duals = fitted(RBF, 3)
    order = [2, 0, 1]
    place = np.array([order.index(c) for c in range(3)])
    model = SVC(**RBF._asdict()).fit(X, place[y])
    coef = by_pair(model.dual_coef_, y[model.support_], order)
    other = certify(X, y, Duals(model.support_.astype(np.int64), coef), RBF)
    assert other.infeasibility < 1e-9
    assert other.kkt_gap <= 1.01e-3
    assert other.objective == pytest.approx(
        certify(X, y, duals, RBF).objective, rel=1e-5
    )


def test_values_that_a_fit_needs():
    y = np.array([0, 0, 1, 1, 1, 2])
    duals = Duals(np.array([0, 2]), np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.5]]))
    # Sample 0: its own 2 and the 3 of class 1; sample 2: 3, then 2 and 1.
    assert needed_values(duals, y, is_whole=False) == 5 + 6
    assert needed_values(duals, y, is_whole=True) == 21


def test_warm_part_is_large_and_has_all_classes():
    y = np.repeat([0, 1, 2], [100, 700, 700])
    X = np.arange(len(y), dtype=np.float32)[:, None]
    rows, labels = warm_part(Data(X, y, X, y))
    assert WARM_ROWS >= LEAST_ROWS
    assert np.bincount(labels).tolist() == [100, 500, 500]
    assert (y[rows.ravel().astype(int)] == labels).all()
    assert len(warm_part(Data(X[:50], y[:50], X, y))[0]) == 50


def test_smoke_run(tmp_path):
    done = run(
        "--fast", "--cases", "mnist-5000,a9a", "--peers", "mercer,scikit-learn",
        "--output", str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*.jsonl")
    facts = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(f["case"], f["peer"]) for f in facts] == [
        (case, peer)
        for case in ("mnist-5000", "a9a")
        for peer in ("mercer", "scikit-learn")
    ]
    for f in facts:
        assert f["status"] == "ok"
        assert set(f) >= FIELDS
        assert set(f["environment"]) >= PLACE
        assert len(f["runs"]["fit_seconds"]) == f["repeats"] == 1
        assert f["kkt_gap"] <= 1.01e-3
        assert f["infeasibility"] < 1e-6
    for mine, other in (facts[:2], facts[2:]):
        assert mine["fit_over_floor"] > 1.0
        assert mine["objective"] == pytest.approx(other["objective"], rel=1e-3)
    text = path.with_suffix(".md").read_text()
    assert text.count("| mercer |") == 2
    assert path.name in done.stdout.replace("\n", "")


@pytest.mark.slow
def test_smoke_run_of_schemes(tmp_path):
    done = run("--fast", "--cases", "schemes", "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*.jsonl")
    facts = [json.loads(line) for line in path.read_text().splitlines()]
    found = {(f["case"], f["peer"]): f for f in facts if f["status"] == "ok"}
    for (case, peer), f in found.items():
        own = found[case, "mercer"]
        assert set(f) >= FIELDS - {"objective", "kkt_gap", "infeasibility"}
        # Without their intercepts or with other codes, they would be far apart.
        assert f["accuracy"] == pytest.approx(own["accuracy"], abs=0.03)
        assert f["n_support"] == pytest.approx(own["n_support"], rel=0.02)
        assert "objective" not in f
        assert ("own_kkt_gap" in f) == (peer == "mercer")
        assert ("log_loss" in f) == (f["scheme"] == "probability")
        assert f["scheme"] != "probability" or 0.0 < f["log_loss"] < 1.0
    for case in ("mnist-5000-ovr", "mnist-5000-probability"):
        assert {peer for c, peer in found if c == case} >= {
            "mercer", "scikit-learn", "scikit-learn-parallel",
        }  # fmt: skip
    for case in ("mnist-5000-ecoc", "hundred-classes"):
        assert {"mercer", "scikit-learn"} <= {p for c, p in found if c == case}
    lines = path.with_suffix(".md").read_text().splitlines()
    assert sum("log-loss |" in line for line in lines) == 1


def test_a_worse_log_loss_is_remarked_and_an_absent_one_has_no_column():
    def fact(peer, **numbers):
        place = {"versions": {}, "cpu": "", "cores": 1, "threads": {"blas": []},
                 "commit": None, "date": ""}  # fmt: skip
        return {"case": "c", "group": "schemes", "peer": peer, "status": "ok",
                "repeats": 1, "repeats_wanted": 1, "runs": {}, "environment": place,
                **numbers}  # fmt: skip

    losses = {"mercer": 0.103, "scikit-learn": 0.1}
    text = markdown([fact(peer, log_loss=loss) for peer, loss in losses.items()])
    assert "c: Mercer's log-loss is 3.0% above that of scikit-learn." in text
    losses["mercer"] = 0.101
    text = markdown([fact(peer, log_loss=loss) for peer, loss in losses.items()])
    assert "log-loss |" in text and "above" not in text
    assert "log-loss" not in markdown([fact(peer) for peer in losses])


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_children_count_as_own():
    code = "x = b'1' * 10**8; print(); sum(range(3 * 10**7)); print(); input()"
    memory, seconds = peak_mb(), seconds_of_descendants()
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        assert child.pid in descendants()
        assert peak_mb() > memory + 90
        child.stdout.readline()
        while_alive = seconds_of_descendants()
        child.communicate(b"\n")
    assert while_alive > seconds + 0.1
    assert seconds_of_descendants() >= while_alive


def fact(case, peer, seconds, commit="abc", **more):
    """Return a result as files have it."""
    versions = {"python": "3", "numpy": "2", "numba": "0", "scikit-learn": "1"}
    place = {"date": "2026-01-02T03", "commit": commit, "cpu": "X", "cores": 2,
             "versions": versions}  # fmt: skip
    return {"case": case, "group": "mnist", "peer": peer, "status": "ok", "n_test": 10,
            "about": case, "repeats": 3, "fit_seconds": seconds,
            "environment": place, **more}  # fmt: skip


def test_every_part_has_cases_and_mercer():
    covered = set()
    for names, peers in PARTS.values():
        cases = select(names, peers, is_fast=False)
        assert [case.name for case in cases] == list(names)
        assert all(case.peers[0] == "mercer" for case in cases)
        assert not covered & set(names)  # a case is measured in one part only
        covered |= set(names)
    parts = re.search(r"^PARTS \?= (.*?[^\\])$", (ROOT / "Makefile").read_text(),
                      re.M | re.S)[1]  # fmt: skip
    assert parts.replace("\\", " ").split() == list(PARTS)


def test_results_of_parts_are_merged_by_case():
    old = [fact("a", "mercer", 1.0), fact("a", "libsvm", 2.0), fact("b", "mercer", 3.0)]
    new = [fact("a", "mercer", 4.0)]
    assert [(f["case"], f["fit_seconds"]) for f in merged(old, new)] == [
        ("b", 3.0),
        ("a", 4.0),
    ]
    with pytest.raises(MergeError, match="differ in commit: abc and xyz"):
        merged(old, [fact("c", "mercer", 1.0, commit="xyz")])


def test_a_part_goes_into_a_file(tmp_path):
    path = tmp_path / "two-cores.jsonl"
    options = ("--fast", "--part", "one-class", "--merge", str(path))
    done = run(*options)
    assert done.returncode == 0, done.stderr
    facts = read_facts(path)
    assert [(f["case"], f["peer"]) for f in facts] == [
        ("one-class", "mercer"),
        ("one-class", "scikit-learn"),
    ]
    for f in facts:
        f["environment"]["commit"] = "another"
    path.write_text("".join(json.dumps(f) + "\n" for f in facts))
    done = run(*options)
    assert done.returncode == 2
    assert "The results differ in commit" in done.stderr


def test_tables_have_times_ratios_memory_and_cold_starts():
    facts = [
        fact("a", "mercer", 0.2, peak_mb=100.0, predict_seconds=0.05, kkt_gap=1e-3),
        fact("a", "scikit-learn", 0.19, peak_mb=50.4, predict_seconds=5.0),
        fact("b", "mercer", 1.0),
        fact("b", "scikit-learn-intelex", 1.0, status="time limit"),
        fact("cold-start", "mercer, empty cache", 3.0, import_seconds=0.5,
             process_seconds=4.0),
    ]  # fmt: skip
    del facts[3]["fit_seconds"]
    lines = figures.table(facts).splitlines()
    assert lines[0] == "|  | Mercer | scikit-learn | scikit-learn-intelex | KKT gap |"
    # A row where a peer is ahead stays in.
    assert lines[2] == "| a: fit | 0.20 s, 100 MB | 0.19 s (0.9×), 50 MB | – | 1e-03 |"
    assert lines[3] == "| predict 10 | 50 ms | 5.00 s (100×) | – |  |"
    assert lines[4] == "| b: fit | 1.00 s | – | time limit |  |"
    assert "| Mercer, empty cache | 0.50 s | 3.00 s | 4.00 s |" in lines
    assert "commit abc; medians of up to 3 runs" in lines[-1]
    few = figures.table(facts, "b").splitlines()
    assert few[2].startswith("| b: fit") and "cold" not in "".join(few)


def test_missing_data_is_explained():
    done = run("--cases", "a9a")
    assert done.returncode == 2
    assert "MERCER_DATA is not set" in done.stderr
    assert "a9a.npz" in done.stderr


def test_unknown_case_is_explained():
    done = run("--fast", "--cases", "mnits")
    assert done.returncode == 2
    assert "Unknown case 'mnits'. Known: a9a" in done.stderr


def test_solvers_on_tables_are_compared():
    answer = tabular.PARTS["covtype"](
        Namespace(fast=True, sizes=None, without_peers=False)
    )
    for n in tabular.FAST_SIZES:
        for solver in tabular.SOLVERS:
            assert answer[f"{n} {solver} seconds"] > 0
            assert answer[f"{n} {solver} gap"] <= 1e-3
        assert answer[f"{n} steps of decompose / steps of smo"] <= 2
        assert answer[f"{n} auto / better of smo and decompose"] > 0
        assert answer[f"{n} scikit-learn / auto"] > 0


def test_time_by_number_of_threads(tmp_path):
    program = [sys.executable, "-m", "benchmarks", "--threads", "2,1", "--fast"]
    program += ["--peers", "mercer"]
    done = subprocess.run(
        [*program, "--output", tmp_path], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Parts of a fit" in done.stdout
    (file,) = tmp_path.glob("*-threads.jsonl")
    facts = [json.loads(line) for line in file.read_text().splitlines()]
    assert [fact["threads"] for fact in facts] == [1, 2]
    for fact in facts:
        assert fact["fit_seconds"] > 0 and fact["predict_seconds"] > 0
        assert {"checks", "steps", "keep", "rest"} <= set(fact["parts"])
        assert min(fact["parts"].values()) > -1e-3
    table = file.with_suffix(".md").read_text()
    assert "| digits | 1 |" in table and "| 100% |" in table
    wrong = subprocess.run(
        [*program, "--cases", "none"], cwd=ROOT, capture_output=True, text=True
    )
    assert wrong.returncode == 2 and "digits" in wrong.stderr
