"""Where kernel k-means starts."""

import numpy as np
import pytest

from mercer import KernelKMeans, KMeans
from mercer.engines.cpu.products import GivenProduct
from mercer.machines.clusters.partition import FeatureSamples
from mercer.machines.clusters.starts import far_apart
from mercer.runtime.threads import Threads


@pytest.mark.parametrize("seed", range(5))
def test_samples_are_drawn_by_their_squared_distances(seed):
    # Of 400 samples two are far from all others, and an even draw would miss them.
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(398, 2)), [[1e4, 0.0]], [[0.0, -1e4]]])
    with Threads(1) as threads:
        samples = FeatureSamples(GivenProduct(X @ X.T, threads), np.ones(400), False)
        labels = far_apart(samples, 3, np.random.RandomState(seed))
    assert np.unique(labels[:398]).size == 1
    assert np.unique(labels[[0, 398, 399]]).size == 3


def test_samples_without_weight_are_not_drawn():
    X = np.concatenate([np.eye(3), 1e3 * np.ones((2, 3))])
    weight = np.array([1.0, 1.0, 1.0, 0.0, 0.0])
    with Threads(1) as threads:
        samples = FeatureSamples(GivenProduct(X @ X.T, threads), weight, False)
        labels = far_apart(samples, 3, np.random.RandomState(0))
    assert sorted(labels[:3]) == [0, 1, 2]


@pytest.mark.parametrize(
    ("model", "seed"),
    [(KernelKMeans(3, gamma=0.1, random_state=0), 3), (KMeans(2, random_state=0), 5)],
)
def test_last_bits_do_not_number_clusters(model, seed):
    # Several starts find the same clusters, and their objectives differ by rounding.
    X = np.random.default_rng(seed).normal(size=(40, 3))
    last_bits = np.random.default_rng(0)
    expected = model.set_params(n_init=10).fit(X).labels_
    for _ in range(20):
        moved = X * (1.0 + last_bits.integers(-2, 3, size=X.shape) * 2.0**-53)
        np.testing.assert_array_equal(model.fit(moved).labels_, expected)
