"""The command as a process: entry points, interrupts, streams."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import typer
from cli_files import call, write_flowers

import mercer
from mercer.cli import app as cli_app
from mercer.cli import main, training

pytest.importorskip("skops", reason="model files need skops")
MERCER = (sys.executable, "-m", "mercer")
INTERRUPT = "mercer: interrupted. No file was left half-written.\n"


def run(*args, **more):
    command = [*MERCER, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, **more)


def test_the_entry_point_exists():
    file = Path(__file__).parents[2] / "pyproject.toml"
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    module, _, name = project["scripts"]["mercer"].partition(":")
    assert callable(getattr(import_module(module), name))


def test_a_round_by_processes(tmp_path):
    data, model = write_flowers(tmp_path / "f.csv"), tmp_path / "m.skops"
    done = run("fit", data, "--target", "kind", "--out", model, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["machine"] == "SVC"
    done = run("predict", model, tmp_path / "none.csv")
    assert done.returncode == 3
    assert done.stderr == f"mercer: {tmp_path / 'none.csv'} does not exist.\n"


def test_wrong_calls_are_one_line():
    done = run("fit", "--never")
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("mercer: No such option: --never")
    assert line.endswith("See mercer fit --help.")


def test_version_and_help():
    assert call("--version").stdout == f"mercer {mercer.__version__}\n"
    text = call("--help").stdout
    assert all(name in text for name in ("fit", "predict", "evaluate", "info", "130"))


def test_without_typer():
    code = (
        "import runpy, sys; sys.modules['typer'] = None\n"
        "runpy.run_module('mercer', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "typer" in line
    assert "pip install rich skops typer" in line


def test_without_rich(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rich", None)
    assert main() == 2
    assert "the package rich" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_an_interrupt_ends_the_process_with_130(tmp_path):
    # A pipe without an end: the process is there to be interrupted, however slow.
    data, out = tmp_path / "endless.csv", tmp_path / "m.skops"
    os.mkfifo(data)
    # Where tests run in the background, signals of the keyboard may be ignored.
    code = (
        "import signal, sys; from mercer.cli import main;"
        "signal.signal(signal.SIGINT, signal.default_int_handler);"
        "sys.exit(main())"
    )
    arguments = ["fit", str(data), "--target", "kind", "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with open(data, "w") as file:  # waits until the process reads
        file.write("a,kind\n1,x\n")
        file.flush()
        process.send_signal(signal.SIGINT)
        said, complaint = process.communicate(timeout=120)
    assert process.returncode == 130
    assert said == ""
    assert complaint == "mercer: interrupted. No file was left half-written.\n"
    assert os.listdir(tmp_path) == ["endless.csv"]


def test_an_interrupt_of_a_fit_leaves_the_old_model(tmp_path, monkeypatch):
    data, out = write_flowers(tmp_path / "f.csv"), tmp_path / "m.skops"
    out.write_text("the old one")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(training.CommandBar, "watch", interrupted)
    result = call("fit", data, "--target", "kind", "--out", out, "--force", code=130)
    assert result.stdout == ""
    assert out.read_text() == "the old one"
    assert {path.name for path in tmp_path.iterdir()} == {"f.csv", "m.skops"}


def test_a_reader_that_has_seen_enough(tmp_path):
    data, model = write_flowers(tmp_path / "f.csv", n=3000), tmp_path / "m.skops"
    call("fit", data, "--target", "kind", "--out", model)
    process = subprocess.Popen(
        [*MERCER, "predict", str(model), str(data), "--decision"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline().startswith("prediction,")
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    process.wait(timeout=120)


@pytest.mark.parametrize("module", ["numba", "sklearn", "typer", "mercer.cli.app"])
def test_an_interrupt_of_an_import_leaves_no_traceback(module):
    code = (
        "import runpy, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "sys.argv = ['mercer', 'info', 'm']\n"
        "runpy.run_module('mercer', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    # What commands need is imported inside of them, where an interrupt is reported.
    said = "" if module in ("typer", "mercer.cli.app") else INTERRUPT
    assert (done.returncode, done.stdout, done.stderr) == (130, "", said)


def test_an_interrupt_outside_of_a_command(monkeypatch):
    def interrupted(*_, **__):
        raise typer.Abort

    monkeypatch.setattr(cli_app, "app", interrupted)
    assert cli_app.run(["info"]) == 130
