"""The working-set solver against the pair solver, on both kinds of Gram matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from mercer import kernels
from mercer.core.choice import (
    ABOUT_AS_STRONG,
    choose_set,
    kth_largest,
    mark_strong,
    room_for,
)
from mercer.core.problem import certify, layout
from mercer.core.smo import minimise_pairs
from mercer.engines.cpu.decompose import Task, decompose, refresh
from mercer.engines.cpu.gram import RowGram, WholeGram
from mercer.engines.cpu.pair import Operand
from mercer.runtime.threads import Threads

RBF = kernels.RBF(gamma=0.2)
KINDS = ["whole", "rows"]
FOREVER = 10**9


def make_gram(kind, X, threads, starts=None, budget=10**8):
    operand = Operand(X)
    starts = [0, len(X)] if starts is None else starts
    if kind == "whole":
        return WholeGram.compute(RBF, operand, starts, threads)
    return RowGram(RBF, operand, starts, budget, threads)


def run(gram, tasks, threads, tol=1e-3, max_iter=FOREVER, size=40, n_active=9, **more):
    for task in tasks:
        refresh(gram, task, threads)
    decompose(gram, tasks, tol, max_iter, threads, size, n_active, **more)
    return tasks


def certificate(task, K):
    """Certify from scratch; ``K`` holds the task's own rows."""
    problem = task.problem
    f = K.astype(np.float64)[:, problem.row] @ task.beta
    np.testing.assert_allclose(task.f, f, atol=1e-5 * (1.0 + np.abs(f).max()))
    assert ((task.beta >= problem.lo) & (task.beta <= problem.hi)).all()
    for g in np.unique(problem.group):
        mine = problem.group == g
        assert task.beta[mine].sum() == pytest.approx(problem.start[mine].sum())
    return certify(problem, task.beta, f)


def by_pairs(problem, K, tol):
    """Return the objective that the pair solver reaches."""
    beta = problem.start.copy()
    f = K.astype(np.float64)[:, problem.row] @ beta
    stop = np.zeros(1, dtype=np.uint8)
    minimise_pairs(K, layout(problem), problem, beta, f, tol, FOREVER, stop)
    return certify(problem, beta, f).objective


def samples(n, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).astype(dtype)
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y


def machine(name, X, y):
    if name == "c_svc":
        return naive.c_svc(y, np.linspace(0.5, 3.0, len(y)))
    if name == "nu_svc":
        return naive.nu_svc(y, 0.4)
    return naive.epsilon_svr(np.sin(X[:, 0]), 2.0, 0.05)


MACHINES = ["c_svc", "nu_svc", "epsilon_svr"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 1e-3), (np.float64, 1e-7)])
def test_reaches_the_pair_solvers_objective(kind, name, dtype, tol):
    X, y = samples(150, dtype)
    problem = machine(name, X, y)
    with Threads(2) as threads:
        gram = make_gram(kind, X, threads)
        (task,) = run(gram, [Task(problem, [0], [0, 150])], threads, tol)
    K = RBF.block(X)
    found = certificate(task, K)
    assert task.done
    assert not task.stalled
    assert task.n_iter > 0
    assert found.kkt_gap <= tol + 1e-5 * (dtype is np.float32)
    best = by_pairs(problem, K, 0.1 * tol)
    assert found.objective == pytest.approx(best, rel=tol)
    assert found.objective - best <= found.dual_gap + 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_smallest_working_sets(kind, name, size):
    X, y = samples(30)
    problem = machine(name, X, y)
    with Threads(1) as threads:
        gram = make_gram(kind, X, threads, budget=1)
        assert gram.capacity == (2 if kind == "rows" else 30)
        (task,) = run(gram, [Task(problem, [0], [0, 30])], threads, size=size)
    assert task.done
    assert certificate(task, RBF.block(X)).kkt_gap <= 1e-3 + 1e-12


def one_against_one(sizes, seed=1):
    """Problems for all pairs of blocks; return samples, starts, tasks, their rows."""
    X, _ = samples(sum(sizes), seed=seed)
    starts = [0, *np.cumsum(sizes).tolist()]
    tasks, rows = [], []
    for a in range(len(sizes)):
        for b in range(a + 1, len(sizes)):
            y = np.repeat([1.0, -1.0], [sizes[a], sizes[b]])
            problem = naive.c_svc(y, np.full(len(y), 1.0))
            tasks.append(Task(problem, [a, b], starts))
            ranges = [np.arange(starts[c], starts[c + 1]) for c in (a, b)]
            rows.append(np.concatenate(ranges))
    return X, starts, tasks, rows


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_active", [1, 2, 6])
@pytest.mark.parametrize("budget", [1, 200 * 40 * 8, 10**8])
def test_blocks_and_tasks_at_once(kind, n_active, budget):
    X, starts, tasks, rows = one_against_one([50, 1, 70, 79])
    K = RBF.block(X)
    tol = 1e-6 if budget > 1 else 1e-3
    with Threads(2) as threads:
        gram = make_gram(kind, X, threads, starts, budget)
        run(gram, tasks, threads, tol, n_active=n_active)
    for task, mine in zip(tasks, rows, strict=True):
        np.testing.assert_array_equal(task.gram_rows(np.arange(len(mine))), mine)
        part = K[np.ix_(mine, mine)]
        found = certificate(task, part)
        assert task.done
        assert found.kkt_gap <= tol + 1e-12
        assert found.objective == pytest.approx(
            by_pairs(task.problem, part, 1e-7), rel=tol
        )


@pytest.mark.parametrize("kind", KINDS)
def test_threads_do_not_matter(kind):
    solutions = []
    for count in (1, 2, 3):
        X, starts, tasks, _ = one_against_one([120, 90, 101])
        with Threads(count) as threads:
            gram = make_gram(kind, X, threads, starts)
            run(gram, tasks, threads, size=30)
        solutions.append(np.concatenate([[*t.beta, *t.f, t.n_iter] for t in tasks]))
    assert (solutions[0] == solutions[1]).all()
    assert (solutions[0] == solutions[2]).all()


def test_start_that_is_solved_is_left_alone():
    X, y = samples(60)
    problem = machine("c_svc", X, y)
    with Threads(1) as threads:
        gram = make_gram("rows", X, threads)
        (task,) = run(gram, [Task(problem, [0], [0, 60])], threads, tol=1e-6)
        again = problem._replace(start=task.beta)
        (other,) = run(gram, [Task(again, [0], [0, 60])], threads)
    assert other.n_iter == 0
    assert other.done
    np.testing.assert_allclose(other.f, task.f, atol=1e-12)


@pytest.mark.parametrize("max_iter", [0, 1, 25])
def test_max_iter(max_iter):
    X, y = samples(100)
    problem = machine("c_svc", X, y)
    with Threads(1) as threads:
        gram = make_gram("rows", X, threads)
        task = Task(problem, [0], [0, 100])
        run(gram, [task], threads, max_iter=max_iter)
    assert task.n_iter == max_iter
    assert not task.done
    assert certificate(task, RBF.block(X)).kkt_gap == pytest.approx(task.gap)


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_stop_flag(rounds):
    X, starts, tasks, rows = one_against_one([60, 60, 60])
    seen = []

    def on_round(known):
        assert known is tasks
        seen.append([task.gap for task in known])
        threads.stop[0] = len(seen) >= rounds

    with Threads(2) as threads:
        threads.stop[0] = rounds == 0
        gram = make_gram("rows", X, threads, starts)
        # One at a time, so that some have not even begun.
        run(gram, tasks, threads, 1e-9, size=4, n_active=1, on_round=on_round)
    assert len(seen) == rounds
    assert not any(task.done for task in tasks)
    assert np.isinf(tasks[-1].gap)
    for task, mine in zip(tasks, rows, strict=True):
        assert certificate(task, RBF.block(X[mine])).kkt_gap > 1e-9


def test_refresh_in_pieces():
    X, y = samples(50)
    problem = machine("epsilon_svr", X, y)
    start = np.random.default_rng(0).uniform(problem.lo, problem.hi)
    with Threads(2) as threads:
        task = Task(problem._replace(start=start), [0], [0, 50])
        refresh(make_gram("rows", X, threads, budget=3 * 50 * 8), task, threads)
    np.testing.assert_allclose(task.f, RBF.block(X)[:, problem.row] @ start, rtol=1e-12)


def hard_problem(n, seed):
    """Return a problem of which more variables become free than fit a working set."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    z = np.sin(3 * X[:, 0]) + np.cos(2 * X[:, 1]) * X[:, 2] + 0.3 * rng.normal(size=n)
    return X, naive.c_svc(np.where(z > 0, 1.0, -1.0), np.full(n, 10.0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_takes_at_most_twice_the_steps_of_the_pair_solver(kind, seed):
    X, problem = hard_problem(1200, seed)
    kernel = kernels.RBF(gamma=1.0)
    beta, f = problem.start.copy(), np.zeros(1200)
    stop = np.zeros(1, dtype=np.uint8)
    K = kernel.block(X)
    steps, _, _ = minimise_pairs(
        K, layout(problem), problem, beta, f, 1e-3, FOREVER, stop
    )
    is_free = (problem.lo < beta) & (beta < problem.hi)
    assert is_free.sum() > 192
    with Threads(2) as threads:
        if kind == "whole":
            gram = WholeGram.compute(kernel, Operand(X), [0, 1200], threads)
        else:
            gram = RowGram(kernel, Operand(X), [0, 1200], 10**8, threads, patience=0)
        (task,) = run(gram, [Task(problem, [0], [0, 1200])], threads, size=192)
    assert task.done
    assert task.is_full
    assert task.n_iter <= 2 * steps
    found = certificate(task, K)
    assert found.objective == pytest.approx(certify(problem, beta, f).objective, 1e-5)


def test_members_that_moved_last_stay():
    X, problem = hard_problem(300, 0)
    rows = []
    with Threads(2) as threads:  # which share the steps of a round
        gram = make_gram("whole", X, threads)
        task = Task(problem, [0], [0, 300])
        improve = task.improve

        def watched(*arguments):
            before = task.working_set.copy(), task.beta.copy()
            improve(*arguments)
            rows.append((*before, task.beta.copy()))

        task.improve = watched
        run(gram, [task], threads, size=40)
    last_moved = np.zeros(300)
    n_left = 0
    for k, (members, before, after) in enumerate(rows[:-1], 1):
        last_moved[np.setdiff1d(members, rows[k - 2][0] if k > 1 else [])] = k - 1
        last_moved[before != after] = k
        following = rows[k][0]
        leaves = np.setdiff1d(members, following)
        stays = np.intersect1d(members, following)
        n_left += len(leaves)
        if len(leaves):
            # The pair that violates most stays in any case.
            earlier = last_moved[stays] < last_moved[leaves].max()
            assert earlier.sum() <= 2
    assert n_left > 0


@pytest.mark.parametrize("name", ["c_svc", "nu_svc"])
def test_threads_share_one_task(name):
    solutions = []
    X, y = samples(200)
    problem = machine(name, X, y)
    for count in (1, 2, 5):
        with Threads(count) as threads:
            gram = make_gram("rows", X.astype(np.float32), threads)
            (task,) = run(gram, [Task(problem, [0], [0, 200])], threads, size=30)
        solutions.append(np.concatenate([task.beta, task.f, [task.n_iter]]))
    assert (solutions[0] == solutions[1]).all()
    assert (solutions[0] == solutions[2]).all()


# Few values, so that ties are the rule.
values = st.lists(
    st.one_of(st.sampled_from([0.5, 1.0, 2.0]), st.floats(1e-6, 1e6)), min_size=1
)


@given(values=values, data=st.data())
@settings(max_examples=200, deadline=None)
def test_kth_largest(values, data):
    k = data.draw(st.integers(1, len(values)))
    array = np.array(values)
    assert kth_largest(array, k) == sorted(values, reverse=True)[k - 1]
    assert sorted(array) == sorted(values)


@pytest.mark.parametrize("kind", ["spread", "equal", "zeros", "infinite", "tiny"])
@pytest.mark.parametrize("n", [257, 5000])
def test_kth_largest_of_many(kind, n):
    rng = np.random.default_rng(n)
    array = np.exp(rng.normal(scale=30.0, size=n))
    if kind == "equal":
        array = rng.choice([0.1, 0.3], size=n)
    elif kind == "zeros":
        array[rng.random(n) < 0.9] = 0.0
    elif kind == "infinite":
        array[:3] = np.inf
    elif kind == "tiny":
        array *= 1e-300
    before, ranked = array.copy(), np.sort(array)[::-1]
    for k in (1, 2, 3, 4, n // 3, n - 1, n):
        assert kth_largest(array, k) == ranked[k - 1]
    np.testing.assert_array_equal(array, before)


@given(values=values, data=st.data())
@settings(max_examples=200, deadline=None)
def test_mark_strong(values, data):
    count = data.draw(st.integers(1, len(values)))
    score = np.array(values)
    where = np.random.default_rng(len(values)).permutation(2 * len(values))
    mark = np.zeros(2 * len(values), dtype=np.bool_)
    mark_strong(score.copy(), where, count, mark)
    chosen = mark[where[: len(values)]]
    assert mark.sum() == chosen.sum() == count
    by_rank = np.sort(score)[::-1]
    weakest = min(by_rank[count - 1], ABOUT_AS_STRONG * by_rank[0])
    assert score[chosen].min() >= weakest


@pytest.mark.parametrize("count", [1, 7, 40, 100])
def test_equal_scores_are_taken_from_all_over(count):
    mark = np.zeros(100, dtype=np.bool_)
    mark_strong(np.ones(100), np.arange(100), count, mark)
    chosen = np.flatnonzero(mark)
    assert len(chosen) == count
    assert np.diff(chosen, prepend=-1).max() <= -(-100 // count)


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 40), data=st.data())
@settings(max_examples=50, deadline=None)
def test_choice(seed, size, data):
    fresh = data.draw(st.integers(2, size))
    X, y = samples(60, seed=seed)
    problem = machine(data.draw(st.sampled_from(MACHINES)), X, y)
    rng = np.random.default_rng(seed)
    m = len(problem.p)
    beta = np.clip(rng.normal(size=m), problem.lo, problem.hi)
    f = rng.normal(size=60)
    previous = rng.permutation(m)[:size]
    standing = rng.integers(4, size=size).astype(np.float64)
    chosen, gap = choose_set(
        problem, beta, f, previous, standing, size, fresh, 1e-3, room_for(m)
    )
    assert gap == certify(problem, beta, f).kkt_gap
    assert 2 <= chosen.sum() <= size
    new = np.setdiff1d(np.flatnonzero(chosen), previous)
    assert new.size <= max(fresh, 2)
    # Who stays has at least the standing of those who leave, but for the worst pair.
    stays = chosen[previous]
    if stays.sum() + new.size < size:
        assert stays.all()
    assert (standing[stays] < standing[~stays].max(initial=-1)).sum() <= 2
    # The pair that violates most is there, so the working set makes progress.
    G = f[problem.row] + problem.p
    up, down = chosen & (beta < problem.hi), chosen & (beta > problem.lo)
    widest = [
        G[down & mine].max(initial=-np.inf) - G[up & mine].min(initial=np.inf)
        for mine in (problem.group == 0, problem.group == 1)
    ]
    assert max(widest) == gap
