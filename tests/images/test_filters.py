import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import ndimage

from mercer.images import GaussianBlur, MedianFilter

SHAPES = [(28, 28), (5, 9), (1, 7), (2, 1), (1, 1)]


def grey(rng, shape, dtype):
    images = rng.integers(0, 256, (4, *shape)).astype(np.uint8)
    return images.astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7])
def test_median_equals_scipy(size, shape, dtype, rng):
    images = grey(rng, shape, dtype)
    found = MedianFilter(size).fit_transform(images)
    expected = [ndimage.median_filter(image, size) for image in images]
    assert_array_equal(found, expected)
    assert found.dtype == (np.float64 if dtype == np.float64 else np.float32)


def test_median_of_fractions_of_both_signs(rng):
    images = rng.standard_normal((3, 12, 10))
    for size in (3, 5):
        expected = [ndimage.median_filter(image, size) for image in images]
        assert_array_equal(MedianFilter(size).fit_transform(images), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sigma", [0, 0.1, 0.5, 1, 3, 20])
def test_blur_equals_scipy(sigma, shape, dtype, rng):
    images = rng.standard_normal((4, *shape)).astype(dtype)
    found = GaussianBlur(sigma).fit_transform(images)
    expected = [ndimage.gaussian_filter(image, sigma) for image in images]
    assert found.dtype == dtype
    assert_allclose(found, expected, atol=1e-6 if dtype == np.float32 else 1e-12)


def test_blur_reaches_as_far_as_told(rng):
    images = rng.random((2, 15, 15))
    found = GaussianBlur(1.5, truncate=2.0).fit_transform(images)
    expected = [ndimage.gaussian_filter(i, 1.5, truncate=2.0) for i in images]
    assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("transformer", [MedianFilter(3), GaussianBlur(0.8)])
def test_channels_are_filtered_apart(transformer, rng):
    images = rng.random((5, 8, 6, 3))
    found = transformer.fit_transform(images)
    for k in range(3):
        part = transformer.fit_transform(images[..., k])
        assert_array_equal(found[..., k], part)


@pytest.mark.parametrize("transformer", [MedianFilter(5), GaussianBlur(2)])
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_constant_images_stay(transformer, value):
    images = np.full((2, 6, 6), value)
    assert_allclose(transformer.fit_transform(images), images, rtol=1e-12)


@pytest.mark.parametrize(
    "transformer, message",
    [
        (MedianFilter(0), "'size' parameter of MedianFilter"),
        (MedianFilter(2.5), "'size' parameter of MedianFilter"),
        (GaussianBlur(-1), "'sigma' parameter of GaussianBlur"),
        (GaussianBlur(1, truncate=0), "'truncate' parameter of GaussianBlur"),
    ],
)
def test_wrong_parameters(transformer, message):
    with pytest.raises(ValueError, match=message):
        transformer.transform(np.zeros((1, 4, 4)))
