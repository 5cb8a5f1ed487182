"""Newton directions against a dense solution, in both precisions."""

from types import SimpleNamespace

import numpy as np
import pytest

from mercer.engines.cpu.linear.curvature import Curvature
from mercer.engines.cpu.linear.features import Features
from mercer.engines.cpu.linear.problems import with_intercept


def problems_of(n, k, C, rng):
    """Return problems with the squared hinge loss."""
    sides = np.where(rng.random((k, n)) < 0.5, 1.0, -1.0)
    lo = np.where(sides > 0, 0.0, -np.inf)
    hi = np.where(sides > 0, np.inf, 0.0)
    return with_intercept(-sides, lo, hi, 0.5 / C, n, 1.0, True)


def exact(X, ridge, free, gradient):
    """Solve with the whole matrix."""
    Z = np.column_stack([X, np.ones(len(X))])[free]
    matrix = np.eye(Z.shape[1]) + Z.T @ (Z / ridge[free][:, None])
    return np.linalg.solve(matrix, -gradient)


# Few free variables mean products of samples, many mean products of features; one
# problem is divided by columns, many are not.
@pytest.mark.parametrize("n_free", [0, 5, 150])
@pytest.mark.parametrize(("d", "k"), [(20, 1), (20, 5), (300, 1), (300, 5)])
def test_directions_solve_newtons_equations(d, k, n_free, rng):
    n = 400
    X = rng.standard_normal((n, d))
    C = rng.uniform(0.01, 0.02, (k, n))
    problems = problems_of(n, k, C, rng)
    curvature = Curvature(Features(X), problems)
    tasks = [
        SimpleNamespace(number=c, free=np.zeros(n, dtype=bool), inverse=0.0)
        for c in range(k)
    ]
    for _ in range(4):
        steps = []
        for task in tasks:
            # Most variables stay as they are from round to round.
            changed = rng.choice(n, max(1, n_free // 5), replace=False)
            wanted = np.zeros(n, dtype=bool)
            wanted[rng.choice(n, n_free, replace=False)] = True
            task.free = wanted if not task.free.any() else task.free.copy()
            task.free[changed] = wanted[changed]
            steps.append((task, rng.standard_normal(d + 1)))
        found = curvature.solve(steps)
        for (task, gradient), direction in zip(steps, found, strict=True):
            ridge = problems.ridge[task.number]
            expected = exact(X, ridge, task.free, gradient)
            error = np.linalg.norm(direction - expected) / np.linalg.norm(expected)
            assert error < 1e-4


@pytest.mark.parametrize(("C", "dtype"), [(0.01, np.float32), (1e4, np.float64)])
def test_precision_follows_the_condition_of_the_matrix(C, dtype, rng):
    n, d = 400, 300
    X = rng.standard_normal((n, d))
    problems = problems_of(n, 1, np.full((1, n), C), rng)
    curvature = Curvature(Features(X), problems)
    task = SimpleNamespace(number=0, free=np.ones(n, dtype=bool), inverse=0.0)
    gradient = rng.standard_normal(d + 1)
    assert curvature._precision(task) == dtype
    direction = curvature.solve([(task, gradient)])[0]
    expected = exact(X, problems.ridge[0], task.free, gradient)
    error = np.linalg.norm(direction - expected) / np.linalg.norm(expected)
    assert error < (1e-3 if dtype == np.float32 else 1e-9)


def test_sums_of_the_other_precision_are_forgotten(rng):
    n, d = 400, 300
    X = rng.standard_normal((n, d))
    problems = problems_of(n, 1, np.full((1, n), 0.01), rng)
    curvature = Curvature(Features(X), problems)
    task = SimpleNamespace(number=0, free=np.ones(n, dtype=bool), inverse=0.0)
    gradient = rng.standard_normal(d + 1)
    rough = curvature.solve([(task, gradient)])[0]
    curvature._precision = lambda task: np.float64
    fine = curvature.solve([(task, gradient)])[0]
    expected = exact(X, problems.ridge[0], task.free, gradient)
    assert np.linalg.norm(rough - expected) > 1e-12 * np.linalg.norm(expected)
    np.testing.assert_allclose(fine, expected, rtol=1e-8, atol=1e-10)
