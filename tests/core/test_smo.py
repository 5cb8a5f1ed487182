"""The fast pair solver against the loops-only oracle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from mercer.core.problem import PIECE, DualProblem, layout
from mercer.core.smo import (
    CHECK_EVERY,
    Outcome,
    Rows,
    _solve_and_polish,
    minimise_pairs,
    minimise_whole,
    part_of,
    same_type,
    solve_and_polish,
    solve_whole,
)

KERNELS = [naive.linear, naive.rbf, naive.polynomial, naive.laplacian]
seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from([np.float32, np.float64])


def run(gram, problem, columns=None, tol=1e-3, max_iter=100_000, stop=False):
    """Solve from ``problem.start``; return ``beta``, ``f`` and the outcome."""
    where = layout(problem, columns)
    used = np.arange(int(problem.row.max()) + 1)
    if columns is not None:
        used = np.concatenate([np.arange(a, b) for a, b in columns])
    beta = problem.start.copy()
    f = naive.product(problem, gram[np.ix_(used, used)], beta)
    flag = np.array([stop], dtype=np.uint8)
    out = minimise_pairs(gram, where, problem, beta, f, tol, max_iter, flag)
    return beta, f, Outcome(*out)


def check(problem, K, beta, f, gap):
    """Bounds, sums and ``f`` are kept, and ``gap`` is the true one."""
    size = 1.0 + np.abs(beta).max()
    outside, drift, error = naive.faults(problem, K, beta, f)
    assert outside == 0.0
    assert drift <= 1e-12 * size
    assert error <= 1e-10 * size * (1.0 + np.abs(K).max())
    true = naive.kkt_gap(problem, K, beta)
    assert max(gap, 0.0) == pytest.approx(true, rel=1e-6, abs=2e-10 * size)


def check_solved(problem, K, beta, f, out):
    """The gap is closed, and the objective is the oracle's as far as it allows."""
    assert out.gap <= 1e-3
    assert not out.stalled
    check(problem, K, beta, f, out.gap)
    mine = naive.objective(problem, K, beta)
    best = naive.objective(problem, K, naive.solve(problem, K))
    rounding = 1e-6 * (1.0 + abs(best))
    slack = max(out.gap, 0.0) * float((problem.hi - problem.lo).sum())
    assert best - rounding <= mine <= best + slack + rounding


def labels(rng, n):
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    y[:2] = -1.0, 1.0
    return y


def classification(seed, n, C=1.0, kernel=naive.rbf, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    problem = naive.c_svc(labels(rng, n), C * rng.uniform(0.5, 2.0, n))
    return naive.block(kernel, X, X).astype(dtype), problem


@given(
    seed=seeds,
    n=st.integers(4, 20),
    log_C=st.floats(-2.0, 2.0),
    kernel=st.sampled_from(KERNELS),
    dtype=dtypes,
)
@settings(max_examples=25, deadline=None)
def test_classifier(seed, n, log_C, kernel, dtype):
    K, problem = classification(seed, n, 10.0**log_C, kernel, dtype)
    beta, f, out = run(K, problem)
    check_solved(problem, K, beta, f, out)


@given(seed=seeds, n=st.integers(4, 14), nu=st.floats(0.1, 0.9), dtype=dtypes)
@settings(max_examples=25, deadline=None)
def test_two_groups(seed, n, nu, dtype):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = labels(rng, n)
    fewest = min(np.sum(y > 0), np.sum(y < 0))
    problem = naive.nu_svc(y, nu * 2 * fewest / n)
    K = naive.block(naive.rbf, X, X).astype(dtype)
    beta, f, out = run(K, problem)
    check_solved(problem, K, beta, f, out)


@given(seed=seeds, n=st.integers(2, 10), dtype=dtypes)
@settings(max_examples=25, deadline=None)
def test_doubled_rows(seed, n, dtype):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    problem = naive.epsilon_svr(np.sin(X[:, 0]), 2.0, 0.05)
    K = naive.block(naive.rbf, X, X).astype(dtype)
    beta, f, out = run(K, problem)
    check_solved(problem, K, beta, f, out)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [[(4, 18)], [(2, 9), (13, 20)], [(0, 5), (5, 14)]])
def test_part_of_a_gram(columns, dtype):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(22, 2))
    gram = naive.block(naive.rbf, X, X).astype(dtype)
    # What lies outside the part must not be read.
    used = np.concatenate([np.arange(a, b) for a, b in columns])
    outside = np.setdiff1d(np.arange(22), used)
    gram[outside] = gram[:, outside] = 1e6
    K = np.ascontiguousarray(gram[np.ix_(used, used)])
    machines = (
        naive.c_svc(labels(rng, 14), np.full(14, 2.0)),
        naive.nu_svc(np.repeat([1.0, -1.0], 7), 0.5),
        naive.epsilon_svr(rng.normal(size=14), 1.0, 0.1),
    )
    for problem in machines:
        beta, f, out = run(gram, problem, np.array(columns))
        check_solved(problem, K, beta, f, out)
        alone, _, _ = run(K, problem)
        np.testing.assert_allclose(beta, alone, atol=0.02)


@pytest.mark.parametrize("flip", [1.0, -1.0])
def test_duplicate_points(flip):
    rng = np.random.default_rng(1)
    X = np.tile(rng.normal(size=(6, 2)), (2, 1))
    y = labels(rng, 6)
    problem = naive.c_svc(np.concatenate([y, flip * y]), np.full(12, 3.0))
    K = naive.block(naive.rbf, X, X)
    beta, f, out = run(K, problem)
    check_solved(problem, K, beta, f, out)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [1e-3, 1e3, 1e6])
def test_extreme_box(C, dtype):
    K, problem = classification(5, 14, C, dtype=dtype)
    beta, f, out = run(K, problem)
    assert out.gap <= 1e-3
    assert not out.stalled
    check(problem, K, beta, f, out.gap)


def test_large_coefficients():
    # Contradictory labels drive every coefficient to its bound.
    X = np.tile(np.random.default_rng(2).normal(size=(5, 2)), (2, 1))
    y = np.repeat([1.0, -1.0], 5)
    problem = naive.c_svc(y, np.full(10, 1e6))
    K = naive.block(naive.rbf, X, X)
    beta, f, out = run(K, problem)
    assert out.gap <= 1e-3
    assert np.array_equal(beta, 1e6 * y)
    check(problem, K, beta, f, out.gap)


@pytest.mark.parametrize("seed", range(3))
def test_indefinite_kernel_ends(seed):
    K, problem = classification(seed, 14, 10.0, naive.sigmoid)
    assert np.linalg.eigvalsh(K).min() < -0.1
    beta, f, out = run(K, problem)
    assert out.gap <= 1e-3
    check(problem, K, beta, f, out.gap)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_bounds_are_met_exactly(sign):
    # Here start + (bound - start) is not the bound in floating point.
    start, bound = sign * 0.1, sign * 0.45
    assert start + (bound - start) != bound
    lo, hi = np.array([[min(0.0, bound), -1.0], [max(0.0, bound), 1.0]])
    p = np.array([-sign, sign])
    group = np.zeros(2, dtype=np.intp)
    problem = DualProblem(p, lo, hi, np.array([start, 0.0]), np.arange(2), group)
    beta, _, out = run(1e-3 * np.eye(2), problem)
    assert beta[0] == bound
    assert out.gap <= 1e-3


def test_first_step_takes_the_largest_gain():
    K, problem = classification(6, 12, kernel=naive.polynomial)
    beta = run(K, problem, max_iter=3)[0]
    after = run(K, problem._replace(start=beta), max_iter=1)[0]
    G = naive.gradient(problem, K, beta)
    i = min((t for t in range(12) if beta[t] < problem.hi[t]), key=lambda t: G[t])
    gains = {}
    for t in range(12):
        if beta[t] > problem.lo[t] and G[t] > G[i]:
            gains[t] = (G[t] - G[i]) ** 2 / (K[i, i] + K[t, t] - 2.0 * K[i, t])
    assert set(np.flatnonzero(after != beta)) == {i, max(gains, key=gains.get)}


def test_several_pieces():
    # Longer than one piece, so that the maximum must be found among several.
    n = PIECE + 40
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    K = np.exp(-((x[:, None] - x) ** 2))
    problem = naive.c_svc(np.sign(x - 0.5), np.full(n, 0.1))
    beta, _, out = run(K, problem, tol=0.1)
    assert out.gap <= 0.1
    G = K @ beta + problem.p
    gap = G[beta > problem.lo].max() - G[beta < problem.hi].min()
    assert out.gap == pytest.approx(gap, rel=1e-9)


def test_stop_flag_is_seen():
    K, problem = classification(0, 10)
    beta, f, out = run(K, problem, stop=True)
    assert out.n_iter < CHECK_EVERY
    assert out.gap > 1e-3
    check(problem, K, beta, f, out.gap)


@pytest.mark.parametrize("max_iter", [0, 1, 5])
def test_max_iter(max_iter):
    K, problem = classification(0, 12)
    beta, f, out = run(K, problem, max_iter=max_iter)
    assert out.n_iter == max_iter
    assert not out.stalled
    check(problem, K, beta, f, out.gap)


def test_solved_start_is_left_alone():
    K, problem = classification(4, 12)
    best = run(K, problem)[0]
    beta, _, out = run(K, problem._replace(start=best))
    assert out.n_iter == 0
    assert np.array_equal(beta, best)


def test_nothing_can_move():
    K, problem = classification(4, 6)
    fixed = problem._replace(lo=problem.start, hi=problem.start)
    _, _, out = run(K, fixed)
    assert (out.n_iter, out.stalled) == (0, False)
    assert out.gap == -np.inf


def test_stall_is_told():
    # The best step is below the spacing of floats at 1e10.
    zero = np.zeros(2, dtype=np.intp)
    p, end = np.array([0.0, 1e-7]), np.full(2, 1e11)
    start = np.array([1e10, 1e10])
    problem = DualProblem(p, -end, end, start, np.arange(2), zero)
    K = np.array([[1.0, -1.0], [-1.0, 1.0]])
    beta, _, out = run(K, problem, tol=1e-9, max_iter=100)
    assert out.stalled
    assert out.gap == pytest.approx(1e-7)
    assert np.array_equal(beta, start)


@pytest.mark.parametrize("are_stretches", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_put_together_when_they_are_needed(dtype, are_stretches):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(420, 2))
    larger = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2)).astype(dtype)
    rows = rng.permutation(420)[:300]
    if are_stretches:
        rows = np.r_[250:400, 20:170]
    K = np.ascontiguousarray(larger[np.ix_(rows, rows)])
    y = np.where(X[rows, 0] > 0, 1.0, -1.0)
    problem, flag = naive.c_svc(y, np.full(300, 10.0)), np.zeros(1, np.uint8)
    square = np.full((300, 300), np.nan, dtype)
    two = Rows.of_classes(
        square.copy(), K.diagonal().copy(), K[:120, :120].copy(), K[120:, 120:].copy(),
        np.hstack([K[:120, :7], K[:120, 120:]]), 7,
    )  # fmt: skip
    part = Rows(*part_of(larger, larger.diagonal().copy(), rows, square))
    assert bool(len(part.runs)) == are_stretches
    for matrix in (part, two, K):
        beta, f = np.zeros(300), np.zeros(300)
        out = solve_whole(matrix, layout(problem), problem, beta, f, 1e-3, 10**6, flag)
        assert out.gap <= 1e-3
        exact = K.astype(np.float64)
        np.testing.assert_allclose(f, exact @ beta, atol=1e-8)
        assert naive.kkt_gap(problem, exact, beta) <= 1.01e-3
        if matrix is not K:
            used = np.flatnonzero(beta)
            assert matrix.ready[used].all()
            assert not matrix.ready.all()
            np.testing.assert_array_equal(matrix.square[used], K[used])


@pytest.mark.parametrize("n", [60, 400])
def test_a_read_only_matrix_is_solved_in_place(n, tmp_path):
    K, problem = classification(1, n, C=10.0)
    np.save(tmp_path / "gram.npy", K)
    mapped = np.load(tmp_path / "gram.npy", mmap_mode="r")
    found, compiled = [], []
    for matrix in (K, mapped):
        beta, f, flag = np.zeros(n), np.zeros(n), np.zeros(1, np.uint8)
        solve_and_polish(
            matrix, layout(problem), problem, beta, f, 1e-3, 10**6, flag, shrinking=True
        )
        found.append(beta)
        compiled.append(
            len(minimise_whole.signatures) + len(_solve_and_polish.signatures)
        )
    assert np.array_equal(*found)
    assert compiled[0] == compiled[1]  # nothing is compiled once more
    assert np.shares_memory(same_type(mapped), mapped)
    assert not mapped.flags.writeable


def test_shrinking_does_not_change_the_solution():
    K, problem = classification(3, 260, C=50.0)
    objectives = []
    for most in (0, 130):
        beta, f = np.zeros(260), np.zeros(260)
        flag = np.zeros(1, np.uint8)
        out = Outcome(
            *minimise_whole(
                K, layout(problem), problem, beta, f, 1e-5, 10**7, flag, most
            )
        )
        assert out.gap <= 1e-5
        check(problem, K, beta, f, out.gap)
        objectives.append(naive.objective(problem, K, beta))
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-6)
