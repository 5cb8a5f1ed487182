"""Whole matrix or rows, and single precision where double would cost twice as much."""

import numpy as np
import pytest

from certificate import certify
from mercer import SVC, SVR, NuSVC, OneClassSVM
from mercer.core.problem import c_svc
from mercer.core.problem import certify as certify_problem
from mercer.engines.cpu import certificates
from mercer.engines.cpu import solve as solving
from mercer.engines.cpu.certificates import near_rows
from mercer.engines.cpu.decompose import Task

pytestmark = pytest.mark.usefixtures("the_long_way")


@pytest.fixture
def kinds(monkeypatch):
    """Note which Gram matrices are made, at limits that small data reach."""
    made = []
    monkeypatch.setattr(solving, "WHOLE_LIMIT", 300)
    monkeypatch.setattr(solving, "WHOLE_LIMIT_MORE", 500)
    monkeypatch.setattr(solving, "TRIED_ROWS", 100)

    class Rows(solving.RowGram):
        def __init__(self, *arguments):
            made.append("rows")
            super().__init__(*arguments)

    monkeypatch.setattr(solving, "RowGram", Rows)
    compute = solving.WholeGram.compute

    def whole(*arguments):
        made.append("whole")
        return compute(*arguments)

    monkeypatch.setattr(solving.WholeGram, "compute", whole)
    return made


def table(n, noise, seed=0):
    """Two classes; noise makes support vectors of most samples."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = X[:, 0] + noise * rng.normal(size=n) > 0
    X[:, 0] += np.where(y, 1.0, -1.0)
    return X, y


@pytest.mark.parametrize(
    ("n", "noise", "kind"),
    [
        (290, 0.0, "whole"),
        (500, 0.0, "rows"),
        (500, 5.0, "whole"),
        (820, 5.0, "rows"),
    ],
)
def test_rows_where_few_samples_become_support_vectors(n, noise, kind, kinds):
    X, y = table(n, noise)
    model = SVC(gamma=0.2).fit(X, y)
    assert kinds == [kind]
    assert model.converged_


@pytest.mark.parametrize(
    ("n", "noise", "kind"),
    [(550, 0.0, "whole"), (700, 0.0, "rows"), (700, 9.0, "whole")],
)
def test_several_problems_are_tried_out_on_the_largest(n, noise, kind, kinds):
    X, y = table(n, noise)
    three = np.where(np.arange(n) % 10 == 0, 2, y)
    X[three == 2, 1] += 3.0
    model = SVC(gamma=0.1 if noise == 0.0 else 1.0, multiclass="ovr").fit(X, three)
    assert kinds == [kind]
    assert model.converged_


def test_rows_where_support_vectors_take_many_steps(kinds):
    X, _ = table(500, 5.0)
    z = np.sin(X[:, 0]) + X[:, 1]
    for C, kind in ((0.01, "whole"), (1000.0, "rows")):
        SVR(C=C, gamma=0.1, epsilon=0.001).fit(X, z)
        assert kinds.pop() == kind


def test_regression_has_two_variables_for_each_sample(kinds):
    X, y = table(280, 5.0)
    z = np.sin(X[:, 0]) + X[:, 1]
    for C, kind in ((0.01, "whole"), (1000.0, "rows")):
        SVR(C=C, gamma=0.1, epsilon=0.001).fit(X, z)
        assert kinds.pop() == kind
    SVC(C=1000.0, gamma=0.1).fit(X, y)
    assert kinds == ["whole"]


def test_a_small_tolerance_takes_more_steps(kinds):
    X, y = table(320, 3.0)
    for tol, kind in ((1e-2, "whole"), (1e-6, "rows")):
        SVC(C=10.0, gamma=0.2, tol=tol).fit(X, y)
        assert kinds.pop() == kind


def test_machines_whose_mass_is_given(kinds):
    X, y = table(500, 1.0)
    OneClassSVM(nu=0.05, gamma=0.2).fit(X)
    assert kinds == ["rows"]
    NuSVC(nu=0.6, gamma=0.2).fit(X, y)
    assert kinds == ["rows", "whole"]


@pytest.mark.parametrize("machine", [SVC(C=3.0), SVR(C=3.0, epsilon=0.3)])
def test_both_sides_of_the_seam_agree(machine, kinds):
    X, y = table(450, 1.0)
    target = X[:, 1] if isinstance(machine, SVR) else y
    found = {}
    for solver in ("auto", "smo", "decompose"):
        machine.set_params(gamma=0.2, solver=solver, tol=1e-6).fit(X, target)
        assert machine.converged_
        found[solver] = machine.objective_
    np.testing.assert_allclose(found["smo"], found["decompose"], rtol=1e-7)
    np.testing.assert_allclose(found["auto"], found["smo"], rtol=1e-7)
    assert set(kinds) == {"rows", "whole"}


def overlapping(n, n_classes=2):
    """Samples in double precision of classes that overlap, for large C."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    score = np.sin(3 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=n)
    return X, np.digitize(
        score, np.quantile(score, np.arange(1, n_classes) / n_classes)
    )


@pytest.fixture
def solvers_and_types(monkeypatch):
    """Note the types of the matrices on which compiled solvers take pair steps."""
    seen = set()
    solve, improve, play = solving.solve_and_polish, Task.improve, Task.play

    def on_whole(K, *arguments):
        seen.add(("smo", K.dtype.name))
        return solve(K, *arguments)

    def on_working_set(step):
        def noted(task, *arguments):
            seen.add(("decompose", task._square.dtype.name))
            return step(task, *arguments)

        return noted

    monkeypatch.setattr(solving, "solve_and_polish", on_whole)
    monkeypatch.setattr(Task, "improve", on_working_set(improve))
    monkeypatch.setattr(Task, "play", on_working_set(play))
    return seen


@pytest.mark.parametrize("solver", ["smo", "decompose"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_gradients_are_renewed_in_double_precision(
    solver, n_classes, solvers_and_types, monkeypatch
):
    X, y = overlapping(2100, n_classes)
    renewed = []
    renew = certificates._renew

    def noting(some, exact):
        renewed.extend(len(rows) for _, rows in some)
        renew(some, exact)

    monkeypatch.setattr(certificates, "_renew", noting)
    C, gamma, tol = 300.0, 0.5, 1e-4
    model = SVC(C=C, gamma=gamma, tol=tol, solver=solver).fit(X, y)
    assert solvers_and_types == {(solver, "float32")}
    assert renewed
    assert max(renewed) < len(X)  # not where it does not matter
    assert model.converged_
    K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    bound = np.full(n_classes, C)[y]
    _, gap = certify(model, lambda a, b: K[np.ix_(a, b)], y, bound)
    assert gap <= tol
    assert model.kkt_gap_.max() <= tol


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_double_precision_where_renewing_is_not_enough(solvers_and_types, monkeypatch):
    X, y = overlapping(2100)
    monkeypatch.setattr(certificates, "MOST_RENEWALS", 0)
    model = SVC(C=300.0, gamma=0.5, tol=1e-4, solver="smo").fit(X, y)
    assert solvers_and_types == {("smo", "float32"), ("smo", "float64")}
    assert model.converged_


@pytest.mark.parametrize("seed", range(5))
def test_other_rows_do_not_matter_to_the_gap(seed):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], 200)
    problem = c_svc(y, np.full(200, 1.0))
    task = Task(problem, [0], [0, 200])
    bounds = np.stack([problem.lo, problem.hi, 0.5 * problem.hi + 0.5 * problem.lo])
    task.beta = bounds[rng.integers(3, size=200), np.arange(200)]
    # As near the solution: variables at a bound have gradients of the right sign.
    G = np.where(task.beta == problem.lo, 1.0, -1.0) * rng.exponential(size=200)
    G[(task.beta > problem.lo) & (task.beta < problem.hi)] *= 0.01
    task.f = G - problem.p
    rows = near_rows(task, 0.2)
    others = np.setdiff1d(np.arange(200), rows)
    assert 0 < len(others) < 200
    gap = certify_problem(problem, task.beta, task.f).kkt_gap
    task.f[others] += rng.uniform(-0.2, 0.2, len(others))
    assert certify_problem(problem, task.beta, task.f).kkt_gap == gap
