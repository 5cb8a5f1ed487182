import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from skimage.color import rgb2gray
from sklearn.exceptions import NotFittedError

from mercer.images import GaussianProjection, Rescale, ToGrey


@pytest.mark.parametrize(
    "dtype, top", [(np.uint8, 255), (np.uint16, 65535), (np.bool_, 1)]
)
def test_whole_range_of_small_types(dtype, top):
    images = np.array([[[0, 1], [1, 0]]], dtype=dtype)
    found = Rescale().fit_transform(images)
    assert found.dtype == np.float32
    assert_allclose(found, images.astype(float) / top)


def test_range_of_other_types_is_learnt(rng):
    images = rng.standard_normal((5, 4, 4))
    rescale = Rescale().fit(images)
    found = rescale.transform(images)
    assert (found.min(), found.max()) == (0, 1)
    assert (rescale.low_, rescale.high_) == (images.min(), images.max())
    # Values outside the limits are clipped.
    assert_array_equal(rescale.transform(np.full((1, 4, 4), 100.0)), 1)
    assert_array_equal(rescale.transform(np.full((1, 4, 4), -100.0)), 0)


def test_each_image_by_itself(rng):
    images = rng.standard_normal((5, 4, 4)) * np.arange(1, 6)[:, None, None]
    images[2] = 7
    found = Rescale("image").fit_transform(images)
    assert_array_equal(found[2], 0)
    others = np.delete(found, 2, axis=0)
    assert_array_equal(others.min(axis=(1, 2)), 0)
    assert_array_equal(others.max(axis=(1, 2)), 1)


def test_given_limits():
    X = np.array([[0.0, 5.0, 10.0, 20.0]])
    assert_array_equal(Rescale((0, 10)).fit_transform(X), [[0, 0.5, 1, 1]])


def test_constant_data_become_zero():
    assert_array_equal(Rescale().fit_transform(np.full((2, 9), 3.0)), 0)


@pytest.mark.parametrize("limits", [(1,), (2, 1), (0, np.inf), ("a", "b"), (0, 0)])
def test_wrong_limits(limits):
    with pytest.raises(ValueError, match="Rescale: limits must be 'auto', 'image' or"):
        Rescale(limits).fit(np.zeros((1, 4)))


def test_grey_equals_skimage(rng):
    images = rng.random((3, 5, 4, 3))
    assert_allclose(ToGrey().fit_transform(images), rgb2gray(images), rtol=1e-12)
    flat = ToGrey(shape=(5, 4, 3)).fit_transform(images.reshape(3, -1))
    assert_allclose(flat, rgb2gray(images).reshape(3, -1), rtol=1e-12)


def test_grey_images_stay_grey(rng):
    images = rng.random((3, 5, 4))
    assert_array_equal(ToGrey().fit_transform(images), images)


def test_own_weights(rng):
    images = rng.integers(0, 256, (2, 4, 4, 3), dtype=np.uint8)
    assert_array_equal(ToGrey((0, 1, 0)).fit_transform(images), images[..., 1])


@pytest.mark.parametrize("weights", [(1, 2), (1, 2, np.nan), ("r", "g", "b")])
def test_wrong_weights(weights):
    with pytest.raises(ValueError, match="ToGrey: weights must be three finite"):
        ToGrey(weights).fit(np.zeros((1, 4, 4, 3)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_projection_is_what_it_says(dtype, rng):
    X, Z = rng.standard_normal((2, 30, 5)).astype(dtype)
    projection = GaussianProjection(gamma=0.7).fit(X)
    expected = np.exp(-0.7 * (Z - X.mean(axis=0, dtype=float)) ** 2)
    found = projection.transform(Z)
    assert found.dtype == dtype
    assert_allclose(found, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)


def test_projection_of_images_is_by_pixel(rng):
    images = rng.random((6, 4, 3))
    found = GaussianProjection().fit_transform(images)
    assert found.shape == images.shape
    assert_allclose(found, np.exp(-((images - images.mean(axis=0)) ** 2)))


def test_projection_separates_rings(rng):
    angle = rng.uniform(0, 2 * np.pi, 200)
    radius = np.repeat([1.0, 3.0], 100)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    found = GaussianProjection(gamma=0.5).fit(X).transform(X).sum(axis=1)
    assert found[:100].min() > found[100:].max()


@pytest.mark.parametrize("transformer", [Rescale(), GaussianProjection()])
def test_what_learns_must_be_fitted(transformer):
    with pytest.raises(NotFittedError):
        transformer.transform(np.zeros((1, 4)))


def test_wrong_gamma():
    with pytest.raises(ValueError, match="'gamma' parameter of GaussianProjection"):
        GaussianProjection(-1).fit(np.zeros((1, 4)))
