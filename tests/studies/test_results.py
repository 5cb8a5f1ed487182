import json
import math

import numpy as np
import pytest

from mercer.studies.report import page
from mercer.studies.report.comparison import compare
from mercer.studies.results import Figure, Finding, Row, from_json, to_json


@pytest.mark.parametrize(
    "item",
    [
        Row(
            "t", "a", {"test": 1.5, "word": "x"}, {"test": 2.0}, 10, 20, 0.1, 1e-3, "n"
        ),
        Row("t", "a", {}, n_test={"acc1": 5, "acc2": 7}),
        Figure("f", "caption", ("<svg/>", "<svg/>")),
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
    [(0.0123, "12 ms"), (1.26, "1.3 s"), (119.7, "2 min 0 s"), (438.2, "7 min 18 s")],
)
def test_durations(seconds, text):
    assert page._duration(seconds) == text
