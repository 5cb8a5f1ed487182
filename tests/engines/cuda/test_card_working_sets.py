"""The choice of working sets on a card."""

import numpy as np
import pytest

from mercer.core.problem import c_svc
from mercer.engines.cpu.decompose import Task
from mercer.engines.cuda.values import CardFit, GivenValues, stretches
from mercer.engines.cuda.working_sets import WorkingSetSolver, _Look, _Problem


def made(card, size):
    y = np.tile([1.0, -1.0], 5)
    task = Task(c_svc(y, np.ones(10)), (0,), [0, 10])
    memory = card.xp.empty(size * 10)
    return _Problem(task, GivenValues(card, np.eye(10)), size, memory)


@pytest.fixture
def problem(card):
    return made(card, 4)


def look(pair, *strong):
    return _Look(1.0, pair, np.array(strong, dtype=np.int64))


def test_the_first_look_finds_both_sides(problem):
    found = problem.look(1e-3)
    assert found.gap == 2.0
    up, down = found.pair
    assert up % 2 == 0 and down % 2 == 1
    assert len(found.strong) == 4 and len(set(found.strong % 2)) == 2


def test_new_members_take_the_places_of_those_that_moved_longest_ago(card):
    problem = made(card, 6)
    places = problem.choose(look((0, 1), 2, 3, 4, 5))
    assert problem.members.tolist() == places.tolist() == [0, 1, 2, 3, 4, 5]
    assert not problem.is_full
    problem.moved_in[[1, 3]] = 7
    assert problem.choose(look((6, 7), 8, 9)).tolist() == [0, 2]
    assert problem.members.tolist() == [6, 1, 7, 3, 4, 5]
    assert problem.is_full and problem.has_new


def test_members_that_move_are_noted(card):
    X = np.random.default_rng(0).normal(size=(40, 2))
    task = Task(c_svc(np.sign(X[:, 0]), np.ones(40)), (0,), [0, 40])
    values = GivenValues(card, X @ X.T)
    stop = np.zeros(1, dtype=np.uint8)
    fit = CardFit(values, [task], 10**6, stop)
    solver = WorkingSetSolver(fit, 2**20, is_whole=True)
    one = _Problem(task, values, 40, None)
    found = one.look(1e-3)
    task.gap = found.gap
    places = one.choose(found)
    one.moved_in[places] = 0
    solver._improve([one], card.xp.empty((1, solver._size, solver._size)), 1e-3)
    moved = card.to_host(one.beta)[one.members] != 0.0
    np.testing.assert_array_equal(one.moved_in, np.where(moved, 1, 0))
    assert one.has_moved and moved.any() and not moved.all()


def test_the_pair_that_violates_most_stays(problem):
    problem.choose(look((0, 1), 2, 3))
    problem.moved_in[:] = [1, 9, 9, 9]
    places = problem.choose(look((0, 5), 6, 7, 8))
    assert 0 in problem.members and 5 in problem.members
    assert len(problem.members) == 4 and 0 not in problem.members[places]


def test_without_violators_outside_no_member_is_new(problem):
    problem.choose(look((0, 1), 2, 3))
    assert problem.choose(look((0, 1))).tolist() == []
    assert not problem.has_new


def test_touching_stretches_are_joined():
    columns = np.array([[0, 3], [3, 5], [7, 9]])
    assert stretches(columns) == [slice(0, 5), slice(7, 9)]
