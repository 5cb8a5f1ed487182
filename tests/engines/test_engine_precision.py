"""The way from single precision to certificates, with an arithmetic that is made up."""

import numpy as np
import pytest

from mercer.core.problem import c_svc
from mercer.engines.cpu.certificates import to_solution
from mercer.engines.cpu.decompose import Task
from mercer.engines.engine import TaskSpec
from mercer.engines.precision import SAFETY, solve_to_certificates

TOL = 1e-3
K = np.array([[1.0, 0.2], [0.2, 1.0]])
BEST = np.array([1.25, -1.25])


class MadeUp:
    """Finds the optimum at once, with an error in ``f`` that it reports."""

    def __init__(self, error, is_single=True, is_custom=False):
        self.error, self.is_single, self.is_custom = error, is_single, is_custom
        self.asked = []

    def solve(self, tol):
        self.asked.append(tol)
        for task in self.tasks:
            task.beta[:] = BEST
            task.f[:] = K @ BEST + np.array([self.error, 0.0])
            task.note((5, 0.0, False), tol)

    def errors(self):
        return np.full(len(self.tasks), self.error)

    def exact(self, some):
        if some:
            self.asked.append("exact")
        return [(K @ task.beta)[rows] for task, rows in some]

    def solve_in_double(self, specs):
        self.asked.append("double")
        np.testing.assert_array_equal(specs[0].problem.start, BEST)
        task = Task(specs[0].problem, specs[0].blocks, [0, 2])
        task.f[:] = K @ BEST
        task.note((2, 0.0, False), TOL)
        return [to_solution(task, 0.0, TOL)]


def solved(work):
    problem = c_svc(np.array([1.0, -1.0]), np.array([10.0, 10.0]))
    specs = [TaskSpec(problem, (0,))]
    work.tasks = [Task(problem, (0,), [0, 2])]
    return solve_to_certificates(specs, work.tasks, TOL, work)[0]


def test_small_errors_count_against_the_tolerance():
    work = MadeUp(0.01 * TOL)
    found = solved(work)
    assert found.converged and found.is_single
    assert found.error == pytest.approx(0.02 * TOL)
    assert work.asked == [SAFETY * TOL]


def test_a_smaller_gap_makes_up_for_larger_errors():
    work = MadeUp(0.0)
    work.errors = lambda: np.full(1, 0.2 * TOL)
    solve = work.solve

    def barely(tol):
        solve(tol)
        work.tasks[0].f[0] += 0.9 * tol
        work.tasks[0].note((0, 0.0, False), tol)

    work.solve = barely
    found = solved(work)
    assert work.asked == [SAFETY * TOL, TOL - 0.5 * TOL]
    assert found.converged


def test_gradients_are_computed_anew_where_errors_are_larger():
    work = MadeUp(0.8 * TOL)
    solve = work.solve

    def steps(tol):
        if work.asked:  # what was computed anew stays, since no step is needed
            work.asked.append(tol)
            work.tasks[0].note((0, 0.0, False), tol)
        else:
            solve(tol)

    work.solve = steps
    found = solved(work)
    assert work.asked == [SAFETY * TOL, "exact", 0.7 * TOL, "exact"]
    assert found.converged and found.is_single and found.error == 0.0


@pytest.mark.parametrize("error", [30 * TOL, np.nan, np.inf])
def test_double_precision_comes_last_and_goes_on_from_there(error):
    work = MadeUp(30 * TOL)
    work.errors = lambda: np.full(1, error)
    work.tasks = []
    solve = work.solve

    def exactly(tol):
        solve(tol)
        work.tasks[0].f[:] = K @ BEST
        work.tasks[0].note((0, 0.0, False), tol)

    work.solve = exactly
    found = solved(work)
    assert work.asked == [SAFETY * TOL, "double"]
    assert found.converged and not found.is_single
    assert found.n_iter == 5 + 2


def test_values_that_are_given_are_not_computed_in_double():
    work = MadeUp(30 * TOL, is_single=False)
    found = solved(work)
    assert work.asked == [SAFETY * TOL]
    assert not found.converged


def test_only_late_tasks_are_solved_further():
    work = MadeUp(0.0)
    problem = c_svc(np.array([1.0, -1.0]), np.array([10.0, 10.0]))
    work.tasks = [Task(problem, (0,), [0, 2]) for _ in range(2)]
    work.errors = lambda: np.array([0.8 * TOL, 0.0])
    settled, solve = [], work.solve

    def steps(tol):
        settled.append([task.is_settled for task in work.tasks])
        solve(tol)

    work.solve = steps
    specs = [TaskSpec(problem, (0,))] * 2
    found = solve_to_certificates(specs, work.tasks, TOL, work)
    assert settled == [[False, False], [False, True]]
    assert all(solution.converged for solution in found)
