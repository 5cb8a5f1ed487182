"""The page on the command line: its commands run, and print what it says."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mercer.cli.app import app

pytest.importorskip("skops", reason="model files need skops")
pytest.importorskip("matplotlib")
PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
# Lines that differ between machines and days.
LOOSE = ("time", "converged", "created", "written by", "KKT gap", "dual gap")


def blocks(language):
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def transcript():
    """Yield the commands of the page, each with the lines that follow it."""
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, said = part.partition("\n")
            yield command, said.splitlines()


def fixed(lines):
    return [
        next((f"{name} ..." for name in LOOSE if line.startswith(name)), line.rstrip())
        for line in lines
    ]


def test_the_transcript_is_a_real_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = blocks("python")
    exec(compile(example, "docs/cli.md", "exec"), {})
    commands = list(transcript())
    assert len(commands) == 15
    for command, expected in commands:
        program, *args = shlex.split(command)
        assert program == "mercer"
        result = CliRunner().invoke(app, args)
        said = (result.stdout + result.stderr).splitlines()
        assert fixed(said) == fixed(expected), command
    assert {path.name for path in (tmp_path / "report").iterdir()} >= {
        "report.txt",
        "report.json",
        "predictions.csv",
        "confusion.csv",
        "confusion.png",
        "roc.csv",
        "roc.png",
    }
