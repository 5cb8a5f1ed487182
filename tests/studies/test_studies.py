"""Each study in a quick run: nothing fails, and every row of the reports is there."""

import re
from html import unescape

import printed
import pytest
from markupsafe import escape

from studies import STUDIES
from studies.ecoc_digits import protocol as ecoc_protocol
from studies.mnist_kernels.protocol import ENTRIES, MKL_ROW
from studies.results import Figure, Finding, Row
from studies.svm_from_scratch import protocol as scratch_protocol


def outcomes(run, name):
    (report,) = [r for r in run.studies if r.study.name == name]
    return report.outcomes


def rows(run, name, table):
    items = [item for outcome in outcomes(run, name) for item in outcome.items]
    return {r.label: r for r in items if isinstance(r, Row) and r.table == table}


def figures(run, name):
    items = [item for outcome in outcomes(run, name) for item in outcome.items]
    return {f.name: f for f in items if isinstance(f, Figure)}


def test_nothing_fails(quick_run):
    assert quick_run.failed == []
    messages = [o.message for r in quick_run.studies for o in r.outcomes if o.message]
    assert all("needs MNIST" in m or "needs CIFAR-10" in m for m in messages)


def published(name, row):
    """Return what the report prints for a row, as the page joins it."""
    cells = STUDIES[name].published.get(row.table, {}).get(row.published_as, {})
    return {column: found.value for column, found in cells.items()}


def test_kernels_of_mnist(quick_run):
    name = "mnist-kernels"
    found = rows(quick_run, name, "kernels")
    assert list(found) == [*ENTRIES, MKL_ROW]
    for label, (beta, acc1, acc2) in printed.mnist_kernels().items():
        theirs = published(name, found[label])
        assert (theirs.get("acc1"), theirs.get("acc2")) == (acc1, acc2)
        assert found[label].values["beta"] == beta
    (best,) = rows(quick_run, name, "best").values()
    assert "200 images" in best.label and best.values["n"] == 200
    assert published(name, best) == {"acc2": 97.26}
    assert all(r.gap is not None and r.seconds > 0 for r in found.values())
    drawn = {"clean-up", "confusion", "kernels"}
    assert drawn <= set(figures(quick_run, name))
    assert len(rows(quick_run, name, "classes")) == 10
    assert len(rows(quick_run, name, "weights")) == 10
    # What the report leaves open is chosen by folds.
    choices = rows(quick_run, name, "choices")
    chosen = [label.split(":")[0] for label, r in choices.items() if r.values["chosen"]]
    assert chosen == ["clean-up", "HOG", "exponential χ²", "MKL"]
    for kind in chosen:
        own = {k: r.values for k, r in choices.items() if k.startswith(kind)}
        best_score = max(values["folds"] for values in own.values())
        (picked,) = [v["folds"] for v in own.values() if v["chosen"]]
        assert picked == best_score
    assert (
        claims(quick_run, name, "MKL by SMO is", "product of kernels", "0, 1 and 3")
        == 3
    )


def claims(run, name, *parts):
    """Count the claims of a study that contain one of these words."""
    items = [item for outcome in outcomes(run, name) for item in outcome.items]
    told = [item.claim for item in items if isinstance(item, Finding)]
    return sum(any(part in claim for claim in told) for part in parts)


def test_machines_from_scratch(quick_run):
    name = "svm-from-scratch"
    kernels = [*scratch_protocol.KERNELS, "combined"]
    assert list(rows(quick_run, name, "mnist")) == kernels
    for label, row in rows(quick_run, name, "mnist").items():
        assert published(name, row) == printed.precision()["mnist"][label]
    found = rows(quick_run, name, "combinations")
    assert {k: published(name, r) for k, r in found.items()} == printed.combinations()
    assert all({"train", "test"} <= set(r.values) for r in found.values())
    (best,) = rows(quick_run, name, "best").values()
    assert "20 of each class" in best.label
    assert published(name, best) == {"test": 94.80}
    for row in rows(quick_run, name, "methods").values():
        assert set(row.values) == {*scratch_protocol.KERNELS, "test"}
    assert list(rows(quick_run, name, "efficiency")) == kernels
    ablations = rows(quick_run, name, "ablation")
    # Tuned and at defaults; for the polynomial kernel also with r = 1.
    assert len(ablations) == 2 * sum(map(len, scratch_protocol.ABLATIONS.values())) + 2
    assert all("; 100 images" in label for label in ablations)
    drawn = set(figures(quick_run, name))
    assert {"clouds", "convergence", "efficiency"} <= drawn
    assert {f"ablation-{k}" for k in scratch_protocol.KERNELS} <= drawn
    skipped = [o.step for o in outcomes(quick_run, name) if o.status == "unavailable"]
    assert len(skipped) == 2 * len(kernels) + 3


def test_codes_for_digits(quick_run):
    name = "ecoc-digits"
    for kernel in ecoc_protocol.GRIDS:
        found = rows(quick_run, name, f"accuracy {kernel}")
        assert list(found) == ["n = 100", "n = 400"]
        assert set(found["n = 400"].values) == set(ecoc_protocol.COLUMNS)
        solvers = rows(quick_run, name, f"solvers {kernel}")
        assert len(solvers) == 12
        for label, row in solvers.items():
            if "cache" in label:
                assert row.values["steps"] > 0 and row.values["evaluations"] > 0
        for solver in ("Platt", "WSS1", "WSS2"):
            kept, asked = (solvers[f"{solver}, {c}"] for c in ("cached", "no cache"))
            assert kept.converged and asked.converged
            assert kept.values["steps"] == asked.values["steps"]
            n, steps = kept.values["n"], kept.values["steps"]
            assert kept.values["evaluations"] <= n * n / 1e6
            assert asked.values["evaluations"] == pytest.approx(2 * steps * n / 1e6)
    assert rows(quick_run, name, "files").popitem()[1].values["same"] == "yes"
    drawn = {"digits", "accuracy", "search", "toys", "solvers-Gaussian"}
    assert drawn <= set(figures(quick_run, name))
    parts = ("training sets of any size", "From fastest to slowest", "Platt", "WSS2")
    assert claims(quick_run, name, *parts) == len(parts)


def test_kernel_methods(quick_run):
    name = "kernel-methods"
    assert len(rows(quick_run, name, "pca")) == 12
    found = rows(quick_run, name, "clusters")
    errors = {k: r.values["error"] for k, r in found.items()}
    assert errors["blobs: k-means"] < 5 < errors["rings: k-means"]
    for data in ("blobs", "rings"):
        # The label has the γ that ran, chosen without labels or given.
        assert f"{data}: kernel k-means (γ = 7)" in errors
        assert sum(k.startswith(data) and "tuned" in k for k in errors) == 1
    assert len(rows(quick_run, name, "balls")) == 6
    assert rows(quick_run, name, "balls")["SVDD, hard"].values["recall"] == 100
    assert len(rows(quick_run, name, "passive")) == 6
    online = rows(quick_run, name, "online")
    assert len(online) == 5
    scores = [r.values["test"] for r in online.values()]
    assert max(scores) - min(scores) < 1
    drawn = {"control", "passive", "passive-C", "clusters-gamma-projected", "pca-50"}
    drawn |= {"pca-gamma-projection", "pca-gamma-kernel", "clusters-gamma-original"}
    assert drawn <= set(figures(quick_run, name))
    plain, heavy, skipped, added = rows(quick_run, name, "repeats").values()
    assert plain.values["apart"] == 0 < heavy.values["apart"]
    assert skipped.values["apart"] < 0.05 < added.values["apart"]
    (best,) = rows(quick_run, name, "best")
    assert "100 samples one by one: LASVM" in best


def test_three_against_eight(quick_run):
    name = "three-vs-eight"
    found = rows(quick_run, name, "accuracy")
    for label, expected in printed.three_vs_eight().items():
        assert published(name, found[label]) == expected
    (best,) = rows(quick_run, name, "best").values()
    assert published(name, best) == {"test": pytest.approx(98.198, abs=1e-3)}
    assert "120 training images" in best.label
    assert len(rows(quick_run, name, "solvers")) == 9
    assert {"roc", "digits", "errors"} <= set(figures(quick_run, name))


@pytest.mark.parametrize("name", STUDIES)
def test_the_telling_figures_exist(quick_run, name):
    assert set(STUDIES[name].telling) <= set(figures(quick_run, name))
    assert len(STUDIES[name].telling) == 3


@pytest.mark.parametrize("name", STUDIES)
def test_figures_belong_to_tables(quick_run, name):
    tables = {"", *(table.name for table in STUDIES[name].tables)}
    assert {f.table for f in figures(quick_run, name).values()} <= tables


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_a_best_model(quick_run, name):
    assert rows(quick_run, name, "best")


def test_the_page_has_every_table_and_stands_alone(quick_run):
    page = quick_run.page.read_text()
    for report in quick_run.studies:
        tables = {
            i.table for o in report.outcomes for i in o.items if isinstance(i, Row)
        }
        missing = [
            t for t in tables if f'data-table="{report.study.name}/{t}"' not in page
        ]
        assert missing == []
        assert tables <= {table.name for table in report.study.tables}
        for name in figures(quick_run, report.study.name):
            assert f'id="{report.study.name}-{name}"' in page
        for line in report.study.errata:
            assert line[:20].replace("'", "&#39;") in page
    assert not re.search(r'(src|href)="(?!#|data:)', page)
    assert 'name="viewport"' in page
    assert "nan" not in re.findall(r"<span>([^<]*)</span>", page)
    # Every table can be downloaded, and every report is cited.
    n_tables = page.count("data-table=")
    # Two more are in the opening: all comparisons, and the best models.
    assert page.count('href="data:text/csv') - 2 == n_tables > 20
    for study in STUDIES.values():
        assert str(escape(study.source.title)) in page
        assert str(escape(study.source.authors)) in page
    # Links lead somewhere.
    targets = set(re.findall(r' id="([^"]*)"', page))
    links = {unescape(a) for a in re.findall(r"""href=["']#([^"']*)["']""", page)}
    assert links <= targets
    own = re.findall(r'<(?:tr|figure|section|h3) id="([^"]*)"', page)
    assert len(own) == len(set(own)) > 200


def test_the_page_tells_nothing_of_the_place(quick_run, tmp_path):
    import getpass
    import platform

    page = quick_run.page.read_text()
    assert str(quick_run.page.parent) not in page
    if len(platform.node()) > 6:
        assert platform.node() not in page
    assert f"/{getpass.getuser()}/" not in page
