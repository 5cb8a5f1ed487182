"""LASVM's steps against a plain version of them, and what they must keep."""

import numpy as np
import pytest

from mercer.machines.online.lasvm import (
    IN_TURN,
    NEAREST,
    WORST,
    Members,
    learn,
    let_go,
    products,
    release,
    restore,
)

C, TAU = 2.0, 1e-3


def problem(rng, n=30):
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    distance = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return np.exp(-distance), y


def fresh(y):
    n = len(y)
    return Members(
        y.copy(), np.full(n, C), np.zeros(n), np.zeros(n), np.zeros(n, dtype=bool)
    )


def run(K, y, machine, order=None, choice=IN_TURN, n_candidates=5, n_reprocess=1):
    order = np.arange(len(y)) if order is None else order
    seed = np.array([7], dtype=np.uint64)
    return learn(
        K, len(y), machine, order, len(order), TAU, n_reprocess, choice, n_candidates,
        seed,
    )  # fmt: skip


def plain_lasvm(K, y):
    """Process, reprocess and removal, in sets and loops."""
    held, alpha = [], np.zeros(len(y))
    low, high = np.minimum(0, C * y), np.maximum(0, C * y)

    def g(s):
        return y[s] - sum(alpha[r] * K[s, r] for r in held)

    def step(i, j):
        if not (g(i) - g(j) > TAU and alpha[i] < high[i] and alpha[j] > low[j]):
            return
        size = (g(i) - g(j)) / (K[i, i] + K[j, j] - 2 * K[i, j])
        size = min(size, high[i] - alpha[i], alpha[j] - low[j])
        full, empty = size == high[i] - alpha[i], size == alpha[j] - low[j]
        alpha[i] = high[i] if full else alpha[i] + size
        alpha[j] = low[j] if empty else alpha[j] - size

    def worst():
        up = [s for s in held if alpha[s] < high[s]]
        down = [s for s in held if alpha[s] > low[s]]
        if not up or not down:
            return None
        # Of those that are equal but for rounding the first.
        return max(up, key=lambda s: round(g(s), 8)), min(
            down, key=lambda s: round(g(s), 8)
        )

    for k in range(len(y)):
        held.append(k)
        pair = worst()
        if pair:
            step(k if y[k] > 0 else pair[0], pair[1] if y[k] > 0 else k)
        pair = worst()
        if pair is None:
            continue
        step(*pair)
        i, j = worst()
        most, least = g(i), g(j)
        may_come = {s: g(s) > least if y[s] > 0 else g(s) < most for s in held}
        held = [s for s in held if alpha[s] != 0 or may_come[s]]
    return alpha, held


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_are_those_of_the_plain_version(rng, dtype):
    K, y = problem(rng)
    K = K.astype(dtype)
    machine = fresh(y)
    run(K, y, machine)
    alpha, held = plain_lasvm(K.astype(np.float64), y)
    np.testing.assert_allclose(machine.beta, alpha, atol=1e-10)
    assert np.flatnonzero(machine.active).tolist() == sorted(held)


@pytest.mark.parametrize("choice", [IN_TURN, NEAREST, WORST])
def test_constraints_and_gradients_are_kept(rng, choice):
    K, y = problem(rng, 80)
    machine = fresh(y)
    run(K, y, machine, choice=choice)
    assert abs(machine.beta.sum()) < 1e-12
    assert (y * machine.beta >= 0).all() and (y * machine.beta <= C).all()
    assert (machine.active | (machine.beta == 0)).all()
    np.testing.assert_allclose(machine.f, K @ machine.beta, atol=1e-12)


def test_a_member_is_skipped(rng):
    K, y = problem(rng)
    machine = fresh(y)
    run(K, y, machine)
    before = machine.beta.copy()
    assert run(K, y, machine, np.flatnonzero(machine.active), n_reprocess=0) == 0
    assert (machine.beta == before).all()


def test_one_side_alone_makes_no_step(rng):
    K, _ = problem(rng)
    y = np.ones(len(K))
    machine = fresh(y)
    assert run(K, y, machine) == 0
    assert machine.active.all()


def test_restore_ends_with_a_small_gap(rng):
    K, y = problem(rng, 80)
    machine = fresh(y)
    machine.active[:] = True
    restore(K, len(y), machine, TAU, 100_000)
    g = y - K @ machine.beta
    up = machine.beta < np.maximum(0, C * y)
    down = machine.beta > np.minimum(0, C * y)
    assert g[up].max() - g[down].min() <= TAU


def test_only_what_cannot_come_back_is_let_go(rng):
    K, y = problem(rng, 80)
    machine = fresh(y)
    machine.active[:] = True
    restore(K, len(y), machine, TAU, 100_000)
    g = y - machine.f
    up = machine.beta < np.maximum(0, C * y)
    down = machine.beta > np.minimum(0, C * y)
    most, least = g[up].max(), g[down].min()
    let_go(len(y), machine)
    gone = ~machine.active
    assert gone.any() and (machine.beta[gone] == 0).all()
    assert (g[gone & (y > 0)] <= least).all() and (g[gone & (y < 0)] >= most).all()


def test_release_keeps_the_sum_and_the_box(rng):
    K, y = problem(rng, 60)
    machine = fresh(y)
    run(K, y, machine)
    for k in np.flatnonzero(machine.active):
        release(K, len(y), machine, int(k))
        assert machine.beta[k] == 0 and not machine.active[k]
        assert abs(machine.beta.sum()) < 1e-10
        assert (y * machine.beta >= 0).all() and (y * machine.beta <= C).all()
        np.testing.assert_allclose(machine.f, K @ machine.beta, atol=1e-10)
    assert not machine.beta.any()


def test_products(rng):
    K, y = problem(rng, 20)
    f = np.zeros(20)
    products(K.astype(np.float32), 5, 12, y, f)
    expected = K[5:12, :12].astype(np.float32).astype(float) @ y[:12]
    np.testing.assert_allclose(f[5:12], expected, rtol=1e-12)
    assert not f[:5].any() and not f[12:].any()
