import threading

import numpy as np
import pytest
from scipy import sparse

from mercer import gram_matrix, kernels
from mercer.engines.cpu.gram import Demand, RowGram, WholeGram
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.tiles import Tiles, Weights, apply, budget_bytes, free_memory
from mercer.runtime.threads import Threads

RBF = kernels.RBF(gamma=0.3)


@pytest.fixture
def X(rng):
    return rng.standard_normal((700, 6)).astype(np.float32)


def rows_of(gram, block, rows):
    pool, slot, column = gram.source(block)
    width = gram.starts[block + 1] - gram.starts[block]
    return pool[slot[rows], column : column + width]


def test_whole_matrix_is_symmetric_and_right(X):
    with Threads(2) as threads:
        gram = WholeGram.compute(RBF, Operand(X), [0, 300, 700], threads)
    assert (gram.matrix == gram.matrix.T).all()
    assert (np.diagonal(gram.matrix) == 1).all()
    np.testing.assert_allclose(gram.matrix, RBF.block(X), rtol=1e-5)
    assert gram.matrix.dtype == np.float32


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_rows_are_those_of_the_matrix(X, kind):
    K = RBF.block(X)
    data = sparse.csr_array(X) if kind == "sparse" else X
    starts = [0, 300, 301, 700]
    with Threads(2) as threads:
        gram = RowGram(RBF, Operand(data), starts, 10**8, threads)
        first, second = np.array([5, 699, 300]), np.array([5, 6])
        gram.provide([Demand(0, first), Demand(2, second), Demand(0, second)])
        for block, rows in ((0, first), (2, second), (0, second)):
            expected = K[rows][:, starts[block] : starts[block + 1]]
            np.testing.assert_allclose(rows_of(gram, block, rows), expected, atol=1e-6)


def test_a_row_is_computed_once(X):
    calls = []

    class Counting(kernels.RBF):
        def evaluate(self, pair):
            calls.append(len(pair.left))
            return super().evaluate(pair)

    with Threads(1) as threads:
        gram = RowGram(Counting(gamma=0.3), Operand(X), [0, 700], 10**8, threads)
        calls.clear()
        rows = np.arange(40)
        gram.provide([Demand(0, rows), Demand(0, rows[:7])])
        assert sum(calls) == 40
        gram.provide([Demand(0, rows[3:])])
        assert sum(calls) == 40


def test_rows_that_come_back_are_kept(X):
    with Threads(1) as threads:
        gram = RowGram(RBF, Operand(X), [0, 700], 10**8, threads, patience=0)
        slot = gram.source(0).slot
        gram.provide([Demand(0, np.arange(40))])
        gram.provide([Demand(0, np.arange(40, 80))])
        assert (slot[:40] == -1).all()  # nobody asks for them again, as it seems
        gram.provide([Demand(0, np.arange(40))])
        assert (slot[:80] >= 0).all()
        gram.provide([Demand(0, np.arange(100, 300))])
        assert (slot[:80] >= 0).all()
        rows = np.arange(300)
        rows = rows[slot[rows] >= 0]
        assert len(rows) == 280
        np.testing.assert_allclose(
            rows_of(gram, 0, rows), RBF.block(X)[rows], atol=1e-6
        )


def test_least_recently_used_rows_give_way(X):
    budget = 10 * 700 * 4
    K = RBF.block(X)
    with Threads(1) as threads:
        gram = RowGram(RBF, Operand(X), [0, 700], budget, threads)
        assert gram.capacity == 10
        gram.provide([Demand(0, np.arange(6))])
        gram.provide([Demand(0, np.arange(6, 10))])
        gram.provide([Demand(0, np.arange(3))])
        gram.provide([Demand(0, np.arange(20, 23))])
        slot = gram.source(0).slot
        assert (slot[[3, 4, 5]] == -1).all()
        held = np.array([0, 1, 2, 6, 7, 8, 9, 20, 21, 22])
        np.testing.assert_allclose(rows_of(gram, 0, held), K[held], atol=1e-6)
        with pytest.raises(MemoryError, match="budget"):
            gram.provide([Demand(0, np.arange(11))])


def test_budget_is_kept(X):
    with Threads(1) as threads:
        for budget in (1, 10_000, 10**9):
            gram = RowGram(RBF, Operand(X), [0, 300, 700], budget, threads)
            held = sum(store.pool.nbytes for store in gram._stores)
            # Never less than a pair of rows, else never more than the budget.
            assert held <= max(budget, 2 * 700 * 4)
            assert gram.capacity <= 700


def test_auto_budget_is_a_quarter_of_free_memory():
    assert 0 < budget_bytes("auto") <= free_memory() // 3
    assert budget_bytes(2) == 2 * 2**20


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_values_do_not_depend_on_threads(X, n_jobs):
    expected = gram_matrix(RBF, X, n_jobs=1)
    assert (gram_matrix(RBF, X, n_jobs=n_jobs) == expected).all()
    other = gram_matrix(RBF, X, X[:50], n_jobs=n_jobs)
    np.testing.assert_allclose(other, expected[:, :50], atol=1e-6)


def test_apply_is_block_times_weights(X, rng):
    weights = rng.standard_normal((300, 4))
    weights[:150, 1] = 0.0
    kernel = RBF + kernels.Linear()
    with Threads(2) as threads:
        given = Weights(sparse.csr_array(weights), [0, 100, 100, 300])
        found = apply(kernel, Operand(X[300:]), Operand(X[:300]), given, threads)
    expected = kernel.block(X[300:].astype(float), X[:300].astype(float)) @ weights
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
    assert found.dtype == np.float64


def test_a_users_function_runs_in_one_thread_at_a_time(X):
    inside, most = [], []
    lock = threading.Lock()

    def linear(A, B):
        with lock:
            inside.append(1)
            most.append(len(inside))
        product = A @ B.T
        with lock:
            inside.pop()
        return product

    K = gram_matrix(kernels.Custom(linear), X, n_jobs=4)
    np.testing.assert_allclose(K, X @ X.T, rtol=1e-4, atol=1e-4)
    assert max(most) == 1


def test_errors_in_threads_reach_the_caller(X):
    def broken(A, B):
        raise RuntimeError("no luck")

    with pytest.raises(RuntimeError, match="no luck"):
        gram_matrix(kernels.Custom(broken), X)


def test_chosen_rows_on_the_right_inside_a_worker(rng):
    # They are brought into order by the threads that this one belongs to.
    X = rng.random((1100, 40)).astype(np.float32)
    X[rng.random(X.shape) < 0.9] = 0
    kernel = kernels.RBF(0.5).bind(X)
    index = np.arange(1099, 0, -1)
    with Threads(1) as threads:
        operand = Operand(X, run=threads.map)
        assert operand.frame_of_zeros(X.dtype) is not None
        tile_of = Tiles(kernel)
        (found,) = threads.map(
            lambda rows: tile_of(operand.rows(rows), operand.rows(index)).copy(),
            [slice(0, 9)],
        )
    expected = kernel.block(X[:9].astype(float), X[index].astype(float))
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("kernel", [RBF, kernels.Laplacian(0.3), kernels.Linear()])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_sides_of_different_width(X, kernel, form):
    for left, right in ((X, X[:, :4]), (X[:, :4], X)):
        for evaluate in (kernel.block, lambda *sides: gram_matrix(kernel, *sides)):
            with pytest.raises(ValueError, match=r"same columns; got .*, [46]\)"):
                evaluate(form(left), form(right))


@pytest.mark.parametrize("kernel", ["rbf", np.dot, None])
def test_what_is_no_kernel(X, kernel):
    with pytest.raises(TypeError, match=r"takes a kernel .* got .* kernels\.parse"):
        gram_matrix(kernel, X)


def test_both_sides_must_be_histograms(X):
    for left, right in ((X, abs(X)), (abs(X), X)):
        with pytest.raises(ValueError, match="Chi2 is for histograms"):
            gram_matrix(kernels.Chi2(), left, right)


def test_complex_numbers(X):
    with pytest.raises(ValueError, match=r"real numbers.* got .* complex"):
        gram_matrix(RBF, X * 1j)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_no_rows_have_a_scale(X, form, recwarn):
    assert gram_matrix(kernels.RBF(), form(X), form(X[:0])).shape == (700, 0)
    assert not recwarn
