"""Solvers of a card reach the processor's optimum: NumPy is the card.

All certificates are computed anew, from kernel values in double precision.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification

import emulated_card
from card_twins import TWINS
from host_card import HostCard
from mercer import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM, gram_matrix, kernels
from mercer.core.problem import certify, is_feasible
from mercer.engines import precision
from mercer.engines.cpu import solve as cpu_solving
from mercer.engines.cpu.engine import CpuEngine
from mercer.engines.cuda import launches, working_sets
from mercer.engines.cuda import solve as solving
from mercer.engines.cuda.solve import solve_plan
from mercer.engines.engine import Settings
from real_card import real_card

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


@needs_compiler
@pytest.mark.parametrize("solver", ["smo", "decompose"])
@pytest.mark.parametrize("name", [m for m in MACHINES if m != "SVC of probabilities"])
def test_every_machine_on_emulated_functions(name, solver, small_sets):
    X, y = data(name, n=40)
    machine = clone(MACHINES[name]).set_params(gamma=0.1, tol=1e-4)
    functions = emulated_card.functions(threads=8, seed=1)
    # The exponentials of NumPy and of the C library differ in the last digit.
    functions["gaussian_in_place_double"] = TWINS["gaussian_in_place_double"]
    emulated = HostCard(twins=functions)
    plan, found = solved(machine, X, y, emulated, solver=solver)
    check(plan, found, 1e-4)
    _, again = solved(machine, X, y, HostCard(twins=TWINS), solver=solver)
    for mine, theirs in zip(found.solutions, again.solutions, strict=True):
        np.testing.assert_array_equal(mine.beta, theirs.beta)
        assert mine[2:9] == theirs[2:9]


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kernel", [kernels.RBF(0.1), kernels.Laplacian(0.1), kernels.Chi2(0.1)]
)
def test_fits_that_emulated_functions_do_from_end_to_end(kernel, dtype):
    X, y = data("SVC of pairs", n=40)
    card = HostCard(twins=emulated_card.functions(threads=8, seed=2))
    machine = SVC(kernel=kernel, C=5.0)
    plan, found = solved(machine, np.abs(X).astype(dtype), y, card)
    check(plan, found, 1e-3)
    kind = "float" if dtype == np.float32 else "double"
    stem = {"RBF": "gaussian_in_place", "Laplacian": "manhattan", "Chi2": "chi2"}
    assert f"{stem[type(kernel).__name__]}_{kind}" in card.launches


@pytest.mark.parametrize("solver", ["smo", "decompose"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_single_precision_is_measured_in_double(solver, dtype, small_sets, monkeypatch):
    monkeypatch.setattr(cpu_solving, "SINGLE_FROM", 0)
    X, y = data("SVC of pairs")
    machine = SVC(C=3.0, gamma=0.1)
    card = HostCard(twins=TWINS)
    plan, found = solved(machine, X.astype(dtype), y, card, solver=solver)
    assert (np.diff(plan.order) < 0).any()
    check(plan, found, 1e-3)
    assert "take_pair_steps_float" in card.launches
    assert "take_pair_steps_double" not in card.launches
    assert found.solutions[0].is_single and len(found.coarse) == 6
    assert 0 < found.solutions[0].error < 1e-4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", ["smo", "decompose"])
def test_gradients_are_renewed_and_double_precision_comes_last(
    solver, dtype, small_sets, monkeypatch
):
    monkeypatch.setattr(cpu_solving, "SINGLE_FROM", 0)
    monkeypatch.setattr(cpu_solving, "LEAST_FOR_SINGLE", 0.0)
    monkeypatch.setattr(cpu_solving, "MOST_SINGLE", np.inf)
    renewals = []
    settle = precision.settle
    monkeypatch.setattr(
        precision, "settle", lambda *a: renewals.append(1) or settle(*a)
    )
    X, y = data("SVC")
    X = X.astype(dtype)
    used = {}
    for tol in (1e-6, 1e-9):
        card = HostCard(twins=TWINS)
        plan, found = solved(SVC(C=3.0, gamma=0.1, tol=tol), X, y, card, solver=solver)
        check(plan, found, tol)
        used[tol] = found.solutions[0].is_single, set(card.launches)
    assert renewals
    is_single, launched = used[1e-9]
    assert not is_single and "take_pair_steps_double" in launched


def test_results_do_not_depend_on_launches(monkeypatch):
    X, y = data("SVC of pairs")
    found = []
    for steps, seconds in ((3, 0.0), (10**6, np.inf)):
        monkeypatch.setattr(launches, "FIRST_STEPS", steps)
        monkeypatch.setattr(launches, "SECONDS", seconds)
        card = HostCard(twins=TWINS)
        found.append(solved(SVC(gamma=0.1), X, y, card)[1].solutions)
        if steps == 3:
            assert card.launches.count("take_pair_steps_double") > 10
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one.beta, other.beta)


@pytest.mark.parametrize("solver", ["smo", "decompose"])
def test_starts_are_taken_up(solver, small_sets):
    X, y = data("SVC")
    machine = SVC(gamma=0.1, tol=1e-4)
    plan, found = solved(machine, X, y, HostCard(twins=TWINS), solver=solver)
    beta = found.solutions[0].beta
    specs = [
        spec._replace(problem=spec.problem._replace(start=beta)) for spec in plan.specs
    ]
    warm = type(plan)(**{**vars(plan), "specs": specs})
    card = HostCard(twins=TWINS)
    again = solve_plan(warm, Settings(solver=solver, tol=1e-4), card)
    assert again.solutions[0].converged
    assert again.solutions[0].n_iter < found.solutions[0].n_iter / 4


@pytest.mark.parametrize("solver", ["smo", "decompose"])
def test_steps_are_limited(solver, small_sets):
    X, y = data("SVC of pairs")
    machine = SVC(gamma=0.1, C=100.0, max_iter=7)
    _, found = solved(machine, X, y, HostCard(twins=TWINS), solver=solver)
    for solution in found.solutions:
        assert solution.n_iter <= 7 and not solution.converged
        assert solution.kkt_gap > 1e-3


@pytest.mark.parametrize("solver", ["smo", "decompose"])
def test_progress_is_reported_and_can_end_the_fit(solver, small_sets, monkeypatch):
    monkeypatch.setattr(launches, "FIRST_STEPS", 5)
    monkeypatch.setattr(launches, "SECONDS", 0.0)
    X, y = data("SVC of pairs")
    stop = np.zeros(1, dtype=np.uint8)
    seen = []

    def progress(tasks):
        seen.append([(task.gap, task.done, task.n_iter) for task in tasks])
        if len(seen) == 3:
            stop[0] = 1

    card = HostCard(twins=TWINS)
    machine = SVC(gamma=0.1, C=100.0)
    _, found = solved(machine, X, y, card, progress, stop, solver=solver)
    assert 3 <= len(seen) <= 5
    assert not all(s.converged for s in found.solutions)
    total = [sum(n for _, _, n in state) for state in seen]
    assert total[0] <= total[1] <= total[2] and total[2] > 0
    for solution in found.solutions:
        assert np.isfinite(solution.kkt_gap)


@pytest.mark.parametrize("name", ["SVC of pairs", "NuSVR"])
@pytest.mark.parametrize("megabytes", [0.2, 1.0])
def test_memory_of_the_card_is_kept_to(name, megabytes):
    X, y = data(name, n=160)
    machine = clone(MACHINES[name]).set_params(gamma=0.1, tol=1e-3)
    free = HostCard(twins=TWINS)
    plan, found = solved(machine, X, y, free, cache_size=megabytes)
    check(plan, found, 1e-3)
    # Samples and vectors are not in the budget.
    vectors = 60 * 8 * sum(len(spec.problem.p) for spec in plan.specs)
    assert free.ledger.peak <= megabytes * 2**20 + 6 * X.nbytes + vectors


@pytest.mark.parametrize("solver", ["smo", "decompose"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_samples_that_do_not_fit_come_in_parts(solver, is_sparse):
    rng = np.random.default_rng(0)
    X, y = data("SVC of pairs", n=120)
    X = np.hstack([X, 0.05 * rng.normal(size=(120, 594))])
    if is_sparse:
        X = sparse.csr_matrix(np.where(np.abs(X) > 0.02, X, 0.0))
    machine = SVC(C=2.0, gamma=0.1)
    limit = 1_400_000
    card = HostCard(limit=limit, twins=TWINS)
    assert 3 * 120 * 600 * 8 > limit
    plan = machine._plan(X, y, None)
    plan = replace(plan, samples=plan.X)
    found = solve_plan(plan, Settings(solver=solver), card)
    check(plan, found, 1e-3)
    assert card.ledger.peak <= limit


def test_a_whole_matrix_that_does_not_fit_is_refused():
    X, y = data("SVC", n=240)
    message = "solver='smo' needs the whole Gram matrix on the card.*solver='decompose'"
    with pytest.raises(MemoryError, match=message):
        solved(SVC(), X, y, HostCard(twins=TWINS), solver="smo", cache_size=0.1)
    with pytest.raises(ValueError, match="solver='platt' does not run on a graphics"):
        solved(SVC(), X, y, HostCard(twins=TWINS), solver="platt")


@pytest.mark.parametrize("is_whole", [False, True])
def test_large_problems_go_by_working_sets(is_whole, small_sets, monkeypatch):
    monkeypatch.setattr(solving, "MOST_IN_A_BLOCK", 20)
    name = "SVC of one against rest" if is_whole else "SVC"
    X, y = data(name)
    machine = clone(MACHINES[name]).set_params(gamma=0.1, tol=1e-4)
    chosen = []
    solver = working_sets.WorkingSetSolver

    def note(*args, is_whole):
        chosen.append(is_whole)
        return solver(*args, is_whole=is_whole)

    monkeypatch.setattr(solving, "WorkingSetSolver", note)
    plan, found = solved(machine, X, y, HostCard(twins=TWINS))
    check(plan, found, 1e-4)
    assert chosen == [is_whole]


@pytest.mark.parametrize("solver", ["smo", "decompose"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_given_matrices(solver, dtype, small_sets):
    X, y = data("SVC of pairs")
    K = gram_matrix(kernels.RBF(0.1), X).astype(dtype)
    machine = SVC(kernel="precomputed", tol=1e-3)
    plan, found = solved(machine, K, y, HostCard(twins=TWINS), solver=solver)
    check(plan, found, 1e-3)
    function = SVC(kernel=lambda A, B: np.exp(-0.1 * ((A[:, None] - B) ** 2).sum(-1)))
    plan, same = solved(function, X, y, HostCard(twins=TWINS), solver=solver)
    for one, other in zip(found.solutions, same.solutions, strict=True):
        assert one.objective == pytest.approx(other.objective, rel=1e-4)


@pytest.mark.parametrize("solver", ["smo", "decompose"])
def test_kernels_that_are_not_definite_have_no_bound(solver, small_sets):
    X, y = data("SVC")
    machine = SVC(kernel=kernels.Sigmoid(gamma=0.5, coef0=-1.0), tol=1e-3)
    plan, found = solved(machine, X, y, HostCard(twins=TWINS), solver=solver)
    with CpuEngine() as engine:
        best = engine.solve(plan, Settings(tol=1e-3))
    assert found.is_convex is best.is_convex is False
    assert found.solutions[0].dual_gap == np.inf
    assert found.solutions[0].kkt_gap <= 1e-3 or not found.solutions[0].converged


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(4, 30),
    copies=st.integers(1, 3),
    n_classes=st.integers(2, 4),
    C=st.sampled_from([1e-3, 1.0, 1e4]),
    gamma=st.sampled_from([1e-3, 0.5, 50.0]),
    zeros=st.booleans(),
    solver=st.sampled_from(["smo", "decompose"]),
    size=st.sampled_from([4, 8, 16]),
    seed=st.integers(0, 100),
)
def test_degenerate_problems(n, copies, n_classes, C, gamma, zeros, solver, size, seed):
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(n, 2)).round(1), copies, axis=0)
    y = np.append(np.arange(n_classes), rng.integers(0, n_classes, len(X)))[: len(X)]
    weight = rng.choice([0.0, 1.0, 3.0], size=len(X)) if zeros else np.ones(len(X))
    weight[:n_classes] = 1.0
    machine = SVC(C=C, gamma=gamma, tol=1e-3)
    plan = machine._plan(X, y, weight)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(working_sets, "LARGEST_SET", size)
        how = Settings(solver=solver, tol=1e-3)
        found = solve_plan(plan, how, HostCard(twins=TWINS))
    check(plan, found, 1e-3)


@settings(max_examples=30, deadline=None)
@given(
    machine=st.sampled_from(
        [
            NuSVC(nu=0.2),
            SVR(C=100.0, epsilon=0.0),
            SVR(C=0.1, epsilon=0.3),
            NuSVR(C=10.0, nu=0.9),
            OneClassSVM(nu=0.05),
            SVDD(C=0.3),
        ]
    ),
    n=st.integers(4, 20),
    copies=st.integers(1, 3),
    zeros=st.booleans(),
    solver=st.sampled_from(["smo", "decompose"]),
    size=st.sampled_from([4, 8, 16]),
    seed=st.integers(0, 100),
)
def test_degenerate_machines(machine, n, copies, zeros, solver, size, seed):
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(n, 2)).round(1), copies, axis=0)
    y = rng.integers(0, 2, len(X)).astype(float)
    y[:2] = 0, 1
    weight = rng.choice([0.0, 1.0, 3.0], size=len(X)) if zeros else np.ones(len(X))
    weight[:2] = 1.0
    machine = clone(machine).set_params(gamma=0.5, tol=1e-3)
    try:
        plan = machine._plan(X, y, weight)
    except ValueError:  # masses that bounds do not allow
        assume(False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(working_sets, "LARGEST_SET", size)
        how = Settings(solver=solver, tol=1e-3)
        found = solve_plan(plan, how, HostCard(twins=TWINS))
    check(plan, found, 1e-3)


def test_small_sets_do_not_undo_each_others_steps(monkeypatch):
    monkeypatch.setattr(working_sets, "LARGEST_SET", 4)
    rng = np.random.default_rng(308968)
    X = np.repeat(rng.normal(size=(22, 2)).round(1), 2, axis=0)
    y = np.append([0, 1, 2], rng.integers(0, 3, 44))[:44]
    machine = SVC(C=1e4, gamma=50.0)
    card = HostCard(twins=TWINS)
    plan, found = solved(machine, X, y, card, solver="decompose")
    check(plan, found, 1e-3)
    assert max(s.n_iter for s in found.solutions) < 500


@pytest.mark.parametrize("solver", ["smo", "decompose"])
@pytest.mark.parametrize("machine", [NuSVC(nu=0.5), OneClassSVM(nu=1.0), SVDD(C=1.0)])
def test_samples_that_are_all_the_same(machine, solver):
    X, y = np.ones((12, 2)), np.tile([0, 1], 6)
    machine = clone(machine).set_params(gamma=1.0)
    plan, found = solved(machine, X, y, HostCard(twins=TWINS), solver=solver)
    check(plan, found, 1e-3)


@pytest.mark.parametrize("solver", ["smo", "decompose"])
def test_values_that_overflow_are_an_error(solver):
    X, y = data("SVC")
    machine = SVC(kernel=kernels.Polynomial(gamma=1e200, degree=3, coef0=0.0))
    with pytest.raises(ValueError, match="dual coefficients or intercepts"):
        with np.errstate(all="ignore"):
            solved(machine, X, y, HostCard(twins=TWINS), solver=solver)


@pytest.mark.gpu
@pytest.mark.parametrize("solver", ["auto", "smo", "decompose"])
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_machine_on_a_card(name, solver, dtype, small_sets):
    card = real_card()
    X, y = data(name, n=300)
    machine = clone(MACHINES[name]).set_params(gamma=0.1, tol=1e-4)
    plan, found = solved(machine, X.astype(dtype), y, card, solver=solver)
    check(plan, found, 1e-4)
