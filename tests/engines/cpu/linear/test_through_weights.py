"""Kernel machines with the linear kernel through weights: the same solutions."""

import numpy as np
import pytest
from scipy import sparse

from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from mercer.engines.cpu import engine
from mercer.kernels import Linear
from mercer.runtime.progress import FitCallback

pytestmark = pytest.mark.usefixtures("the_long_way")

MACHINES = {
    "pairs": SVC(kernel="linear"),
    "rest": SVC(kernel=Linear(), multiclass="ovr", C=10.0),
    "probability": SVC(kernel="linear", probability=True, random_state=0),
    # With nu = 0.4, 90 coefficients of either class at their bound would add up to the
    # mass that nu asks for: then a range of margins is optimal, and coef_, which is
    # divided by the margin, is not unique.
    "nu": NuSVC(kernel="linear", nu=0.41),
    "svr": SVR(kernel="linear", epsilon=0.3),
    "nu-svr": NuSVR(kernel="linear"),
    "one-class": OneClassSVM(kernel="linear", nu=0.2),
}


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((450, 4)) + 1.0
    y = (X[:, 0] + 0.5 * rng.standard_normal(450) > 1).astype(int) + (X[:, 1] > 2)
    return X, y


@pytest.fixture
def ways(monkeypatch):
    """Note whether plans were solved through weights."""
    found = []
    solve = engine.solve_through_weights

    def spy(*args):
        result = solve(*args)
        found.append(result is not None)
        return result

    monkeypatch.setattr(engine, "solve_through_weights", spy)
    return found


@pytest.mark.parametrize("tol", [1e-3, 1e-7])
@pytest.mark.parametrize("name", MACHINES)
def test_same_as_through_the_kernel(name, tol, samples, ways):
    X, y = samples
    if name == "nu":
        y = (X[:, 0] > X[:, 1]).astype(int)  # as many of either, for a large nu
    model = MACHINES[name].__class__(**MACHINES[name].get_params(deep=False))
    ours = model.set_params(tol=tol).fit(X, y)
    assert ways == [True]
    assert ours.converged_
    assert ours.is_convex_
    assert np.max(ours.kkt_gap_) <= tol
    objective, bias, coef = ours.objective_, ours.intercept_, ours.coef_
    gap = ours.dual_gap_
    other = model.set_params(solver="smo", tol=1e-8).fit(X, y)
    assert ways == [True]
    assert np.all(objective - other.objective_ <= gap + 1e-9 * np.abs(objective))
    assert np.all(objective >= other.objective_ - 1e-6 * np.abs(objective))
    rough = 30 * tol
    assert coef == pytest.approx(other.coef_, abs=max(rough, 1e-5))
    assert bias == pytest.approx(other.intercept_, abs=max(rough, 1e-5))


def test_weighted_sparse_and_single(samples, ways, rng):
    X, y = samples
    weight = rng.integers(0, 3, len(y))
    model = SVC(kernel="linear", tol=1e-6)
    dense = model.fit(X, y, weight).coef_
    for other in (sparse.csr_array(X), X.astype(np.float32)):
        found = model.fit(other, y, weight).coef_
        found = found.toarray() if sparse.issparse(found) else found
        assert found == pytest.approx(dense, abs=1e-3)
    assert ways == [True] * 3


def test_unscaled_data_with_a_large_C(ways, rng):
    X = rng.integers(0, 256, (600, 5)).astype(float)
    y = (X @ [1.0, -1.0, 0.5, 0.0, 0.2] + 30 * rng.standard_normal(600) > 60).astype(
        int
    )
    model = SVC(kernel="linear", C=10.0).fit(X, y)
    assert ways == [True]
    assert model.converged_


def test_a_limit_of_steps_and_other_solvers_go_through_the_kernel(samples, ways):
    X, y = samples
    SVC(kernel="linear", max_iter=10**6).fit(X, y)
    SVC(kernel="linear", solver="decompose").fit(X, y)
    SVC(kernel="linear").fit(X[:30], y[:30])
    SVC(kernel="rbf").fit(X, y)
    assert ways == []


def test_what_weights_cannot_solve_the_kernel_can(samples, ways, monkeypatch):
    from mercer.engines.cpu.linear import through_weights

    X, y = samples
    monkeypatch.setattr(through_weights, "MOST_ROUNDS", 1)
    model = SVC(kernel="linear").fit(X, y)
    assert ways == [False]
    assert model.converged_


class Ends(FitCallback):
    def __init__(self):
        self.seen = []

    def receive(self, estimator, task, metadata):
        self.seen.append(metadata)
        return True


@pytest.mark.parametrize("name", ["pairs", "svr"])
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_reports_and_an_early_end(name, samples, ways):
    X, y = samples
    callback = Ends()
    model = MACHINES[name].__class__(kernel="linear").set_callbacks(callback)
    model.fit(X, y)
    assert callback.seen
    assert {"gap", "solved", "problems"} <= callback.seen[0].keys()
