"""``mercer fit --search``: the best of a grid, its table and its figure."""

import json

import numpy as np
import pytest
from cli_files import FLOWERS, call, call_json, flowers, refused, write_flowers
from sklearn import model_selection
from sklearn.model_selection import StratifiedKFold

import mercer
from mercer.cli import cross_validation
from mercer.cli.searched import search_table

pytest.importorskip("skops", reason="model files need skops")
GRID = "C=0.1:10,gamma=0.01:1"


@pytest.fixture
def table(tmp_path):
    return write_flowers(tmp_path / "flowers.csv", n=90)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "model.skops"


@pytest.fixture
def searches(monkeypatch):
    """The searches that a command makes."""
    made = []

    class Kept(cross_validation.GridSearchCV):
        def fit(self, X, y=None):
            made.append(self)
            return super().fit(X, y)

    monkeypatch.setattr(cross_validation, "GridSearchCV", Kept)
    return made


def test_scores_are_those_of_scikit_learn_and_kernel_values_are_shared(
    table, out, searches
):
    found = call_json(
        "fit", table, "--target", "kind", "--search", GRID, "--cv", 4, "--out", out
    )
    X, y = flowers(90)
    values = {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1, 1.0]}
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    plain = model_selection.GridSearchCV(mercer.SVC(), values, cv=folds)
    plain.fit(X, np.array(FLOWERS)[y])
    candidates = found["search"]["candidates"]
    assert [{k: c[k] for k in values} for c in candidates] == list(
        plain.cv_results_["params"]
    )
    means = [c["mean"] for c in candidates]
    np.testing.assert_allclose(means, plain.cv_results_["mean_test_score"], rtol=1e-12)
    best = found["search"]["best"]
    assert best == plain.best_params_
    assert found["cv"]["mean"] == max(means)
    assert searches[0].sharing_.n_shared == 9 * 4
    assert searches[0].sharing_.n_grams == 3  # one for each gamma
    machine = mercer.load(out)[-1]
    assert (machine.C, machine.gamma) == (best["C"], best["gamma"])


def test_the_table(table, out):
    said = call(
        "fit", table, "--target", "kind", "--search", GRID, "--scale", "standard",
        "--out", out, "--quiet",
    ).stdout.splitlines()  # fmt: skip
    at = said.index("accuracy, mean of 5 folds")
    assert said[at - 1] == ""
    assert said[at + 1].split() == ["C", "\\", "gamma", "0.01", "0.1", "1"]
    assert [line.split()[0] for line in said[at + 2 :]] == ["0.1", "1", "10"]
    (best,) = [line for line in said if line.startswith("search ")]
    assert best.endswith("is the best of 9")


def test_equal_scores_choose_the_first():
    found = {
        "parameters": ["C"],
        "metric": "accuracy",
        "folds": 3,
        "candidates": [
            {"C": 0.1, "mean": 0.5, "std": 0.0},
            {"C": 1.0, "mean": float("nan"), "std": float("nan")},
        ],
    }
    assert search_table(found).splitlines() == [
        "accuracy, mean of 3 folds",
        "C      mean  deviation",
        "0.1  0.5000     0.0000",
        "1         –          –",
    ]


def test_three_parameters_are_listed_from_the_best(table, out):
    said = call(
        "fit", table, "--target", "kind", "--kernel", "poly", "--quiet",
        "--search", "C=0.1:10,gamma=0.01:1,degree=2:4", "--out", out,
    ).stdout  # fmt: skip
    lines = said[said.index("accuracy, mean") :].splitlines()
    assert lines[1].split() == ["C", "gamma", "degree", "mean", "deviation"]
    means = [float(line.split()[3]) for line in lines[2:22]]
    assert means == sorted(means, reverse=True)
    assert lines[-1] == "and 7 more, which --json lists"


def test_held_out_samples_take_no_part(table, out, searches):
    found = call_json(
        "fit", table, "--target", "kind", "--search", "C", "--test-size", 30, "--out",
        out,
    )  # fmt: skip
    assert found["samples"] == 60
    assert sum(len(test) for _, test in searches[0].cv.split(*flowers(60))) == 60
    assert len(searches[0].cv_results_["params"]) == 7
    assert found["test"]["samples"] == 30


@pytest.mark.parametrize(
    ("machine", "grid"),
    [
        ("svr", "C=1:10,epsilon=0.01:0.1"),
        ("nusvr", "nu"),
        ("linear-svr", "C=0.1:10"),
        ("mkl-svr", "C=1:10"),
    ],
)
def test_searches_of_regression(tmp_path, out, machine, grid):
    data = write_flowers(tmp_path / "f.csv", target=None)
    found = call_json(
        "fit", data, "--target", "petals", "--machine", machine, "--search", grid,
        "--cv", 3, "--out", out,
    )  # fmt: skip
    assert found["search"]["metric"] == "R2"
    best = max(c["mean"] for c in found["search"]["candidates"])
    assert found["cv"]["mean"] == best


def test_candidates_that_cannot_be_fitted_have_no_score(tmp_path, out):
    # With 10 roses among 60 flowers, nu can be 1/3 at most.
    X, _ = flowers(60)
    lines = ["a,b,c,kind"]
    for k, row in enumerate(X.tolist()):
        lines.append(",".join(map(str, row)) + (",rose" if k < 10 else ",tulip"))
    data = tmp_path / "f.csv"
    data.write_text("\n".join(lines) + "\n")
    result = call(
        "fit", data, "--target", "kind", "--machine", "nusvc", "--search", "nu",
        "--cv", 2, "--out", out, "--json",
    )  # fmt: skip
    assert result.stderr.count("\n") <= 2  # no pages about failed fits
    means = [c["mean"] for c in json.loads(result.stdout)["search"]["candidates"]]
    assert means[0] is not None
    assert means[-1] is None


def test_a_hint_at_the_edge_of_a_range(table, out):
    result = call(
        "fit", table, "--target", "kind", "--search", "gamma=0.0001:0.01", "--C", 0.01,
        "--out", out,
    )  # fmt: skip
    assert "is at the edge of its range; try a wider range." in result.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--search", "C", "--C", 1), "--C and --search C exclude each other"),
        (("--search", "epsilon", "--machine", "svc"), "--search epsilon is not for"),
        (("--search", "gamma", "--kernel", "rbf + linear"), "given by name, not for"),
        (("--search", "gamma", "--kernel", "linear"), "not a parameter of the kernel"),
        (("--search", "nu", "--machine", "oneclass"), "compares predictions with kn"),
        (("--search", "C", "--cv", 1), "--cv must be from 2 to 90"),
        (("--figure", "f.png"), "--figure draws the scores of --search"),
        (("--search", "C,gamma,nu", "--figure", "f.png"), "one or two parameters"),
        (("--search", "C", "--figure", "f.bmp"), "must end in .png, .svg or .pdf"),
    ],
)
def test_searches_that_make_no_sense(table, out, options, says):
    line = refused(2, "fit", table, "--target", "kind", "--out", out, *options)
    assert says in line
    assert not out.exists()


@pytest.mark.parametrize("grid", ["C=0.1:10,gamma=0.01:1", "C=0.1:10"])
def test_the_figure(table, out, tmp_path, grid):
    pytest.importorskip("matplotlib")
    figure = tmp_path / "grid.svg"
    options = ("--search", grid, "--figure", figure, "--cv", 3, "--quiet")
    call("fit", table, "--target", "kind", "--out", out, *options)
    assert figure.read_text().lstrip().startswith("<?xml")
    line = refused(2, "fit", table, "--target", "kind", "--out", f"{out}2", *options)
    assert "grid.svg exists" in line


def test_without_matplotlib(table, out, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    line = refused(
        2, "fit", table, "--target", "kind", "--out", out, "--search", "C",
        "--figure", "f.png",
    )  # fmt: skip
    assert "--figure needs matplotlib. Install it: pip install matplotlib" in line


def test_an_interrupt_names_the_best_so_far_and_writes_nothing(table, out, monkeypatch):
    from mercer.selection.evaluation import Evaluation

    whole = Evaluation.run

    def interrupted(self, candidates):
        whole(self, candidates[:4])
        raise KeyboardInterrupt

    monkeypatch.setattr(Evaluation, "run", interrupted)
    line = refused(
        130, "fit", table, "--target", "kind", "--search", GRID, "--out", out
    )
    assert "interrupted after 4 of 9 candidates" in line
    assert "fit it with --C " in line
    assert line.endswith("No file was written.")
    assert not out.exists()
