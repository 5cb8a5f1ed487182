"""Histories of fits, and their lines."""

import numpy as np
import pytest
from matplotlib import pyplot

from mercer import SVC, SVR
from mercer.datasets import make_moons
from mercer.plots import ConvergenceDisplay, FitHistory, trace_fit

COURSE = {
    "n_iter": [1, 10, 1000],
    "gap": [2.0, 0.1, 0.0],
    "objective": [0.0, -3.0, -3.5],
    "accuracy": [0.5, 0.8, 0.9],
}


def test_panels_and_lines():
    display = ConvergenceDisplay.from_history(COURSE, title="one fit")
    assert [ax.get_ylabel() for ax in display.axes_] == [
        "KKT gap",
        "dual objective",
        "accuracy",
    ]
    assert {ax.get_xlabel() for ax in display.axes_} == {"iterations"}
    assert [ax.get_yscale() for ax in display.axes_] == ["log", "linear", "linear"]
    assert {ax.get_xscale() for ax in display.axes_} == {"log"}
    (line,) = display.lines_["objective"]
    np.testing.assert_array_equal(line.get_xdata(), [1, 10, 1000])
    np.testing.assert_array_equal(line.get_ydata(), [0, -3, -3.5])
    (line,) = display.lines_["gap"]
    np.testing.assert_array_equal(line.get_ydata(), [2.0, 0.1, np.nan])
    assert display.figure_.get_suptitle() == "one fit"
    assert display.ax_.get_legend() is None


def test_several_fits_differ_in_line_and_marker(ax):
    other = {"passes": [1, 2], "n_iter": [5, 6], "gap": [1.0, 0.5]}
    display = ConvergenceDisplay.from_histories(
        {"first": COURSE, "second": other}, ax=ax, quantities=["gap"], log_clock=False
    )
    assert display.axes_ == [ax]
    first, second = display.lines_["gap"]
    assert first.get_linestyle() != second.get_linestyle()
    assert first.get_marker() != second.get_marker()
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["first", "second"]
    assert ax.get_xscale() == "linear"


def test_clocks():
    history = {"passes": [1, 2], "seconds": [0.1, 0.3], "loss_value": [3.0, 2.0]}
    display = ConvergenceDisplay.from_history(history)
    assert display.ax_.get_xlabel() == "passes over the data"
    assert display.ax_.get_ylabel() == "loss value"
    display = ConvergenceDisplay.from_history(history, clock="seconds")
    np.testing.assert_array_equal(
        display.lines_["loss_value"][0].get_xdata(), [0.1, 0.3]
    )
    display = ConvergenceDisplay.from_history({"loss": [3.0, 2.0, 1.0]})
    np.testing.assert_array_equal(display.lines_["loss"][0].get_xdata(), [1, 2, 3])


def test_errors():
    with pytest.raises(ValueError, match=r"clock='hours' is not in every .*n_iter"):
        ConvergenceDisplay.from_history(COURSE, clock="hours")
    with pytest.raises(ValueError, match=r"no history has loss to draw.*gap"):
        ConvergenceDisplay.from_history(COURSE, quantities=["loss"])
    with pytest.raises(ValueError, match=r"3 quantities .* need as many axes, got 1"):
        ConvergenceDisplay.from_history(COURSE, ax=pyplot.subplots()[1])
    with pytest.raises(ValueError, match="'gap' has 1 values and 'n_iter' has 2"):
        ConvergenceDisplay.from_history({"n_iter": [1, 2], "gap": [1.0]})
    with pytest.raises(ValueError, match="no histories"):
        ConvergenceDisplay.from_histories({})
    with pytest.raises(ValueError, match="steps is empty"):
        trace_fit(SVC(), [[0.0], [1.0]], [0, 1], [])


@pytest.mark.parametrize("solver", ["smo", "wss1", "wss2"])
def test_trace_is_the_course_of_one_fit(solver):
    X, y = make_moons(120, noise=0.2, random_state=0)
    model = SVC(solver=solver, random_state=0)
    course = trace_fit(model, X, y, [1, 4, 16, 64, 256, 10_000, 20_000])
    whole = SVC(solver=solver, random_state=0).fit(X, y)
    if solver != "smo":  # which goes on after its limit for a while, to polish
        assert course["n_iter"][-1] == whole.n_iter_.max() > 16
    assert (np.diff(course["n_iter"]) > 0).all()
    assert (np.diff(course["objective"]) <= 1e-12).all()
    assert course["objective"][-1] == pytest.approx(whole.objective_.sum())
    assert course["gap"][-1] <= whole.tol < course["gap"][0]
    assert course["accuracy"][-1] == whole.score(X, y)


def test_from_estimator_draws_the_trace():
    X, y = make_moons(60, noise=0.2, random_state=0)
    display = ConvergenceDisplay.from_estimator(
        SVC(), X, y, [1, 10, 1000], X_test=X[:9], y_test=y[:9]
    )
    assert list(display.lines_) == ["gap", "dual_gap", "objective", "accuracy"]
    final = display.lines_["accuracy"][0].get_ydata()[-1]
    assert final == SVC().fit(X, y).score(X[:9], y[:9])
    assert trace_fit(SVR(), X, X[:, 0], [1, 1000])["accuracy"][-1] > 0.9


def test_callback_records_every_report():
    X, y = make_moons(300, noise=0.3, random_state=0)
    times = iter(range(1000))
    record = FitHistory(clock=lambda: float(next(times)))
    model = SVC(solver="decompose", C=100).set_callbacks(record).fit(X, y)
    history = record.history
    n = len(history["gap"])
    assert n >= 1
    assert history["report"] == list(range(1, n + 1))
    assert history["seconds"] == [float(k) for k in range(1, n + 1)]
    assert history["gap"][-1] <= model.tol
    model.fit(X[:50], y[:50])
    assert record.history is not history and record.history["report"][0] == 1
    display = ConvergenceDisplay.from_history(history)
    assert display.ax_.get_xlabel() == "reports"
