"""Where k-means starts: at the samples that scikit-learn draws with the same seed."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import kmeans_plusplus

from mercer.machines.clusters.lloyd import Lloyd
from mercer.machines.clusters.seeds import draw_far_apart
from mercer.runtime.threads import Threads


def drawn(X, weight, k, seed, n_jobs=1):
    with Threads(n_jobs) as threads:
        samples = Lloyd(X, weight, threads)
        return draw_far_apart(samples, k, np.random.RandomState(seed))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("k", [1, 2, 17])
@pytest.mark.parametrize("seed", range(3))
def test_the_same_samples_as_in_scikit_learn(rng, dtype, k, seed):
    X = rng.standard_normal((1500, 5)).astype(dtype)
    weight = rng.integers(0, 3, len(X)).astype(np.float64)
    theirs, _ = kmeans_plusplus(
        X, k, sample_weight=weight, random_state=np.random.RandomState(seed)
    )
    assert (drawn(X, weight, k, seed) == theirs).all()


def test_threads_do_not_matter(rng):
    X = rng.standard_normal((5000, 3)).astype(np.float32)
    one, many = (drawn(X, np.ones(len(X)), 9, 0, n_jobs) for n_jobs in (1, 3))
    assert (one == many).all()


def test_sparse_samples(rng):
    X = rng.standard_normal((100, 3))
    found = drawn(sparse.csr_array(X), np.ones(100), 4, 0)
    assert found == pytest.approx(drawn(X, np.ones(100), 4, 0))


def test_fewer_different_samples_than_centres():
    X = np.repeat(np.eye(3), 4, axis=0)
    found = drawn(X, np.ones(len(X)), 5, 0)
    assert len(np.unique(found[:3], axis=0)) == 3
