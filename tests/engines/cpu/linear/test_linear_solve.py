"""Which solver begins, and that the solution does not depend on it."""

import numpy as np
import pytest

from mercer import LinearSVC, LinearSVR
from mercer.engines.cpu.linear import solve

MACHINES = {
    "squared": LinearSVC(),
    "hinge": LinearSVC(loss="hinge"),
    "insensitive": LinearSVR(epsilon=0.1),
    "squared insensitive": LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1),
}


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    X = rng.random((400, 260)) * (rng.random((400, 260)) < 0.3)
    return X, (X @ rng.standard_normal((260, 3))).argmax(axis=1)


@pytest.fixture
def calls(monkeypatch):
    """The solvers in the order in which they begin."""
    found = []
    for name in ("coordinate_descent", "newton"):
        function = getattr(solve, name)

        def call(*args, name=name, function=function, **options):
            found.append(name)
            return function(*args, **options)

        monkeypatch.setattr(solve, name, call)
    return found


@pytest.mark.parametrize("name", MACHINES)
def test_descent_before_newton_gives_the_same_solution(
    name, samples, calls, monkeypatch
):
    X, y = samples
    machine = MACHINES[name].set_params(tol=1e-8, random_state=0)
    both = machine.fit(X, y).objective_
    assert calls == ["coordinate_descent", "newton"]
    assert machine.converged_
    monkeypatch.setattr(solve, "MANY_FEATURES", 1000)
    alone = machine.fit(X, y).objective_
    assert calls[2:] == ["newton"]
    np.testing.assert_allclose(both, alone, rtol=2e-8)


def test_a_rough_solution_needs_no_newton(samples, calls):
    model = LinearSVC(tol=0.5, random_state=0).fit(*samples)
    assert calls == ["coordinate_descent"]
    assert model.converged_


def test_descent_from_another_fit_goes_on_while_it_is_fast(samples, monkeypatch):
    model = LinearSVC(loss="hinge", C=0.01, tol=1e-6, warm_start=True, random_state=0)
    model.fit(*samples)
    epochs = []
    descend = solve.coordinate_descent

    def spy(*args, **options):
        tasks = descend(*args, **options)
        epochs.append(max(task.n_iter for task in tasks))
        return tasks

    monkeypatch.setattr(solve, "coordinate_descent", spy)
    model.fit(*samples)
    assert epochs == [0]  # it is solved already
    model.set_params(C=1.0).fit(*samples)
    assert 20 <= epochs[1] < 200
    assert model.converged_


def test_weights_alone_are_no_place_for_descent(samples, calls):
    model = LinearSVC(warm_start=True, random_state=0).fit(*samples)
    del model._beta
    model.set_params(C=2.0).fit(*samples)
    assert calls.count("coordinate_descent") == 1
    assert calls[-1] == "newton"


@pytest.mark.parametrize("max_iter", [0, 1, 5, 6, 20])
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_both_solvers_share_the_limit_of_iterations(samples, calls, max_iter):
    model = LinearSVC(loss="hinge", max_iter=max_iter, random_state=0).fit(*samples)
    assert model.n_iter_ <= max_iter
    assert not model.converged_
    assert calls[-1] == "newton"


def test_features_decide(samples, calls):
    X, y = samples
    LinearSVC().fit(X[:, :200], y)  # few features
    LinearSVC(penalize_intercept=False).fit(X, y)  # sums are fixed
    assert "coordinate_descent" not in calls
