"""Linear machines on the command line."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import mercer
from mercer.cli.app import app

pytest.importorskip("skops", reason="model files need skops")


@pytest.fixture
def table(tmp_path, rng):
    X = rng.standard_normal((60, 2))
    lines = ["a,b,kind,size"]
    lines += [f"{a},{b},{'in' if a > b else 'out'},{2 * a - b}" for a, b in X]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines))
    return path


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.mark.parametrize(
    ("machine", "target", "kind"),
    [("linear-svc", "kind", "LinearSVC"), ("linear-svr", "size", "LinearSVR")],
)
def test_fit_predict_info(machine, target, kind, table, tmp_path):
    model = tmp_path / "m.mercer"
    other = {"kind": "size", "size": "kind"}[target]
    done = run("fit", table, "--machine", machine, "--target", target, "--drop", other,
               "--C", "10", "--cv", "3", "--json", "-o", model)  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["machine"] == kind
    assert found["kernel"] is None
    assert found["converged"]
    assert found["cv"]["mean"] > 0.8
    said = run("info", model)
    assert said.exit_code == 0
    assert kind in said.stdout
    assert "kernel" not in said.stdout
    assert run("fit", table, "--machine", machine, "--target", target, "--drop", other,
               "-o", tmp_path / "n.mercer").exit_code == 0  # fmt: skip
    rows = [line.split(",")[:2] for line in table.read_text().splitlines()]
    new = tmp_path / "new.csv"
    new.write_text("\n".join(map(",".join, rows)))
    done = run("predict", model, new, "--out", tmp_path / "p.csv")
    assert done.exit_code == 0, done.output
    assert np.isfinite(mercer.load(model)[-1].coef_).all()


def test_kernels_are_refused(table, tmp_path):
    done = run("fit", table, "--machine", "linear-svc", "--target", "kind", "--kernel",
               "poly", "-o", tmp_path / "m.mercer")  # fmt: skip
    assert done.exit_code == 2
    assert "which is linear" in done.output


def test_options_of_other_machines_are_refused(table, tmp_path):
    done = run("fit", table, "--machine", "linear-svc", "--target", "kind", "--nu",
               "0.5", "-o", tmp_path / "m.mercer")  # fmt: skip
    assert done.exit_code == 2
    assert "is not for --machine linear-svc" in done.output
