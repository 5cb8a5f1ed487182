"""Lines and maps of scores."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from sklearn.model_selection import GridSearchCV

from mercer import SVC
from mercer.datasets import make_moons
from mercer.kernels import RBF, Linear
from mercer.plots import AblationDisplay, HeatMapDisplay
from mercer.plots.style import brightness


@pytest.fixture(scope="module")
def search():
    X, y = make_moons(60, noise=0.3, random_state=0)
    grid = {"C": [100.0, 0.1, 1.0], "gamma": [0.1, 10.0], "shrinking": [True, False]}
    return GridSearchCV(SVC(), grid, cv=3).fit(X, y)


def best(search, **chosen):
    """Return the best mean of the rows with these values, and its deviation."""
    results = search.cv_results_
    rows = [
        k
        for k, params in enumerate(results["params"])
        if all(params[name] == value for name, value in chosen.items())
    ]
    k = max(rows, key=lambda row: results["mean_test_score"][row])
    return results["mean_test_score"][k], results["std_test_score"][k]


def test_lines_of_a_search(search, ax):
    display = AblationDisplay.from_cv_results(
        search, "C", line="gamma", ax=ax, title="t"
    )
    assert display.ax_ is ax
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == (
        "C",
        "test score",
        "t",
    )
    assert ax.get_xscale() == "log"
    assert ax.get_legend().get_title().get_text() == "gamma"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["0.1", "10"]
    for gamma, line, bar in zip(
        [0.1, 10.0], display.lines_, display.errorbars_, strict=True
    ):
        expected = [best(search, C=C, gamma=gamma) for C in (0.1, 1.0, 100.0)]
        np.testing.assert_array_equal(line.get_xdata(), [0.1, 1.0, 100.0])
        np.testing.assert_allclose(line.get_ydata(), [mean for mean, _ in expected])
        (bars,) = bar.lines[2]
        lengths = [segment[1, 1] - segment[0, 1] for segment in bars.get_segments()]
        assert lengths == pytest.approx([2 * std for _, std in expected])
    styles = {(li.get_linestyle(), li.get_marker()) for li in display.lines_}
    assert len(styles) == 2


def test_one_line_takes_the_best_of_the_rest(search):
    display = AblationDisplay.from_cv_results(search.cv_results_, "param_C")
    expected = [best(search, C=C)[0] for C in (0.1, 1.0, 100.0)]
    np.testing.assert_allclose(display.lines_[0].get_ydata(), expected)
    assert display.ax_.get_legend() is None


def test_names_on_the_axis():
    names = ["whole", "without HOG", "without deskewing", "raw pixels"]
    display = AblationDisplay.from_arrays(
        names, [0.98, 0.95, 0.97, 0.9], ylabel="score"
    )
    ticks = display.ax_.get_xticklabels()
    assert [tick.get_text() for tick in ticks] == names
    assert ticks[0].get_rotation() == 30
    short = AblationDisplay.from_arrays([True, False], [0.98, 0.95])
    assert short.ax_.get_xticklabels()[0].get_rotation() == 0
    assert AblationDisplay.from_arrays([1, 2], [0, 1]).ax_.get_xscale() == "linear"
    logged = AblationDisplay.from_arrays([1, 2], [0, 1], log=True)
    assert logged.ax_.get_xscale() == "log"


def test_kernels_of_a_search_are_told_apart():
    X, y = make_moons(40, noise=0.3, random_state=0)
    grid = {"kernel": [RBF(1.0), Linear()], "C": [1, 10]}
    search = GridSearchCV(SVC(), grid, cv=2).fit(X, y)
    display = AblationDisplay.from_cv_results(search, "C", line="kernel")
    texts = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert texts == [str(RBF(1.0)), str(Linear())]


def test_a_list_of_grids_has_holes():
    X, y = make_moons(40, noise=0.3, random_state=0)
    grids = [
        {"kernel": ["linear"], "C": [1.0, 10.0]},
        {"kernel": ["rbf"], "C": [1.0], "gamma": [0.1, 1.0]},
    ]
    search = GridSearchCV(SVC(), grids, cv=2).fit(X, y)
    display = AblationDisplay.from_cv_results(search, "gamma")
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), [0.1, 1.0])
    display = AblationDisplay.from_cv_results(search, "C", line="kernel")
    assert np.isnan(display.lines_[1].get_ydata()[1])
    assert not np.isnan(display.lines_[0].get_ydata()).any()


def test_errors_of_lines(search):
    with pytest.raises(ValueError, match=r"no parameter 'degree'. It has: C, gamma"):
        AblationDisplay.from_cv_results(search, "degree")
    with pytest.raises(ValueError, match=r"no score 'test_f1'. It has: .*test_score"):
        AblationDisplay.from_cv_results(search, "C", score="test_f1")
    with pytest.raises(ValueError, match=r"each of the 2 values, got shape \(1, 3\)"):
        AblationDisplay.from_arrays([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="2 lines need as many names, got 1"):
        AblationDisplay.from_arrays([1, 2], np.zeros((2, 2)), names=["a"])
    with pytest.raises(ValueError, match=r"shape, \(1, 2\), got \(1, 1\)"):
        AblationDisplay.from_arrays([1, 2], [1, 2], deviations=[1])


def test_map_of_a_search(search, ax):
    display = HeatMapDisplay.from_cv_results(search, x="gamma", y="C", ax=ax)
    expected = np.array(
        [
            [best(search, C=C, gamma=g)[0] for g in (0.1, 10.0)]
            for C in (0.1, 1.0, 100.0)
        ]
    )
    assert display.ax_ is ax
    np.testing.assert_allclose(display.image_.get_array(), expected)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0.1", "10"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["0.1", "1", "100"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("gamma", "C")
    texts = [float(text.get_text()) for text in display.texts_]
    assert texts == pytest.approx(expected.ravel(), abs=5e-4)
    row, column = np.unravel_index(expected.argmax(), expected.shape)
    x, y = display.best_.get_center()
    assert (round(x), round(y)) == (column, row)
    assert display.colorbar_.ax.get_ylabel() == "test score"


def test_numbers_show_on_their_colors():
    scores = np.linspace(0, 1, 12).reshape(3, 4)
    display = HeatMapDisplay.from_arrays(scores, rows="abc", columns=range(4))
    for text, value in zip(display.texts_, scores.ravel(), strict=True):
        behind = brightness(display.image_.to_rgba(value))
        assert abs(behind - brightness(to_rgb(text.get_color()))) > 0.4


def test_holes_and_errors_of_maps():
    display = HeatMapDisplay.from_arrays(
        [[np.nan, 0.5]], rows=[1], columns=[1, 2], zlabel="accuracy"
    )
    assert [text.get_text() for text in display.texts_] == ["–", "0.500"]
    assert display.best_.get_center()[0] == pytest.approx(1)
    empty = HeatMapDisplay.from_arrays(
        [[np.nan]], rows=[1], columns=[1], values_format=""
    )
    assert empty.best_ is None and empty.texts_ == []
    with pytest.raises(ValueError, match=r"shape \(2, 1\), .*got \(1, 1\)"):
        HeatMapDisplay.from_arrays([[1.0]], rows=[1, 2], columns=[1])


def test_rare_mistakes_show_beside_many_hits():
    y_true = np.repeat(["a", "b"], [900, 100])
    y_pred = y_true.copy()
    y_pred[:3] = "b"
    display = HeatMapDisplay.from_predictions(y_true, y_pred, colorbar=False)
    np.testing.assert_array_equal(display.image_.get_array(), [[897, 3], [0, 100]])
    assert [text.get_text() for text in display.texts_] == ["897", "3", "100"]
    shades = [brightness(display.image_.to_rgba(count)) for count in (0, 3, 100)]
    assert shades[0] - shades[1] > 0.1 and shades[1] - shades[2] > 0.1
    assert display.best_ is None and display.colorbar_ is None
    assert display.ax_.yaxis_inverted()
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["a", "b"]
    turned = HeatMapDisplay.from_predictions(y_true, y_pred, labels=["b", "a"])
    np.testing.assert_array_equal(turned.image_.get_array(), [[100, 0], [3, 897]])


def test_long_names_of_columns_are_turned():
    for names, angle in ((["a", "b"], 0), (["a long name"] * 5, 90)):
        shape = (1, len(names))
        display = HeatMapDisplay.from_arrays(np.ones(shape), rows=[1], columns=names)
        assert display.ax_.get_xticklabels()[0].get_rotation() == angle
