"""Data and models from pipes: every row arrives, whatever the format."""

import gzip
import os
import subprocess
import sys
import threading
from io import BytesIO

import numpy as np
import pytest
from cli_files import call, flowers, refused, write_flowers
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from mercer.cli.app import app
from mercer.runtime.writing import replacing

pytest.importorskip("skops", reason="model files need skops")
pytestmark = pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason="the tests need named pipes"
)
N = 6000  # more than 64 KB in every format, which is more than a pipe holds


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pipes")


@pytest.fixture(scope="module")
def table(folder):
    return write_flowers(folder / "many.csv", n=N)


@pytest.fixture(scope="module")
def model(folder):
    data, path = write_flowers(folder / "f.csv"), folder / "m.skops"
    call("fit", data, "--target", "kind", "--out", path)
    return path


@pytest.fixture(scope="module")
def expected(model, table):
    return call("predict", model, table, "--decision").stdout


def pipe(path, content):
    """Make a named pipe and a thread that writes into it."""
    os.mkfifo(path)
    threading.Thread(target=path.write_bytes, args=(content,), daemon=True).start()
    return path


def with_input(content, *args):
    """Run a command in this process with bytes on standard input."""
    result = CliRunner().invoke(app, [str(arg) for arg in args], input=content)
    assert result.exit_code == 0, result.stderr
    return result


def as_npz(X, y):
    out = BytesIO()
    np.savez(out, X=X, y=y)
    return out.getvalue()


def as_libsvm(X, y):
    out = BytesIO()
    dump_svmlight_file(X, y, out, zero_based=False)
    return out.getvalue()


def as_parquet(X, y):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {f"c{j}": X[:, j] for j in range(X.shape[1])} | {"y": y}
    out = BytesIO()
    parquet.write_table(arrow.table(columns), out)
    return out.getvalue()


def as_csv(X, y):
    rows = (",".join(map(str, [*row, k])) for row, k in zip(X, y, strict=True))
    return ("a,b,c,y\n" + "\n".join(rows) + "\n").encode()


def as_compressed_csv(X, y):
    return gzip.compress(as_csv(X, y))


@pytest.mark.parametrize("name", ["pipe.csv", "pipe"])
def test_every_row_of_a_named_pipe_arrives(tmp_path, model, table, expected, name):
    content = table.read_bytes()
    assert len(content) > 2**16
    assert expected.count("\n") == N + 1
    fifo = pipe(tmp_path / name, content)
    assert call("predict", model, fifo, "--decision").stdout == expected


@pytest.mark.parametrize("given", ["-", "/dev/stdin"])
def test_every_row_of_standard_input_arrives(model, table, expected, given):
    command = [sys.executable, "-m", "mercer", "predict", str(model), given]
    with subprocess.Popen(["cat", str(table)], stdout=subprocess.PIPE) as cat:
        done = subprocess.run(
            [*command, "--decision"], stdin=cat.stdout, capture_output=True, text=True
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == expected


@pytest.mark.parametrize(
    "form, also",
    [
        (as_csv, ()),
        (as_compressed_csv, ()),
        (as_npz, ()),
        (as_npz, ("--format", "npz")),
        (as_libsvm, ()),
        (as_parquet, ()),
    ],
)
def test_formats_are_found_by_their_content(tmp_path, form, also):
    X, y = flowers(n=N)
    data, out = form(X, y), tmp_path / "m"
    assert len(data) > 2**15
    target = () if form is as_libsvm else ("--target", "y")
    small = form(*flowers(n=60))
    with_input(small, "fit", "-", *target, "--out", out, *also)
    said = with_input(data, "evaluate", out, "-", *also).stdout
    assert f"samples                  {N}" in said
    fifo = pipe(tmp_path / "pipe", data)
    assert call("predict", out, fifo, *also).stdout.count("\n") == N + 1


def test_models_come_from_pipes(tmp_path, model, table, expected):
    content = model.read_bytes()
    fifo = pipe(tmp_path / "pipe", content)
    assert call("predict", fifo, table, "--decision").stdout == expected
    said = with_input(content, "predict", "-", table, "--decision").stdout
    assert said == expected
    assert "standard input" not in call("info", model).stdout
    info = with_input(content, "info", "-", "--json").stdout
    assert '"file": "standard input"' in info


def test_one_stream_is_not_two(tmp_path, model):
    words = "cannot both come from standard input. Give one of them as a file."
    assert words in refused(2, "predict", "-", "-")
    assert words in refused(2, "evaluate", "/dev/stdin", "-")
    os.mkfifo(tmp_path / "p")
    assert f"both come from {tmp_path / 'p'}" in refused(
        2, "predict", tmp_path / "p", tmp_path / "p"
    )


def test_errors_name_the_stream(tmp_path, model):
    bad = b"height,width,petals\n1,2,3\n1,oops,3\n"
    args = ["predict", str(model), "-"]
    result = CliRunner().invoke(app, args, input=bad)
    assert result.exit_code == 3
    assert "standard input, line 3, column 'width': 'oops'" in result.stderr
    result = CliRunner().invoke(app, args, input=b"")
    assert "mercer: standard input is empty." in result.stderr
    result = CliRunner().invoke(app, [*args, "--format", "libsvm"], input=bad)
    assert "mercer-" not in result.stderr
    result = CliRunner().invoke(app, ["info", "-"], input=b"hello")
    assert result.exit_code == 4
    assert "standard input is not a model file of Mercer" in result.stderr
    result = CliRunner().invoke(app, [*args, "--format", "images"], input=bad)
    assert "standard input is not a folder" in result.stderr


def test_predictions_go_to_standard_output_and_pipes(tmp_path, model, table, expected):
    assert call("predict", model, table, "--decision", "-o", "-").stdout == expected
    fifo, found = tmp_path / "pipe", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: found.append(fifo.read_text()))
    reader.start()
    call("predict", model, table, "--decision", "--out", fifo)
    reader.join(timeout=60)
    assert found == [expected]
    assert fifo.is_fifo()
    assert "Give the name of a file" in refused(
        2, "fit", table, "--target", "kind", "--out", "-"
    )


def test_a_device_is_not_replaced_by_a_file(tmp_path):
    # The null device itself is not tried: a failing test would ruin the machine.
    link, fifo = tmp_path / "link", tmp_path / "pipe"
    os.mkfifo(fifo)
    link.symlink_to(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    with replacing(link) as file:
        file.write(b"some bytes")
    assert os.read(reader, 100) == b"some bytes"
    os.close(reader)
    assert fifo.is_fifo()
