"""The code blocks of the documents run."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import SVC

ROOT = Path(__file__).parents[1]


def blocks(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.S)


def test_readme_example(capsys):
    example, _ = blocks("README.md")
    exec(compile(example, "README.md", "exec"), {})
    score, converged, gap = capsys.readouterr().out.split()
    assert float(score) > 0.97
    assert converged == "True"
    assert float(gap) >= 0


def test_readme_model_is_saved_and_predicts_on_the_command_line(tmp_path, monkeypatch):
    pytest.importorskip("skops", reason="model files need skops")
    testing = pytest.importorskip("typer.testing")
    from mercer.cli.app import app

    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (predict,) = re.findall(r"^    mercer (predict .*)$", text, re.M)
    names = {}
    for example in blocks("README.md"):
        exec(compile(example, "README.md", "exec"), names)
    done = testing.CliRunner().invoke(app, predict.split())
    assert done.exit_code == 0, done.output
    told = [int(line) for line in done.stdout.splitlines()[1:]]
    assert told == names["model"].predict(names["X_test"]).tolist()


def test_images_examples(capsys):
    examples = blocks("docs/images.md")
    for example in examples:
        exec(compile(example, "docs/images.md", "exec"), {})
    scores = [float(score) for score in capsys.readouterr().out.split()]
    assert len(scores) == len(examples) == 3
    assert min(scores) > 0.95


def test_new_kernel_in_contributing():
    (example,) = blocks("CONTRIBUTING.md")
    names = {}
    exec(compile(example, "CONTRIBUTING.md", "exec"), names)
    kernel = names["RationalQuadratic"](0.3)
    X = np.random.default_rng(0).standard_normal((60, 4))
    squared = ((X[:, None] - X[None]) ** 2).sum(-1)
    assert kernel.block(X) == pytest.approx(1 / (1 + 0.3 * squared))
    both = (kernel + 2.0 * kernel).block(X)
    assert both == pytest.approx(3 / (1 + 0.3 * squared))
    assert SVC(kernel=kernel).fit(X, X[:, 0] > 0).converged_


def test_model_files_page(tmp_path, monkeypatch):
    pytest.importorskip("skops", reason="skops is an extra")
    monkeypatch.chdir(tmp_path)
    names = {}
    for example in blocks("docs/models.md"):
        exec(compile(example, "docs/models.md", "exec"), names)
    assert {path.name for path in tmp_path.iterdir()} == {"moons.skops", "moons.model"}


# Pages whose code has tests of its own, or writes what other tests look at.
ELSEWHERE = {"images", "models", "cli", "cluster", "device"}
PAGES = sorted(
    path.stem
    for path in (ROOT / "docs").glob("*.md")
    if blocks(f"docs/{path.name}") and path.stem not in ELSEWHERE
)


def test_the_page_of_cards_runs_with_numpy_in_their_place(cuda, tmp_path, monkeypatch):
    pytest.importorskip("skops", reason="model files need skops")
    monkeypatch.chdir(tmp_path)
    names = {}
    for example in blocks("docs/device.md"):
        exec(compile(example, "docs/device.md", "exec"), names)
    assert cuda.launches
    assert names["again"].device == "cpu"


@pytest.mark.parametrize("page", [f"docs/{name}.md" for name in PAGES])
def test_examples_of_other_pages_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for example in blocks(page):
        exec(compile(example, page, "exec"), names)


PUBLIC = [
    mercer,
    mercer.kernels,
    mercer.images,
    mercer.datasets,
    mercer.selection,
]


@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.__name__)
def test_the_reference_has_every_public_name(module):
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   ([\w.]+)$", text, re.M))
    for name in module.__all__:
        value = getattr(module, name)
        inside = f"{module.__name__}.{name}".removeprefix("mercer.")
        if not inspect.ismodule(value):
            assert {name, inside} & listed, f"docs/api.md lacks {inside}"
