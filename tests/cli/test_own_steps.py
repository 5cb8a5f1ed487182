"""Text and empty cells of a table go to the steps of a model that Python made."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from cli_files import call, call_json, refused
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mercer

pytest.importorskip("skops", reason="model files need skops")
pytest.importorskip("pyarrow")
DATA = 3


def table(n=60):
    rng = np.random.default_rng(0)
    found = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n).round(1),
            "town": np.array(["Rome", "Oslo", "Lima"])[np.arange(n) % 3],
            "owns": rng.random(n) < 0.5,
            "size": rng.normal(size=n).round(3),
        }
    )
    found.loc[3, "age"] = None
    found.loc[[4, 7], "town"] = None
    return found, np.array(["no", "yes", "maybe"])[np.arange(n) % 3]


def recipe():
    """Return the pipeline of the questions and answers."""
    return make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "size"]),
            (OneHotEncoder(handle_unknown="ignore"), ["town"]),
            ("passthrough", ["owns"]),
        ),
        mercer.SVC(),
    )


def answers(result):
    return [row["prediction"] for row in csv.DictReader(io.StringIO(result.stdout))]


def write(data, path):
    if path.suffix == ".csv":
        data.to_csv(path, index=False)
    else:
        data.to_parquet(path, index=False)
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_text_and_empty_cells_go_to_the_steps(kind, tmp_path):
    X, y = table()
    model = recipe().fit(X, y)
    mercer.save(model, tmp_path / "m")
    new = X.iloc[::-1].reset_index(drop=True)
    new.loc[0, "town"] = "Paris"
    file = write(new[["town", "size", "owns", "age"]], tmp_path / f"new.{kind}")
    found = call("predict", tmp_path / "m", file)
    assert answers(found) == model.predict(new).tolist()
    file = write(new.assign(kind=model.predict(new)), tmp_path / f"labelled.{kind}")
    scores = call_json("evaluate", tmp_path / "m", file, "--target", "kind")
    assert scores["accuracy"] == 1


def test_models_of_arrays_keep_their_gaps(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[5, 1] = np.nan
    y = np.arange(40) % 2
    model = make_pipeline(SimpleImputer(), mercer.SVC()).fit(X, y)
    mercer.save(model, tmp_path / "m")
    pd.DataFrame(X).to_csv(tmp_path / "new.csv", index=False, header=False)
    found = call("predict", tmp_path / "m", tmp_path / "new.csv")
    assert list(map(int, answers(found))) == model.predict(X).tolist()


def test_what_the_steps_refuse_is_told_with_its_place(tmp_path):
    X, y = table()
    X = X[["age", "size"]].fillna(1.0)
    mercer.save(make_pipeline(StandardScaler(), mercer.SVC()).fit(X, y), tmp_path / "m")
    new = X.astype(object)
    new.loc[2, "size"] = "large"
    file = write(new, tmp_path / "new.csv")
    words = refused(DATA, "predict", tmp_path / "m", file)
    assert "line 4, column 'size': 'large' is not a number" in words
    new.loc[2, "size"] = None
    words = refused(DATA, "predict", tmp_path / "m", write(new, file))
    assert "line 4, column 'size': no value (1 missing)" in words


def test_what_an_encoder_refuses_is_told(tmp_path):
    X, y = table()
    columns = make_column_transformer((OneHotEncoder(), ["town"]))
    mercer.save(make_pipeline(columns, mercer.SVC()).fit(X, y), tmp_path / "m")
    X.loc[0, "town"] = "Paris"
    words = refused(DATA, "predict", tmp_path / "m", write(X, tmp_path / "new.csv"))
    assert "Found unknown categories ['Paris']" in words
