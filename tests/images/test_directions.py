import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer.images import directions
from mercer.images.directions import spherical_kmeans
from mercer.runtime.threads import Threads


def find(X, k, n_iter, seed=0, n_jobs=None):
    with Threads(n_jobs) as threads:
        return spherical_kmeans(X, k, n_iter, np.random.RandomState(seed), threads)


def unit(vector):
    return vector / np.linalg.norm(vector)


def test_one_round_by_loops(rng):
    X = rng.standard_normal((60, 5))
    start, after = (find(X, 4, n).vectors for n in (0, 1))
    sums, total = start.copy(), 0.0
    for x in X:
        dots = [float(d @ x) for d in start]
        k = max(range(4), key=lambda k: abs(dots[k]))
        sums[k] += dots[k] * x
        total += dots[k] ** 2
    assert_allclose(after, [unit(s) for s in sums], atol=1e-12)
    assert find(X, 4, 1).history[0] == pytest.approx(total)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_objective_does_not_decrease(dtype, rng):
    X = rng.standard_normal((900, 12)).astype(dtype)
    found = find(X, 30, 15)
    assert found.vectors.dtype == dtype
    assert len(found.history) == 16
    assert (np.diff(found.history) >= -1e-5 * found.history[-1]).all()
    best = np.square(X.astype(float) @ found.vectors.T.astype(float)).max(axis=1)
    assert found.history[-1] == pytest.approx(best.sum(), rel=1e-5)


def test_lines_through_the_origin_are_found(rng):
    lines = np.eye(6)[:4]
    X = rng.normal(size=(400, 1)) * lines[np.arange(400) % 4]
    X += 0.01 * rng.standard_normal(X.shape)
    found = max(
        (find(X, 4, 20, seed) for seed in range(5)), key=lambda f: f.history[-1]
    )
    assert_allclose(sorted(abs(found.vectors).argmax(axis=1)), range(4))
    assert_allclose(abs(found.vectors).max(axis=1), 1, atol=1e-3)


def test_threads_do_not_matter(rng, monkeypatch):
    monkeypatch.setattr(directions, "ROWS", 16)
    X = rng.standard_normal((500, 7)).astype(np.float32)
    expected = find(X, 9, 4, n_jobs=1)
    for n_jobs in (2, 3):
        found = find(X, 9, 4, n_jobs=n_jobs)
        assert_array_equal(found.vectors, expected.vectors)
        assert found.history == expected.history


def test_directions_without_samples_begin_again(rng):
    # Three samples cannot occupy five directions.
    X = np.eye(4)[:3]
    found = find(X, 5, 6)
    assert_allclose(np.linalg.norm(found.vectors, axis=1), 1)
    assert found.history[-1] == pytest.approx(3)


def test_samples_that_are_all_zero():
    found = find(np.zeros((10, 3)), 2, 3)
    assert np.isfinite(found.vectors).all()
    assert found.history == [0.0] * 4
