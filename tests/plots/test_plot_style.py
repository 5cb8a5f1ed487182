"""Colours and marks, and matplotlib that is not there."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from mercer import plots
from mercer.plots.style import (
    COLORS,
    HATCHES,
    LINES,
    MARKERS,
    brightness,
    distinct,
    lighten,
    load_pyplot,
)

# What a red-blind and a green-blind eye see of linear red, green and blue
# (Viénot, Brettel & Mollon 1999).
RED_BLIND = np.array([[0.1124, 0.8876, 0], [0.1124, 0.8876, 0], [0.004, -0.004, 1]])
GREEN_BLIND = np.array([[0.2928, 0.7072, 0], [0.2928, 0.7072, 0], [-0.0223, 0.0223, 1]])


@pytest.mark.parametrize("eye", [RED_BLIND, GREEN_BLIND, np.eye(3)])
def test_first_colors_are_far_apart_for_every_eye(eye):
    seen = np.array([to_rgb(c) for c in COLORS[:8]]) ** 2.2 @ eye.T
    seen = np.clip(seen, 0, 1) ** (1 / 2.2)
    distances = np.linalg.norm(seen[:, None] - seen[None], axis=-1)
    assert distances[~np.eye(8, dtype=bool)].min() > 0.1


def test_neighbours_differ_in_grey_print():
    greys = np.array([brightness(to_rgb(c)) for c in COLORS[:4]])
    assert np.abs(np.diff(greys)).min() > 0.1


@pytest.mark.parametrize("other", [MARKERS, LINES, HATCHES])
def test_pairs_of_color_and_mark_repeat_late(other):
    pairs = zip(distinct(COLORS, 60), map(str, distinct(other, 60)), strict=True)
    assert len(set(pairs)) == 60


def test_lighter_colors_are_closer_to_white():
    assert lighten("#000000", 0.25) == pytest.approx(0.25)
    assert lighten("#0072B2", 1.0) == pytest.approx(1.0)
    assert lighten("#0072B2", 0.0) == pytest.approx(to_rgb("#0072B2"))


def test_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"Some\.plot needs .*pip install matplotlib"):
        load_pyplot("Some.plot")
    with pytest.raises(ImportError, match=r"KernelMatrixDisplay\.plot .*matplotlib"):
        plots.KernelMatrixDisplay.from_matrix(np.eye(2))


def test_import_leaves_matplotlib_alone():
    code = "import sys, mercer.plots; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env=None)


def test_displays_are_alike():
    ours = [
        value
        for name in plots.__all__
        if name.endswith("Display")
        and (value := getattr(plots, name)).__module__.startswith("mercer")
    ]
    assert len(ours) == 13
    for display in ours:
        assert [name for name in dir(display) if name.startswith("from_")]
        assert "ax" in display.plot.__code__.co_varnames
        assert display.__doc__.count(">>>") >= 2
