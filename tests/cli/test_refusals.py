"""What the command line refuses, with which exit code, and what it says."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from cli_files import (
    call,
    flowers,
    refused,
    replace_line,
    write_flowers,
    write_images,
)
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.cli.app import run

pytest.importorskip("skops", reason="model files need skops")
USAGE, DATA, MODEL = 2, 3, 4


@pytest.fixture
def table(tmp_path):
    return write_flowers(tmp_path / "flowers.csv")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "model.skops"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    data = write_flowers(folder / "flowers.csv")
    call("fit", data, "--target", "kind", "--out", folder / "model.skops")
    return data, folder / "model.skops"


def no_fit(code, data, out, *more):
    """Check that a fit is refused and leaves nothing behind."""
    line = refused(code, "fit", data, "--out", out, *more)
    assert not out.exists()
    assert not list(out.parent.glob("*.tmp"))
    return line


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("1.5,2.5", "line 7 has 2 values, and the first line has 4"),
        ("1.5,2.5", "The file may be cut short"),
        ("1,2,3,4,rose", "line 7 has 5 values, and the first line has 4"),
        ("1,2,3,rose, red", "Put values that contain commas into quotation marks"),
        ("1.5,n/a,3,rose", "line 7, column 'width': no value (1 missing). Fill in"),
        (
            "1.5,,3,rose",
            "--missing median, or leave their rows out with --missing",
        ),
        ("1.5,31.1.2024,3,rose", "'31.1.2024' is a date or a time, not a number. Turn"),
        (
            "1.5,2024-01-31 10:00,3,rose",
            "is a date or a time, not a number. Turn dates",
        ),
        (
            '"1,5",2,3,rose',
            "'1,5' is not a number. Write numbers with a decimal point",
        ),
        ("1.5,many,3,rose", "line 7, column 'width': 'many' is not a number"),
        ("1.5,NaN,3,rose", "line 7, column 'width': no value (1 missing)"),
        ("1.5,2,-inf,rose", "line 7, column 'petals': '-inf' is not a finite number"),
        (",2,3,rose", "line 7, column 'height': no value (1 missing)"),
        ("1,2,3,", "line 7, column 'kind', the target, is empty"),
        ('1,2,3,"rose', "quotation mark"),
    ],
)
def test_broken_rows(table, out, line, says):
    replace_line(table, 7, line)
    message = no_fit(DATA, table, out, "--target", "kind")
    assert f"{table}, line" in message
    assert says in message


def test_a_prediction_cannot_do_without_a_column(fitted, tmp_path):
    data, model = fitted
    other = tmp_path / "other.csv"
    for cell, says in (
        ("many", "The model knows these columns as numbers: correct the values, or"),
        (
            "",
            "no value (1 missing). Fill in the missing values, or leave the rows out.",
        ),
        ("inf", "not a finite number. Fill in other values, or leave the rows out."),
    ):
        other.write_text(data.read_text())
        replace_line(other, 7, f"1.5,{cell},3,rose")
        line = refused(DATA, "predict", model, other)
        assert says in line
        assert "--drop" not in line and "--categories" not in line


def test_a_table_without_names_says_so(table, out):
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join(lines[1:]))
    line = no_fit(USAGE, table, out, "--target", "kind")
    assert "It has no line of names, so its 4 columns have numbers from 1." in line
    assert "--header yes" in line


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--cache-size", "2GB", "'2GB'"),
        ("--cv", "five", "'five'"),
        ("--seed", "-1", "-1"),
        ("--machine", "svm", "'--machine': 'svm' is not one of 'auto', 'svc'"),
    ],
)
def test_wrong_values_of_options_are_named(table, out, capsys, option, value, says):
    command = ["fit", str(table), "--target", "kind", "--out", str(out)]
    assert run([*command, option, value]) == USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
    assert "Value error" not in line


def test_hints_for_beginners(table, out):
    more = ("--target", "kind")
    line = no_fit(USAGE, table, out, *more, "--kernel", "gaussian")
    assert "Did you mean 'rbf'?" in line
    line = no_fit(DATA, table, out, *more, "--test-size", "1", "-q")
    assert "--test-size 1 leaves too few samples" in line
    line = no_fit(USAGE, table, out, *more, "--size", "3x3")
    assert f"--size is for a folder of images, but {table} is taken for a CSV" in line


def test_a_score_above_one_is_not_asked_for(fitted):
    data, model = fitted
    line = refused(USAGE, "evaluate", model, data, "--at-least", "95")
    assert "--at-least 95 cannot be reached" in line and "0.9" in line


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"a,b,kind\n", "has a header, but no rows"),
        (b"a,a,kind\n1,2,x\n", "two columns named 'a'"),
        (b"kind\nx\ny\n", "has no feature columns"),
        (b"a,b,kind\n1,2,\xff\n", "not text in UTF-8"),
        (b"a,b,kind\n1,2,x\n3,4,x\n", "only one class, 'x'"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, out, content, says):
    data = tmp_path / "t.csv"
    data.write_bytes(content)
    line = no_fit(DATA, data, out, "--target", "kind")
    assert str(data) in line
    assert says in line


def test_targets(table, out):
    assert "The columns are 'height'" in no_fit(USAGE, table, out)
    line = no_fit(USAGE, table, out, "--target", "kin")
    assert "Did you mean 'kind'?" in line
    line = no_fit(DATA, table, out, "--target", "kind", "--machine", "svr")
    assert "line 2, column 'kind': 'aster' is not a number" in line
    line = no_fit(
        DATA, table, out, "--target", "height", "--drop", "kind", "--machine", "svc"
    )
    assert "line 2, column 'height'" in line
    assert "is not a class" in line


def test_text_columns(table, out):
    line = no_fit(DATA, table, out, "--target", "height")
    assert "line 2, column 'kind': 'aster' is not a number" in line
    assert "--categories one-hot" in line


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--kernel", "rfb"), "Did you mean 'rbf'? Known"),
        (("--kernel", "rbf(gamma=) + linear"), "At column 11 of the kernel"),
        (
            ("--kernel", "rbf@weight"),
            "Did you mean 'height'? Known: height",
        ),
        (("--kernel", "rbf + linear", "--gamma", 2), "Write the value into the kernel"),
        (
            ("--kernel", "linear", "--gamma", 2),
            "not a parameter of the kernel 'linear'",
        ),
        (("--gamma", "large"), "The 'gamma' parameter of SVC"),
        (("--C", -1), "The 'C' parameter of SVC must be"),
        (("--nu", 0.5, "--machine", "svc"), "only for nusvc, nusvr, oneclass"),
        (("--cv", 1), "--cv must be from 2 to 60"),
        (("--test-size", 1.5), "--test-size must be a share"),
        (("--size", "12"), "--size must have the form WxH"),
        (("--size", "0x3"), "--size must have the form WxH"),
        (("--size", "10x10"), "--size is for a folder of images"),
        (("--features", "hog"), "--features hog is for images"),
        (("--normal", "rose"), "--normal is for"),
        (("--n-jobs", 0), "--n-jobs must not be 0"),
        (("--device", "gpu"), "--device: Unknown device 'gpu'. Available: 'cpu'"),
        (
            ("--device", "cuda", "--machine", "linear-svc"),
            "--device is not for --machine linear-svc",
        ),
        (("--drop", "age"), "--drop 'age' is not a column"),
    ],
)
def test_options_that_make_no_sense(table, out, options, says):
    assert says in no_fit(USAGE, table, out, "--target", "kind", *options)


def test_too_few_samples_for_the_folds(table, out):
    table.write_text(table.read_text() + "1,2,3,thistle\n")
    line = no_fit(DATA, table, out, "--target", "kind", "--cv", 5)
    assert "'thistle' has 1" in line
    line = no_fit(DATA, table, out, "--target", "kind", "--test-size", 0.5)
    assert "--test-size 0.5" in line


@pytest.mark.parametrize("name", ["none.csv", "none/at/all.npz"])
def test_missing_data(tmp_path, out, name):
    line = no_fit(DATA, tmp_path / name, out, "--target", "kind")
    assert f"{tmp_path / name} does not exist" in line


def test_paths_of_the_wrong_kind(tmp_path, table, out):
    assert "is a folder" in no_fit(DATA, tmp_path, out, "--format", "csv")
    assert "is not a folder" in no_fit(DATA, table, out, "--format", "images")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "has no images" in no_fit(DATA, empty, out)


def test_unreadable_data(tmp_path, out, monkeypatch):
    def denied(path, how):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setitem(mercer.cli.data.reading.FORMATS, "csv", denied)
    data = write_flowers(tmp_path / "f.csv")
    line = no_fit(DATA, data, out, "--target", "kind")
    assert line == f"mercer: {data} cannot be read: Permission denied."


def test_nothing_is_overwritten(tmp_path, table, fitted):
    data, model = fitted
    there = tmp_path / "there"
    there.write_text("precious")
    for args in (
        ("fit", table, "--target", "kind", "--out", there),
        ("predict", model, data, "--out", there),
    ):
        assert "exists. Overwrite it with --force" in refused(USAGE, *args)
        assert there.read_text() == "precious"
        call(*args, "--force")
        assert there.read_bytes() != b"precious"
        there.write_text("precious")
    report = tmp_path / "report"
    call("evaluate", model, data, "--out", report, "--plots", "none")
    again = ("evaluate", model, data, "--out", report, "--plots", "none")
    assert "report.json exists" in refused(USAGE, *again)
    call(*again, "--force")
    assert "is a file" in refused(USAGE, "evaluate", model, data, "--out", there)


def test_no_place_to_write(tmp_path, table):
    line = refused(
        USAGE, "fit", table, "--target", "kind", "--out", tmp_path / "no" / "m"
    )
    assert "does not exist. Create it" in line
    line = refused(USAGE, "fit", table, "--target", "kind", "--out", table, "--force")
    assert "would overwrite what is read" in line
    line = refused(USAGE, "fit", table, "--target", "kind", "--out", table / "m")
    assert f"{table} is a file. Give a folder." in line


def test_no_permission_to_write_is_told_before_the_fit(tmp_path, table, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: not mode & os.W_OK)
    monkeypatch.setattr(mercer.SVC, "fit", None)
    args = ("fit", table, "--target", "kind", "--out", tmp_path / "m")
    line = refused(USAGE, *args)
    assert f"the folder {tmp_path} may not be written to." in line


def test_a_full_disk(tmp_path, fitted, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    data, model = fitted
    monkeypatch.setattr("os.fsync", full)
    line = refused(USAGE, "predict", model, data, "--out", tmp_path / "p.csv")
    assert line == f"mercer: {tmp_path / 'p.csv'}: No space left on device."
    line = refused(USAGE, "evaluate", model, data, "--out", tmp_path / "report")
    assert line.startswith(f"mercer: {tmp_path / 'report'}{os.sep}")
    assert line.endswith(": No space left on device.")
    assert list(tmp_path.iterdir()) == []


def test_a_bound_that_is_no_number(fitted):
    data, model = fitted
    line = refused(USAGE, "evaluate", model, data, "--at-least", "nan")
    assert "--at-least must be a number; got nan." in line


def test_errors_of_usage_are_sentences(capsys):
    assert run(["fit", "t.csv", "--out", "m", "--C", "much"]) == USAGE
    said = capsys.readouterr().err
    assert said.endswith(". See mercer fit --help.\n")
    assert said.startswith("mercer: ") and len(said.splitlines()) == 1


def test_columns_that_do_not_match(tmp_path, fitted):
    _, model = fitted
    few = write_flowers(tmp_path / "few.csv", order=("height", "petals"))
    line = refused(DATA, "predict", model, few)
    assert "lacks the columns 'width'. The model needs all columns" in line
    other = tmp_path / "other.csv"
    other.write_text("height,petals,breadth\n1,2,3\n")
    line = refused(DATA, "predict", model, other)
    assert "the columns 'width' and has 'breadth', which the model does not" in line
    bare = tmp_path / "bare.csv"
    bare.write_text("1,2\n3,4\n")
    line = call("predict", model, bare, code=DATA).stderr
    assert "has 2 feature columns; the model has 3" in line
    bare.write_text("1,2,3\n3,4,5\n")
    result = call("predict", model, bare)
    assert "warning: " in result.stderr
    assert "in the order of the model's features" in result.stderr


def test_answers_that_are_not_there(tmp_path, fitted):
    data, model = fitted
    assert "Fit it with --probability" in refused(
        USAGE, "predict", model, data, "--proba"
    )
    blind = write_flowers(tmp_path / "blind.csv", target=None)
    assert "no column 'kind' to compare predictions with" in refused(
        DATA, "evaluate", model, blind
    )


def test_classes_unknown_to_the_model(tmp_path, fitted):
    _, model = fitted
    data = write_flowers(tmp_path / "f.csv")
    replace_line(data, 2, "1,2,3,thistle")
    result = call("evaluate", model, data)
    assert "classes that the model does not know: 'thistle'" in result.stderr


def test_poor_answers_exit_with_1(tmp_path, fitted, table, out):
    data, model = fitted
    worse = tmp_path / "worse.csv"
    worse.write_text(data.read_text())
    replace_line(worse, 7, "9,9,9,rose")
    replace_line(worse, 8, "9,9,9,tulip")  # one of the two cannot be right
    result = call("evaluate", model, worse, "--at-least", 1, code=1)
    assert "is below --at-least 1" in result.stderr
    call("evaluate", model, data, "--at-least", 0.5)
    short = ("fit", table, "--target", "kind", "--out", out, "--max-iter", 1)
    result = call(*short, "--strict", code=1)
    assert "did not converge" in result.stderr
    assert not out.exists()
    result = call(*short)
    assert "warning: SVC did not converge" in result.stderr
    assert out.exists()


def foreign(path, kind):
    X, y = flowers()
    if kind == "text":
        path.write_text("not a model")
    elif kind == "pickle":
        path.write_bytes(pickle.dumps(mercer.SVC().fit(X, y)))
    elif kind == "npz":
        with open(path, "wb") as file:
            np.savez(file, X=X)
    elif kind == "scaler":
        mercer.save(StandardScaler().fit(X), path)
    elif kind == "unfitted":
        mercer.save(mercer.SVC(), path)
    elif kind == "notes":
        notes = {"notes": 1, "schema": {"features": 3}}
        mercer.save(mercer.SVC().fit(X, y), path, notes=notes)
    elif kind == "newer":
        mercer.save(mercer.SVC().fit(X, y), path, notes={"notes": 2, "schema": {}})


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("none", "cannot be read: No such file"),
        ("text", "is not a model file of Mercer"),
        ("pickle", "is not a model file of Mercer"),
        ("npz", "is an archive, but not a model file"),
        ("scaler", "is not a fitted machine"),
        ("unfitted", "is not a fitted machine"),
        ("notes", "its notes cannot be used"),
        ("newer", "notes of version 2"),
    ],
)
def test_foreign_model_files(tmp_path, table, kind, says):
    model = tmp_path / "m.skops"
    foreign(model, kind)
    for command in (["info", model], ["predict", model, table]):
        line = refused(MODEL, *command)
        assert str(model) in line
        assert says in line


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("1 1:0.5 nonsense", "line 3: 'nonsense' is not of the form index:value"),
        ("one 1:0.5", "line 3: the label 'one' is not a finite number"),
        ("1 2:0.5 1:3", "line 3: column 1 comes after column 2"),
        ("1 1:nan", "line 3: column 1: 'nan' is not a finite number"),
    ],
)
def test_broken_libsvm_files(tmp_path, out, line, says):
    data = tmp_path / "d.libsvm"
    data.write_text(f"0 1:1 2:2\n1 1:3\n{line}\n0 2:1\n")
    assert f"{data}, {says}" in no_fit(DATA, data, out)


def test_libsvm_files_with_more_columns(tmp_path, out, fitted):
    data = tmp_path / "d.libsvm"
    data.write_text("0 1:1 2:2\n1 1:3\n1 1:4\n0 2:1\n")
    call("fit", data, "--out", out)
    more = tmp_path / "more.libsvm"
    more.write_text("0 1:1 9:2\n")
    assert "has 9 features" in refused(DATA, "predict", out, more)
    more.write_text("0 1:1\n1 0:1\n")
    line = refused(DATA, "predict", out, more)
    assert f"{more}, line 2: column 0: the model counts columns from 1" in line
    more.write_bytes(b"\x00\xff\xfe 1:2\n")
    assert "it is not text" in refused(DATA, "predict", out, more)
    assert "Give data of the same kind" in refused(DATA, "predict", out, fitted[0])
    assert "Give data of the same kind" in refused(DATA, "predict", fitted[1], data)


def test_broken_images(tmp_path, out):
    pytest.importorskip("PIL")
    data = write_images(tmp_path / "bars", n=2)
    write_images(data, n=1, size=(9, 9), seed=1)
    line = no_fit(DATA, data, out)
    assert (
        f"{data / 'lying' / 'lying1.png'} has 12x10 pixels, and other images have 9x9"
        in line
    )
    assert "--size 9x9" in line
    (data / "upright" / "u.png").write_text("no image")
    line = no_fit(DATA, data, out, "--size", "9x9")
    assert line.endswith(
        f"{data / 'upright' / 'u.png'} is not an image that can be read: its content "
        "has an unknown format. Replace it, or remove it from the folder."
    )
    whole = (data / "lying" / "lying1.png").read_bytes()
    (data / "upright" / "u.png").write_bytes(whole[:-40])
    assert "is not an image that can be read" in no_fit(
        DATA, data, out, "--size", "9x9"
    )
    (data / "beside.png").write_bytes(whole)
    assert "both beside and inside" in no_fit(DATA, data, out)


@pytest.mark.parametrize(
    ("arrays", "code", "says"),
    [
        ({"A": np.ones((3, 2))}, USAGE, "has no array 'X'"),
        ({"X": np.ones((3, 2))}, USAGE, "has no array 'y'"),
        ({"X": np.ones(3), "y": np.ones(3)}, DATA, "of shape (samples, features)"),
        ({"X": np.ones((3, 2)), "y": np.ones(4)}, DATA, "must be 3 numbers or texts"),
        (
            {"X": np.array([[1, 2], [np.nan, 3]]), "y": [0, 1]},
            DATA,
            "row 2, column '1'",
        ),
        ({"X": np.array([[None]]), "y": [0]}, DATA, "cannot be read as an npz file"),
    ],
)
def test_broken_arrays(tmp_path, out, arrays, code, says):
    data = tmp_path / "d.npz"
    np.savez(data, **arrays)
    assert says in no_fit(code, data, out)


def test_no_archive_of_arrays(tmp_path, out):
    data = tmp_path / "d.npz"
    with open(data, "wb") as file:
        np.save(file, np.ones(3))
    assert f"{data} is not an npz file" in no_fit(DATA, data, out)


def test_values_too_large_to_scale(tmp_path, out):
    data = tmp_path / "d.csv"
    data.write_text("a,k\n1e308,x\n-1e308,y\n1e308,x\n")
    line = no_fit(DATA, data, out, "--target", "k", "--scale", "standard", "-q")
    assert line.endswith("--scale standard: some values are too large to scale.")


def test_broken_parquet(tmp_path, out):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    data = tmp_path / "d.parquet"
    data.write_bytes(b"PAR1 no more")
    assert "cannot be read as Parquet" in no_fit(DATA, data, out, "--target", "k")
    parquet.write_table(
        arrow.table({"a": [1.0, None], "b": ["x", "y"], "k": [0, 1]}), data
    )
    line = no_fit(DATA, data, out, "--target", "k")
    assert "row 2, column 'a': no value (1 missing)" in line
    line = no_fit(DATA, data, out, "--target", "k", "--drop", "a")
    assert "row 1, column 'b': 'x' is not a number (2 such values)" in line


def test_parquet_without_pyarrow(tmp_path, out, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    data = tmp_path / "d.parquet"
    data.write_bytes(b"PAR1")
    assert "pip install pyarrow" in no_fit(USAGE, data, out)


def test_a_guess_of_classes_is_told_where_it_fails(tmp_path, out):
    # Counts: whole numbers, most of them often, a few of them once.
    counts = [*([0, 1, 2] * 9), 7, 8]
    rows = "\n".join(f"{k % 5},{n}" for k, n in enumerate(counts))
    data = tmp_path / "counts.csv"
    data.write_text(f"a,visits\n{rows}\n")
    guess = (
        "Classification was guessed because the target 'visits' has 5 different whole "
        "numbers; use --machine svr for regression."
    )
    for option in (("--cv", 5), ("--test-size", 0.3)):
        assert guess in no_fit(DATA, data, out, "--target", "visits", *option)
    said = no_fit(DATA, data, out, "--target", "visits", "--cv", 5, "--machine", "svc")
    assert "guessed" not in said
    call("fit", data, "--target", "visits", "--cv", 5, "--machine", "svr", "-o", out)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full device")
def test_full_standard_output_is_named(fitted):
    data, model = fitted
    command = [sys.executable, "-m", "mercer", "predict", str(model), str(data)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == USAGE
    assert done.stderr == "mercer: standard output: No space left on device.\n"


def test_a_file_that_is_not_a_pickle(tmp_path, table):
    for name, said in (("k.pkl", True), ("k.joblib", True), ("k.skops", False)):
        out = tmp_path / name
        result = call("fit", table, "--target", "kind", "--out", out)
        assert (f"{out} is not a pickle" in result.stderr) == said
        assert mercer.load(out).classes_.tolist() == ["aster", "rose", "tulip"]


@pytest.mark.parametrize(
    ("given", "meant"), [("c", "C"), ("Gamma", "gamma"), ("epsilom", "epsilon")]
)
def test_parameters_of_a_search_are_suggested(table, out, given, meant):
    line = no_fit(USAGE, table, out, "--target", "kind", "--search", given)
    assert f"cannot search {given!r}. Did you mean {meant!r}?" in line


def test_scaled_targets_are_for_regression(table, out):
    line = no_fit(USAGE, table, out, "--target", "kind", "--scale-target")
    assert "--scale-target is for regression, and this is classification." in line
