import numpy as np
import pytest
from scipy.stats import norm

from mercer.datasets import make_clouds, make_moons, make_rings, make_sheet
from mercer.datasets.toys import cloud_centres

CLASSED = [make_clouds, make_rings, make_moons]
ALL = [*CLASSED, make_sheet]


@pytest.mark.parametrize("make", ALL)
def test_the_seed_decides(make):
    first, again, other = (make(50, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])
    assert not np.array_equal(make(50)[0], make(50)[0])


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState])
def test_sources_of_random_numbers_go_on(make, source):
    one, two = source(0), source(0)
    np.testing.assert_array_equal(
        make(20, random_state=one)[0], make(20, random_state=two)[0]
    )
    assert not np.array_equal(
        make(20, random_state=one)[0], make(20, random_state=source(0))[0]
    )


@pytest.mark.parametrize("make", CLASSED)
@pytest.mark.parametrize("n", [2, 7, 100])
def test_classes_are_even(make, n):
    X, y = make(n, random_state=0)
    assert X.shape == (n, 2)
    assert y.dtype == np.int64
    counts = np.bincount(y, minlength=2)
    assert counts.sum() == n
    assert np.ptp(counts) <= 1


@pytest.mark.parametrize("make", ALL)
def test_bunches_have_the_same(make):
    X, y = make(30, random_state=0)
    bunch = make(30, random_state=0, as_bunch=True)
    np.testing.assert_array_equal(bunch.data, X)
    np.testing.assert_array_equal(bunch.target, y)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_neighbouring_centres_are_as_far_apart_as_said(n_classes):
    centres = cloud_centres(n_classes, 4, 1.5)
    assert centres.shape == (n_classes, 4)
    steps = np.linalg.norm(centres - np.roll(centres, 1, axis=0), axis=1)
    np.testing.assert_allclose(steps, 1.5)
    np.testing.assert_allclose(centres.mean(axis=0), 0, atol=1e-12)


def test_clouds_are_gaussian_and_as_hard_as_said():
    bunch = make_clouds(
        40_000, n_features=3, separation=2, spread=0.8, random_state=0, as_bunch=True
    )
    X, y = bunch.data, bunch.target
    np.testing.assert_allclose(X[y == 1].mean(axis=0), bunch.centres[1], atol=0.03)
    np.testing.assert_allclose(np.cov(X[y == 0].T), 0.64 * np.eye(3), atol=0.03)
    nearest = X @ (bunch.centres[1] - bunch.centres[0]) > 0
    assert np.mean(nearest != y) == pytest.approx(norm.cdf(-2 / 1.6), abs=0.01)


def test_rings_have_their_radii():
    X, y = make_rings(60, radii=(1, 3, 2), noise=0, random_state=0)
    np.testing.assert_allclose(np.hypot(*X.T), np.array([1, 3, 2])[y])


def test_moons_without_noise_do_not_touch():
    X, y = make_moons(900, n_moons=4, noise=0, random_state=0)
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    assert distance[y[:, None] != y[None]].min() > 0.3
    for moon in range(4):
        centre = [1.2 * moon, 0.5 * (moon % 2)]
        np.testing.assert_allclose(np.linalg.norm(X[y == moon] - centre, axis=1), 1)
        up = X[y == moon][:, 1] >= centre[1]
        assert up.all() if moon % 2 == 0 else not up.any()


def test_moons_interlock():
    X, y = make_moons(400, noise=0, random_state=0)
    assert X[y == 1][:, 1].max() > X[y == 0][:, 1].min() + 0.3
    assert X[y == 1][:, 0].min() < X[y == 0][:, 0].max() - 0.3


def test_noise_is_as_large_as_said():
    quiet, _ = make_moons(20_000, noise=0, random_state=0)
    loud, _ = make_moons(20_000, noise=0.2, random_state=0)
    np.testing.assert_allclose((loud - quiet).std(axis=0), 0.2, rtol=0.05)


def test_sheets_are_flat():
    bunch = make_sheet(300, n_features=6, noise=0, random_state=0, as_bunch=True)
    assert bunch.data.shape == (300, 6)
    np.testing.assert_allclose(bunch.axes @ bunch.axes.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(bunch.data, bunch.target @ bunch.axes, atol=1e-12)
    assert np.linalg.matrix_rank(bunch.data) == 2


def test_sheets_have_their_lengths():
    X, positions = make_sheet(
        20_000, lengths=(5, 2, 1), noise=0.1, n_features=4, random_state=0
    )
    np.testing.assert_allclose(positions.std(axis=0), [5, 2, 1], rtol=0.03)
    variances = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    np.testing.assert_allclose(variances, [25.01, 4.01, 1.01, 0.01], rtol=0.05)


@pytest.mark.parametrize(
    ("make", "options", "error", "match"),
    [
        (make_clouds, {"n_samples": 1}, ValueError, "n_samples must be >= 2, got 1"),
        (make_clouds, {"n_samples": 2.5}, TypeError, "must be a whole number, got 2.5"),
        (make_clouds, {"n_samples": True}, TypeError, "must be a whole number, got Tr"),
        (make_clouds, {"n_classes": 1}, ValueError, "n_classes must be >= 2, got 1"),
        (make_clouds, {"n_features": 1}, ValueError, "n_features must be >= 2, got 1"),
        (make_clouds, {"spread": -1}, ValueError, "spread must be a .* >= 0, got -1"),
        (make_clouds, {"spread": "x"}, TypeError, "spread must be a number, got 'x'"),
        (make_clouds, {"separation": np.nan}, ValueError, "separation .*, got nan"),
        (make_rings, {"radii": ()}, ValueError, "radii must have at least one entry"),
        (
            make_rings,
            {"radii": (1, -2)},
            ValueError,
            "an entry of radii must .* got -2",
        ),
        (make_rings, {"noise": np.inf}, ValueError, "noise must be .* got inf"),
        (make_moons, {"n_moons": 1}, ValueError, "n_moons must be >= 2, got 1"),
        (make_moons, {"random_state": "a"}, TypeError, "random_state must be .*'a'"),
        (make_moons, {"random_state": -1}, ValueError, "random_state must be >= 0"),
        (make_sheet, {"n_samples": 0}, ValueError, "n_samples must be >= 1, got 0"),
        (make_sheet, {"lengths": ()}, ValueError, "1 to n_features=3 entries, got 0"),
        (make_sheet, {"n_features": 1}, ValueError, "1 to n_features=1 .* got 2"),
    ],
)
def test_bad_options(make, options, error, match):
    with pytest.raises(error, match=match):
        make(**options)
