"""Samples of linear machines: compressed ones are the same samples."""

import numpy as np
import pytest
from scipy import sparse

import naive
from mercer.engines.cpu.linear.features import Features, lane_groups, lanes


def with_zeros(fraction, dtype=np.float64, shape=(70, 40)):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape) * (rng.random(shape) >= fraction)
    return X.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 3, 8, 11])
@pytest.mark.parametrize("kind", ["compressed", "dense", "csr"])
def test_products_are_those_of_loops(kind, k, dtype, rng):
    X = with_zeros(0.1 if kind == "dense" else 0.8, dtype)
    features = Features(sparse.csr_array(X) if kind == "csr" else X, is_reused=True)
    assert features.rows().is_full == (kind == "dense")
    weights, beta = rng.standard_normal((k, 40)), rng.standard_normal((k, 70))
    Z = X.astype(np.float64)
    for found, expected in (
        (features.scores(weights), naive.block(naive.linear, weights, Z)),
        (features.combine(beta), naive.block(naive.linear, beta, Z.T)),
        (features.squared_norms(), [naive.linear(z, z) for z in Z]),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_only_samples_with_many_zeros_are_compressed():
    few, many = with_zeros(0.3), with_zeros(0.8)
    assert Features(few, is_reused=True).rows().is_full
    assert not Features(many, is_reused=True).rows().is_full
    assert Features(many).rows().is_full  # one pass is not worth it
    # A first look at some samples may be wrong.
    uneven = np.ones((640, 5))
    uneven[::10] = 0.0
    assert Features(uneven, is_reused=True).rows().is_full


def test_a_single_thread_gives_the_same_blocks():
    X = with_zeros(0.8, shape=(4000, 40))
    alone = Features(X, is_reused=True)
    backwards = Features(
        X, lambda f, items: [f(item) for item in list(items)[::-1]][::-1], True
    )
    beta = np.random.default_rng(1).standard_normal((3, 4000))
    np.testing.assert_array_equal(alone.combine(beta), backwards.combine(beta))


@pytest.mark.parametrize(
    ("n", "sizes"),
    [(1, [1]), (4, [4]), (5, [3, 2]), (10, [5, 5]), (16, [8, 8]), (20, [8, 8, 4])],
)
def test_groups_of_problems(n, sizes):
    groups = lane_groups(list(range(n)))
    assert [len(group) for group in groups] == sizes
    assert [item for group in groups for item in group] == list(range(n))


@pytest.mark.parametrize(("k", "width"), [(1, 1), (2, 4), (4, 4), (5, 8), (8, 8)])
def test_lanes_lie_side_by_side_in_a_cache_line(k, width, rng):
    numbers = rng.standard_normal((k, 9))
    found = lanes(numbers)
    assert found.shape == (9, width)
    assert found.ctypes.data % 64 == 0
    np.testing.assert_array_equal(found[:, :k], numbers.T)
    assert not found[:, k:].any()
