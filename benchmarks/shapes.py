"""Tables of shapes that real data have and that no solver was set up on.

Each function returns samples and classes, or values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import standardised

__all__ = ["counts", "heavy_tails", "noisy", "outliers", "three_columns", "twins"]

Table = tuple[NDArray[np.float64], NDArray]


def heavy_tails(n: int, seed: int = 0) -> Table:
    """Return twelve columns with a few values that are very large (Student's t)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(1.5, (n, 12))
    y = np.tanh(X[:, :4]).sum(axis=1) + np.sin(X[:, 4]) + 0.3 * rng.normal(size=n) > 0
    return standardised(X), y


def twins(n: int, seed: int = 0) -> Table:
    """Return samples that occur about ten times each, sometimes in both classes."""
    rng = np.random.default_rng(seed)
    few = rng.standard_normal((max(n // 10, 2), 8)).round(1)
    X = few[rng.integers(len(few), size=n)]
    y = (X**2).sum(axis=1) + 0.7 * rng.normal(size=n) > 7.5
    return X, y


def noisy(n: int, seed: int = 0) -> Table:
    """Return two classes of which 30 % of the samples have the wrong label."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 20))
    y = X[:, 0] * X[:, 1] + X[:, 2] > 0
    return X, y ^ (rng.random(n) < 0.3)


def three_columns(n: int, seed: int = 0) -> Table:
    """Return a winding surface in three dimensions, with classes on either side."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 3))
    border = 0.4 * np.sin(5.0 * X[:, 0]) * np.cos(5.0 * X[:, 1])
    return X, X[:, 2] + 0.1 * rng.normal(size=n) > border


def counts(n: int, seed: int = 0) -> Table:
    """Return 200 columns of word counts, most of them 0, for four kinds of text."""
    rng = np.random.default_rng(seed)
    kinds = rng.dirichlet(np.full(200, 0.3), size=4)
    y = rng.integers(4, size=n)
    mixed = 0.6 * kinds[y] + 0.4 * kinds[rng.integers(4, size=n)]
    return rng.poisson(60.0 * mixed).astype(np.float64), y


def outliers(n: int, seed: int = 0) -> Table:
    """Return values of a smooth function, one in twenty of which is far off."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    z = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    far = rng.random(n) < 0.05
    z[far] += 20.0 * rng.standard_normal(int(far.sum()))
    return X, z
