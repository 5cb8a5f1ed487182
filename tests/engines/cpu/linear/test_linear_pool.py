"""The pool of samples near the margin."""

import numpy as np

import naive
from mercer.engines.cpu.linear.features import Features
from mercer.engines.cpu.linear.pool import Pool


def test_products_are_those_of_loops_however_samples_come_and_go(rng):
    X = rng.standard_normal((60, 7))
    pool = Pool(Features(X))
    sizes = [5, 6, 5, 10, 8, 40, 3, 60, 1]
    for size in sizes:
        rows = np.sort(rng.choice(60, size, replace=False))
        assert pool.n_missing(rows) <= size
        pool.include(rows)
        assert pool.n_missing(rows) == 0
        places, diagonal = pool.places(rows), rng.random(size)
        expected = naive.block(naive.linear, X[rows], X[rows]) + np.diag(diagonal)
        found = pool.products(places, diagonal)
        np.testing.assert_allclose(np.triu(found), np.triu(expected), atol=1e-12)
        x, factors = rng.standard_normal(7), rng.standard_normal(size)
        np.testing.assert_allclose(pool.dot(places, x), X[rows] @ x, atol=1e-12)
        np.testing.assert_allclose(
            pool.combine(places, factors), factors @ X[rows], atol=1e-12
        )


def test_samples_are_multiplied_once(rng):
    X = rng.standard_normal((60, 7))
    features = Features(X)
    gathered = []

    def gather(rows, weight):
        gathered.extend(rows)
        return X[rows]

    features.gather = gather
    pool = Pool(features)
    for first in (0, 5, 10):
        pool.include(np.arange(first, first + 20))
    assert gathered == list(range(30))
