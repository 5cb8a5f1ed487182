"""Whole rounds of the command line: fit, predict, evaluate, info."""

import csv
import io
import json

import numpy as np
import pytest
from cli_files import (
    COLUMNS,
    FLOWERS,
    call,
    call_json,
    flowers,
    write_flowers,
    write_images,
)
from sklearn.datasets import dump_svmlight_file

import mercer

pytest.importorskip("skops", reason="model files need skops")


def read_rows(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A table and a model of it with probabilities, for tests that only read them."""
    folder = tmp_path_factory.mktemp("fitted")
    data = write_flowers(folder / "flowers.csv")
    model = folder / "flowers.skops"
    call("fit", data, "--target", "kind", "--probability", "--out", model)
    return data, model


def test_an_indefinite_kernel_has_no_dual_gap(tmp_path):
    data = write_flowers(tmp_path / "flowers.csv")
    model = tmp_path / "flowers.skops"
    order = ("fit", data, "--target", "kind", "--out", model, "--kernel", "sigmoid")
    found = call_json(*order, "--scale", "standard")
    assert found["converged"]
    assert found["dual_gap"] is None
    assert call_json("info", model)["dual_gap"] is None
    text = call(*order[:5], tmp_path / "other.skops", *order[6:]).stdout
    assert "unknown: the kernel is not positive semi-definite" in text
    assert not np.isfinite(mercer.load(model)[-1].dual_gap_).any()


def test_a_round_on_a_table(tmp_path):
    data = write_flowers(tmp_path / "flowers.csv")
    model, more = tmp_path / "flowers.skops", ("--scale", "standard", "--C", 10)
    found = call_json(
        *("fit", data, "--target", "kind", "--out", model, *more),
        *("--kernel", "rbf(gamma=0.1) + 0.5 * linear", "--cv", 3, "--test-size", 0.2),
    )
    assert found["machine"] == "SVC"
    assert found["why"] == "the target 'kind' is text"
    assert found["samples"] == 48
    assert found["test"]["samples"] == 12
    assert found["converged"]
    assert found["kkt_gap"] <= 1e-3
    assert found["classes"] == [*FLOWERS]
    assert len(found["cv"]["scores"]) == 3
    assert found["cv"]["mean"] == pytest.approx(np.mean(found["cv"]["scores"]))
    assert found["cv"]["mean"] > 0.8

    info = call_json("info", model)
    assert info["features"] == [*COLUMNS]
    assert info["target"] == "kind"
    assert info["parameters"]["C"] == 10
    assert info["steps"] == ["StandardScaler", "SVC"]
    assert info["versions"]["mercer"] == mercer.__version__
    assert info["kernel"] == "rbf(gamma=0.1) + 0.5 * linear"
    assert info["support_vectors"] == found["support_vectors"]
    assert "KKT gap" in call("info", model).stdout

    fresh = write_flowers(tmp_path / "fresh.csv", seed=1)
    out = tmp_path / "answers.csv"
    call("predict", model, fresh, "--out", out)
    predicted = [row["prediction"] for row in read_rows(out.read_text())]
    X, y = flowers(seed=1)
    assert predicted == mercer.load(model).predict(X).tolist()

    report = call_json("evaluate", model, fresh)
    truth = np.array(FLOWERS)[y]
    assert report["accuracy"] == pytest.approx(np.mean(truth == predicted))
    assert report["accuracy"] > 0.8
    assert set(report["classes"]) == set(FLOWERS)


def test_columns_are_matched_by_name(tmp_path, fitted):
    _, model = fitted
    plain = call("predict", model, fitted[0]).stdout
    turned = write_flowers(tmp_path / "b.csv", order=COLUMNS[::-1], delimiter=";")
    assert call("predict", model, turned).stdout == plain
    without = write_flowers(tmp_path / "c.csv", target=None, delimiter="\t")
    assert call("predict", model, without).stdout == plain


def test_probabilities_and_decisions(fitted):
    data, model = fitted
    rows = read_rows(call("predict", model, data, "--proba", "--decision").stdout)
    pipeline, (X, _) = mercer.load(model), flowers()
    proba = [[float(row[f"probability {name}"]) for name in FLOWERS] for row in rows]
    np.testing.assert_array_equal(proba, pipeline.predict_proba(X))
    decision = [[float(row[f"decision {name}"]) for name in FLOWERS] for row in rows]
    np.testing.assert_array_equal(decision, pipeline.decision_function(X))
    found = call_json("predict", model, data, "--proba")
    assert found["prediction"] == [row["prediction"] for row in rows]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_files_of_a_report(tmp_path, fitted, ending):
    pytest.importorskip("matplotlib")
    data, model = fitted
    folder = tmp_path / "report"
    text = call("evaluate", model, data, "--out", folder, "--plots", ending).stdout
    names = {"report.json", "report.txt", "predictions.csv", "confusion.csv", "roc.csv"}
    figures = {f"confusion.{ending}", f"roc.{ending}"}
    assert {path.name for path in folder.iterdir()} == names | figures
    start = {"png": b"\x89PNG", "svg": b"<?xml"}[ending]
    assert all((folder / name).read_bytes().startswith(start) for name in figures)
    assert (folder / "report.txt").read_text() == text
    report = json.loads((folder / "report.json").read_text())
    rows = list(csv.reader(io.StringIO((folder / "confusion.csv").read_text())))
    matrix = np.array([row[1:] for row in rows[1:]], dtype=int)
    assert rows[0][1:] == [*FLOWERS]
    assert matrix.sum() == report["samples"] == 60
    assert np.trace(matrix) / 60 == pytest.approx(report["accuracy"])
    curve = read_rows((folder / "roc.csv").read_text())
    assert {row["class"] for row in curve} == set(FLOWERS)
    assert report["log_loss"] > 0
    assert report["roc_auc"] > 0.9


def test_a_round_on_a_libsvm_file(tmp_path):
    X, y = flowers()
    X[np.abs(X) < 0.5] = 0
    train, test = tmp_path / "train.libsvm", tmp_path / "test"
    dump_svmlight_file(X, y, str(train), zero_based=False)
    # The last column is empty here, and the name does not say what it is.
    few = X[:10] * [1, 1, 0]
    dump_svmlight_file(few, y[:10], str(test), zero_based=False)
    model = tmp_path / "m.skops"
    found = call_json("fit", train, "--scale", "minmax", "--out", model)
    assert (found["features"], found["classes"]) == (3, [0, 1, 2])
    pipeline = mercer.load(model)
    assert type(pipeline[-1].support_vectors_).__name__.startswith("csr")
    rows = read_rows(call("predict", model, test).stdout)
    predicted = pipeline.predict(mercer.datasets.load_libsvm(test, n_features=3)[0])
    assert [int(row["prediction"]) for row in rows] == predicted.tolist()
    assert call_json("evaluate", model, train)["accuracy"] > 0.8
    assert call_json("info", model)["features"] == 3


def test_indices_of_libsvm_files_begin_where_they_began(tmp_path):
    X, y = flowers()
    train, test = tmp_path / "train.svm", tmp_path / "test.svm"
    dump_svmlight_file(X, y, str(train), zero_based=True)
    dump_svmlight_file(X * [0, 1, 1], y, str(test), zero_based=True)
    model = tmp_path / "m.skops"
    call("fit", train, "--out", model)
    rows = read_rows(call("predict", model, test).stdout)
    expected = mercer.SVC().fit(X, y).predict(X * [0, 1, 1])
    assert [int(row["prediction"]) for row in rows] == expected.tolist()


@pytest.mark.parametrize(
    "options", [(), ("--features", "hog", "--cell-size", 3), ("--colour", "rgb")]
)
def test_a_round_on_a_folder_of_images(tmp_path, options):
    pytest.importorskip("PIL")
    data = write_images(tmp_path / "bars")
    model = tmp_path / "bars.skops"
    found = call_json("fit", data, "--out", model, *options)
    assert found["classes"] == ["lying", "upright"]
    colours = 3 if "rgb" in options else 1
    assert found["features"] == 120 * colours
    image = call_json("info", model)["image"]
    assert (image["width"], image["height"]) == (12, 10)
    assert call_json("evaluate", model, data)["accuracy"] == 1
    flat = write_images(tmp_path / "flat", flat=True, seed=1, n=3)
    rows = read_rows(call("predict", model, flat).stdout)
    assert len(rows) == 6
    assert all(row["file"].startswith(row["prediction"]) for row in rows)


def test_images_of_several_sizes_and_kinds(tmp_path):
    pytest.importorskip("PIL")
    data = write_images(tmp_path / "bars")
    write_images(data, size=(24, 20), n=2, seed=2)
    other = write_images(tmp_path / "other", size=(36, 30), mode="RGBA", n=2, seed=3)
    model = tmp_path / "m.skops"
    call("fit", data, "--size", "12x10", "--out", model)
    assert call_json("info", model)["image"]["colour"] == "grey"
    assert call_json("evaluate", model, other)["samples"] == 4


def test_a_round_on_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    X, y = flowers()
    columns = {name: X[:, j] for j, name in enumerate(COLUMNS)}
    columns["colour"] = arrow.array(["red", "blue"] * 30).dictionary_encode()
    columns["kind"] = np.array(FLOWERS)[y]
    data, turned = tmp_path / "f.parquet", tmp_path / "g.parquet"
    parquet.write_table(arrow.table(columns), data)
    parquet.write_table(arrow.table(dict(reversed(columns.items()))), turned)
    model = tmp_path / "m.skops"
    more = ("--target", "kind", "--categories", "one-hot")
    assert call_json("fit", data, "--out", model, *more)["features"] == 5
    assert call_json("info", model)["categories"] == {"colour": ["blue", "red"]}
    assert call("predict", model, data).stdout == call("predict", model, turned).stdout
    assert call_json("evaluate", model, turned)["accuracy"] > 0.8


def test_a_round_on_arrays(tmp_path):
    X, y = flowers()
    data = tmp_path / "f.npz"
    np.savez(data, X=X.astype(np.float32), y=np.array(FLOWERS)[y])
    named = tmp_path / "g.npz"
    np.savez(named, data=X, kind=y, feature_names=COLUMNS)
    model = tmp_path / "m.skops"
    call("fit", data, "--out", model, "--machine", "nusvc", "--nu", 0.2)
    assert mercer.load(model)[-1].support_vectors_.dtype == np.float32
    assert call_json("evaluate", model, data)["accuracy"] > 0.8
    np.savez(tmp_path / "h.npz", X=X)
    assert call("predict", model, tmp_path / "h.npz").stdout.startswith("prediction\n")
    more = ("--samples", "data", "--target", "kind", "--force")
    call("fit", named, "--out", model, *more)
    assert call_json("info", model)["features"] == [*COLUMNS]
    table = write_flowers(tmp_path / "t.csv", order=COLUMNS[::-1], target=None)
    expected = mercer.SVC().fit(X, y).predict(X).astype(str).tolist()
    assert call("predict", model, table).stdout.split()[1:] == expected


@pytest.mark.parametrize("machine", ["auto", "svr", "nusvr"])
def test_a_round_of_regression(tmp_path, machine):
    pytest.importorskip("matplotlib")
    X, _ = flowers()
    z = X @ [1.0, -2.0, 0.5]
    data, model = tmp_path / "z.csv", tmp_path / "z.skops"
    rows = [",".join(map(str, row)) for row in np.column_stack([X, z]).tolist()]
    data.write_text("\n".join(rows))
    # Without a header columns have numbers.
    more = ("--target", 4, "--machine", machine, "--kernel", "linear", "--C", 100)
    found = call_json("fit", data, "--out", model, *more, "--cv", 4)
    assert found["task"] == "regression"
    assert found["cv"]["metric"] == "R2"
    assert found["classes"] is None
    folder = tmp_path / "report"
    report = call_json("evaluate", model, data, "--out", folder)
    assert report["r2"] > 0.99
    # NuSVR finds the width of its tube, and these values lie on a plane.
    width = 1e-6 if machine == "nusvr" else 0.1 + 1e-6
    assert report["mae"] <= report["rmse"] <= width
    assert (folder / "prediction.png").exists()
    data.write_text("\n".join(row.rsplit(",", 1)[0] for row in rows))
    values = call("predict", model, data).stdout.split()[1:]
    np.testing.assert_allclose(np.array(values, float), z, atol=width)


@pytest.mark.parametrize("machine", ["oneclass", "svdd"])
def test_a_round_of_novelty_detection(tmp_path, machine):
    data, model = write_flowers(tmp_path / "f.csv"), tmp_path / "m.skops"
    more = ("--machine", machine, "--target", "kind", "--normal", "rose")
    more += ("--nu", 0.2) if machine == "oneclass" else ("--C", 0.2)
    found = call_json("fit", data, "--out", model, *more)
    assert (found["task"], found["samples"]) == ("novelty", 20)
    report = call_json("evaluate", model, data)
    assert report["classes"]["1"]["samples"] == 20
    assert report["classes"]["-1"]["samples"] == 40
    assert report["roc_auc"] > 0.8
    answers = call("predict", model, data, "--decision").stdout
    assert {row["prediction"] for row in read_rows(answers)} == {"1", "-1"}


def test_models_of_the_library_work_too(tmp_path):
    X, y = flowers()
    mercer.save(mercer.SVC().fit(X, y), tmp_path / "plain.skops")
    data = write_flowers(tmp_path / "f.csv", target=None)
    answers = call("predict", tmp_path / "plain.skops", data).stdout.split()[1:]
    assert answers == mercer.SVC().fit(X, y).predict(X).astype(str).tolist()
    assert call_json("info", tmp_path / "plain.skops")["created"] is None


def test_text_columns_become_categories(tmp_path):
    data, model = tmp_path / "f.csv", tmp_path / "m.skops"
    lines = [f"{i % 7},{'red' if i % 2 else 'blue'},{i % 2}" for i in range(30)]
    data.write_text("size,colour,kind\n" + "\n".join(lines))
    more = ("--target", "kind", "--categories", "one-hot", "--kernel", "linear@colour")
    assert call_json("fit", data, "--out", model, *more)["features"] == 3
    assert call_json("evaluate", model, data)["accuracy"] == 1
    columns = mercer.load(model)[-1].kernel_.columns
    assert np.arange(3)[columns].tolist() == [1, 2]


def test_kernels_on_columns_by_their_names(tmp_path):
    data = write_flowers(tmp_path / "f.csv")
    args = ("fit", data, "--target", "kind", "--kernel")
    found = [
        call_json(*args, f"rbf(gamma=1)@{columns} + linear@petals", "--out", out)
        for columns, out in (
            ("[height, 'width']", tmp_path / "names"),
            ("[0, 1]", tmp_path / "numbers"),
        )
    ]
    assert found[0]["kernel"] == "rbf(gamma=1.0)@[0:2] + linear@[2:3]"
    assert found[0]["kernel"] == found[1]["kernel"]
    answers = [
        call("predict", path, data, "--decision").stdout
        for path in (tmp_path / "names", tmp_path / "numbers")
    ]
    assert answers[0] == answers[1]
    other = write_flowers(tmp_path / "g.csv", order=("petals", "width", "height"))
    assert call("predict", tmp_path / "names", other, "--decision").stdout == answers[0]
