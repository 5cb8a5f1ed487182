"""Tiles of the histogram kernels against their definitions."""

import numpy as np
import pytest

from mercer.core import tiles

TERMS = {
    "additive_chi2": lambda a, b: (a - b) ** 2 / (a + b) if a + b > 0 else 0.0,
    "intersection": min,
    "manhattan": lambda a, b: abs(a - b),
}
TOLERANCE = {np.float32: 2e-6, np.float64: 1e-14}

every_sum = pytest.mark.parametrize("name", TERMS)
every_dtype = pytest.mark.parametrize("dtype", TOLERANCE)


def tile(name, X, Z):
    """Fill a tile from read-only data."""
    X, Z = X.view(), Z.view()
    X.flags.writeable = Z.flags.writeable = False
    out = np.full((len(X), len(Z)), np.nan, dtype=X.dtype)
    getattr(tiles, name)(X, Z, out)
    return out


def by_loops(name, X, Z):
    return [
        [
            sum(TERMS[name](float(a), float(b)) for a, b in zip(x, z, strict=True))
            for z in Z
        ]
        for x in X
    ]


def draw(n, d, dtype, seed=0, zeros=0.3):
    """Draw histograms of which about the given part of the entries is 0."""
    rng = np.random.default_rng(seed)
    H = rng.exponential(size=(n, d)) * (rng.random((n, d)) >= zeros)
    return H.astype(dtype)


@every_sum
@every_dtype
@pytest.mark.parametrize(
    ("m", "n", "d"),
    [(1, 1, 1), (1, 5, 3), (5, 1, 4), (3, 7, 1), (2, 33, 5), (3, 2, 131), (1, 515, 2)],
)
def test_tile_follows_definition(name, dtype, m, n, d):
    X, Z = draw(m, d, dtype), draw(n, d, dtype, seed=1)
    expected = by_loops(name, X, Z)
    np.testing.assert_allclose(tile(name, X, Z), expected, rtol=TOLERANCE[dtype])


@every_sum
@every_dtype
def test_empty_histograms_give_zero(name, dtype):
    X = np.zeros((3, 6), dtype=dtype)
    np.testing.assert_array_equal(tile(name, X, X), 0)


@pytest.mark.parametrize("name", ["additive_chi2", "manhattan"])
@every_dtype
def test_distance_to_itself_is_zero(name, dtype):
    X = draw(5, 70, dtype)
    np.testing.assert_array_equal(np.diag(tile(name, X, X)), 0)


@pytest.mark.parametrize("name", ["intersection", "manhattan"])
def test_entries_may_be_negative(name):
    X, Z = draw(3, 9, np.float64) - 1.0, draw(4, 9, np.float64, seed=1) - 1.0
    np.testing.assert_allclose(tile(name, X, Z), by_loops(name, X, Z), rtol=1e-12)


@every_sum
@pytest.mark.parametrize("size", [1e-25, 1e-12, 1e15])
def test_single_precision_works_at_any_size(name, size):
    X, Z = draw(3, 20, np.float32), draw(4, 20, np.float32, seed=1)
    X, Z = X * np.float32(size), Z * np.float32(size)
    np.testing.assert_allclose(tile(name, X, Z), by_loops(name, X, Z), rtol=2e-6)


@every_sum
@pytest.mark.parametrize("zeros", [0.0, 0.9])
def test_single_precision_holds_over_many_features(name, zeros):
    X, Z = draw(3, 2000, np.float32, 0, zeros), draw(2, 2000, np.float32, 1, zeros)
    exact = tile(name, X.astype(np.float64), Z.astype(np.float64))
    np.testing.assert_allclose(tile(name, X, Z), exact, rtol=2e-6)


@every_sum
def test_tile_is_written_into_a_view(name):
    X, Z = draw(3, 6, np.float32), draw(4, 6, np.float32, seed=1)
    K = np.full((5, 9), -1, dtype=np.float32)
    getattr(tiles, name)(X, Z, K[1:4, 2:6])
    np.testing.assert_array_equal(K[1:4, 2:6], tile(name, X, Z))
    K[1:4, 2:6] = -1
    np.testing.assert_array_equal(K, -1)


@every_dtype
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, 8])
def test_powers(rng, dtype, exponent):
    values = rng.normal(size=(5, 37)).astype(dtype)
    expected = (0.5 * values.astype(np.float64) - 0.25) ** exponent
    out = np.empty_like(values)
    tiles.powers(values, 0.5, -0.25, exponent, out)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=TOLERANCE[dtype])
    tiles.powers(values, 0.5, -0.25, exponent, values)
    np.testing.assert_array_equal(values, out)


@every_dtype
def test_hyperbolic_tangent(dtype):
    small = np.geomspace(1e-30, 1.0, 500)
    x = np.concatenate([np.linspace(-40.0, 40.0, 801), small, -small]).astype(dtype)
    values = x[None].copy()
    tiles.hyperbolic_tangent(values, 1.0, 0.0)
    assert values.dtype == dtype
    exact = np.tanh(x.astype(np.float64))
    np.testing.assert_allclose(values[0], exact, rtol=3 * np.finfo(dtype).eps)
    scaled = x[None].copy()
    tiles.hyperbolic_tangent(scaled, 0.5, -0.25)
    exact = np.tanh(0.5 * x.astype(np.float64) - 0.25)
    np.testing.assert_allclose(scaled[0], exact, atol=TOLERANCE[dtype])


@every_dtype
def test_tangents_at_the_ends(dtype):
    values = np.array([[0.0, np.inf, -np.inf, 1e30, -1e30, np.nan]], dtype=dtype)
    tiles.hyperbolic_tangent(values, 1.0, 0.0)
    np.testing.assert_array_equal(values, [[0.0, 1.0, -1.0, 1.0, -1.0, np.nan]])
