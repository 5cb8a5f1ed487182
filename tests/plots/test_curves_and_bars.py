"""Curves, bars and dots of any values."""

import numpy as np
import pytest

from mercer.plots import BarsDisplay, CurvesDisplay, DotsDisplay

CURVES = {"a": ([1, 2, 4], [3.0, 2.0, 1.0]), "b": ([1, 9], [5.0, 6.0])}


def test_curves_have_points_and_styles_of_their_own(ax):
    display = CurvesDisplay.from_curves(
        CURVES, xlabel="n", ylabel="seconds", ax=ax, log_x=True, title="t"
    )
    for line, points in zip(display.lines_, CURVES.values(), strict=True):
        np.testing.assert_array_equal(line.get_xydata().T, points)
    assert len({line.get_linestyle() for line in display.lines_}) == 2
    assert len({line.get_marker() for line in display.lines_}) == 2
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("n", "seconds", "t")
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["a", "b"]


def test_the_axis_ends_where_the_curves_do(ax):
    display = CurvesDisplay.from_curves(CURVES, ax=ax, log_x=True)
    assert ax.get_xlim() == (1, 9)
    assert not any(line.get_clip_on() for line in display.lines_)  # whole markers


def test_many_names_stand_below_the_figure():
    display = CurvesDisplay.from_curves(CURVES, legend="below", log_y=True)
    assert display.ax_.get_legend() is None
    assert display.figure_.legends == [display.legend_]
    display.figure_.draw_without_rendering()
    assert display.legend_.get_window_extent().y1 < display.ax_.get_window_extent().y0
    assert display.ax_.get_yscale() == "log"
    assert CurvesDisplay.from_curves(CURVES, legend=False).legend_ is None


def test_errors_of_curves():
    with pytest.raises(ValueError, match="curves is empty"):
        CurvesDisplay.from_curves({})
    with pytest.raises(ValueError, match=r"'a' has values of shapes \(1,\) and \(2,\)"):
        CurvesDisplay.from_curves({"a": ([1], [1, 2])})


def test_bars(ax):
    display = BarsDisplay.from_values([0.25, 3.5], ["u", "v"], xlabel="s", ax=ax)
    (bars,) = display.bars_
    assert [bar.get_width() for bar in bars] == [0.25, 3.5]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["u", "v"]
    assert {"0.25", "3.5"} <= {text.get_text() for text in ax.texts}
    assert ax.get_xlabel() == "s" and ax.yaxis_inverted()
    with pytest.raises(ValueError, match=r"BarsDisplay: .* names of 2 bars, got 1"):
        BarsDisplay.from_values([1, 2], ["a"])


def test_dots(ax):
    values = [[97.1, 98.3], [96.0, np.nan]]
    display = DotsDisplay.from_values(
        values, ["u", "v"], sets=["first", "second"], xlabel="%", ax=ax
    )
    for line, expected in zip(display.dots_, values, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), expected)
        assert line.get_linestyle() == "None"
    assert len({line.get_marker() for line in display.dots_}) == 2
    assert [t.get_text() for t in ax.get_yticklabels()] == ["u", "v"]
    assert ax.get_xlim()[0] > 90 and ax.yaxis_inverted()
    (legend,) = ax.figure.legends
    assert [t.get_text() for t in legend.get_texts()] == ["first", "second"]
    DotsDisplay.from_values([1.0], ["a"], values_format=".1f", ax=ax)
    assert "1.0" in {text.get_text() for text in ax.texts}
    with pytest.raises(ValueError, match=r"DotsDisplay: .* names of 2 bars, got 1"):
        DotsDisplay.from_values([1, 2], ["a"])


def test_few_values_have_marks_of_their_own():
    def marks(x):
        display = CurvesDisplay.from_curves({"a": (x, x)}, log_x=True)
        return [label.get_text() for label in display.ax_.get_xticklabels()]

    assert marks([500, 1000, 4000]) == ["500", "1,000", "4,000"]
    close = marks([1000, 1100, 4000])
    assert "1,100" not in close
    assert "500" not in marks([500 * 2**k for k in range(9)])
