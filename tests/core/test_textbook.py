"""The named solvers against the loops-only oracle."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from mercer.core import textbook
from mercer.core.problem import DualProblem
from mercer.core.smo import Outcome

EXACT = ["platt", "wss1", "wss2"]
EVERY = [*EXACT, "random", "simplified"]
KERNELS = [naive.linear, naive.rbf, naive.polynomial, naive.laplacian]
seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from([np.float32, np.float64])


def run(name, K, problem, tol=1e-3, max_iter=100_000, stop=False, seed=2**60 + 7):
    """Solve from ``problem.start``; return ``beta``, ``f`` and the outcome."""
    beta = problem.start.copy()
    f = naive.product(problem, K, beta)
    flag = np.array([stop], dtype=np.uint8)
    if name in textbook.BY_ROWS:
        diag = np.diag(K).astype(np.float64)
        given = (lambda r: K[r], diag, problem, beta, f, tol, max_iter, flag)
        out = textbook.by_rows(name, *given)
    else:
        state = np.array([seed], dtype=np.uint64)
        solve = textbook.IN_MEMORY[name]
        rows = textbook.held_rows(K)
        out = solve(rows, problem, beta, f, tol, max_iter, state, flag)
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


def solve(name, K, problem):
    """Run and check; no further from the oracle than the gap allows."""
    beta, f, out = run(name, K, problem)
    check(problem, K, beta, f, out.gap)
    mine = naive.objective(problem, K, beta)
    best = naive.objective(problem, K, naive.solve(problem, K))
    rounding = 1e-6 * (1.0 + abs(best))
    slack = max(out.gap, 0.0) * float((problem.hi - problem.lo).sum())
    assert best - rounding <= mine <= best + slack + rounding
    assert not out.stalled
    return out.gap


def labels(rng, n):
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    y[:2] = -1.0, 1.0
    return y


def classification(seed, n, C=1.0, kernel=naive.rbf, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    problem = naive.c_svc(labels(rng, n), C * rng.uniform(0.5, 2.0, n))
    return naive.block(kernel, X, X).astype(dtype), problem


@pytest.mark.parametrize("name", EVERY)
@given(
    seed=seeds,
    n=st.integers(4, 20),
    log_C=st.floats(-2.0, 2.0),
    kernel=st.sampled_from(KERNELS),
    dtype=dtypes,
)
@settings(max_examples=25, deadline=None)
def test_classifier(name, seed, n, log_C, kernel, dtype):
    K, problem = classification(seed, n, 10.0**log_C, kernel, dtype)
    gap = solve(name, K, problem)
    assert gap <= 1e-3 or name not in EXACT


@pytest.mark.parametrize("name", ["random", "simplified"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_random_choice_comes_close(name, dtype):
    K, problem = classification(3, 20, dtype=dtype)
    assert solve(name, K, problem) <= 0.02


@pytest.mark.parametrize("name", EVERY)
@given(seed=seeds, n=st.integers(4, 14), nu=st.floats(0.1, 0.9), dtype=dtypes)
@settings(max_examples=25, deadline=None)
def test_two_groups(name, seed, n, nu, dtype):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = labels(rng, n)
    fewest = min(np.sum(y > 0), np.sum(y < 0))
    problem = naive.nu_svc(y, nu * 2 * fewest / n)
    K = naive.block(naive.rbf, X, X).astype(dtype)
    assert solve(name, K, problem) <= 1e-3 or name == "simplified"


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("full", [0, 1])
def test_a_group_that_cannot_move_is_left_alone(name, full):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(12, 2))
    problem = naive.nu_svc(np.repeat([1.0, -1.0], 6), 0.4)
    mine = problem.group == full
    fixed = np.where(problem.lo < 0, problem.lo, problem.hi)
    problem = problem._replace(start=np.where(mine, fixed, problem.start))
    K = naive.block(naive.rbf, X, X)
    beta, f, out = run(name, K, problem)
    check(problem, K, beta, f, out.gap)
    np.testing.assert_array_equal(beta[mine], fixed[mine])
    assert out.gap <= 1e-3 or name == "simplified"
    assert out.n_iter > 0


@pytest.mark.parametrize("name", EVERY)
@given(seed=seeds, n=st.integers(2, 8), dtype=dtypes)
@settings(max_examples=15, deadline=None)
def test_doubled_rows(name, seed, n, dtype):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    problem = naive.epsilon_svr(np.sin(X[:, 0]), 2.0, 0.05)
    K = naive.block(naive.rbf, X, X).astype(dtype)
    gap = solve(name, K, problem)
    assert gap <= 1e-3 or name not in EXACT


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("flip", [1.0, -1.0])
def test_duplicate_points(name, flip):
    rng = np.random.default_rng(1)
    X = np.tile(rng.normal(size=(6, 2)), (2, 1))
    y = labels(rng, 6)
    problem = naive.c_svc(np.concatenate([y, flip * y]), np.full(12, 3.0))
    K = naive.block(naive.rbf, X, X)
    gap = solve(name, K, problem)
    assert gap <= 1e-3 or name not in EXACT


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("C", [1e-3, 1e3, 1e6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extreme_box(name, C, dtype):
    K, problem = classification(5, 14, C, dtype=dtype)
    beta, f, out = run(name, K, problem)
    assert out.gap <= 1e-3
    assert not out.stalled
    check(problem, K, beta, f, out.gap)


@pytest.mark.parametrize("name", EXACT)
def test_large_coefficients(name):
    # Contradictory labels drive every coefficient to its bound.
    X = np.tile(np.random.default_rng(2).normal(size=(5, 2)), (2, 1))
    y = np.repeat([1.0, -1.0], 5)
    problem = naive.c_svc(y, np.full(10, 1e6))
    K = naive.block(naive.rbf, X, X)
    beta, f, out = run(name, K, problem)
    assert out.gap <= 1e-3
    assert np.array_equal(beta, 1e6 * y)
    check(problem, K, beta, f, out.gap)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("seed", range(3))
def test_indefinite_kernel_ends(name, seed):
    K, problem = classification(seed, 14, 10.0, naive.sigmoid)
    assert np.linalg.eigvalsh(K).min() < -0.1
    beta, f, out = run(name, K, problem, max_iter=50_000)
    check(problem, K, beta, f, out.gap)
    if name in EXACT:
        assert out.gap <= 1e-3


@pytest.mark.parametrize("name", EVERY)
def test_stop_flag(name):
    K, problem = classification(0, 10)
    beta, f, out = run(name, K, problem, stop=True)
    assert out.n_iter <= 1
    assert out.gap > 1e-3
    check(problem, K, beta, f, out.gap)


def test_stop_flag_set_by_another_thread():
    # A linear kernel and a wide box: random pairs would take hours.
    K, problem = classification(0, 30, 1e4, naive.linear)
    run("random", K, problem, max_iter=0)
    beta, f = problem.start.copy(), np.zeros(30)
    state, stop = np.array([9], dtype=np.uint64), np.zeros(1, dtype=np.uint8)
    outcome = []

    def work():
        rows = textbook.held_rows(K)
        arguments = (rows, problem, beta, f, 1e-12, 10**12, state, stop)
        outcome.extend(textbook.random_pair(*arguments))

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    time.sleep(0.05)
    stop[0] = 1
    worker.join(timeout=60)
    n_iter, gap, stalled = outcome
    assert 0 < n_iter < 10**12
    assert gap > 1e-12
    assert not stalled


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("max_iter", [0, 1, 5])
def test_max_iter(name, max_iter):
    K, problem = classification(0, 12)
    beta, f, out = run(name, K, problem, max_iter=max_iter)
    assert out.n_iter == max_iter
    assert not out.stalled
    check(problem, K, beta, f, out.gap)


@pytest.mark.parametrize("name", EVERY)
def test_solved_start_is_left_alone(name):
    K, problem = classification(4, 12)
    best = run("wss2", K, problem)[0]
    beta, _, out = run(name, K, problem._replace(start=best))
    assert out.n_iter == 0
    assert np.array_equal(beta, best)


@pytest.mark.parametrize("name", EVERY)
def test_nothing_can_move(name):
    K, problem = classification(4, 6)
    fixed = problem._replace(lo=problem.start, hi=problem.start)
    _, _, out = run(name, K, fixed)
    assert (out.n_iter, out.stalled) == (0, False)
    assert out.gap == -np.inf


@pytest.mark.parametrize("name", [*EXACT, "random"])
def test_stall_is_told(name):
    # The best step is below the spacing of floats at 1e10.
    zero = np.zeros(2, dtype=np.intp)
    p, end = np.array([0.0, 1e-7]), np.full(2, 1e11)
    start = np.array([1e10, 1e10])
    problem = DualProblem(p, -end, end, start, np.arange(2), zero)
    K = np.array([[1.0, -1.0], [-1.0, 1.0]])
    beta, _, out = run(name, K, problem, tol=1e-9, max_iter=100)
    assert out.stalled
    assert out.gap == pytest.approx(1e-7)
    assert np.array_equal(beta, start)


@pytest.mark.parametrize("name", textbook.BY_ROWS)
def test_choice_of_the_pair(name):
    K, problem = classification(6, 12, kernel=naive.polynomial)
    beta = run(name, K, problem, max_iter=3)[0]
    after = run(name, K, problem._replace(start=beta), max_iter=1)[0]
    G = naive.gradient(problem, K, beta)
    i = min((t for t in range(12) if beta[t] < problem.hi[t]), key=lambda t: G[t])
    gains = {}
    for t in range(12):
        if beta[t] > problem.lo[t] and G[t] > G[i]:
            curvature = K[i, i] + K[t, t] - 2.0 * K[i, t] if name == "wss2" else 1.0
            gains[t] = (G[t] - G[i]) ** 2 / curvature
    assert set(np.flatnonzero(after != beta)) == {i, max(gains, key=gains.get)}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_bounds_are_met_exactly(name, sign):
    # Here start + (bound - start) is not the bound in floating point.
    start, bound = sign * 0.1, sign * 0.45
    assert start + (bound - start) != bound
    lo, hi = np.array([[min(0.0, bound), -1.0], [max(0.0, bound), 1.0]])
    p = np.array([-sign, sign])
    group = np.zeros(2, dtype=np.intp)
    problem = DualProblem(p, lo, hi, np.array([start, 0.0]), np.arange(2), group)
    beta, _, out = run(name, 1e-3 * np.eye(2), problem)
    assert beta[0] == bound
    assert out.gap <= 1e-3


def test_bias_of_the_hand_out():
    problem = naive.c_svc(np.array([1.0, -1.0]), np.ones(2))
    f = np.array([0.5, 0.25])
    for beta, middle in (
        ([0.5, -0.5], -0.5),
        ([1.0, -0.5], 1.25),
        ([1.0, -1.0], 0.375),
    ):
        assert textbook._middle(problem, np.array(beta), f, 0, 1) == middle


@pytest.mark.parametrize("name", ["random", "simplified"])
def test_draws_follow_the_state(name):
    K, problem = classification(8, 12)
    first, again, other = (run(name, K, problem, seed=s)[0] for s in (2**50, 2**50, 0))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_draws_are_uniform():
    state = np.array([2**63 + 5], dtype=np.uint64)
    counts = np.zeros((5, 5))
    for _ in range(5000):
        counts[textbook._draw(state, 5), textbook._draw(state, 5)] += 1
    # Chi-squared with 24 degrees of freedom.
    assert np.sum((counts - 200.0) ** 2 / 200.0) < 60.0


def by_compiled_rows(name, rows, problem):
    """Solve on rows that a compiled solver asks for."""
    beta = problem.start.copy()
    f = np.zeros(len(beta))
    state = np.array([11], dtype=np.uint64)
    stop = np.zeros(1, dtype=np.uint8)
    solve = textbook.COMPILED[name]
    out = Outcome(*solve(rows, problem, beta, f, 1e-3, 100_000, state, stop))
    return beta, out


@pytest.mark.parametrize("gamma", [0.0, 0.7])
@pytest.mark.parametrize("name", EVERY)
def test_rows_held_kept_or_forgotten_lead_to_the_same_solution(name, gamma):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(40, 3)), labels(rng, 40)
    problem = naive.c_svc(y, np.full(40, 2.0))
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    K = np.exp(-gamma * distances) if gamma else X @ X.T
    held, out = by_compiled_rows(name, textbook.held_rows(K), problem)
    kept_rows = textbook.computed_rows(X, gamma, keeps=True)
    kept, kept_out = by_compiled_rows(name, kept_rows, problem)
    asked_rows = textbook.computed_rows(X, gamma, keeps=False)
    asked, asked_out = by_compiled_rows(name, asked_rows, problem)
    assert kept_rows.diag == pytest.approx(K.diagonal())
    # Rows that are kept are computed once, other rows twice for each step.
    assert kept_rows.computed[0] == kept_rows.is_held.sum() <= len(X)
    if name != "random":  # which counts draws
        assert asked_rows.computed[0] == 2 * asked_out.n_iter
    assert asked_out == kept_out and np.array_equal(asked, kept)
    assert naive.objective(problem, K, kept) == pytest.approx(
        naive.objective(problem, K, held), rel=1e-2 if name == "simplified" else 1e-3
    )
    if name in EXACT:
        assert out.gap <= 1e-3 and kept_out.gap <= 1e-3


@pytest.mark.parametrize("name", ["wss1", "wss2"])
def test_compiled_rows_and_rows_of_a_function_take_the_same_steps(name):
    K, problem = classification(3, 30)
    expected, _, out = run(name, K, problem)
    found, compiled = by_compiled_rows(name, textbook.held_rows(K), problem)
    assert np.array_equal(found, expected) and compiled.n_iter == out.n_iter
