"""Chains: problems begun where others ended, and certified all the same."""

import numpy as np
import pytest

from mercer.core.problem import (
    c_svc,
    certify,
    epsilon_svr,
    nu_svc,
    nu_svr,
    one_class,
)
from mercer.core.smo import best_multiple
from mercer.core.stacked import (
    Chains,
    begin_at,
    room_for_chains,
    solutions_of,
    solve_chains,
)

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


def solve(K, problems, tol=1e-6, max_iter=10**6, exact=None, most=0):
    """Solve two equal chains through problems; return the results of the second.

    The rows of the chains are the odd ones and the even ones of a larger matrix, so
    that gathering them goes wrong if rows are confused.
    """
    n, m = len(K), len(problems[0].p)
    larger = np.full((2 * n, 2 * n), 7.0, dtype=K.dtype)
    larger[::2, ::2] = larger[1::2, 1::2] = K
    rows = np.concatenate([np.arange(1, 2 * n, 2), np.arange(0, 2 * n, 2)])
    sampled = np.full(2 * n, -1)
    sampled[:10] = np.arange(10)
    values = np.full((10, 2 * n), 7.0)
    for r in range(10):
        values[r, r % 2 :: 2] = (K if exact is None else exact)[r // 2]
    p, lo, hi, start = (
        np.array([np.tile(problem[i], 2) for problem in problems]) for i in range(4)
    )
    chains = Chains(
        p, lo, hi, start, np.tile(problems[0].row, 2), np.tile(problems[0].group, 2),
        np.array([0, m, 2 * m]), np.array([0, n, 2 * n]),
    )  # fmt: skip
    results = room_for_chains(chains)
    solve_chains(
        larger, larger.diagonal().copy(), rows, sampled, values, chains, 0, 2,
        np.full(len(p), tol), np.full(len(p), max_iter), most, STOP,
        np.empty(n * n, dtype=K.dtype), results,
    )  # fmt: skip
    found = []
    for e in range(len(p)):
        mine = type(results)(*(array[e] for array in results))
        first, second = solutions_of(chains, mine, tol, 0, 2)
        np.testing.assert_array_equal(first.beta, second.beta)
        found.append(second)
    return found, results.certificate[:, 1]


@pytest.mark.parametrize("most", [None, 0])
@pytest.mark.parametrize("kind", KINDS)
def test_every_link_is_solved(gram, rng, kind, most):
    problems = chain(kind, rng)
    found, _ = solve(gram, problems, most=most)
    for problem, solution in zip(problems, found, strict=True):
        assert solution.converged
        beta = solution.beta
        f = gram @ np.bincount(problem.row, beta, N)
        np.testing.assert_allclose(solution.f, f, atol=1e-9)
        assert certify(problem, beta, f).kkt_gap <= 1e-6
        assert (beta >= problem.lo).all() and (beta <= problem.hi).all()
        for g in range(problem.group[-1] + 1):
            mine = problem.group == g
            total = problem.start[mine].sum()
            assert beta[mine].sum() == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("most", [0, 1000])
def test_long_chains_are_not_polished_but_certified(dtype, most):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 3))
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    sides = np.where(rng.random(500) < 0.8, X[:, 0] > 0, X[:, 0] < 0) * 2 - 1
    problems = [c_svc(sides, np.full(500, C)) for C in (0.1, 1.0, 10.0)]
    found, _ = solve(K.astype(dtype), problems, 1e-3, exact=K, most=most)
    for problem, solution in zip(problems, found, strict=True):
        assert solution.converged
        assert certify(problem, solution.beta, K @ solution.beta).kkt_gap <= 1.1e-3
        assert abs(solution.beta.sum()) <= 1e-9 * np.abs(solution.beta).sum()


@pytest.mark.parametrize("kind", KINDS)
def test_starts_are_feasible_and_better_than_none(gram, rng, kind):
    problems = chain(kind, rng)
    (first,), _ = solve(gram, problems[:1])
    for problem in problems[1:]:
        beta, f = np.empty_like(first.beta), np.empty_like(first.f)
        begin_at(gram, problem, first.beta, first.f, beta, f)
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


def test_a_precision_that_is_not_enough_has_no_solution(gram, rng):
    problem = chain("C", rng)[0]
    (found,), certificate = solve(gram, [problem], exact=1.001 * gram)
    assert certificate[0, 3] == -1.0 and not found.converged
    assert certificate[0, 4] > 1e-6


def test_a_limit_of_steps(gram, rng):
    problem = chain("C", rng)[2]
    (found,), _ = solve(gram, [problem], 1e-9, 3)
    assert found.n_iter == 3 and not found.converged


def test_a_flag_ends_the_chains(gram, rng):
    STOP[0] = 1
    try:
        found, certificate = solve(gram, chain("C", rng))
    finally:
        STOP[0] = 0
    assert not any(one.converged or one.n_iter for one in found)
    assert not certificate.any()
