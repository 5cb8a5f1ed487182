import image_loops
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from skimage.feature import hog as skimage_hog

from mercer.images import HOG
from real_data import read_data

NORMS = ["L1", "L1-sqrt", "L2", "L2-Hys"]
SIZES = [(8, 3, 9), (4, 2, 8), (5, 2, 12), (7, 1, 6)]


def by_skimage(images, cell, block, bins, norm):
    axis = -1 if images.ndim == 4 else None
    return np.array(
        [
            skimage_hog(
                image, bins, (cell, cell), (block, block), norm, channel_axis=axis
            )
            for image in images
        ]
    )


@pytest.fixture(scope="module")
def digits():
    return read_data("mnist")["x_train"][:50]


@pytest.fixture(scope="module")
def photographs():
    return read_data("cifar10_subset")["x_train"][:50]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("cell, block, bins", SIZES)
@pytest.mark.parametrize("data", ["digits", "photographs"])
def test_equals_skimage(data, cell, block, bins, norm, request):
    images = request.getfixturevalue(data)
    found = HOG(cell, block, bins, norm).fit_transform(images)
    expected = by_skimage(images, cell, block, bins, norm)
    assert found.dtype == np.float32
    assert_allclose(found, expected, rtol=0, atol=1e-6)
    double = HOG(cell, block, bins, norm).fit_transform(images.astype(float))
    # skimage adds the votes in single precision.
    assert_allclose(double, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("data", ["digits", "photographs"])
def test_equals_skimage_on_fractions(data, dtype, request):
    images = (request.getfixturevalue(data) / 255).astype(dtype)
    found = HOG().fit_transform(images)
    assert found.dtype == dtype
    expected = by_skimage(images, 8, 3, 9, "L2-Hys")
    assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_defaults_are_those_of_skimage(digits):
    expected = [skimage_hog(image) for image in digits[:5]]
    assert_allclose(HOG().fit_transform(digits[:5]), expected, atol=1e-6)


def test_cells_and_blocks_need_not_be_square(rng):
    images = rng.integers(0, 256, (3, 20, 31), dtype=np.uint8)
    found = HOG((4, 5), (2, 3), 7).fit_transform(images)
    expected = [skimage_hog(image, 7, (4, 5), (2, 3)) for image in images]
    assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("norm", [*NORMS, "none"])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("shape", [(9, 11), (8, 8, 3)])
def test_equals_loops(shape, soft, signed, norm, rng):
    images = rng.standard_normal((2, *shape))
    transformer = HOG(3, 2, 5, norm, signed, soft)
    expected = [image_loops.hog(i, 3, 2, 5, norm, signed, soft) for i in images]
    # The square root of a vote that is 0 up to rounding can be 1e-8.
    assert_allclose(transformer.fit_transform(images), expected, atol=1e-7)


@pytest.mark.parametrize("soft", [False, True])
def test_opposite_gradients_differ_only_if_signed(soft):
    ramp = np.tile(np.arange(8.0), (1, 8, 1))
    for signed in (False, True):
        transformer = HOG(4, 1, 4, "none", signed, soft)
        a, b = transformer.fit_transform(np.concatenate([ramp, ramp[..., ::-1]]))
        assert (np.abs(a.sum() - b.sum()) < 1e-12) and (np.allclose(a, b) != signed)


def test_soft_votes_lose_nothing_inside():
    # Away from the border, the shares of a gradient add up to its whole length.
    image = np.zeros((1, 24, 24))
    image[0, 11:13, 11:13] = np.array([[1.0, 2.0], [3.0, 5.0]])
    hard = HOG(4, 1, 8, "none").fit_transform(image)
    soft = HOG(4, 1, 8, "none", interpolation=True).fit_transform(image)
    assert soft.sum() == pytest.approx(hard.sum())
    assert (soft > 0).sum() > (hard > 0).sum()


def test_soft_votes_change_little_with_a_small_turn():
    y, x = np.mgrid[:16, :16]
    # The two slopes lie on either side of the edge between two bins.
    angles = np.radians([[[19.9]], [[20.1]]])
    ramps = x * np.cos(angles) + y * np.sin(angles)

    def change(soft):
        a, b = HOG(4, 2, 9, interpolation=soft).fit_transform(ramps)
        return np.linalg.norm(a - b) / np.linalg.norm(a)

    assert change(soft=False) > 1
    assert change(soft=True) < 0.1


@pytest.mark.parametrize("value", [0, 7, 255])
def test_constant_images_have_no_features(value):
    images = np.full((2, 16, 16), value, dtype=np.uint8)
    assert_array_equal(HOG(4, 2).fit_transform(images), 0)


def test_all_norms_are_of_length_one(rng):
    image = rng.random((1, 16, 16))
    for norm, length in [("L1", 1), ("L2", 2), ("L2-Hys", 2)]:
        features = HOG(4, 2, block_norm=norm).fit_transform(image).reshape(-1, 36)
        assert_allclose(np.linalg.norm(features, length, axis=1), 1, atol=1e-4)
    assert HOG(4, 2, block_norm="L2").fit_transform(image).max() > 0.2


def test_images_that_hold_no_block():
    with pytest.raises(ValueError, match=r"16 x 12 .* at least 24 x 24 pixels"):
        HOG().fit(np.zeros((1, 16, 12)))


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"cell_size": 0}, "'cell_size' parameter of HOG"),
        ({"cell_size": (4, 0)}, r"HOG: cell_size must be .* got \(4, 0\)"),
        ({"block_size": (1, 2, 3)}, r"HOG: block_size must be .* got \(1, 2, 3\)"),
        ({"bins": 2.5}, "'bins' parameter of HOG"),
        ({"block_norm": "l2"}, "'block_norm' parameter of HOG .* 'l2'"),
    ],
)
def test_wrong_parameters(parameters, message):
    images = np.zeros((1, 32, 32))
    with pytest.raises(ValueError, match=message):
        HOG(**parameters).fit(images)
    with pytest.raises(ValueError, match=message):
        HOG(**parameters).transform(images)


def test_names_of_features():
    names = HOG(8, 1, 4).fit(np.zeros((1, 16, 16))).get_feature_names_out()
    assert list(names[:2]) == ["hog0", "hog1"]
    assert len(names) == 16
