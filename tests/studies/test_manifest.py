"""Every item that a report prints has a place on the page, and every place an item."""

import inspect
import re
from collections import Counter
from importlib import import_module

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from studies import STUDIES
from studies.manifest import Call, read_manifest
from studies.report.items import SHOWN, Targets, tell
from studies.report.page import count, section_of, summarise
from studies.results import Figure, Finding, Row

# An independent count of the five texts found 283 items.
LEAST = 270


def links(name, *kinds):
    """Return all links of a study of some kinds, with their items."""
    return [
        (link, entry)
        for entry in STUDIES[name].manifest
        for link in entry.links
        if link.kind in kinds
    ]


def test_the_manifests_are_long_enough():
    items = [entry for study in STUDIES.values() for entry in study.manifest]
    assert len(items) >= LEAST
    assert min(len(study.manifest) for study in STUDIES.values()) >= 40
    # An item that is left out says why, and there are few.
    reasons = [entry.reason for entry in items if entry.reason]
    assert len(reasons) <= 0.05 * len(items)
    assert all(len(reason.split()) >= 4 for reason in reasons)


@pytest.mark.parametrize("name", STUDIES)
def test_no_item_is_listed_twice(name):
    found = Counter((e.place, e.kind, e.text) for e in STUDIES[name].manifest)
    assert max(found.values()) == 1


@pytest.mark.parametrize("name", STUDIES)
def test_each_published_number_has_one_item(name):
    printed = Counter(
        (table, row, column)
        for table, rows in STUDIES[name].published.items()
        if table != "best"  # whose numbers are printed in another table
        for row, cells in rows.items()
        for column in cells
    )
    listed = Counter(link.parts for link, _ in links(name, "cell"))
    assert listed == printed
    # The words of an item have the number.
    for link, entry in links(name, "cell"):
        assert entry.kind == "number"
        table, row, column = link.parts
        value = STUDIES[name].published[table][row][column].value
        forms = {f"{value:.{digits}f}" for digits in range(4)}
        if value < 1000:  # seconds are printed as hours
            assert forms & set(re.findall(r"[\d.]*\d", entry.text)), entry.text


@pytest.mark.parametrize("name", STUDIES)
def test_lines_that_items_name_are_there(name):
    for kind, lines in (
        ("erratum", STUDIES[name].errata),
        ("protocol", STUDIES[name].protocol),
    ):
        for link, entry in links(name, kind):
            found = [line for line in lines if line.startswith(link.text)]
            assert len(found) == 1, (entry.text, link.text)
    named = {link.text for link, _ in links(name, "erratum")}
    assert [
        line
        for line in STUDIES[name].errata
        if not any(line.startswith(words) for words in named)
    ] == []


OPTIONS = sorted({link.text for name in STUDIES for link, _ in links(name, "option")})


@pytest.mark.parametrize("expression", OPTIONS)
def test_options_are_public_and_work(expression):
    call = Call.of(expression)
    package, _, attribute = call.name.rpartition(".")
    module = import_module(package)
    assert attribute in module.__all__
    thing = getattr(module, attribute)
    known = inspect.signature(thing).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in known.values())
    assert takes_any or set(call.arguments) <= set(known)
    if not call.arguments or not hasattr(thing, "fit"):
        return
    X, y = make_blobs(60, 4, centers=10, random_state=0)
    if call.arguments.get("kernel") == "precomputed":
        X = X @ X.T
    if package == "mercer.images":
        X = np.random.default_rng(0).integers(0, 255, (60, 28, 28)).astype(np.uint8)
    assert thing(**call.arguments).fit(X, y) is not None


@pytest.mark.parametrize("name", STUDIES)
def test_links_of_a_run_have_targets_and_targets_links(quick_run, name):
    (report,) = [r for r in quick_run.studies if r.study.name == name]
    section = section_of(report)
    lost = [
        (told.entry.text, [link.text for link, anchor in told.links if anchor is None])
        for told in section.items
        if told.status == "absent"
        and not told.entry.needs
        # The sizes of a quick run are others.
        and not any(link.kind == "cell" for link, _ in told.links)
    ]
    assert lost == []
    items = [item for outcome in report.outcomes for item in outcome.items]
    verdicts = [item for item in items if isinstance(item, Finding)]
    named = {link.text for link, _ in links(name, "verdict")}
    assert all(finding.key for finding in verdicts)
    assert {finding.key for finding in verdicts} <= named
    keys = [finding.key for finding in verdicts]
    assert len(set(keys)) == len(keys)
    # Every claim has a verdict or a reason, and so has nothing but claims.
    for entry in report.study.manifest:
        kinds = {link.kind for link in entry.links}
        if entry.kind == "claim":
            assert kinds <= {"verdict", "erratum", "not"} and kinds & {"verdict", "not"}
    drawn = {item.name for item in items if isinstance(item, Figure)}
    pictured = {link.text for link, _ in links(name, "figure")}
    assert pictured <= drawn


def test_the_page_shows_the_counts_of_the_manifests_and_no_others(quick_run):
    page = quick_run.page.read_text()
    sections = [section_of(report) for report in quick_run.studies]
    found = summarise(sections).counts
    total = sum(len(study.manifest) for study in STUDIES.values())
    assert found.total == total == sum(found.status.values())
    kinds = Counter(e.kind for s in STUDIES.values() for e in s.manifest)
    assert found.n_numbers == kinds["number"] and found.n_claims == kinds["claim"]
    assert f"<b>{found.status['shown']}</b> of {total} printed items" in page
    claims = f"<b>{found.claims['holds']}</b> of {found.n_claims} claims hold"
    assert claims in page
    for drawing in re.findall(r'<svg class="overview.*?</svg>', page, re.S):
        assert drawing.count("<circle") == found.compared
    for section in sections:
        own = section.counts
        assert f"{own.total} items, {own.status['shown']} on this page" in page


WRONG = {
    "items": 'items = [["lonely"]]',
    "link": 'items = [["a", "cells: b"]]',
    "reason": 'items = [["a", "not: why", "table: b"]]',
    "kind": 'kind = "fact"\nitems = [["a", "table: b"]]',
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_lines_are_refused(tmp_path, wrong):
    text = WRONG[wrong]
    head = "" if wrong == "kind" else 'kind = "claim"\n'
    path = tmp_path / "manifest.toml"
    path.write_text(f'[[place]]\nname = "1"\n{head}{text}\n')
    with pytest.raises(ValueError, match=r"needs links|begin with|is none of"):
        read_manifest(path)


def test_what_has_no_target_is_not_counted(tmp_path):
    path = tmp_path / "manifest.toml"
    path.write_text(
        '[[place]]\nname = "1"\nkind = "claim"\nitems = [\n'
        '["a", "verdict: there"],\n["b", "verdict: gone"],\n["c", "not: a reason"],\n]'
    )
    finding = Finding("a", False, "e", key="there")
    targets = Targets("s", {}, frozenset(), frozenset(), {"there": finding})
    told = tell(read_manifest(path), targets)
    assert [item.status for item in told] == [SHOWN, "absent", "reason"]
    assert count(told).claims == {
        "holds": 0, "fails": 1, "open": 0, "absent": 1, "reason": 1
    }  # fmt: skip


def test_rows_are_found_by_key_label_and_beginning():
    from studies.report.items import Place

    rows = {("t", "key"): Place("a", {}), ("t", "a long label"): Place("b", {})}
    targets = Targets("s", rows, frozenset(), frozenset(), {})
    assert targets.row("t", "key").anchor == "a"
    assert targets.row("t", "a long*").anchor == "b"
    assert targets.row("t", "another*") is None
    assert Row("t", "x", {}).published_as == "x"
