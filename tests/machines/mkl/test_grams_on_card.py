"""Base Gram matrices on a card, with NumPy in its place, beside those in memory."""

import numpy as np
import pytest

from mercer import MKLClassifier, MKLRegressor
from mercer.core.problem import c_svc
from mercer.engines.cpu.decompose import Task
from mercer.engines.cpu.pair import as_operand
from mercer.engines.engine import Settings, TaskSpec
from mercer.kernels import RBF, Linear, Polynomial
from mercer.machines.mkl.inmemory import GramsInMemory
from mercer.machines.mkl.on_card import GramsOnCard
from mercer.runtime.threads import Threads

KERNELS = [RBF(gamma=0.2), Linear(), Polynomial(2, 0.3, 1.0)]
STARTS = [0, 25, 40, 60]


@pytest.fixture(params=[np.float32, np.float64])
def stores(request, any_card):
    X = np.random.default_rng(0).normal(size=(60, 4)).astype(request.param)
    with Threads(1) as threads:
        here = GramsInMemory.compute(KERNELS, as_operand(X), STARTS, threads)
        there = GramsOnCard.compute(any_card, KERNELS, X, STARTS, threads)
        for store in (here, there):
            store.normalize("trace")
        yield here, there


def close(ours, theirs, dtype):
    tolerance = 1e-5 if dtype == np.float32 else 1e-11
    scale = np.abs(theirs).max()
    np.testing.assert_allclose(ours, theirs, atol=tolerance * scale)


def a_task():
    y = np.where(np.arange(40) < 25, 1.0, -1.0)
    task = Task(c_svc(y, np.full(40, 2.0)), (0, 1), STARTS)
    task.beta[:] = y * np.linspace(0, 1, 40)
    return task


def test_stores_agree(stores):
    here, there = stores
    rng = np.random.default_rng(1)
    dtype = here.matrices[0].dtype
    assert here.is_double == there.is_double == (dtype == np.float64)
    np.testing.assert_allclose(there.factors, here.factors, rtol=1e-5)
    B = rng.normal(size=(60, 3))
    close(there.products(B), here.products(B), dtype)
    rows = np.array([40, 3, 17, 59])
    close(there.squares(rows), here.squares(rows), dtype)
    task = a_task()
    for mine, theirs in zip(
        there.products_of([task]), here.products_of([task]), strict=True
    ):
        close(mine, theirs, dtype)
    change = rng.normal(size=4)
    F, G = np.zeros((2, 3, 40))
    there.add_columns(task, rows, change, F)
    here.add_columns(task, rows, change, G)
    close(F, G, dtype)
    for joint in (False, True):
        mine, theirs = (s.moments(B, True, joint) for s in (there, here))
        for a, b in zip(mine, theirs, strict=True):
            close(a, b, np.float32)
    part = np.arange(0, 60, 2)
    ours, theirs = (s.restricted(part, [0, 30]) for s in (there, here))
    close(ours.products(B[part]), theirs.products(B[part]), dtype)
    assert there.restricted(np.arange(60), STARTS) is there


def test_machines_are_solved_on_the_card(stores):
    here, there = stores
    weights = np.array([0.5, 0.0, 0.3])
    specs = [TaskSpec(a_task().problem, (0, 1))]
    tol = 1e-3 if here.matrices[0].dtype == np.float32 else 1e-6
    settings = Settings(tol=tol)
    reports = []
    found = there.solve(weights, specs, None, settings, reports.append)
    expected = here.solve(weights, specs, None, settings, None)
    (ours,), (theirs,) = found.solutions, expected.solutions
    assert ours.converged and ours.kkt_gap <= tol
    assert ours.objective == pytest.approx(theirs.objective, rel=10 * tol)
    np.testing.assert_allclose(found.s, expected.s, rtol=100 * tol)
    assert reports


@pytest.mark.parametrize(
    "options",
    [
        {"method": "simple"},
        {"method": "group-lasso", "p": 2.0},
        {"method": "smo", "p": 2.0},
        {"method": "alignment"},
        {"method": "uniform"},
        {"multiclass": "ovr", "probability": True, "random_state": 0},
    ],
    ids=str,
)
def test_every_method_finds_what_it_finds_on_the_processor(options, cuda):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0.5)
    options = {**options, "tol": 1e-8}
    here = MKLClassifier(KERNELS, **options).fit(X, y)
    there = MKLClassifier(KERNELS, device="cuda", **options).fit(X, y)
    assert there.converged_ and "take_pair_steps_double" in cuda.launches
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-8)
    np.testing.assert_allclose(there.weights_, here.weights_, atol=1e-7)
    np.testing.assert_allclose(
        there.decision_function(X), here.decision_function(X), atol=1e-6
    )
    np.testing.assert_array_equal(there.predict(X), here.predict(X))
    if "p" in options:
        values = X[:, 0] + X[:, 1] ** 2
        ours, theirs = (
            MKLRegressor(KERNELS, device=device, **options).fit(X, values)
            for device in ("cuda", "cpu")
        )
        assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-8)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-6)


def test_matrices_that_do_not_fit_the_card_are_kept_in_the_main_memory(cuda):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] > 0).astype(int)
    cuda.ledger.limit = 700_000  # three matrices in double precision have 345,600
    model = MKLClassifier(KERNELS, device="cuda").fit(X, y)
    assert model.converged_ and "gaussian_in_place_double" in cuda.launches
    assert "take_pair_steps_double" not in cuda.launches
