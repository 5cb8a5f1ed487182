"""The progress bar: drawn on a terminal, lines elsewhere, nothing if not wanted."""

import builtins
import io
import logging

import pytest

from mercer.runtime import bar as bars
from mercer.runtime import progress
from mercer.runtime.bar import Bar
from mercer.selection.bar import Bar as SearchBar
from studies.report.outcomes import Outcome
from studies.report.watch import BarWatcher


@pytest.fixture
def terminal(monkeypatch):
    """A terminal that keeps what is drawn on it."""
    rich = pytest.importorskip("rich.console")
    found = rich.Console(
        force_terminal=True, record=True, width=160, file=io.StringIO()
    )
    monkeypatch.setattr(bars, "console", lambda: found)
    return found


@pytest.fixture
def lines(caplog, monkeypatch):
    """The lines that are written where there is no terminal."""
    monkeypatch.setattr(bars, "console", lambda: None)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    caplog.set_level(logging.INFO, logger="mercer")
    return lambda: caplog.messages


def test_a_count_is_drawn(terminal):
    with Bar("sorting", 4, "boxes") as bar:
        assert bar.is_drawn
        bar.advance(2.5)
        bar.note("the [red] one")
        assert bar.done == 2
    drawn = terminal.export_text()
    assert "sorting" in drawn
    assert "2 of 4 boxes" in drawn
    assert "the [red] one" in drawn


def test_a_count_is_written(lines):
    with Bar("sorting", 2, "boxes") as bar:
        assert not bar.is_drawn
        bar.advance(1)
        bar.note("the red one")
        bar.advance(1, "the last one")
    written = lines()
    assert written[0].endswith("s: 1 of 2 boxes")
    assert written[1].endswith("s: 1 of 2 boxes, the red one")
    assert written[2] == "[sorting] the last one"
    assert written[3].startswith("[sorting] ")
    assert written[3].endswith("s: 2 of 2 boxes, the red one")


def test_lines_come_once_in_a_while(lines, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 1000.0)
    with Bar("sorting", 100, "boxes") as bar:
        for _ in range(100):
            bar.advance(1)
    (last,) = lines()
    assert "100 of 100 boxes" in last


def test_nothing_is_shown_if_nothing_is_wanted(terminal, lines):
    with Bar("sorting", 2, "boxes", draws=False, writes=False) as bar:
        bar.advance(2, "a line")
        bar.begin("more")
        bar.show(0.5, "half")
    assert terminal.export_text() == ""
    assert lines() == []


def test_rich_is_not_needed(monkeypatch, caplog):
    real = builtins.__import__

    def without_rich(name, *rest):
        if name.split(".")[0] == "rich":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_rich)
    caplog.set_level(logging.INFO, logger="mercer")
    with Bar("sorting", 1, "boxes") as bar:
        bar.advance(1)
    assert "1 of 1 boxes" in caplog.messages[-1]


def test_a_bar_inside_a_bar_is_a_row_of_it(terminal):
    with Bar("outside", writes=False) as outer:
        with Bar("inside", 3, "boxes") as inner:
            inner.advance(1)
            outer._drawing.refresh()
            assert inner._drawing is outer._drawing
            assert [t.description for t in outer._drawing.tasks] == [
                "outside",
                "inside",
            ]
        assert [task.description for task in outer._drawing.tasks] == ["outside"]
        outer.begin("next")
    with Bar("alone") as alone:
        assert alone._drawing is not outer._drawing
    assert "1 of 3 boxes" in terminal.export_text()


def test_a_search_names_the_best_candidate(terminal):
    with SearchBar("search", 4, 1) as bar:
        bar.offer(0.5, {"C": 1})
        bar.offer(float("nan"), {"C": 2})
        bar.offer(0.25, {"C": 3})
        (row,) = bar._drawing.tasks
        assert row.fields["note"] == "best so far 0.5 (C=1)"
        bar.offer(0.75, {})
        assert row.fields["note"] == "best so far 0.75"


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_what_verbose_of_a_search_means(terminal, caplog, verbose):
    caplog.set_level(logging.INFO, logger="mercer")
    with SearchBar("search", 4, verbose) as bar:
        bar.advance(4)
    assert bar.is_drawn == (verbose == 1)
    assert len(caplog.messages) == (verbose == 2)


def run_steps():
    costs = {("digits", step): 2.0 for step in ("first", "second", "third")}
    watcher = BarWatcher()
    with watcher.watch(costs):
        watcher.skip("digits", "first")
        watcher.begin("digits", "second")
        watcher.end("digits", Outcome("second", "done", 2.0))
        watcher.begin("digits", "third")
        watcher.end("digits", Outcome("third", "failed", 3.0))


def test_steps_of_studies_are_drawn(terminal):
    run_steps()
    drawn = terminal.export_text()
    assert "2 of 3: 2.0 s for digits: second; almost done" in drawn
    assert "3 of 3: 3.0 s for digits: third: failed" in drawn
    assert "100 of 100 %" in drawn


def test_steps_of_studies_are_written(lines):
    run_steps()
    written = lines()
    assert "[reproduce] 2 of 3: 2.0 s for digits: second; almost done" in written
    assert "[reproduce] 3 of 3: 3.0 s for digits: third: failed" in written
    assert written[-1].endswith("100 of 100 %")
