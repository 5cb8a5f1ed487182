import image_loops
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import ndimage

from mercer.images import Deskew
from real_data import read_data

METHODS = ["hough", "moments"]


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [20, 28, 64])
def test_hough_angle_of_strokes(size, width, rng):
    angles = rng.uniform(-42, 42, 20)
    strokes = np.array(
        [
            image_loops.stroke(a, width, 0.7 * size, size, rng.uniform(-1, 1, 2))
            for a in angles
        ]
    )
    assert_allclose(Deskew().angles(strokes), angles, atol=1.0)
    upright = Deskew().transform(strokes)
    assert_allclose(Deskew().angles(upright), 0, atol=1.0)


@pytest.mark.parametrize("degrees", [-70, -50, 60, 80])
def test_steep_lines_count_if_asked_for(degrees):
    image = image_loops.stroke(degrees, 2, 20, 28)[None]
    assert Deskew(max_angle=90).angles(image)[0] == pytest.approx(degrees, abs=1)
    assert Deskew().angles(image)[0] == 45 * np.sign(degrees)


def test_an_almost_level_line_is_turned_if_asked_for():
    image = image_loops.stroke(88, 2, 20, 28)[None]
    assert Deskew(max_angle=90).angles(image)[0] == pytest.approx(88, abs=1)


def test_a_level_line_stays():
    image = image_loops.stroke(90, 2, 20, 28)[None]
    assert_array_equal(Deskew().fit_transform(image), image)


def test_hough_finds_a_known_rotation(rng):
    # The image is a vertical bar with a foot and a dot; SciPy rotates it.
    image = np.zeros((40, 40))
    image[6:34, 19:22] = 1
    image[31:34, 19:27] = 0.7
    image[10, 30] = 1
    before = Deskew().angles(image[None])[0]
    for degrees in (-35, -20, -7, 4, 15, 30):
        # A positive angle rotates to the left in SciPy.
        turned = ndimage.rotate(image, degrees, reshape=False, order=1)
        angle = Deskew().angles(turned[None])[0]
        assert angle - before == pytest.approx(-degrees, abs=1)


def test_the_long_line_dominates():
    image = image_loops.stroke(25, 2, 24, 32)
    image = np.maximum(image, image_loops.stroke(-30, 2, 10, 32, (3, 0)))
    assert Deskew().angles(image[None])[0] == pytest.approx(25, abs=1.5)


def test_moments_equal_loops(rng):
    images = rng.random((4, 9, 7)) ** 3
    angles = [image_loops.lean_of_moments(image) for image in images]
    assert_allclose(Deskew("moments").angles(images), angles, atol=1e-9)
    expected = [
        image_loops.sheared(image, a) for image, a in zip(images, angles, strict=True)
    ]
    assert_allclose(Deskew("moments").transform(images), expected, atol=1e-9)


def test_rotation_equals_scipy(rng):
    image = image_loops.stroke(17, 3, 18, 28, (1, -2))
    angle = np.radians(Deskew().angles(image[None])[0])
    centre = np.array(ndimage.center_of_mass(image))
    matrix = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    expected = ndimage.affine_transform(
        image, matrix, centre - matrix @ centre, order=1
    )
    assert_allclose(Deskew().transform(image[None])[0], expected, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_per_class_slant_is_halved(method):
    data = read_data("mnist")
    images, digits = data["x_train"][:5000], data["y_train"][:5000]
    slant = Deskew("moments")

    def spread(stack):
        angles = slant.angles(stack)
        return np.array([angles[digits == k].std() for k in range(10)])

    before, after = spread(images), spread(Deskew(method).transform(images))
    assert after.mean() < 0.5 * before.mean()
    assert (after < 0.75 * before).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [0.0, 3.0, -2.0])
def test_constant_images_stay(method, value):
    images = np.full((2, 8, 8), value)
    assert_array_equal(Deskew(method).angles(images), 0)
    assert_array_equal(Deskew(method).fit_transform(images), images)


@pytest.mark.parametrize("method", METHODS)
def test_single_dots_stay(method):
    images = np.zeros((3, 9, 9))
    images[0, 0, 0] = images[1, 4, 4] = images[2, 8, 3] = 1
    assert_array_equal(Deskew(method).fit_transform(images), images)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("columns", [slice(9, 10), slice(9, 11), slice(8, 13)])
def test_upright_strokes_stay(method, columns):
    image = np.zeros((1, 20, 20))
    image[0, 2:18, columns] = 1
    assert_array_equal(Deskew(method).fit_transform(image), image)


@pytest.mark.parametrize("method", METHODS)
def test_one_row_stays_a_row(method):
    image = np.zeros((1, 9, 9))
    image[0, 4, 1:8] = 1
    assert_array_equal(Deskew(method).fit_transform(image), image)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (1, 1, 3)])
def test_images_that_are_too_thin_to_lean_stay(method, shape, rng):
    images = rng.random((5, *shape))
    assert_array_equal(Deskew(method).fit_transform(images), images)


@pytest.mark.parametrize("method", METHODS)
def test_the_smallest_images_that_lean(method, rng):
    diagonals = np.array([np.eye(2), np.eye(2)[::-1]])
    images = diagonals + 0.2 * rng.random((2, 2, 2))
    deskew = Deskew(method).fit(images)
    angles = deskew.angles(images)
    assert -45 <= angles[0] < -25 and 25 < angles[1] <= 45
    found = deskew.transform(images)
    assert (abs(found - images).max(axis=(1, 2)) > 0.3).all()
    # Pixels outside of the image count as its darkest one.
    wide = [np.pad(image, 8, constant_values=image.min()) for image in images]
    expected = Deskew(method).fit_transform(np.array(wide))[:, 8:-8, 8:-8]
    assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_channels_move_together(method):
    grey = image_loops.stroke(20, 2, 15, 21)
    colour = grey[..., None] * np.array([0.5, 1.0, 0.25])
    upright = Deskew(method).fit_transform(grey[None])[0]
    found = Deskew(method).fit_transform(colour[None])[0]
    for k, weight in enumerate((0.5, 1.0, 0.25)):
        assert_allclose(found[..., k], weight * upright, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_brightness_does_not_matter(method):
    image = image_loops.stroke(20, 2, 15, 21)[None]
    dark = Deskew(method).fit_transform(image)
    assert_allclose(Deskew(method).fit_transform(image - 3), dark - 3, atol=1e-9)
    assert_allclose(Deskew(method).fit_transform(7 * image), 7 * dark, atol=1e-9)


def test_round_shapes_hardly_turn():
    y, x = np.mgrid[:28, :28] - 13.5
    ring = (abs(np.hypot(x, y) - 8) < 1.5).astype(float)[None]
    out = Deskew().fit_transform(ring)
    assert abs(out - ring).mean() < 0.1


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"method": "radon"}, "'method' parameter of Deskew .* 'radon'"),
        ({"max_angle": 0}, "'max_angle' parameter of Deskew"),
        ({"max_angle": 91}, "'max_angle' parameter of Deskew"),
    ],
)
def test_wrong_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        Deskew(**parameters).fit(np.zeros((1, 4, 4)))
