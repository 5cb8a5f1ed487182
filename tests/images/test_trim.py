import image_loops
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer.images import Trim


@pytest.mark.parametrize("size", [(8, 6), (3, 2), (17, 30), (1, 1), (5, 5)])
def test_equals_loops(size, rng):
    images = np.zeros((3, 12, 10))
    for image in images:
        top, left = rng.integers(0, 5, 2)
        h, w = rng.integers(1, 6, 2)
        image[top : top + h, left : left + w] = rng.random((h, w)) + 0.1
    found = Trim(size, keep_aspect=False).fit_transform(images)
    expected = [image_loops.trimmed(image, size) for image in images]
    assert_allclose(found, expected, atol=1e-12)


def test_nothing_to_trim_changes_nothing(rng):
    images = rng.random((3, 7, 9)) + 0.1
    for keep_aspect in (False, True):
        found = Trim(keep_aspect=keep_aspect).fit_transform(images)
        assert_array_equal(found, images)


def test_aspect_is_kept():
    image = np.zeros((1, 20, 20))
    image[0, 3:13, 5:10] = 1
    found = Trim(size=(30, 30)).fit_transform(image)[0]
    rows, columns = np.nonzero(found)
    assert (rows.min(), rows.max() + 1) == (0, 30)
    assert (columns.min(), columns.max() + 1) == (7, 22)
    assert_allclose(found[:, 7:22], 1)
    wide = Trim(size=(10, 30)).fit_transform(image)[0]
    assert_allclose(wide.sum(), 10 * 5)


def test_shrinking_is_an_average(rng):
    image = rng.random((1, 64, 64)) + 0.1
    found = Trim(size=4).fit_transform(image)
    # An average varies far less than single pixels do.
    assert found.std() < 0.1 * image.std()
    assert found.mean() == pytest.approx(image.mean(), rel=0.02)


def test_margin():
    image = np.ones((1, 5, 5))
    found = Trim(size=9, margin=2).fit_transform(image)[0]
    assert_array_equal(np.argwhere(found > 0).min(0), [2, 2])
    assert_array_equal(np.argwhere(found > 0).max(0), [6, 6])
    assert found.sum() == pytest.approx(25)


def test_threshold():
    image = np.full((1, 6, 6), 0.2)
    image[0, 2:4, 2:4] = 1
    assert_array_equal(Trim().fit_transform(image), image)
    assert_allclose(Trim(threshold=0.2).fit_transform(image), 1)


@pytest.mark.parametrize("keep_aspect", [True, False])
def test_blank_images_stay_blank(keep_aspect):
    images = np.zeros((2, 6, 6), dtype=np.uint8)
    found = Trim(size=(4, 7), keep_aspect=keep_aspect).fit_transform(images)
    assert found.shape == (2, 4, 7)
    assert_array_equal(found, 0)


def test_one_pixel_and_one_stroke():
    images = np.zeros((2, 8, 8))
    images[0, 3, 5] = 2
    images[1, 1:7, 4] = 3
    filled = Trim(keep_aspect=False).fit_transform(images)
    assert_allclose(filled[0], 2)
    assert_allclose(filled[1], 3)
    kept = Trim().fit_transform(images)
    assert_allclose(kept[0], 2)
    assert ((kept[1] > 0).sum(axis=1) == 1).all()


def test_a_hair_keeps_a_pixel():
    image = np.zeros((1, 100, 100))
    image[0, :, 50] = 1
    found = Trim(size=10).fit_transform(image)[0]
    assert ((found > 0).sum(axis=1) == 1).all()


def test_colour(rng):
    images = np.zeros((2, 9, 9, 3))
    # The two points are in different channels and at different places.
    images[:, 2, 3, 0] = 1
    images[:, 5, 6, 2] = 1
    found = Trim(size=4, keep_aspect=False).fit_transform(images)
    assert found.shape == (2, 4, 4, 3)
    assert_allclose(found[0, 0, 0, 0], 1)
    assert_allclose(found[0, 3, 3, 2], 1)
    assert_allclose(found[..., 1], 0)


def test_flattened_images_change_their_length():
    found = Trim(size=(5, 8)).fit(np.ones((3, 36)))
    assert found.transform(np.ones((3, 36))).shape == (3, 40)
    assert len(found.get_feature_names_out()) == 40


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"size": 0}, "'size' parameter of Trim"),
        ({"size": (3, 0)}, r"Trim: size must be .* got \(3, 0\)"),
        ({"size": 4, "margin": 2}, r"margin=2 .* size \(4, 4\)\. Lower .* at most 1"),
        ({"margin": -1}, "'margin' parameter of Trim"),
        ({"threshold": np.nan}, "'threshold' parameter of Trim"),
    ],
)
def test_wrong_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        Trim(**parameters).fit(np.zeros((1, 6, 6)))
