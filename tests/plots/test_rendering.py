"""Figures as files, and inside a page."""

import re
import subprocess
import sys
from xml.etree import ElementTree

import matplotlib
import pytest
from matplotlib import pyplot

from mercer import SVC
from mercer.datasets import make_moons
from mercer.plots import BarsDisplay, CurvesDisplay, DecisionRegionsDisplay
from mercer.plots.rendering import figure_bytes, inline_svg
from mercer.plots.style import COLORS, INK

VALUES = ([0.25, 3.5], ["u", "v"])


def height(svg):
    return float(re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', svg)[1])


def test_svg_of_a_page():
    svg = inline_svg(BarsDisplay.from_values, *VALUES, title='1 < 2 & "3"')
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label").split() == ["1", "2", "3"]
    # The page decides on the size; text is text, and the background is not painted.
    assert root.get("width") is None and root.get("height") is None
    assert ">0.25<" in svg and COLORS[0].lower() in svg
    assert re.search(r'id="patch_1">\s*<path[^>]*fill: none', svg)
    assert "<metadata>" not in svg
    assert svg == inline_svg(BarsDisplay.from_values, *VALUES, title='1 < 2 & "3"')


def test_neither_pyplot_nor_settings_are_touched():
    before = dict(matplotlib.rcParams)
    inline_svg(BarsDisplay.from_values, *VALUES)
    assert pyplot.get_fignums() == []
    assert dict(matplotlib.rcParams) == before


def test_a_legend_below_makes_a_figure_taller():
    curves = {name: ([1, 2], [1, 2]) for name in "abcdef"}
    inside, below = (
        inline_svg(CurvesDisplay.from_curves, curves, legend=legend)
        for legend in (True, "below")
    )
    assert height(inside) == pytest.approx(3.1 * 72)
    assert height(inside) + 20 < height(below) < height(inside) + 80


@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_files(ending, start):
    X, y = make_moons(40, random_state=0)
    model = SVC().fit(X, y)
    content = figure_bytes(
        DecisionRegionsDisplay.from_estimator,
        model,
        X,
        y,
        figsize=(4, 3),
        ending=ending,
        size=10.0,
    )
    assert content.startswith(start)


def test_no_screen_is_needed():
    code = (
        "from mercer.plots import BarsDisplay; "
        "from mercer.plots.rendering import inline_svg; import sys; "
        "inline_svg(BarsDisplay.from_values, [1], ['a']); "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_figures_of_pages_take_the_colour_of_the_text():
    svg = inline_svg(BarsDisplay.from_values, *VALUES, title="t")
    assert "currentColor" in svg and INK not in svg
    content = figure_bytes(
        BarsDisplay.from_values, *VALUES, figsize=(3, 2), ending="svg"
    ).decode()
    assert "currentColor" not in content and INK in content


def test_axes_in_three_dimensions():
    def plot(ax, title):
        ax.scatter([0, 1], [0, 1], [0, 1])
        ax.set_title(title)
        assert ax.name == "3d"

    svg = inline_svg(plot, projection="3d", title="space")
    assert 'aria-label="space"' in svg


def test_no_curve_is_black_on_a_dark_page():
    curves = {str(k): ([0, 1], [k, k + 1]) for k in range(10)}
    svg = inline_svg(CurvesDisplay.from_curves, curves)
    lines = re.findall(r'<g id="line2d_\d+">\s*<path[^>]*stroke: ([^;"]+)', svg)
    assert "currentColor" in lines
    assert "#000000" not in lines
