"""Targets with a large spread: a remark, and C in units of the target."""

import numpy as np
import pytest
from cli_files import call, call_json

import mercer
from mercer.cli.training import _to_values

pytest.importorskip("skops", reason="model files need skops")


@pytest.fixture
def far(tmp_path):
    """Return a table whose target has a spread that C=1 does not reach."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)).round(3)
    y = (150 * np.sin(X[:, 0]) + 90 * X[:, 1]).round(3)
    lines = [",".join(map(str, [*row, t])) for row, t in zip(X, y, strict=True)]
    path = tmp_path / "far.csv"
    path.write_text("a,b,t\n" + "\n".join(lines) + "\n")
    return path, X, y


def test_a_remark_says_that_all_rows_are_at_the_bound(tmp_path, far):
    path, _, y = far
    fit = ("fit", path, "--target", "t", "--out", tmp_path / "m.skops", "--force")
    said = call(*fit).stderr
    assert "of 200 rows are at the bound C=1" in said
    assert f"whose spread is {y.std():.0f}" in said
    assert "--scale-target" in said
    assert "at the bound" not in call(*fit, "--scale-target").stderr
    assert "at the bound" not in call(*fit, "--C", "1000").stderr
    assert "at the bound" not in call(*fit, "--quiet").stderr


def test_a_scaled_target_gives_the_same_model_in_other_units(tmp_path, far):
    path, X, y = far
    model = tmp_path / "m.skops"
    fit = ("fit", path, "--target", "t", "--out", model, "--scale-target", "--cv", 5)
    found = call_json(*fit, "--C", 10, "--epsilon", 0.05)
    unit = y.std()
    machine = mercer.load(model)[-1]
    assert unit * 10 == pytest.approx(machine.C)
    assert unit * 0.05 == pytest.approx(machine.epsilon)
    own = mercer.SVR(C=10, epsilon=0.05, tol=1e-3).fit(X, y / unit)
    np.testing.assert_allclose(
        machine.predict(X), unit * own.predict(X), atol=0.005 * unit
    )
    assert found["converged"] and found["cv"]["mean"] > 0.9


def test_a_search_is_in_units_of_the_target(tmp_path, far):
    path, _, y = far
    model = tmp_path / "m.skops"
    fit = ("fit", path, "--target", "t", "--out", model, "--scale-target")
    found = call_json(*fit, "--search", "C=0.1:10")
    best = found["search"]["best"]["C"]
    assert best in (0.1, 1, 10)
    assert mercer.load(model)[-1].C == pytest.approx(best * y.std())


@pytest.mark.parametrize(
    "machine",
    [
        mercer.SVR(C=3.0, epsilon=0.2, tol=1e-8),
        mercer.NuSVR(C=3.0, tol=1e-8),
        mercer.LinearSVR(C=3.0, epsilon=0.2, tol=1e-9, loss="epsilon_insensitive"),
        mercer.LinearSVR(
            C=3.0, epsilon=0.2, tol=1e-9, loss="squared_epsilon_insensitive"
        ),
        mercer.MKLRegressor(C=3.0, epsilon=0.2, tol=1e-9),
    ],
    ids=lambda machine: f"{type(machine).__name__} {getattr(machine, 'loss', '')}",
)
def test_parameters_follow_the_unit(far, machine):
    _, X, y = far
    unit = 40.0
    machine.set_params(max_iter=100_000)
    wanted = unit * machine.fit(X, y / unit).predict(X)
    _to_values(machine, unit)
    spread = np.abs(machine.fit(X, y).predict(X) - wanted).max() / y.std()
    assert spread < 1e-3
