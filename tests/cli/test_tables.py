"""Tables of all formats: booleans, missing values, and columns besides the features."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from cli_files import call, call_json, refused

import mercer
from mercer.cli.data.features import as_floats
from mercer.cli.data.loaded import typed

pytest.importorskip("skops", reason="model files need skops")
pytest.importorskip("pyarrow")
USAGE, DATA = 2, 3
FORMATS = ("csv", "parquet", "npz")


def frame(n=60, seed=0):
    """Return a table with a boolean column and a boolean target."""
    rng = np.random.default_rng(seed)
    good = np.arange(n) % 2 == 0
    return pd.DataFrame(
        {
            "a": rng.normal(size=n).round(3) + 3.0 * good,
            "old": rng.random(n) < 0.5,
            "good": good,
        }
    )


def write(table, path, target="good"):
    """Write a table in the format of the path."""
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        features = table.drop(columns=target)
        np.savez(
            path,
            X=features.to_numpy(dtype=np.float64),
            y=table[target].to_numpy(),
            feature_names=np.array(list(features)),
        )
    return path


def predictions(result):
    return list(csv.DictReader(io.StringIO(result.stdout)))


@pytest.mark.parametrize("fitted_to", FORMATS)
def test_booleans_mean_the_same_in_all_formats(tmp_path, fitted_to):
    table = frame()
    files = [write(table, tmp_path / f"t.{kind}") for kind in FORMATS]
    model = tmp_path / "m.skops"
    target = "y" if fitted_to == "npz" else "good"
    found = call_json(
        "fit", tmp_path / f"t.{fitted_to}", "--target", target, "--out", model
    )
    assert found["classes"] == [False, True]
    own = mercer.SVC().fit(table[["a", "old"]], table["good"])
    assert own.classes_.tolist() == found["classes"]
    for file in files:
        target = "y" if file.suffix == ".npz" else "good"
        report = call_json("evaluate", model, file, "--target", target)
        expected = own.score(table[["a", "old"]], table["good"])
        assert report["accuracy"] == pytest.approx(expected)
        answers = [
            row["prediction"] for row in predictions(call("predict", model, file))
        ]
        assert answers == [str(v) for v in own.predict(table[["a", "old"]]).tolist()]


@pytest.mark.parametrize("spelt", [("0", "1"), ("false", "true"), ("FALSE", "TRUE")])
def test_spellings_of_booleans(tmp_path, spelt):
    table = frame()
    model = tmp_path / "m.skops"
    call("fit", write(table, tmp_path / "t.csv"), "--target", "good", "--out", model)
    other = table.replace({False: spelt[0], True: spelt[1]})
    report = call_json("evaluate", model, write(other, tmp_path / "other.csv"))
    assert report["accuracy"] > 0.8
    said = call("info", model).stdout
    assert "False, True" in said


def test_a_model_of_numbers_knows_booleans(tmp_path):
    table = frame()
    model = tmp_path / "m.skops"
    numbers = write(table.astype({"good": int}), tmp_path / "n.csv")
    call("fit", numbers, "--target", "good", "--out", model)
    for kind in ("csv", "parquet"):
        report = call_json("evaluate", model, write(table, tmp_path / f"t.{kind}"))
        assert report["accuracy"] > 0.8


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_booleans_are_values_of_regression_and_sides_of_novelty(tmp_path, kind):
    data = write(frame(), tmp_path / f"t.{kind}")
    model = tmp_path / "m.skops"
    call("fit", data, "--target", "good", "--machine", "svr", "--out", model)
    report = call_json("evaluate", model, data)
    assert 0 < report["r2"] < 1
    one = ("--machine", "oneclass", "--target", "good", "--out", tmp_path / "o.skops")
    assert call_json("fit", data, *one, "--normal", "true")["samples"] == 30


def test_one_hot_takes_booleans_for_numbers(tmp_path):
    table = frame().assign(kind=["x", "y"] * 30)
    found = [
        call_json(
            *("fit", write(table, tmp_path / f"t.{kind}"), "--target", "good"),
            *("--categories", "one-hot", "--out", tmp_path / f"{kind}.skops"),
        )["features"]
        for kind in ("csv", "parquet")
    ]
    assert found == [4, 4]


def test_texts_and_their_types():
    assert typed(["True", "false"]).dtype == bool
    assert typed(["True", "maybe"]).dtype.kind == "U"
    assert typed(["0", "1"]).dtype.kind == "i"
    values, odd = as_floats(["True", "", "FALSE"])
    assert odd is None
    np.testing.assert_array_equal(values, [1, np.nan, 0])
    _, odd = as_floats(["1.5", "True", "many"], first=10)
    assert odd == (2, 11, "True")


@pytest.mark.parametrize("kind", FORMATS)
def test_columns_that_the_model_does_not_know_are_ignored(tmp_path, kind):
    table = frame()
    model = tmp_path / "m.skops"
    call("fit", write(table, tmp_path / "t.csv"), "--target", "good", "--out", model)
    more = table.assign(id=np.arange(60), note=5)[["id", "old", "note", "a", "good"]]
    data = write(more, tmp_path / f"more.{kind}")
    plain = predictions(call("predict", model, tmp_path / "t.csv"))
    result = call("predict", model, data)
    assert predictions(result) == plain
    (line,) = result.stderr.splitlines()
    assert line.endswith("has columns that the model ignores: 'id', 'note'.")
    more = () if kind != "npz" else ("--target", "y")
    result = call("evaluate", model, data, *more)
    assert "ignores: 'id', 'note'." in result.stderr


def test_names_of_ignored_columns_may_repeat(tmp_path):
    model, data = tmp_path / "m.skops", tmp_path / "two.csv"
    call("fit", write(frame(), tmp_path / "t.csv"), "--target", "good", "--out", model)
    data.write_text("note,a,note,old\nx,1,y,0\n")
    assert len(predictions(call("predict", model, data))) == 1
    data.write_text("a,a,old\n1,2,0\n")
    assert "two columns named 'a'" in refused(DATA, "predict", model, data)
    data.write_text("id,a,id,old\nx,1,y,0\n")
    line = refused(DATA, "predict", model, data, "--keep", "id")
    assert "two columns named 'id'" in line


def test_columns_that_are_kept(tmp_path):
    table = frame()
    model = tmp_path / "m.skops"
    call("fit", write(table, tmp_path / "t.csv"), "--target", "good", "--out", model)
    more = table.assign(id=[f"k{i}" for i in range(60)], prediction=1)
    for kind in ("csv", "parquet"):
        data = write(more, tmp_path / f"more.{kind}")
        result = call("predict", model, data, "--keep", "id", "--keep", "old")
        rows = predictions(result)
        assert list(rows[0]) == ["id", "old", "prediction"]
        assert [row["id"] for row in rows] == more["id"].tolist()
        assert [row["old"] for row in rows] == more["old"].astype(str).tolist()
        assert "ignores: 'prediction'." in result.stderr
        line = call("predict", model, data, "--keep", "prediction", code=USAGE).stderr
        assert "--keep 'prediction': the output has a column of this name" in line
    line = refused(USAGE, "predict", model, data, "--keep", "ids")
    assert "--keep 'ids' is not a column" in line and "Did you mean 'id'?" in line


def with_gaps():
    table = frame().astype({"old": object})
    table["b"] = np.arange(60.0)
    table.loc[3, "a"] = np.nan
    table.loc[[5, 7], "b"] = np.nan
    return table


def test_all_bad_columns_are_in_one_message(tmp_path):
    table = with_gaps()
    table["day"] = pd.Timestamp("2024-01-31") + pd.to_timedelta(np.arange(60), "D")
    table["name"] = "Anna"
    lines = []
    for kind in ("csv", "parquet"):
        data = write(table, tmp_path / f"t.{kind}")
        out = ("--out", tmp_path / "m.skops")
        lines.append(refused(DATA, "fit", data, "--target", "good", *out))
    assert lines[0].endswith(
        "t.csv, line 5, column 'a': no value (1 missing); line 7, column 'b': no value "
        "(2 missing); line 2, column 'day': '2024-01-31' is a date or a time, not a "
        "number (60 such values); line 2, column 'name': 'Anna' is not a number (60 "
        "such values). Turn dates into numbers, such as days since a fixed day. Turn "
        "text columns into features with --categories one-hot. Fill in missing values "
        "with --missing median, or leave their rows out with --missing drop, or leave "
        "columns out with --drop 'a' --drop 'b' --drop 'day' --drop 'name'."
    )
    rows = lines[0].replace("t.csv", "t.parquet")
    for line, row in ((5, 4), (7, 6), (2, 1)):
        rows = rows.replace(f"line {line},", f"row {row},")
    assert lines[1] == rows.replace("'2024-01-31'", "'2024-01-31 00:00:00'")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("strategy", "values"),
    [("mean", np.nanmean), ("median", np.nanmedian), ("most-frequent", None)],
)
def test_missing_values_are_filled_in(tmp_path, kind, strategy, values):
    table = with_gaps()
    data = write(table, tmp_path / f"t.{kind}")
    model = tmp_path / "m.skops"
    target = "y" if kind == "npz" else "good"
    options = ("--missing", strategy, "--scale", "standard", "--out", model)
    call("fit", data, "--target", target, *options)
    pipeline = mercer.load(model)
    X = table[["a", "old", "b"]].to_numpy(dtype=float)
    if values is not None:
        np.testing.assert_allclose(pipeline[0].statistics_, values(X, axis=0))
    answers = predictions(call("predict", model, data))
    assert [row["prediction"] for row in answers] == list(
        map(str, pipeline.predict(X).tolist())
    )
    facts = call_json("info", model)
    assert facts["missing"] == strategy
    assert f"missing values   {strategy}" in call("info", model).stdout
    assert facts["steps"] == ["SimpleImputer", "StandardScaler", "SVC"]


@pytest.mark.parametrize("kind", FORMATS)
def test_rows_with_missing_values_are_left_out(tmp_path, kind):
    table = with_gaps()
    data = write(table, tmp_path / f"t.{kind}")
    model = tmp_path / "m.skops"
    target = ("--target", "y" if kind == "npz" else "good")
    result = call("fit", data, *target, "--missing", "drop", "--out", model, "--json")
    assert json.loads(result.stdout)["samples"] == 57
    assert "3 of 60 rows have missing values and are left out." in result.stderr
    result = call("predict", model, data, "--decision")
    rows = predictions(result)
    assert [k for k, row in enumerate(rows) if not row["prediction"]] == [3, 5, 7]
    assert [k for k, row in enumerate(rows) if not row["decision"]] == [3, 5, 7]
    X = table.dropna()[["a", "old", "b"]].to_numpy(dtype=float)
    assert [row["prediction"] for row in rows if row["prediction"]] == list(
        map(str, mercer.load(model).predict(X).tolist())
    )
    assert call_json("evaluate", model, data, *target)["samples"] == 57


def test_missing_targets_and_categories(tmp_path):
    table = with_gaps().assign(kind=["x", "y", None] * 20)
    table["good"] = table["good"].astype(object)
    table.loc[9, "good"] = None
    model = tmp_path / "m.skops"
    for kind in ("csv", "parquet"):
        data = write(table, tmp_path / f"t.{kind}")
        fit = ("fit", data, "--target", "good", "--categories", "one-hot", "--force")
        fit += ("--out", model, "--missing")
        line = refused(DATA, *fit, "median")
        assert "column 'good', the target, is empty (1 missing)." in line
        found = call_json(*fit, "drop")
        assert found["classes"] == [False, True]
        assert found["samples"] == len(table.dropna())
        full = write(table.drop(index=9), tmp_path / f"full.{kind}")
        call("fit", full, *fit[2:], "mean")
        shares = mercer.load(model)[0].statistics_[-2:]
        kinds = table.drop(index=9)["kind"].dropna()
        np.testing.assert_allclose(shares, [(kinds == k).mean() for k in "xy"])
        assert len(predictions(call("predict", model, full))) == 59


def test_a_column_without_a_value(tmp_path):
    data = write(frame().assign(b=np.nan), tmp_path / "t.csv")
    fit = ("fit", data, "--target", "good", "--out", tmp_path / "m.skops")
    line = refused(DATA, *fit, "--missing", "mean")
    assert "column 'b' has no value in any row. Leave it out with --drop 'b'." in line
    line = refused(DATA, *fit, "--missing", "drop", "-q")
    assert "has no value in any row" in line


def test_encodings(tmp_path):
    table = frame().replace({True: "für", False: "wider"}).assign(old=1)
    model = tmp_path / "m.skops"
    for encoding, named in (("cp1252", "cp1252"), ("utf-16", "utf-16")):
        data = tmp_path / "t.csv"
        table.to_csv(data, index=False, encoding=encoding)
        fit = ("fit", data, "--target", "good", "--out", model, "--force")
        line = refused(DATA, *fit)
        assert "is not text in UTF-8" in line and f"as in --encoding {named};" in line
        assert call_json(*fit, "--encoding", encoding)["classes"] == ["für", "wider"]
        predict = ("predict", model, data, "--encoding", encoding)
        assert len(predictions(call(*predict))) == 60
        assert call_json("evaluate", *predict[1:])["accuracy"] > 0.8
    line = refused(USAGE, *fit, "--encoding", "ansi")
    assert "--encoding 'ansi' is not an encoding that Python knows." in line
