"""Digits of the RBF kernel in single precision, where matrix products lose them."""

import numpy as np
import pytest
from scipy import sparse

from mercer.engines.cpu.pair import TilePair as Pair
from mercer.engines.cpu.pair import as_operand
from mercer.kernels import RBF, Linear

GAMMA = 0.02


def exact(X, Z, gamma):
    """From differences in double precision."""
    differences = X.astype(np.float64)[:, None] - Z.astype(np.float64)
    return np.exp(-gamma * (differences**2).sum(axis=2))


def images(n, seed, dtype=np.float32):
    """Like digits: a dark border, and strokes between 0 and 1."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 28, 28))
    X[rng.random(X.shape) < 0.75] = 0.0
    X[:, :4] = X[:, -4:] = X[:, :, :4] = X[:, :, -4:] = 0.0
    return X.reshape(n, -1).astype(dtype)


def worst(kernel, X, Z, gamma):
    """Return the largest error, of the kernel alone and as part of a sum."""
    alone = kernel.block(X, Z)
    in_sum = (kernel + 0 * Linear()).block(X, Z)
    assert alone.dtype == in_sum.dtype == np.result_type(X, Z)
    expected = exact(X, Z, gamma)
    return max(np.abs(alone - expected).max(), np.abs(in_sum - expected).max())


def test_images():
    X, Z = images(40, 1), images(30, 2)
    assert 0.01 < exact(X, Z, GAMMA).max() < 0.5
    assert worst(RBF(GAMMA), X, Z, GAMMA) < 1e-6
    assert worst(RBF(GAMMA), X, X, GAMMA) < 1e-6


def test_images_in_bytes():
    X, Z = 255 * images(40, 1), 255 * images(30, 2)
    gamma = GAMMA / 255**2
    assert worst(RBF(gamma), X, Z, gamma) < 1e-6


def test_sparse_images():
    X, Z = images(40, 1), images(30, 2)
    block = RBF(GAMMA).block(sparse.csr_array(X), sparse.csr_array(Z))
    assert block.dtype == np.float32
    assert np.abs(block - exact(X, Z, GAMMA)).max() < 1e-5


@pytest.mark.parametrize("center", [1e4, -1e4, 1e6])
def test_far_from_the_origin(center):
    rng = np.random.default_rng(3)
    X, Z = (rng.normal(center, 1.0, (n, 10)).astype(np.float32) for n in (40, 30))
    assert exact(X, Z, 0.1).max() > 0.1
    # Without moving the origin the error is of order 1.
    assert worst(RBF(0.1), X, Z, 0.1) < 1e-4
    assert worst(RBF(0.1), X, X, 0.1) < 1e-4


def test_far_sparse():
    rng = np.random.default_rng(3)
    X, Z = (rng.normal(1e4, 1.0, (n, 10)).astype(np.float32) for n in (40, 30))
    block = RBF(0.1).block(sparse.csr_array(X), sparse.csr_array(Z))
    assert block.dtype == np.float32
    assert np.abs(block - exact(X, Z, 0.1)).max() < 1e-4


@pytest.mark.parametrize("distance", [1e2, 1e3])
def test_two_far_clusters(distance):
    rng = np.random.default_rng(4)
    X, Z = (rng.normal(0.0, 1.0, (n, 3)) for n in (60, 50))
    X[::2] += distance
    X[1::2] -= distance
    Z[:25] += distance
    Z[25:] -= distance
    X, Z = X.astype(np.float32), Z.astype(np.float32)
    assert exact(X, Z, 1.0).max() > 0.5
    assert worst(RBF(1.0), X, Z, 1.0) < 1e-3
    frame = as_operand(Z).frame(1.0, np.dtype(np.float32))
    assert frame.dtype == np.float64


def test_the_frame_is_that_of_the_whole():
    Z = as_operand(images(50, 5))
    frame = Z.frame(GAMMA, Z.dtype)
    assert frame.dtype == np.float32
    assert Z.rows(slice(3, 9)).frame(GAMMA, Z.dtype) is frame
    assert Z.rows(np.array([3, 9])).rows(slice(1)).frame(GAMMA, Z.dtype) is frame
    part = Z.rows(slice(3, 9)).framed(frame)
    np.testing.assert_array_equal(part.matrix, Z.framed(frame).matrix[3:9])
    assert Z.frame(100.0, Z.dtype).dtype == np.float64


def test_a_frame_is_not_taken_for_another_one():
    # Frames of operands that are gone must not come back by their address.
    rng = np.random.default_rng(6)
    X = as_operand(rng.normal(size=(4, 3)))
    for _ in range(50):
        Z = rng.normal(rng.normal(scale=10.0), 1.0, (5, 3))
        block = RBF(0.01).block(X, Z)
        np.testing.assert_allclose(block, exact(X.X, Z, 0.01), rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_constant_on_one_side(dtype):
    rng = np.random.default_rng(7)
    X, Z = rng.normal(size=(20, 6)), rng.normal(size=(15, 6))
    Z[:, [1, 4]] = 0.1  # not a round number in base 2
    X, Z = X.astype(dtype), Z.astype(dtype)
    tolerance = 1e-6 if dtype == np.float32 else 1e-14
    operand = as_operand(Z)
    frame = operand.frame(0.3, operand.dtype)
    assert frame.active.tolist() == [0, 2, 3, 5]
    np.testing.assert_array_equal(frame.center[[1, 4]], Z[0, [1, 4]])
    assert worst(RBF(0.3), X, Z, 0.3) < tolerance
    assert worst(RBF(0.3), Z, X, 0.3) < tolerance


def test_one_anchoring_row_is_exact():
    # All columns are constant: what is left is the norm of the difference.
    rng = np.random.default_rng(8)
    X = rng.normal(1e3, 1.0, (20, 6)).astype(np.float32)
    assert worst(RBF(0.3), X, X[:1], 0.3) < 1e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_duplicates_are_at_distance_0(dtype, offset):
    rng = np.random.default_rng(9)
    X = (rng.normal(size=(10, 50)) + offset).astype(dtype)
    block = RBF(0.1).block(X, np.concatenate([X, X[::-1]]))
    ones = np.concatenate([np.diagonal(block), np.diagonal(block[:, :9:-1])])
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(ones, 1.0, rtol=0, atol=tolerance)
    assert block.max() <= 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e2, 1e6, 1e15])
def test_huge_distances_give_0(dtype, size):
    rng = np.random.default_rng(10)
    X, Z = (rng.normal(0.0, size, (n, 20)).astype(dtype) for n in (9, 8))
    for kernel in (RBF(1.0), RBF(1.0) + 0 * Linear()):
        block = kernel.block(X, Z)
        assert block.dtype == dtype
        assert (block >= 0).all() and block.max() <= 1e-30
        assert np.isfinite(kernel.block(X)).all()


def test_single_precision_data_meet_double():
    rng = np.random.default_rng(11)
    X = rng.normal(1e3, 1.0, (12, 5))
    Z = rng.normal(1e3, 1.0, (10, 5)).astype(np.float32)
    for left, right in ((X, Z), (Z, X)):
        block = RBF(0.3).block(left, right)
        np.testing.assert_allclose(block, exact(left, right, 0.3), rtol=1e-9)


def test_parts_use_the_columns_of_the_whole():
    X = as_operand(images(30, 12))
    kernel = RBF(GAMMA).on(slice(0, 400)).bind(X.X)
    whole = kernel.evaluate(Pair(X, X))
    columns = X.columns(kernel.columns)
    part = X.rows(slice(5, 9))
    assert part.columns(kernel.columns)._parent is columns
    np.testing.assert_allclose(
        kernel.evaluate(Pair(part, X)), whole[5:9], rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array])
def test_two_clusters_beyond_the_digits_of_products(dtype, wrap):
    # Where gamma |x|^2 is 1e13, products would leave kernel values of any size.
    rng = np.random.default_rng(10)
    X, Z = (rng.integers(-2, 3, (n, 3)) for n in (60, 50))
    X[::2] += 3_000_000
    X[1::2] -= 3_000_000
    Z[:25] += 3_000_000
    Z[25:] -= 3_000_000
    X, Z = X.astype(dtype), Z.astype(dtype)
    kernel = RBF(0.5)
    expected = exact(X, Z, 0.5)
    assert 0.5 < expected.max() and np.unique(expected).size > 3
    for k in (kernel, kernel + 0 * Linear()):
        np.testing.assert_allclose(k.block(wrap(X), wrap(Z)), expected, atol=1e-6)
        np.testing.assert_array_equal(k.block(wrap(Z), wrap(Z)).diagonal(), 1.0)
