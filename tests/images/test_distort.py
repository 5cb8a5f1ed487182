import image_loops
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from mercer.images import Distort

STILL = {"rotation": 0, "scale": 0, "shear": 0, "shift": 0, "elastic": 0}
SETTINGS = [
    STILL,
    {**STILL, "rotation": 30},
    {**STILL, "scale": 0.3, "shear": 0.2},
    {**STILL, "shift": 2.0, "mirror": 0.5},
    {**STILL, "elastic": 1.5, "smoothness": 1.3},
    {"rotation": 10, "shift": 1.0, "smoothness": 0.4},
]


@pytest.fixture
def digits(rng):
    images = np.zeros((6, 28, 28), dtype=np.float32)
    images[:, 8:20, 8:20] = rng.random((6, 12, 12))
    return images


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("shape", [(7, 9), (6, 5, 3), (1, 4), (1, 1)])
def test_equals_loops(settings, shape, rng):
    images = rng.random((3, *shape))
    transformer = Distort(**settings, random_state=1).fit(images)
    expected = [
        image_loops.distorted(
            image.reshape(*shape[:2], -1), transformer.seed_, transformer.get_params()
        ).reshape(shape)
        for image in images
    ]
    assert_allclose(transformer.transform(images), expected, atol=1e-12)


def test_nothing_moves_without_a_range(digits):
    assert_array_equal(Distort(**STILL, random_state=0).fit_transform(digits), digits)


def test_mirrored_images_are_about_half(rng):
    images = rng.random((200, 4, 5))
    found = Distort(**STILL, mirror=0.5, random_state=0).fit_transform(images)
    same = (found == images).all(axis=(1, 2))
    assert_array_equal(found[~same], images[~same, :, ::-1])
    assert 70 < same.sum() < 130
    found = Distort(**STILL, mirror=1, random_state=0).fit_transform(images)
    assert_array_equal(found, images[:, :, ::-1])


def test_seeds_and_images_make_the_difference(digits):
    first = Distort(random_state=0).fit(digits)
    found = first.transform(digits)
    assert_array_equal(first.transform(digits), found)
    assert_array_equal(clone(first).fit_transform(digits), found)
    # An image is distorted in the same way in any stack.
    assert_array_equal(first.transform(digits[[4, 2]]), found[[4, 2]])
    other = Distort(random_state=1).fit_transform(digits)
    assert (abs(other - found).max(axis=(1, 2)) > 0.1).all()
    drawn = Distort().fit(digits)
    assert_array_equal(drawn.transform(digits), drawn.transform(digits))
    assert drawn.seed_ != Distort().fit(digits).seed_


def moved(images, **settings):
    """Return how far pixels are read from their place; ``images`` vary in a corner."""
    return Distort(**{**STILL, **settings}, random_state=0).fit_transform(images)


def test_sizes_of_the_distortions(rng):
    # Ramps show where a pixel was read from. Pixels near the border are clipped there.
    n, side = 300, 41
    ramps = np.tile(np.arange(side, dtype=float), (n, side, 1))
    ramps += 1e-6 * rng.random((n, 1, 1))
    inner = (slice(None), slice(12, 29), slice(12, 29))
    shift = moved(ramps, shift=3.0)[inner] - ramps[inner]
    assert_allclose(np.ptp(shift, axis=(1, 2)), 0, atol=1e-9)
    assert 2.9 < abs(shift).max() <= 3.0
    assert shift.std() == pytest.approx(np.sqrt(3), rel=0.1)
    elastic = moved(ramps, elastic=1.5, smoothness=3)[inner] - ramps[inner]
    # The other axis has the other half of the squared shift.
    assert np.sqrt(2 * np.mean(elastic**2)) == pytest.approx(1.5, rel=0.1)
    assert abs(np.diff(elastic, axis=2)).max() < 1
    # One step to the right moves by the cosine of the angle.
    step = np.diff(moved(ramps, rotation=20)[inner], axis=2).mean(axis=(1, 2))
    assert np.cos(np.radians(20)) - 1e-9 < step.min() < 0.95
    step = np.diff(moved(ramps, scale=0.2)[inner], axis=2).mean(axis=(1, 2))
    assert 0.8 <= step.min() < 0.82
    assert 1.18 < step.max() <= 1.2
    step = np.diff(moved(ramps, shear=0.3)[inner], axis=1).mean(axis=(1, 2))
    assert 0.28 < abs(step).max() <= 0.3


@pytest.mark.parametrize(
    "parameters",
    [
        {"rotation": -1},
        {"rotation": 181},
        {"scale": 1.0},
        {"shear": -0.1},
        {"shift": np.inf},
        {"elastic": -1.0},
        {"smoothness": 0.0},
        {"mirror": 1.5},
    ],
)
def test_wrong_parameters(parameters, digits):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'{name}' parameter of Distort"):
        Distort(**parameters).fit(digits)
