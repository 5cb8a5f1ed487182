"""What kernels ask of a pair: plain NumPy and compiled tiles agree."""

import numpy as np
import pytest
from scipy import sparse

from mercer.engines.cpu.pair import Operand, TilePair
from mercer.kernels import pair as pairs
from mercer.kernels.pair import Pair, Samples, dense_if_small

VERBS = {
    "dots": lambda pair: pair.dots(),
    "squared_distances": lambda pair: pair.squared_distances(0.5),
    "gaussian": lambda pair: pair.gaussian(0.5),
    "exponential": lambda pair: pair.exponential(pair.manhattan(), 0.2),
    "chi2": lambda pair: pair.chi2(),
    "minima": lambda pair: pair.minima(),
    "manhattan": lambda pair: pair.manhattan(),
    "power": lambda pair: pair.power(pair.dots(), 5),
    "elementwise": lambda pair: pair.elementwise(pair.xp.tanh, pair.dots()),
    "on": lambda pair: pair.on([0, 2]).dots(),
}


@pytest.fixture
def sides(rng):
    return [
        np.abs(rng.normal(size=(n, 5))) * (rng.random((n, 5)) < 0.7) for n in (9, 7)
    ]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shared", [True, False])
def test_tiles_are_what_numpy_says(sides, verb, make, dtype, shared):
    sides = [side.astype(dtype) for side in sides]
    expected = VERBS[verb](Pair(*map(Samples, sides)))
    found = VERBS[verb](TilePair(*(Operand(make(s)) for s in sides), shared=shared))
    np.testing.assert_allclose(
        found, expected, rtol=2e-5 if dtype == np.float32 else 1e-12
    )
    numpy_too = VERBS[verb](Pair(*(Samples(make(s)) for s in sides)))
    np.testing.assert_allclose(numpy_too, expected, rtol=1e-12, atol=1e-12)


def test_functions_do_not_change_what_others_share(sides):
    pair = TilePair(*map(Operand, sides))
    before = pair.dots().copy()
    doubled = pair.elementwise(np.multiply, pair.dots(), 2.0)
    assert pair.elementwise(np.add, doubled, 1.0) is doubled  # nobody else has it
    pair.once("mine", lambda: doubled)
    assert pair.elementwise(np.add, doubled, 1.0) is not doubled
    own = pair.own(pair.dots())
    own[:] = 0
    np.testing.assert_array_equal(pair.dots(), before)
    np.testing.assert_array_equal(pair.once("mine", lambda: None), 2.0 * before + 1.0)


def test_only_products_and_distances_outlive_a_tile(sides):
    kept = {}
    sides = list(map(Operand, sides))
    for number in (1, 2):
        pair = TilePair(*sides, kept=kept)
        assert pair.once("mine", lambda number=number: number) == number
        pair.dots(), pair.squared_distances(1.0), pair.on([1]).chi2()
    assert len(kept) == 3


def test_only_small_sparse_matrices_become_dense(monkeypatch):
    X = np.arange(6.0).reshape(2, 3)
    S = sparse.csr_array(X)
    np.testing.assert_array_equal(dense_if_small(S), X)
    assert dense_if_small(X) is X
    monkeypatch.setattr(pairs, "SMALL", X.size - 1)
    assert dense_if_small(S) is S
