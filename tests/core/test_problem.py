"""The dual problem, its layout and its certificate against loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from mercer.core.problem import PIECE, DualProblem, c_svc, certify, is_feasible, layout

seeds = st.integers(0, 2**32 - 1)


def candidate(rng, problem):
    """Draw a point of the box, with some coefficients on either bound."""
    share = np.clip(rng.uniform(-0.5, 1.5, len(problem.p)), 0.0, 1.0)
    beta = problem.lo + share * (problem.hi - problem.lo)
    return np.clip(beta, problem.lo, problem.hi)


def problems(rng, n):
    """One problem of each shape: plain, two groups, doubled rows."""
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    y[:2] = -1.0, 1.0
    yield naive.c_svc(y, rng.uniform(0.5, 2.0, n))
    yield naive.nu_svc(y, 1.0 / n)
    yield naive.epsilon_svr(rng.normal(size=n), 1.5, 0.1)


def places(where):
    """Read back variable, row and column of every place of a layout."""
    return [(v0 + k, r0 + k, c0 + k) for v0, n, r0, c0 in where.piece for k in range(n)]


@given(seed=seeds, n=st.integers(2, 20))
@settings(max_examples=25, deadline=None)
def test_c_svc_is_the_oracles(seed, n):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, -1, 1)
    C = rng.uniform(0.0, 3.0, n)
    for mine, theirs in zip(c_svc(y, C), naive.c_svc(y, C), strict=True):
        np.testing.assert_array_equal(mine, theirs)
        assert mine.dtype == theirs.dtype


@given(seed=seeds, n=st.integers(2, 14))
@settings(max_examples=25, deadline=None)
def test_certificate(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    K = naive.block(naive.rbf, X, X)
    for problem in problems(rng, n):
        beta = candidate(rng, problem)
        f = naive.product(problem, K, beta)
        found = certify(problem, beta, f)
        assert found.objective == pytest.approx(naive.objective(problem, K, beta))
        assert found.kkt_gap == pytest.approx(naive.kkt_gap(problem, K, beta))
        assert found.dual_gap >= 0.0
        if problem.group[-1] == 0:
            gap = naive.dual_gap(problem, K, beta, {0: -found.bias})
            assert found.dual_gap == pytest.approx(gap, abs=1e-12)


@given(seed=seeds, n=st.integers(2, 14))
@settings(max_examples=25, deadline=None)
def test_dual_gap_is_primal_minus_dual(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    K = naive.block(naive.rbf, X, X)
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    y[:2] = -1.0, 1.0
    C = rng.uniform(0.5, 2.0, n)
    problem = c_svc(y, C)
    beta = candidate(rng, problem)
    # Make the sum 0, as the dual has it, by shrinking the heavier side.
    for sign in (-1, 1):
        heavy = sign * beta.sum()
        side = sign * beta > 0.0
        if heavy > 0.0:
            beta[side] *= 1.0 - heavy / (sign * beta[side].sum())
    found = certify(problem, beta, K @ beta)
    primal = naive.c_svc_primal(K, y, C, beta, found.bias)
    dual = -naive.objective(problem, K, beta)
    assert found.dual_gap == pytest.approx(primal - dual, abs=1e-10)


def test_certificate_of_the_optimum():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(14, 2))
    K = naive.block(naive.rbf, X, X)
    for problem in problems(rng, 14):
        beta = naive.solve(problem, K)
        span = problem.hi - problem.lo
        beta = np.where(beta - problem.lo < 1e-6 * span, problem.lo, beta)
        beta = np.where(problem.hi - beta < 1e-6 * span, problem.hi, beta)
        found = certify(problem, beta, naive.product(problem, K, beta))
        assert found.kkt_gap <= 1e-3
        assert found.dual_gap <= 1e-3


def test_bias_is_the_middle_where_no_coefficient_is_free():
    # beta = 0: a label +1 may grow at G = -1, a label -1 may shrink at G = 1.
    problem = c_svc(np.array([1.0, -1.0, 1.0]), np.ones(3))
    found = certify(problem, np.zeros(3), np.array([0.0, 0.0, -0.5]))
    assert found.bias == pytest.approx(0.25)
    assert found.kkt_gap == pytest.approx(2.5)


def test_bias_of_one_class():
    problem = c_svc(np.ones(3), np.ones(3))
    found = certify(problem, np.zeros(3), np.zeros(3))
    assert found.bias == pytest.approx(1.0)
    assert found.kkt_gap == 0.0
    assert found.dual_gap == 0.0


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_feasible_means_bounds_and_the_sum_of_each_group(scale):
    zeros = np.zeros(4)
    start = scale * np.array([0.3, 0.3, -0.4, -0.2])
    problem = DualProblem(
        p=zeros,
        lo=scale * np.array([0.0, 0.0, -1.0, -1.0]),
        hi=scale * np.array([1.0, 1.0, 0.0, 0.0]),
        start=start,
        row=np.arange(4),
        group=np.array([0, 0, 1, 1]),
    )

    def holds(change):
        return is_feasible(problem, start + scale * np.asarray(change))

    assert holds(zeros)
    assert holds([0.2, -0.2, -0.1, 0.1])
    assert holds([1e-12, 0.0, 0.0, 0.0])  # rounding
    assert not holds([0.2, 0.0, -0.2, 0.0])  # the sum of all is kept, no group's is
    assert not holds([0.0, 0.0, -0.1, 0.0])
    assert not holds([0.8, -0.8, 0.0, 0.0])  # over both bounds
    assert not holds([0.0, 0.0, 0.5, -0.5])
    assert not holds([np.nan, 0.0, 0.0, 0.0])
    assert not holds([np.inf, 0.0, 0.0, 0.0])


@given(seed=seeds, n=st.integers(2, 20))
@settings(max_examples=25, deadline=None)
def test_layout_finds_every_variable(seed, n):
    rng = np.random.default_rng(seed)
    # Two stretches of a Gram matrix with a space before, between and after.
    first, cut, between = rng.integers(0, 5), rng.integers(1, n), rng.integers(0, 5)
    after = first + cut + between
    columns = np.array([[first, first + cut], [after, after + n - cut]])
    column = np.concatenate([np.arange(a, b) for a, b in columns])
    for problem in problems(rng, n):
        where = layout(problem, columns)
        expected = [(t, r, column[r]) for t, r in enumerate(problem.row)]
        assert places(where) == expected
        rows = [(r0 + k, c0 + k) for r0, m, c0 in where.span for k in range(m)]
        assert rows == list(enumerate(column))


@pytest.mark.parametrize("n", [1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 5])
def test_layout_cuts_long_runs(n):
    where = layout(c_svc(np.ones(n), np.ones(n)))
    assert where.piece[:, 1].max() <= PIECE
    assert places(where) == [(t, t, t) for t in range(n)]
    np.testing.assert_array_equal(where.span, [[0, n, 0]])
    np.testing.assert_array_equal(where.group_start, [0, len(where.piece)])


def test_layout_never_mixes_groups():
    y = np.array([1.0, 1.0, -1.0, -1.0, 1.0, -1.0])
    problem = naive.nu_svc(y, 0.5)
    where = layout(problem)
    assert len(where.group_start) == 3
    for g in (0, 1):
        mine = where.piece[where.group_start[g] : where.group_start[g + 1]]
        members = [v0 + k for v0, n, _, _ in mine for k in range(n)]
        assert members == list(np.flatnonzero(problem.group == g))
