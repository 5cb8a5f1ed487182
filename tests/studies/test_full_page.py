"""The page of the studies on full data, beside the results that are committed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from studies import STUDIES

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "full_studies.py"
RESULTS = ROOT / "benchmarks" / "results" / "studies-full.json"


@pytest.fixture(scope="module")
def results():
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def test_the_page_is_that_of_the_results():
    command = [sys.executable, TOOL, "--check"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_all_studies_ran_to_the_end(results):
    assert list(results["studies"]) == list(STUDIES)
    for outcomes in results["studies"].values():
        assert {outcome["status"] for outcome in outcomes} == {"done"}
    assert results["commit"] and results["computer"]["Processor"]


def test_every_published_row_has_a_result(results):
    for name, study in STUDIES.items():
        items = [i for outcome in results["studies"][name] for i in outcome["items"]]
        rows = {(i["table"], i["key"] or i["label"]) for i in items if "values" in i}
        wanted = {(t, row) for t, own in study.published.items() for row in own}
        assert wanted <= rows
