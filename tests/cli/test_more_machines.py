"""MKL, online and passive-aggressive machines on the command line."""

import re

import numpy as np
import pytest
from cli_files import FLOWERS, call, call_json, flowers, refused, write_flowers

import mercer

pytest.importorskip("skops", reason="model files need skops")


@pytest.fixture
def table(tmp_path):
    return write_flowers(tmp_path / "flowers.csv", n=90)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "model.skops"


def test_weights_of_several_kernels(table, out):
    kernels = ("--kernel", "rbf", "--kernel", "linear@height", "--norm", 1)
    options = ("--target", "kind", "--machine", "mkl", *kernels, "--out", out)
    found = call_json("fit", table, *options)
    X, y = flowers(90)
    parts = ["rbf", mercer.kernels.parse("linear@[0]")]
    plain = mercer.MKLClassifier(parts, p=1, random_state=0)
    plain.fit(X, np.array(FLOWERS)[y])
    assert found["machine"] == "MKLClassifier"
    assert [name for name, _ in found["kernels"]] == ["rbf", "linear@[0]"]
    weights = [weight for _, weight in found["kernels"]]
    np.testing.assert_allclose(weights, plain.weights_, atol=1e-9)
    said = call("fit", table, *options, "--force").stdout
    assert f"{weights[0]:.3f} rbf, {weights[1]:.3f} linear@[0]" in said
    assert "weights" in call("info", out).stdout
    predicted = call("predict", out, table).stdout.splitlines()[1:]
    assert predicted == plain.predict(X).tolist()


def test_default_kernels_and_regression(tmp_path, out):
    data = write_flowers(tmp_path / "f.csv", target=None)
    options = ("--target", "petals", "--machine", "mkl-svr", "--out", out)
    found = call_json("fit", data, *options)
    assert found["machine"] == "MKLRegressor"
    assert [name for name, _ in found["kernels"]] == ["linear", "poly", "rbf"]
    assert found["task"] == "regression"


@pytest.mark.parametrize("machine", ["online", "passive"])
def test_a_model_goes_on_learning(tmp_path, out, machine):
    first = write_flowers(tmp_path / "a.csv", n=60)
    more = write_flowers(tmp_path / "b.csv", n=600, seed=1)
    later = tmp_path / "later.skops"
    options = ("--target", "kind", "--machine", machine, "--scale", "standard")
    found = call_json("fit", first, *options, "--out", out)
    seen = found["seen"]
    found = call_json("fit", more, "--from", out, "--out", later)
    assert found["seen"] - seen == 600
    assert found["samples"] == 600
    # The same by hand: the scaling is that of the first fit.
    model = mercer.load(out)
    X, y = flowers(600, seed=1)
    Z, y = model[:-1].transform(X), np.array(FLOWERS)[y]
    wrong = 0
    for k in (slice(512), slice(512, 600)):
        wrong += int(np.sum(model[-1].predict(Z[k]) != y[k]))
        model[-1].partial_fit(Z[k], y[k])
    assert found["mistakes"] == wrong
    if machine == "online":
        model[-1].finish()
        assert found["converged"] is True
    np.testing.assert_array_equal(mercer.load(later).predict(X), model.predict(X))
    said = call("fit", more, "--from", out, "--out", later, "--force").stdout
    assert f"{wrong} of 600 new rows" in said
    assert re.search(rf"rows so far +{found['seen']}\n", said)


def test_facts_of_machines_without_certificates(table, out):
    call("fit", table, "--target", "kind", "--machine", "passive", "--out", out)
    lines = call("info", out).stdout
    assert "PassiveAggressiveClassifier" in lines
    assert "KKT gap" not in lines
    assert "rows so far" in lines


def test_a_budget_is_kept(table, out):
    options = ("--machine", "online", "--budget", 10, "--target", "kind")
    found = call_json("fit", table, *options, "--out", out)
    assert found["support_vectors"] <= 10


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            ("--kernel", "rbf", "--kernel", "poly"),
            "only --machine mkl and mkl-svr take",
        ),
        (
            ("--machine", "svc", "--norm", 2),
            "--norm is not for --machine svc, only for",
        ),
        (("--machine", "svc", "--budget", 5), "only for online, passive"),
        (("--machine", "passive", "--gamma", 1), "Give a kernel, such as --kernel rbf"),
        (("--machine", "mkl", "--kernel", "rfb"), "Did you mean 'rbf'?"),
        (
            ("--machine", "mkl", "--kernel", "linear", "--gamma", 2),
            "not a parameter of",
        ),
    ],
)
def test_options_that_make_no_sense(table, out, options, says):
    line = refused(2, "fit", table, "--target", "kind", "--out", out, *options)
    assert says in line


@pytest.mark.parametrize(
    "options",
    [
        ("--machine", "svc"),
        ("--kernel", "rbf"),
        ("--C", 1),
        ("--norm", 1),
        ("--scale", "minmax"),
        ("--search", "C"),
        ("--cv", 3),
        ("--test-size", 0.5),
    ],
)
def test_an_earlier_model_has_settled_its_options(table, tmp_path, out, options):
    call("fit", table, "--target", "kind", "--machine", "online", "--out", out)
    more = tmp_path / "more.skops"
    line = refused(2, "fit", table, "--from", out, "--out", more, *options)
    assert f"{options[0]} cannot be given with --from" in line


def test_models_that_cannot_go_on(table, tmp_path, out):
    call("fit", table, "--target", "kind", "--out", out)
    more = tmp_path / "more.skops"
    line = refused(4, "fit", table, "--from", out, "--out", more)
    assert f"the SVC in {out} cannot go on learning" in line
    call(
        "fit", table, "--target", "kind", "--machine", "online", "--out", out, "--force"
    )
    table.write_text(table.read_text().replace("rose", "lily"))
    line = refused(3, "fit", table, "--from", out, "--out", more)
    assert "line 3, column 'kind': 'lily' is not one of the model's classes" in line
    assert not more.exists()


def test_computed_widths_are_round(tmp_path, out, rng):
    # The width of ten standardised columns is 0.1, but for rounding errors.
    X = rng.normal(size=(50, 10))
    lines = ["a,b,c,d,e,f,g,h,i,j,kind"]
    lines += [",".join(map(str, row)) + f",{'xy'[k % 2]}" for k, row in enumerate(X)]
    data = tmp_path / "t.csv"
    data.write_text("\n".join(lines) + "\n")
    options = ("--target", "kind", "--scale", "standard", "--out", out)
    said = call("fit", data, *options).stdout
    assert "rbf(gamma=0.1)\n" in said
    gamma = mercer.load(out)[-1].kernel_.gamma
    assert gamma == pytest.approx(0.1)


def test_a_hint_for_uneven_columns(tmp_path, out):
    lines = ["age,income,kind"]
    lines += [f"{20 + k % 40},{1000 * k},{'xy'[k % 2]}" for k in range(60)]
    data = tmp_path / "t.csv"
    data.write_text("\n".join(lines) + "\n")
    options = ("--target", "kind", "--out", out, "--force")
    told = call("fit", data, *options).stderr
    assert "differ by a factor of 1,570: that of 'income' is 17,300" in told
    assert "that of 'age' is 11.1. --scale standard may give a better model." in told
    assert call("fit", data, *options, "--quiet").stderr == ""
    assert call("fit", data, *options, "--scale", "standard").stderr == ""


def test_a_hint_for_uneven_sparse_columns(tmp_path, out):
    lines = [f"{k % 2} 1:{0.01 * (k % 7)} 5:{10 * k}" for k in range(40)]
    data = tmp_path / "t.libsvm"
    data.write_text("\n".join(lines) + "\n")
    told = call("fit", data, "--out", out).stderr
    assert "that of '5' is 390, that of '1' is 0.06" in told
