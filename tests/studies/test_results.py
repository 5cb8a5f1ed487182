import csv
import io
import json
import math
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest

from studies.published import Source, printed
from studies.report import page
from studies.report.comparison import compare
from studies.report.outcomes import Outcome, StudyReport
from studies.report.overview import Point, draw_overview
from studies.results import Figure, Finding, Row, from_json, to_json
from studies.study import ResultTable, Study


@pytest.mark.parametrize(
    "item",
    [
        Row("t", "a", {"test": 1.5, "word": "x"}, 10, 0.1, 1e-3, False, "n", "key"),
        Row("t", "a", {}, n_test={"acc1": 5, "acc2": 7}),
        Figure("f", "caption", ("<svg/>", "<svg/>")),
        Figure("f", "caption", ("<svg/>",), "table"),
        Finding("claim", False, "evidence"),
        Finding("claim", None, "evidence", "p = 0.5"),
    ],
)
def test_items_survive_json(item):
    assert from_json(json.loads(json.dumps(to_json(item)))) == item


def test_findings_stored_before_there_was_a_test_are_read():
    stored = {"kind": "finding", "claim": "c", "holds": True, "evidence": "e"}
    assert from_json(stored) == Finding("c", True, "e", "")


def test_numbers_of_numpy_become_plain_and_what_is_not_finite_none():
    row = Row("t", "a", {"x": np.float32(0.5), "n": np.int64(3), "bad": math.nan})
    stored = json.loads(json.dumps(to_json(row), allow_nan=False))
    assert stored["values"] == {"x": 0.5, "n": 3, "bad": None}


def test_comparison_counts_two_standard_errors():
    p, n, m = 0.9, 400, 1600
    error = 200 * math.sqrt(p * (1 - p) * (1 / n + 1 / m))
    found = compare(90.0, 90.0, n, m)
    assert found.error == pytest.approx(error)
    assert found.difference == 0
    assert compare(94.0, 90.0, n, m).verdict == "beaten"
    assert compare(86.0, 90.0, n, m).verdict == "below"
    assert compare(91.0, 90.0, n, m).verdict == "matched"


def test_one_hit_of_a_perfect_score_is_no_difference():
    assert compare(100.0, 99.0, 100).verdict == "matched"
    assert compare(100.0, 100.0, 100).error == 1.0


def test_rows_know_what_each_column_was_counted_on():
    row = Row("t", "a", {}, n_test={"acc1": 5})
    assert row.counted_on("acc1") == 5
    assert row.counted_on("acc2") is None
    assert Row("t", "a", {}, n_test=7).counted_on("any") == 7


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0123, "12.3 ms"), (1.26, "1.3 s"), (119.7, "2 min 0 s"), (438.2, "7 min 18 s")],
)
def test_durations(seconds, text):
    assert page._duration(seconds) == text


def test_stored_rows_hold_no_published_numbers():
    assert "published" not in to_json(Row("t", "a", {"test": 1.0}))
    assert Row("t", "a", {}).published_as == "a"
    assert Row("t", "a, 400 images", {}, key="a").published_as == "a"


def test_tables_lose_empty_columns_and_rows():
    columns = {"test": "test %", "chosen": "chosen", "never": "never"}
    table = ResultTable("main", "Main", columns, ("test",))
    rows = [
        Row("main", "a", {"test": 50.0}, 100),
        Row("main", "nothing", {"test": None, "chosen": ""}),
        Row("main", "b", {"test": 60.0, "chosen": "C = 1"}, 100, converged=False),
    ]
    study = make_study(table, {"main": {"a": printed(400, False, test=40.0)}})
    shown = page._shown(study, table, rows, [])
    assert shown.headings == ["test %", "chosen"]
    assert [line.label for line in shown.lines] == ["a", "b"]
    first = shown.lines[0].cells[0]
    assert first.comparison.difference == 10 and not first.is_known
    assert first.comparison.error == compare(50.0, 40.0, 100, 400).error
    assert shown.assumes_sizes and not shown.is_timed and not shown.has_gaps
    assert shown.lines[1].converged is False


def test_published_numbers_are_joined_when_the_page_is_made():
    table = ResultTable("main", "Main", {"test": "test %"}, ("test",))
    row = Row("main", "a, 400 images", {"test": 50.0}, 100, key="a")
    for value in (40.0, 45.0):
        study = make_study(table, {"main": {"a": printed(400, test=value)}})
        cell = page._shown(study, table, [row], []).lines[0].cells[0]
        assert cell.published == f"{value:.2f}"
        assert cell.comparison.difference == 50 - value


def test_downloads_contain_the_whole_table():
    table = ResultTable("main", "Main", {"test": "test %"}, ("test",))
    rows = [
        Row("main", "β = 1, a", {"test": 50.0}, 100, 0.5, 1e-4, True, "a note"),
        Row("main", "b", {"test": 60.0}, 100),
    ]
    study = make_study(table, {"main": {"β = 1, a": printed(400, test=40.0)}})
    link = page._shown(study, table, rows, []).csv
    head, _, body = link.partition(",")
    assert head == "data:text/csv;charset=utf-8"
    text = unquote(body)
    assert text.startswith("\ufeff")
    found = list(csv.reader(io.StringIO(text[1:])))
    assert found[0][:4] == ["", "test %", "test %, published", "test %, difference"]
    assert found[1][:4] == ["β = 1, a", "50.00", "40.00", "10.00"]
    assert found[1][-4:] == ["500 ms", "1.0e-04", "yes", "a note"]
    assert found[2][:4] == ["b", "60.00", "", ""]


def test_figures_stand_below_their_table():
    table = ResultTable("main", "Main", {"test": "test %"}, ("test",))
    study = make_study(table, {})._replace(telling=("first",))
    figures = [
        Figure(name, "", ("<svg/>",), where)
        for name, where in (("first", "main"), ("own", "main"), ("loose", ""))
    ]
    lost = Figure("lost", "", ("<svg/>",), "a table without rows")
    items = (Row("main", "a", {"test": 1.0}), *figures, lost)
    outcome = Outcome("step", "done", 1.0, items)
    section = page.section_of(StudyReport(study, [outcome]))
    assert section.telling == figures[:1]
    assert section.tables[0].figures == figures[1:2]
    assert section.figures == [figures[2], lost]


def test_the_opening_picture_has_a_mark_for_every_comparison():
    points = [
        Point("one", "a < b", "one-a", compare(50.0, 40.0, 100)),
        Point("one", "c", "one-c", compare(40.0, 40.0, 100)),
        Point("two", "d", "two-d", compare(10.0, 40.0, 100)),
    ]
    for narrow in (False, True):
        drawn = draw_overview(points, narrow)
        root = ElementTree.fromstring(drawn)
        marks = [a for a in root.iter("a") if a.find("circle") is not None]
        assert [a.get("href") for a in marks] == ["#one-a", "#one-c", "#two-d"]
        kinds = [a.get("class") for a in marks]
        assert kinds == [p.comparison.verdict for p in points]
        assert "one: a < b: +10.00" in marks[0].find("title").text
        # Larger differences are higher up, or farther to the right.
        key, sign = ("cx", 1) if narrow else ("cy", -1)
        places = [sign * float(a.find("circle").get(key)) for a in marks]
        assert places == sorted(places, reverse=True)
        for a in marks:
            ends = a.find("line").attrib
            low, high = sorted((float(ends[key[1] + "1"]), float(ends[key[1] + "2"])))
            assert low < float(a.find("circle").get(key)) < high


def make_study(table, published):
    source = Source("Title", "Author", "A report.")
    return Study(
        "s", "S", "about", source, (), (), (table,), published, (), (), lambda run: []
    )
