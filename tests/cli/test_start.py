"""How much is imported where a command computes nothing."""

import subprocess
import sys

import pytest

SLOW = ("sklearn", "scipy", "pandas", "numba", "numpy", "mercer.machines")
USAGE = 2


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["fit", "--help"], 0),
        ([], USAGE),
        (["fi"], USAGE),
        (["fit", "t.csv", "--out", "m", "--C", "much"], USAGE),
        (["fit", "t.csv", "--out", "m", "--machine", "svm"], USAGE),
        (["fit", "t.csv", "--out", "no/such/folder/m"], USAGE),
        (["fit", "t.csv", "--out", "m", "--search", "c"], USAGE),
        (["fit", "t.csv", "--out", "m", "--n-jobs", "0"], USAGE),
        (["fit", "t.csv", "--out", "m", "--size", "big"], USAGE),
        (["fit", "t.csv", "--out", "m", "--device", "gpu"], USAGE),
        (["fit", "t.csv", "--out", "m", "--from", "e", "--C", "1"], USAGE),
        (["predict", "m", "t.csv", "--encoding", "ansi"], USAGE),
        (["evaluate", "m", "t.csv", "--at-least", "95"], USAGE),
        (["play", "--port", "-1"], USAGE),
    ],
    ids=str,
)
def test_help_and_wrong_options_wait_for_no_library(tmp_path, args, code):
    program = (
        "import sys\n"
        "from mercer.cli import main\n"
        f"sys.argv = ['mercer', *{args!r}]\n"
        "code = main()\n"
        f"found = [name for name in {SLOW!r} if name in sys.modules]\n"
        "assert not found, found\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == code, done.stderr
