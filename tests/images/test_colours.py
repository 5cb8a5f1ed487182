import image_loops
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer.images import ColourHistogram


@pytest.fixture
def colour(rng):
    return rng.integers(0, 256, (7, 11, 9, 3), dtype=np.uint8)


@pytest.mark.parametrize("square_root", [False, True])
@pytest.mark.parametrize("grey", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_equals_loops(square_root, grey, dtype, colour):
    images = (colour[..., 0] if grey else colour).astype(dtype)
    fitted = ColourHistogram(3, 2, square_root=square_root).fit(images)
    low, high = images.min(), images.max()
    assert (fitted.low_, fitted.high_) == (low, high)
    for image, found in zip(images, fitted.transform(images), strict=True):
        image = image.reshape(*image.shape[:2], -1)
        expected = image_loops.colour_histogram(image, 3, 2, float(low), float(high))
        expected = np.sqrt(expected) if square_root else expected
        assert_allclose(found, expected.ravel(), atol=1e-6)


def test_a_region_has_its_own_histogram():
    image = np.zeros((1, 4, 6))
    image[0, :, 3:] = 1
    found = ColourHistogram(2, (1, 2), square_root=False).fit_transform(image)
    assert_array_equal(found, [[1, 0, 0, 1]])


def test_colours_beyond_those_of_fit_count_as_the_nearest():
    fitted = ColourHistogram(2, 1, square_root=False).fit(np.array([[[0.0, 1.0]]]))
    found = fitted.transform(np.array([[[-5.0, 7.0]]]))
    assert_array_equal(found, [[0.5, 0.5]])


def test_images_of_one_colour():
    found = ColourHistogram(4, 1).fit_transform(np.full((2, 3, 3), 7.0))
    assert_array_equal(found, [[1, 0, 0, 0]] * 2)


def test_images_smaller_than_the_regions():
    with pytest.raises(ValueError, match="2 x 9 pixels are too small for 3 x 3"):
        ColourHistogram(regions=3).fit(np.zeros((1, 2, 9)))
