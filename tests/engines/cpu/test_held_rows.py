"""Rows that come and go have the kernel values of those that are there."""

import numpy as np
import pytest
from scipy import sparse

from mercer.engines.cpu.held import HeldGram, HeldRows, Moves, sample_keys
from mercer.kernels import RBF, Cosine, Intersection, Laplacian, Linear, Polynomial

KERNELS = [
    RBF(0.3),
    Linear() + RBF(0.1).on([0, 2]) * Polynomial(2, 1.0, 1.0).normalized(),
    Intersection(),
    Cosine(),
    Laplacian(0.1).on([1, 2]),
]


def as_sparse(X):
    return sparse.csr_array(X)


@pytest.mark.parametrize("kind", [np.asarray, as_sparse])
@pytest.mark.parametrize("dtype, atol", [(np.float32, 1e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_values_follow_the_rows(kernel, dtype, atol, kind, rng):
    X = np.abs(rng.normal(size=(60, 4))).astype(dtype)
    X[:3, 3] = 1.0  # constant at first, not later
    gram = HeldGram(kernel, HeldRows(kind(X[:3])), most=1000)
    held, fresh = np.arange(3), 3
    while fresh < 56:
        count = int(rng.integers(1, 5))
        gram.extend(kind(X[fresh : fresh + count]))
        held = np.append(held, np.arange(fresh, fresh + count))
        fresh += count
        moves = Moves(len(held), rng.choice(len(held), 2, replace=False))
        gram.remove(moves)
        moves.apply(held)
        held = held[: moves.count]
        n = len(gram)
        assert n == len(held)
        rows = gram.rows.X.toarray() if kind is as_sparse else gram.rows.X
        assert (rows == X[held]).all()
        expected = kernel.block(X[held].astype(float))
        np.testing.assert_allclose(gram.matrix[:n, :n], expected, atol=atol)
        np.testing.assert_allclose(gram.diag, np.diag(expected), atol=atol)


def test_state_comes_back_to_the_last_bit(rng):
    X = rng.normal(size=(40, 5)).astype(np.float32)
    gram = HeldGram(RBF(0.2), HeldRows(X[:10]), most=1000)
    gram.extend(X[10:30])
    gram.remove(Moves(30, np.array([0, 7, 29])))
    again = HeldGram.from_state(RBF(0.2), gram.state())
    for one in (gram, again):
        one.extend(X[30:])
    n = len(gram)
    assert len(again) == n and (again.rows.X == gram.rows.X).all()
    assert (again.matrix[:n, :n] == gram.matrix[:n, :n]).all()


def test_state_that_does_not_fit_is_refused(rng):
    state = HeldGram(RBF(0.2), HeldRows(rng.normal(size=(4, 2))), most=9).state()
    state["values"] = state["values"][:-1]
    with pytest.raises(ValueError, match="do not fit together"):
        HeldGram.from_state(RBF(0.2), state)


def test_far_rows_are_computed_in_double_precision(rng):
    X = rng.normal(size=(20, 3)).astype(np.float32)
    gram = HeldGram(RBF(0.5), HeldRows(X[:10]), most=1000)
    far = X[10:] + np.float32(2000.0)
    gram.extend(far[:5])
    gram.extend(far[5:])
    expected = RBF(0.5).block(np.vstack([X[:10], far]).astype(float))
    np.testing.assert_allclose(gram.matrix[:20, :20], expected, atol=1e-4)


def test_rows_do_not_touch_what_they_were_given(rng):
    X = rng.normal(size=(10, 2))
    X.flags.writeable = False
    rows = HeldRows(X)
    rows.remove(Moves(10, np.array([0, 1])))
    rows.settle()
    assert len(rows) == 8 and (rows.X[0] == X[8]).all()


def test_keys_tell_samples_and_classes_apart():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 2.0], [0.0, 1.0]])
    keys = list(sample_keys(X, np.array([0, 0, 0, 1])))
    assert keys[0] == keys[1] and len(set(keys)) == 3
    found = list(sample_keys(sparse.csr_array(X), np.array([0, 0, 0, 1])))
    assert found[0] == found[1] and len(set(found)) == 3


def test_growth_stays_within_its_limit(rng):
    gram = HeldGram(RBF(1.0), HeldRows(rng.normal(size=(1, 2))), most=50)
    for _ in range(49):
        gram.extend(rng.normal(size=(1, 2)))
    assert len(gram.matrix) <= 50
