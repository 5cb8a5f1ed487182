import json
import os
import re
import runpy

import numpy as np
import pytest

from mercer.datasets.places import VARIABLE
from studies import STUDIES, reproduce
from studies.data import Data, Images, data_folder
from studies.manifest import Entry, Link
from studies.published import Source, printed
from studies.report import costs, fingerprint
from studies.report.outcomes import Outcome
from studies.report.stored_results import StoredResults, step_key
from studies.report.watch import CAUTION, BarWatcher, TimeLeft, Watcher
from studies.results import Finding, Row, Unavailable
from studies.study import ResultTable, Run, Step, Study


class Notebook(Watcher):
    def __init__(self):
        self.begun, self.skipped = [], []

    def begin(self, study, step):
        self.begun.append(f"{study}/{step}")

    def skip(self, study, step):
        self.skipped.append(f"{study}/{step}")


def good(run, value=1.0):
    yield Row("main", "row", {"test": value}, n_test=100)


def bad(run):
    yield Row("main", "never kept alone", {"test": 1.0})
    raise ZeroDivisionError("by nought")


def absent(run):
    raise Unavailable("Needs the moon.")


def stop(run):
    raise KeyboardInterrupt


def make_study(name, steps):
    table = ResultTable("main", f"Table of {name}", {"test": "test %"}, ("test",))
    return Study(
        name,
        name,
        "about",
        Source("Title", "Author", "A report."),
        ("p",),
        ("e",),
        (table,),
        {"main": {"row": printed(100, test=50.0)}},
        (),
        (),
        lambda run: steps,
    )


@pytest.fixture
def studies(monkeypatch):
    made = {}
    monkeypatch.setattr("studies.STUDIES", made)
    return made


def run(folder, **more):
    notes = Notebook()
    report = reproduce(out=folder, quick=True, sample=True, progress=notes, **more)
    return report, notes


def test_a_second_run_takes_up_what_is_done(tmp_path, studies):
    steps = [Step("one", good), Step("two", good, {"value": 60.0})]
    studies["a"] = make_study("a", steps)
    _, first = run(tmp_path)
    report, second = run(tmp_path)
    assert first.begun == ["a/one", "a/two"]
    assert second.begun == [] and second.skipped == ["a/one", "a/two"]
    assert [o.items[0].values["test"] for o in report.studies[0].outcomes] == [1, 60]


def test_what_changes_the_results_is_computed_again(tmp_path, studies):
    studies["a"] = make_study("a", [Step("one", good)])
    run(tmp_path)
    assert run(tmp_path, seed=1)[1].begun == ["a/one"]
    assert run(tmp_path, fresh=True)[1].begun == ["a/one"]
    studies["a"] = make_study("a", [Step("one", good, {"value": 2.0})])
    assert run(tmp_path)[1].begun == ["a/one"]


def test_a_change_of_any_code_of_a_study_runs_its_steps_again(tmp_path, studies):
    folder = tmp_path / "study"
    folder.mkdir()
    other = folder / "models.py"
    other.write_text("SIZE = 1")
    (folder / "steps.py").write_text("def work(run):\n    return []\n")
    work = runpy.run_path(str(folder / "steps.py"))["work"]
    studies["a"] = make_study("a", [Step("one", work)])
    assert run(tmp_path)[1].begun == ["a/one"]
    assert run(tmp_path)[1].begun == []
    other.write_text("SIZE = 2")
    assert run(tmp_path)[1].begun == ["a/one"]


def test_only_a_run_that_reused_something_says_so(tmp_path, studies):
    studies["a"] = make_study("a", [Step("one", good), Step("two", good)])
    first, _ = run(tmp_path)
    assert first.n_reused == 0 and "stored by an earlier run" not in page_of(first)
    second, _ = run(tmp_path)
    assert second.n_reused == 2 and "2 of its steps were stored" in page_of(second)
    assert run(tmp_path, fresh=True)[0].n_reused == 0


def page_of(report):
    return report.page.read_text()


def test_published_numbers_are_read_anew_from_stored_results(tmp_path, studies):
    studies["a"] = make_study("a", [Step("one", good)])
    assert "<small>50.00" in page_of(run(tmp_path)[0])
    changed = {"main": {"row": printed(100, test=70.0)}}
    studies["a"] = studies["a"]._replace(published=changed)
    report, notes = run(tmp_path)
    assert notes.begun == []
    assert "<small>70.00" in page_of(report)


def facts(data=None, **more):
    settings = {"seed": 0, "quick": False, **more}
    return fingerprint.facts_of(
        Step("one", good), Run(data or FakeImages(0), **settings)
    )


class FakeImages:
    """Data with a fingerprint of its own."""

    is_full = True

    def __init__(self, seed):
        self.fingerprint = f"images {seed}"


def test_results_depend_on_code_data_seed_and_versions(monkeypatch):
    base = facts()
    assert base == facts()
    assert facts(seed=1) != base and facts(quick=True) != base
    assert facts(FakeImages(1)) != base
    with monkeypatch.context() as patch:
        old = fingerprint.describe_computer()
        patch.setattr(fingerprint, "describe_computer", lambda: {**old, "numpy": "0"})
        assert facts() != base
    with monkeypatch.context() as patch:
        patch.setattr(fingerprint, "describe_computer", lambda: {**old, "Date": "1"})
        assert facts() == base
    with monkeypatch.context() as patch:
        patch.setattr(fingerprint, "_library", lambda: "changed")
        assert facts() != base


def test_helpers_that_studies_share_are_part_of_the_code(tmp_path, monkeypatch):
    (tmp_path / "helpers.py").write_text("SIZE = 1")
    (tmp_path / "published.py").write_text("NUMBER = 1")
    monkeypatch.setattr(fingerprint, "STUDIES", tmp_path)
    base = facts()
    (tmp_path / "published.py").write_text("NUMBER = 2")
    assert facts() == base  # the page joins published numbers
    (tmp_path / "helpers.py").write_text("SIZE = 2")
    assert facts() != base


def test_photographs_are_part_of_the_data(monkeypatch):
    photos = [np.zeros((4, 3), np.uint8), np.zeros(4, int)] * 2
    found = []
    for value in (0, 1):
        photos[0][0, 0] = value
        data = Data(sample=True)
        data.__dict__["cifar10"] = Images(*photos)
        found.append(data.fingerprint)
    assert found[0] != found[1]


def test_the_time_left_follows_the_pace_of_the_run():
    left = TimeLeft({("a", str(k)): 10.0 for k in range(10)})
    assert left.seconds == 100 and left.share_done == 0
    left.skip("a", "0")
    assert left.seconds == 90 and left.share_done == pytest.approx(0.1)
    for k in range(1, 5):
        left.end("a", str(k), 20.0)  # twice as slow as measured
    pace = (80 + CAUTION) / (40 + CAUTION)
    assert left.seconds == pytest.approx(pace * 50)
    assert str(left) == "about 85 s left"
    for k in range(5, 10):
        left.end("a", str(k), 20.0)
    assert left.share_done == pytest.approx(1) and str(left) == "almost done"


def test_the_bar_tells_how_long_is_left(tmp_path, studies, caplog):
    caplog.set_level("INFO", logger="mercer")
    studies["a"] = make_study("a", [Step(f"step {k}", good) for k in range(3)])
    reproduce(out=tmp_path, quick=True, sample=True, progress=BarWatcher())
    lines = [r.getMessage() for r in caplog.records]
    assert any("1 of 3" in line and "almost done" in line for line in lines)
    assert any("3 of 3" in line and "left" not in line for line in lines)


def test_most_steps_have_been_measured():
    known = json.loads(costs.MEASURED.read_text())
    for kind in ("sample", "full"):
        run = Run(Data(sample=kind == "sample"))
        run.data.__dict__["is_full"] = kind == "full"
        names = {
            f"{study.name}/{step.name}"
            for study in STUDIES.values()
            for step in study.steps(run)
        }
        assert len(names & set(known[kind])) >= 0.8 * len(names)
    assert costs.expected_seconds("none", "such", "sample") > 0


def test_a_failing_step_loses_nothing_else(tmp_path, studies):
    studies["a"] = make_study("a", [Step("bad", bad), Step("good", good)])
    studies["b"] = make_study("b", [Step("absent", absent), Step("good", good)])
    report, _ = run(tmp_path)
    found = [o.status for s in report.studies for o in s.outcomes]
    assert found == ["failed", "done", "unavailable", "done"]
    assert report.failed == ["a/bad"]
    page = report.page.read_text()
    assert "ZeroDivisionError: by nought" in page
    assert "Needs the moon." in page
    assert "Table of b" in page
    # Only what did not run through is tried again.
    assert run(tmp_path)[1].begun == ["a/bad", "b/absent"]


def test_an_interrupted_run_keeps_what_it_has(tmp_path, studies):
    steps = [Step("one", good), Step("two", stop), Step("three", good)]
    studies["a"] = make_study("a", steps)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    stored = json.loads((tmp_path / "results" / "a.json").read_text())
    assert [s["step"] for s in stored["steps"].values()] == ["one"]
    page = (tmp_path / "index.html").read_text()
    assert "Table of a" in page
    assert "The run was interrupted: 2 steps are missing" in page
    studies["a"] = make_study("a", [Step("one", good), Step("three", good)])
    report, notes = run(tmp_path)
    assert notes.begun == ["a/three"]
    assert report.n_left == 0
    assert "interrupted:" not in report.page.read_text()


def test_unknown_studies_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"Unknown study 'mnist'\. Known: mnist-kern"):
        reproduce(["mnist"], out=tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 3, "steps": {"k": {}}}'])
def test_damaged_results_are_put_aside(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    store = StoredResults(tmp_path, "a")
    assert (tmp_path / "a.damaged.json").read_text() == text
    store.put("key", Outcome("one", "done", 0.5, (Row("t", "a", {"x": 1.0}),)))
    again = StoredResults(tmp_path, "a").get("key")
    assert again.items == (Row("t", "a", {"x": 1.0}),)
    assert [p.name for p in tmp_path.glob(".*")] == []


def test_keys_tell_settings_apart():
    keys = {
        step_key("a", "b", {"n": 1}, [0]),
        step_key("a", "b", {"n": 2}, [0]),
        step_key("a", "b", {"n": 1}, [1]),
        step_key("a", "c", {"n": 1}, [0]),
    }
    assert len(keys) == 4
    assert step_key("a", "b", {"x": 1, "y": 2}, 0) == step_key(
        "a", "b", {"y": 2, "x": 1}, 0
    )


def test_the_folder_of_data_is_as_before_afterwards(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "before")
    with data_folder(tmp_path):
        assert os.environ[VARIABLE] == str(tmp_path)
    assert os.environ[VARIABLE] == "before"


def test_the_sample_is_split_without_overlap():
    data = Data(sample=True, seed=3)
    rows = [{x.tobytes() for x in part} for part in (data.mnist.X, data.mnist.X_test)]
    assert len(data.mnist.y) == 4000 and len(data.mnist.y_test) == 1000
    assert not rows[0] & rows[1]
    assert Data(sample=True, seed=4).fingerprint != data.fingerprint


def test_the_page_tells_the_three_verdicts_apart(tmp_path, studies):
    def claims(run):
        yield Finding("Surely so.", True, "A", "p < 0.001", "a")
        yield Finding("Surely not.", False, "B", "p = 0.01", "b")
        yield Finding("Who knows.", None, "C", "p = 0.4", "c")

    entries = [
        Entry("1", "claim", words, (Link("verdict", (key,)),))
        for words, key in (("one", "a"), ("two", "b"), ("three", "c"), ("four", "a"))
    ]
    study = make_study("a", [Step("claims", claims)])
    studies["a"] = study._replace(manifest=entries)
    run(tmp_path)
    report, notes = run(tmp_path)  # as stored
    assert notes.begun == []
    page = report.page.read_text()
    tags = re.findall(r'class="tag (\w+)">([^<]*)<', page)
    assert tags == [
        ("beaten", "holds"),
        ("below", "does not hold"),
        ("soft", "not decided"),
    ]
    # Two of the report's sentences are the same claim: items are counted.
    assert "<b>2</b> of 4 claims hold; 1 do not, 1 are not" in page
    # Each claim is told once.
    claims = ("Surely so.", "Surely not.", "Who knows.", "p = 0.4")
    assert [page.count(claim) for claim in claims] == [1, 1, 1, 1]
