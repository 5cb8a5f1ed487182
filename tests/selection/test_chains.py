"""Chains: problems begun where others ended, and certified all the same."""

import numpy as np
import pytest

from mercer.core.problem import (
    c_svc,
    certify,
    epsilon_svr,
    layout,
    nu_svc,
    nu_svr,
    one_class,
)
from mercer.core.smo import best_multiple
from mercer.selection.path import Link, _begin, _solve, solve_chain

N = 40
STOP = np.zeros(1, dtype=np.uint8)


@pytest.fixture
def gram(rng):
    X = rng.normal(size=(N, 3))
    return np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))


def chain(kind, rng):
    sides = np.where(rng.normal(size=N) > 0, 1, -1)
    z, ones = rng.normal(size=N), np.ones(N)
    makers = {
        "C": lambda v: c_svc(sides, v * ones),
        "weights": lambda v: c_svc(sides, np.where(sides > 0, v, 1.0)),
        "epsilon": lambda v: epsilon_svr(z, ones, v),
        "nu": lambda v: nu_svc(sides, ones, v / 20),
        "C of nu": lambda v: nu_svr(z, v * ones, 0.3),
        "novelty": lambda v: one_class(ones, v / 20),
    }
    return [makers[kind](v) for v in (2.0, 0.1, 10.0, 1.0)]


KINDS = ["C", "weights", "epsilon", "nu", "C of nu", "novelty"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_link_is_solved(gram, rng, kind):
    problems = chain(kind, rng)
    exact = gram[:5], np.arange(5)
    links = [Link(problem, 1e-6, -1, True) for problem in problems]
    for problem, solved in zip(
        problems, solve_chain(gram, exact, links, STOP), strict=True
    ):
        solution = solved.solution
        assert solution.converged and solved.seconds > 0
        beta = solution.beta
        f = gram @ np.bincount(problem.row, beta, N)
        np.testing.assert_allclose(solution.f, f, atol=1e-9)
        assert certify(problem, beta, f).kkt_gap <= 1e-6
        assert (beta >= problem.lo).all() and (beta <= problem.hi).all()
        for g in range(problem.group[-1] + 1):
            mine = problem.group == g
            total = problem.start[mine].sum()
            assert beta[mine].sum() == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("kind", ["nu", "C of nu", "novelty"])
def test_a_solution_with_other_sums_does_not_count(gram, rng, kind):
    small, _, large, _ = chain(kind, rng)
    exact = gram[:5], np.arange(5)
    link = Link(small, 1e-6, -1, True)
    solution = solve_chain(gram, exact, [link], STOP)[0].solution
    start = solution.beta, solution.f
    right = _solve(gram, layout(small), link, *start, exact, STOP, 7)
    # Room enough for the old coefficients, but another mass.
    link = link._replace(problem=small._replace(start=large.start))
    wrong = _solve(gram, layout(small), link, *start, exact, STOP, 7)
    assert right.kkt_gap == wrong.kkt_gap <= 1e-6
    assert right.converged and not wrong.converged


@pytest.mark.parametrize("kind", KINDS)
def test_starts_are_feasible_and_better_than_none(gram, rng, kind):
    problems = chain(kind, rng)
    exact = gram[:5], np.arange(5)
    first = solve_chain(gram, exact, [Link(problems[0], 1e-6, -1, True)], STOP)
    before = first[0].solution.beta, first[0].solution.f
    for problem in problems[1:]:
        beta, f = _begin(gram, problem, before)
        np.testing.assert_allclose(
            f, gram @ np.bincount(problem.row, beta, N), atol=1e-9
        )
        assert (beta >= problem.lo).all() and (beta <= problem.hi).all()
        for g in range(problem.group[-1] + 1):
            mine = problem.group == g
            total = problem.start[mine].sum()
            assert beta[mine].sum() == pytest.approx(total, abs=1e-9)
        if not problem.start.any():
            assert certify(problem, beta, f).objective <= 0.0


def test_the_best_multiple(gram, rng):
    problem = c_svc(np.where(rng.normal(size=N) > 0, 1, -1), np.full(N, 5.0))
    beta = np.where(np.arange(N) % 4 == 0, -problem.p, 0.0)
    beta -= np.where(beta != 0, beta.sum() / np.count_nonzero(beta), 0.0)
    beta = np.clip(beta, problem.lo, problem.hi)
    f = gram @ beta
    new, new_f = np.empty(N), np.empty(N)
    best_multiple(problem.p, problem.lo, problem.hi, problem.row, beta, f, new, new_f)
    used = beta != 0
    (s,) = np.unique(np.round(new[used] / beta[used], 10))
    np.testing.assert_allclose(new_f, s * f)
    values = [0.5 * t * t * beta @ f + t * problem.p @ beta for t in (0.9 * s, s)]
    assert values[1] <= values[0]
    # Of nothing there is no multiple but nothing.
    best_multiple(
        problem.p, problem.lo, problem.hi, problem.row, 0 * beta, 0 * f, new, new_f
    )
    assert not new.any() and not new_f.any()


def test_single_precision_that_is_not_enough_has_no_solution(gram, rng):
    problem = chain("C", rng)[0]
    off = 1.001 * gram[:5], np.arange(5)
    (solved,) = solve_chain(gram, off, [Link(problem, 1e-6, -1, True)], STOP)
    assert solved.solution is None


def test_a_limit_of_steps(gram, rng):
    problem = chain("C", rng)[2]
    exact = gram[:5], np.arange(5)
    (solved,) = solve_chain(gram, exact, [Link(problem, 1e-9, 3, True)], STOP)
    assert solved.solution.n_iter == 3 and not solved.solution.converged
