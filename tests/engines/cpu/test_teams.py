"""Kernel values by teams of threads, against plain NumPy."""

import threading

import numpy as np
import pytest
from scipy import sparse

from mercer.core.formula_tiles import take_next
from mercer.engines.cpu import teams
from mercer.engines.cpu.engine import CpuEngine
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.teams import Stretch, fill_rows, sides_of
from mercer.kernels import RBF
from mercer.runtime.threads import Threads

GAMMA = 0.3
KERNEL = RBF(GAMMA)
ROUNDING = {np.float32: 3e-6, np.float64: 1e-13}


def samples(n, d=7, *, dtype=np.float32, zeros=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    if zeros:
        X *= rng.random((n, d)) < 0.1
    return X.astype(dtype)


def values(X, Z):
    """Return the kernel values in double precision, by their definition."""
    X, Z = X.astype(np.float64), Z.astype(np.float64)
    return np.exp(-GAMMA * ((X[:, None] - Z[None]) ** 2).sum(axis=2))


def test_every_job_is_taken_once():
    counter = np.zeros(1, dtype=np.int64)
    taken, lock = [], threading.Lock()

    def work():
        mine = []
        while (number := take_next(counter)) < 5000:
            mine.append(number)
        with lock:
            taken.extend(mine)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(taken) == list(range(5000))


# 1100 samples, so that zeros are looked for.
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrices_products_and_rows(zeros, dtype):
    X = samples(1101, dtype=dtype, zeros=zeros)
    Z = samples(507, dtype=dtype, zeros=zeros, seed=1)
    rng = np.random.default_rng(2)
    V = rng.standard_normal((len(X), 5)) * (rng.random((len(X), 5)) < 0.5)
    K = values(X, X)
    operand = Operand(X)
    with CpuEngine(3) as engine:
        found = engine.matrix(KERNEL, X)
        np.testing.assert_array_equal(found, found.T)
        np.testing.assert_allclose(found, K, atol=ROUNDING[dtype])
        product = engine.apply(KERNEL, Z, X, V)
        np.testing.assert_allclose(
            product, values(Z, X) @ V, atol=2000 * ROUNDING[dtype]
        )
        # Rows in any order go to the slots of two stores, of 400 and 701 columns.
        sides = sides_of(KERNEL, operand, operand)
        assert (len(sides.right.strips) > 0) == zeros
        pool = np.full(300 * len(X), np.nan, dtype=dtype)
        rows = rng.permutation(len(X))[:257]
        slots = rng.permutation(300)[:257]
        stretches = [
            Stretch(rows, slots, 0, 400, 0),
            Stretch(rows[:50], slots[:50], 400, len(X), 300 * 400),
        ]
        fill_rows(sides, stretches, pool, engine.team, 40_000)
    first, second = pool[: 300 * 400].reshape(300, 400), pool[300 * 400 :]
    second = second.reshape(300, len(X) - 400)
    tolerance = ROUNDING[dtype]
    np.testing.assert_allclose(first[slots], K[rows, :400], atol=tolerance)
    np.testing.assert_allclose(second[slots[:50]], K[rows[:50], 400:], atol=tolerance)
    assert np.isnan(first).sum() == (300 - 257) * 400
    assert np.isnan(second).sum() == (300 - 50) * (len(X) - 400)


def test_few_rows_are_shared_by_threads(monkeypatch):
    monkeypatch.setattr(teams, "LEAST_VALUES", 0)
    X, Z = samples(3001), samples(5, seed=1)
    V = np.random.default_rng(0).standard_normal((len(X), 2))
    found = []
    for n_jobs in (1, 2, 16):
        with CpuEngine(n_jobs) as engine:
            found.append(engine.apply(KERNEL, Z, X, V))
    np.testing.assert_allclose(found[0], values(Z, X) @ V, atol=1e-2)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_other_work_is_left_to_tiles():
    X, few = Operand(samples(800)), Operand(samples(100))
    assert sides_of(KERNEL, X, X) is not None
    assert sides_of(KERNEL, few, few) is None
    assert sides_of(KERNEL, Operand(sparse.csr_array(samples(800))), X) is None


def test_an_error_ends_the_jobs():
    counter_seen = []

    def work(counter):
        counter_seen.append(counter)
        raise ValueError("stop")

    with Threads(2) as threads, pytest.raises(ValueError, match="stop"):
        teams._together(threads.team, np.zeros((9, 4), np.int64), work)
    assert counter_seen[0][0] == 9
