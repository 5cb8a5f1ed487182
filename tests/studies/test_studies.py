"""Each study in a quick run: nothing fails, and every row of the reports is there."""

import re

import numpy as np
import printed
import pytest

from mercer.studies import STUDIES
from mercer.studies.ecoc_digits import protocol as ecoc_protocol
from mercer.studies.mnist_kernels.protocol import ENTRIES, MKL_ROW
from mercer.studies.results import Figure, Row
from mercer.studies.svm_from_scratch import protocol as scratch_protocol


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
    assert all("Needs MNIST" in m or "Needs CIFAR-10" in m for m in messages)


def test_kernels_of_mnist(quick_run):
    found = rows(quick_run, "mnist-kernels", "kernels")
    assert list(found) == [*ENTRIES, MKL_ROW]
    for label, (beta, acc1, acc2) in printed.rows(printed.MNIST_KERNELS, 3).items():
        compared = found[label].published
        assert (compared.get("acc1"), compared.get("acc2")) == (acc1, acc2)
        assert found[label].values["beta"] == beta
    (best,) = rows(quick_run, "mnist-kernels", "best").values()
    assert best.published == {"acc2": 97.26}
    assert all(r.gap is not None and r.seconds > 0 for r in found.values())
    assert {"clean-up", "confusion"} <= set(figures(quick_run, "mnist-kernels"))
    assert len(rows(quick_run, "mnist-kernels", "classes")) == 10
    weights = rows(quick_run, "mnist-kernels", "weights")["ℓ2-MKL by SMO"].values
    assert np.linalg.norm(list(weights.values())) == pytest.approx(1, abs=1e-6)


def test_machines_from_scratch(quick_run):
    name = "svm-from-scratch"
    kernels = [*scratch_protocol.KERNELS, "combined"]
    assert list(rows(quick_run, name, "mnist")) == kernels
    expected = printed.rows(printed.SCRATCH_PRECISION, 6)
    for label, row in rows(quick_run, name, "mnist").items():
        train, test = expected[label][0], expected[label][3]
        assert row.published == {"train": train, "test": test}
    found = rows(quick_run, name, "combinations")
    assert {k: [r.published["test"]] for k, r in found.items()} == (
        printed.rows(printed.SCRATCH_COMBINATIONS, 1)
    )
    (best,) = rows(quick_run, name, "best").values()
    assert best.published == {"test": expected["Gaussian"][3]}
    drawn = set(figures(quick_run, name))
    assert {"clouds", "convergence", "efficiency"} <= drawn
    assert {f"ablation-{k}" for k in scratch_protocol.KERNELS} <= drawn
    skipped = [o.step for o in outcomes(quick_run, name) if o.status == "unavailable"]
    assert len(skipped) == 2 * len(kernels) + 2


def test_codes_for_digits(quick_run):
    for kernel in ecoc_protocol.GRIDS:
        found = rows(quick_run, "ecoc-digits", f"accuracy {kernel}")
        assert list(found) == ["n = 100", "n = 400"]
        assert set(found["n = 400"].values) == set(ecoc_protocol.COLUMNS)
        solvers = rows(quick_run, "ecoc-digits", f"solvers {kernel}")
        assert len(solvers) == 6
        assert all(np.isfinite(r.values["slope"]) for r in solvers.values())
        expected = {}
        if kernel == "Gaussian":
            expected = {"slope": printed.ECOC_ORDER, "ratio": printed.ECOC_RATIO}
        assert solvers["WSS1, cached"].published == expected
    assert rows(quick_run, "ecoc-digits", "files").popitem()[1].values["same"] == "yes"
    drawn = {"search", "toys", "times-Gaussian", "times-linear"}
    assert drawn <= set(figures(quick_run, "ecoc-digits"))


def test_kernel_methods(quick_run):
    name = "kernel-methods"
    assert len(rows(quick_run, name, "pca")) == 12
    errors = {
        k: r.values["error"] for k, r in rows(quick_run, name, "clusters").items()
    }
    assert errors["blobs: k-means"] < 5 < errors["rings: k-means"]
    assert len(rows(quick_run, name, "balls")) == 6
    assert rows(quick_run, name, "balls")["SVDD, hard"].values["recall"] == 100
    assert len(rows(quick_run, name, "passive")) == 6
    online = rows(quick_run, name, "online")
    assert len(online) == 5
    scores = [r.values["test"] for r in online.values()]
    assert max(scores) - min(scores) < 1


def test_three_against_eight(quick_run):
    found = rows(quick_run, "three-vs-eight", "accuracy")
    for label, values in printed.rows(printed.THREE_VS_EIGHT, 2).items():
        validation, test = (round(value, 2) for value in values)
        assert found[label].published == {"validation": validation, "test": test}
    (best,) = rows(quick_run, "three-vs-eight", "best").values()
    assert best.published == {"test": 98.20}
    assert len(rows(quick_run, "three-vs-eight", "solvers")) == 6
    assert "roc" in figures(quick_run, "three-vs-eight")


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
    assert "nan" not in re.findall(r"<td>([^<]*)</td>", page)


def test_the_page_tells_nothing_of_the_place(quick_run, tmp_path):
    import getpass
    import platform

    page = quick_run.page.read_text()
    assert str(quick_run.page.parent) not in page
    if len(platform.node()) > 6:
        assert platform.node() not in page
    assert f"/{getpass.getuser()}/" not in page
