"""Solvers of a card reach the processor's optimum: NumPy is the card.

All certificates are computed anew, from kernel values in double precision.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

import emulated_card
from card_twins import TWINS
from host_card import HostCard
from mercer import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM
from mercer.core.problem import certify, is_feasible
from mercer.engines.cpu.engine import CpuEngine
from mercer.engines.cuda import working_sets
from mercer.engines.cuda.solve import solve_plan
from mercer.engines.plan import Settings

needs_compiler = pytest.mark.skipif(
    emulated_card.MISSING is not None, reason=str(emulated_card.MISSING)
)

MACHINES = {
    "SVC": SVC(C=2.0),
    "SVC of pairs": SVC(C=2.0),
    "SVC of one against rest": SVC(C=2.0, multiclass="ovr"),
    "SVC of codes": SVC(C=2.0, multiclass="ecoc", random_state=0),
    "SVC of probabilities": SVC(C=2.0, probability=True, random_state=0),
    "NuSVC": NuSVC(nu=0.311),
    "SVR": SVR(C=2.0),
    "NuSVR": NuSVR(C=2.0, nu=0.311),
    "OneClassSVM": OneClassSVM(nu=0.311),
    "SVDD": SVDD(C=0.05),
}


def data(name, n=90, seed=0):
    """Return samples and targets of the kind that a machine takes."""
    n_classes = 2 if name in ("SVC", "NuSVC") or not name.startswith("SVC") else 4
    X, y = make_classification(
        n, 6, n_informative=4, n_classes=n_classes, class_sep=0.6, random_state=seed
    )
    if name.endswith("SVR"):
        y = np.sin(X[:, 0]) + 0.3 * X[:, 1]
    return X, y


def solved(machine, X, y, card, progress=None, stop=None, **options):
    """Return the plan of a fit, and what the card's solvers make of it."""
    plan = machine._plan(X, y, None)
    how = Settings(tol=machine.tol, max_iter=machine.max_iter, **options)
    return plan, solve_plan(plan, how, card, progress, stop)


def check(plan, found, tol):
    """Compare a solution with the processor's, and certify it from scratch."""
    with CpuEngine() as engine:
        best = engine.solve(plan, Settings(tol=1e-3 * tol))
        if plan.is_matrix:
            K = np.asarray(plan.X, dtype=np.float64)
        else:
            K = engine.matrix(plan.kernel, plan.X.astype(np.float64))
    for spec, mine, theirs in zip(
        plan.specs, found.solutions, best.solutions, strict=True
    ):
        rows = plan.rows(spec)
        own = K[np.ix_(rows, rows)]
        f = own @ np.bincount(spec.problem.row, mine.beta, len(rows))
        exact = certify(spec.problem, mine.beta, f)
        assert is_feasible(spec.problem, mine.beta)
        assert mine.converged
        assert exact.kkt_gap <= tol * (1 + 1e-6)
        size = max(1.0, abs(theirs.objective))
        assert mine.objective == pytest.approx(exact.objective, abs=1e-5 * size)
        # Nothing is better than the optimum, nor worse than its gap says.
        assert exact.objective >= theirs.objective - 1e-6 * size
        assert exact.objective - theirs.objective <= exact.dual_gap + 1e-6 * size
        if tol <= 1e-5:
            assert exact.objective == pytest.approx(theirs.objective, rel=1e-6)
    assert found.is_convex == best.is_convex


@pytest.fixture
def small_sets(monkeypatch):
    """Let working sets be so small that members have to leave them."""
    monkeypatch.setattr(working_sets, "LARGEST_SET", 16)
    monkeypatch.setattr(working_sets, "MOST_FRESH", 6)


@pytest.mark.parametrize("solver", ["auto", "smo", "decompose"])
@pytest.mark.parametrize("name", MACHINES)
def test_every_machine_on_every_solver(name, solver, small_sets):
    X, y = data(name)
    machine = clone(MACHINES[name]).set_params(gamma=0.1, tol=1e-5)
    card = HostCard(twins=TWINS)
    plan, found = solved(machine, X, y, card, solver=solver)
    check(plan, found, 1e-5)
    assert "take_pair_steps_double" in card.launches
    assert ("add_rows_double" in card.launches) or solver != "decompose"
