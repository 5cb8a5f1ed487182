import image_loops
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from faults import Fault
from mercer.images import PatchFeatures, patches


@pytest.fixture
def colour(rng):
    return rng.integers(0, 256, (7, 11, 9, 3), dtype=np.uint8)


def small(**more):
    settings = {"n_patches": 200, "max_iter": 3, "random_state": 0}
    return PatchFeatures(3, 6, 2, 0.3, **{**settings, **more})


@pytest.mark.parametrize("pooling", ["mean", "sum"])
@pytest.mark.parametrize("square_root", [False, True])
@pytest.mark.parametrize("grey", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_equals_loops(pooling, square_root, grey, dtype, colour, monkeypatch):
    monkeypatch.setattr(patches, "RESPONSES", 100)  # two rows of positions at a time
    images = (colour[..., 0] if grey else colour).astype(dtype)
    fitted = small(pooling=pooling, square_root=square_root).fit(images)
    found = fitted.transform(images)
    tolerance = 1e-5 if dtype == np.uint8 else 1e-10
    for image, features in zip(images, found, strict=True):
        image = image.reshape(*image.shape[:2], -1)
        sums, counts = image_loops.patch_features(image, 3, 2, 0.3, fitted)
        expected = sums / counts[..., None, None] if pooling == "mean" else sums
        expected = np.sqrt(expected) if square_root else expected
        assert_allclose(features, expected.ravel(), atol=tolerance * expected.max())


def test_what_fit_learns(rng):
    # Neighbouring pixels are correlated, as in photographs.
    noise = rng.standard_normal((40, 24, 24))
    images = sum(np.roll(noise, (i, j), (1, 2)) for i in range(3) for j in range(3))
    fitted = PatchFeatures(
        4, 12, epsilon=1e-6, n_patches=4000, max_iter=8, random_state=0
    ).fit(images)
    places = [(i, r, c) for i in range(40) for r in range(0, 21) for c in range(0, 21)]
    windows = np.array([images[i, r : r + 4, c : c + 4].ravel() for i, r, c in places])
    plain = [image_loops.normalised(w, fitted.contrast_) for w in windows[::7]]
    white = (np.array(plain) - fitted.mean_) @ fitted.whitening_
    # A patch minus its mean has one dimension less.
    values = np.linalg.eigvalsh(np.cov(white.T))
    assert values[0] < 0.1
    assert_allclose(values[1:], 1, atol=0.25)
    assert_allclose(fitted.whitening_, fitted.whitening_.T, atol=1e-12)
    assert_allclose(np.linalg.norm(fitted.directions_, axis=1), 1, atol=1e-6)
    history = fitted.objective_history_
    assert len(history) == 9
    assert (np.diff(history) >= -1e-9 * history[-1]).all()
    assert history[-1] > 1.1 * history[0]


def test_the_unit_of_intensities_does_not_matter(colour):
    images = colour.astype(float)
    expected = small().fit_transform(images)
    for factor, shift in ((1 / 255, 0), (1e6, 0), (1, 1000)):
        found = small().fit_transform(factor * images + shift)
        assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_threads_do_not_matter(n_jobs, colour):
    fitted = small(n_jobs=n_jobs).fit(colour)
    expected = small(n_jobs=2).fit(colour)
    assert_array_equal(fitted.directions_, expected.directions_)
    assert_array_equal(fitted.transform(colour), expected.transform(colour))


def test_seeds(colour):
    first, same, other = (small(random_state=s).fit(colour) for s in (0, 0, 1))
    assert_array_equal(first.directions_, same.directions_)
    assert abs(first.directions_ - other.directions_).max() > 0.01


def test_constant_images_have_no_features():
    images = np.full((3, 8, 8), 7, dtype=np.uint8)
    assert_array_equal(small().fit_transform(images), 0)


def test_patches_beyond_the_budget(colour):
    message = r"n_patches=200 patches of 27 values need .* at most \d+ patches"
    with pytest.raises(ValueError, match=message):
        small(cache_size=0.01).fit(colour)
    most = int(0.01 * 2**20 / (2 * 27 * 4))
    small(cache_size=0.01, n_patches=most).fit(colour)


def test_images_that_hold_no_patch_for_each_region():
    with pytest.raises(ValueError, match=r"5 x 9 .* at least 7 x 7 pixels"):
        PatchFeatures(5, regions=3).fit(np.zeros((1, 5, 9)))


@pytest.mark.parametrize(
    "parameters",
    [
        {"patch_size": 0},
        {"n_directions": 0},
        {"threshold": -1.0},
        {"pooling": "max"},
        {"contrast": 0.0},
        {"epsilon": 0.0},
        {"n_patches": 1},
        {"max_iter": 0},
        {"cache_size": 0},
    ],
)
def test_wrong_parameters(parameters, colour):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'{name}' parameter of PatchFeatures"):
        small().set_params(**parameters).fit(colour)


def test_wrong_regions(colour):
    with pytest.raises(ValueError, match=r"regions must be .* got \(2, 0\)"):
        small().set_params(regions=(2, 0)).fit(colour)


@pytest.mark.parametrize("due", [50, 250, 450])
def test_an_interrupted_fit_changes_nothing(due, colour):
    fitted = small().fit(colour)
    before = dict(vars(fitted))
    fitted.set_params(n_directions=4)
    with Fault(KeyboardInterrupt, ["images/patches.py"], due) as fault:
        fitted.fit(colour[:5])
    assert fault.count >= due
    fitted.set_params(n_directions=6)
    assert all(vars(fitted)[name] is value for name, value in before.items())
