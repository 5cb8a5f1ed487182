"""Behaviour that all transformers share: forms of input, threads, errors, progress."""

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from mercer.images import (
    HOG,
    ColourHistogram,
    Deskew,
    Distort,
    GaussianBlur,
    GaussianProjection,
    MedianFilter,
    PatchFeatures,
    Rescale,
    ToGrey,
    Trim,
    base,
)
from mercer.runtime import progress

STATELESS = [
    Deskew(),
    Deskew("moments"),
    Trim(size=(9, 7)),
    MedianFilter(),
    GaussianBlur(),
    ToGrey(),
    HOG(2, 2),
    HOG(2, 2, interpolation=True),
]
LEARNING = [
    Rescale(),
    Rescale("image"),
    GaussianProjection(1e-4),
    Distort(random_state=0),
    ColourHistogram(3, 2),
    PatchFeatures(2, 5, 2, n_patches=100, max_iter=2, random_state=0),
]
ALL = [*STATELESS, *LEARNING]
SHAPED = [t for t in ALL if "shape" in t.get_params()]
every = pytest.mark.parametrize("transformer", ALL, ids=str)
every_shaped = pytest.mark.parametrize("transformer", SHAPED, ids=str)


@pytest.fixture
def images(rng):
    return rng.integers(0, 256, (11, 8, 8), dtype=np.uint8)


@pytest.fixture
def colour(rng):
    return rng.integers(0, 256, (5, 8, 8, 3), dtype=np.uint8)


@every
@pytest.mark.parametrize("data", ["images", "colour"])
def test_flattened_images_give_the_same(transformer, data, request):
    stack = request.getfixturevalue(data)
    expected = clone(transformer).fit_transform(stack)
    flat = clone(transformer).fit_transform(stack.reshape(len(stack), -1))
    assert_array_equal(flat, expected.reshape(len(stack), -1))


@every
def test_fitted_to_one_form_takes_the_other(transformer, images):
    flat = images.reshape(len(images), -1)
    for known in (images, flat):
        fitted = clone(transformer).fit(known)
        rows = fitted.transform(images).reshape(len(images), -1)
        assert_array_equal(fitted.transform(flat), rows)


@every_shaped
def test_shape_of_flattened_images(transformer, rng):
    stack = rng.random((4, 6, 10))
    expected = clone(transformer).fit_transform(stack)
    flat = stack.reshape(4, -1)
    for shape in ((6, 10), [6, -1], (-1, 10)):
        found = clone(transformer).set_params(shape=shape).fit_transform(flat)
        assert_array_equal(found, expected.reshape(4, -1))


@every
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64, np.float64, bool])
def test_precision(transformer, dtype, images):
    found = clone(transformer).fit_transform(images.astype(dtype))
    is_double = dtype in (np.int64, np.float64)
    assert found.dtype == (np.float64 if is_double else np.float32)


@every
def test_single_precision_is_close_to_double(transformer, images):
    single = clone(transformer).fit_transform(images.astype(np.float32))
    double = clone(transformer).fit_transform(images.astype(np.float64))
    assert abs(single - double).max() <= 1e-5 * max(1, abs(double).max())


@every
def test_layout_does_not_matter(transformer, images):
    expected = clone(transformer).fit_transform(images)
    frozen = np.asfortranarray(images)
    frozen.flags.writeable = False
    assert_array_equal(clone(transformer).fit_transform(frozen), expected)
    strided = np.repeat(images, 2, axis=2)[:, :, ::2]
    assert_array_equal(clone(transformer).fit_transform(strided), expected)
    wide = clone(transformer).fit_transform(images.astype(int))
    assert_array_equal(clone(transformer).fit_transform(images.tolist()), wide)


@every
def test_input_is_not_changed(transformer, images):
    for dtype in (np.uint8, np.float32, np.float64):
        stack = images.astype(dtype)
        clone(transformer).fit_transform(stack)
        assert_array_equal(stack, images)


@every
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_threads_and_batches_do_not_matter(transformer, n_jobs, images, monkeypatch):
    fitted = clone(transformer).fit(images)
    expected = fitted.transform(images)
    one_by_one = np.concatenate([fitted.transform(image[None]) for image in images])
    assert_array_equal(one_by_one, expected)
    # A batch of two images gives every thread several batches.
    monkeypatch.setattr(base, "BATCH", 2 * 64)
    fitted.set_params(n_jobs=n_jobs)
    assert_array_equal(fitted.transform(images), expected)


def test_angles_in_batches(images, monkeypatch):
    expected = Deskew().angles(images)
    monkeypatch.setattr(base, "BATCH", 2 * 64)
    assert_array_equal(Deskew().angles(images), expected)


@pytest.mark.parametrize("transformer", STATELESS, ids=str)
def test_nothing_to_learn_needs_no_fit(transformer, images):
    expected = clone(transformer).fit_transform(images)
    assert_array_equal(clone(transformer).transform(images), expected)


@every
@pytest.mark.parametrize("value, name", [(np.nan, "NaN"), (-np.inf, "inf")])
def test_what_is_not_finite_is_named(transformer, value, name, images):
    stack = images.astype(float)
    stack[3, 2, 5] = value
    with pytest.raises(ValueError, match=rf"sample 3 has .*{name}.* at \(2, 5\)"):
        clone(transformer).fit(stack)
    flat = stack.reshape(len(stack), -1)
    with pytest.raises(ValueError, match=rf"sample 3 has .*{name}.* at 21\. .* drop"):
        clone(transformer).fit(images).transform(flat)


def test_large_values_are_finite():
    # The values are finite, and their sum is not.
    images = np.full((2, 4, 4), np.finfo(np.float32).max, dtype=np.float32)
    assert_array_equal(Rescale().fit_transform(images), 0)


@every_shaped
def test_rows_that_are_no_square(transformer):
    with pytest.raises(ValueError, match=r"10 pixels are not a square .*shape=\(h,"):
        clone(transformer).fit(np.zeros((2, 10)))


@every_shaped
def test_rows_that_do_not_fill_the_shape(transformer):
    with pytest.raises(ValueError, match=r"64 pixels do not fill .* shape=\(7, 9\)"):
        clone(transformer).set_params(shape=(7, 9)).fit(np.zeros((2, 64)))


@every_shaped
def test_stacks_of_another_shape_than_told(transformer):
    message = r"shape=\(7, 9\) does not match the images, whose shape is \(8, 8\)"
    with pytest.raises(ValueError, match=message):
        clone(transformer).set_params(shape=(7, 9)).fit(np.zeros((2, 8, 8)))


@every_shaped
@pytest.mark.parametrize("shape", [(8,), (8, 8, 1), (0, 8), (-1, -1), (8.0, 8), "88"])
def test_wrong_shape(transformer, shape):
    with pytest.raises(ValueError, match=r"shape.* (must be|of) .*[gG]ot"):
        clone(transformer).set_params(shape=shape).fit(np.zeros((2, 64)))


@every_shaped
@pytest.mark.parametrize("shape", [(2, 8, 8, 1), (2, 8, 8, 4), (2, 8, 8, 3, 1)])
def test_arrays_that_are_no_images(transformer, shape):
    with pytest.raises(ValueError, match=r"is not a stack of images.* Pass images as"):
        clone(transformer).fit(np.zeros(shape))


@every
def test_single_images_need_a_stack(transformer):
    with pytest.raises(ValueError, match=r"Reshape your data"):
        clone(transformer).fit(np.zeros(64))


@every_shaped
def test_other_images_than_in_fit(transformer, images):
    fitted = clone(transformer).fit(images)
    with pytest.raises(ValueError, match=r"X has 81 features, but .* expecting 64"):
        fitted.transform(np.zeros((2, 9, 9)))
    with pytest.raises(ValueError, match=r"fitted to images of shape \(8, 8\), got"):
        fitted.transform(np.zeros((2, 16, 4)))


def test_no_pixels():
    with pytest.raises(ValueError, match="the images have no pixels"):
        MedianFilter().fit(np.zeros((2, 0, 5)))


def test_a_whole_pipeline(images):
    pipeline = make_pipeline(
        Deskew(), Trim(size=12), MedianFilter(), GaussianBlur(0.5), Rescale(), HOG(4, 2)
    )
    features = pipeline.fit_transform(images)
    flat = clone(pipeline).fit_transform(images.reshape(len(images), -1))
    assert features.shape == (11, 4 * 36)
    assert_array_equal(flat, features)
    assert list(pipeline.get_feature_names_out()[:2]) == ["hog0", "hog1"]


@every
def test_data_frames(transformer, images):
    pandas = pytest.importorskip("pandas")
    flat = images.reshape(len(images), -1)
    frame = pandas.DataFrame(flat, columns=[f"pixel{k}" for k in range(64)])
    fitted = clone(transformer).set_output(transform="pandas").fit(frame)
    found = fitted.transform(frame)
    assert list(found.columns) == list(fitted.get_feature_names_out())
    assert_array_equal(found, clone(transformer).fit_transform(flat))


def test_progress_is_logged(images, monkeypatch, caplog):
    monkeypatch.setattr(base, "BATCH", 2 * 64)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    with caplog.at_level(logging.INFO, logger="mercer"):
        MedianFilter().fit_transform(images)
        assert not caplog.records
        MedianFilter(verbose=True).fit_transform(images)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 7
    assert lines[0].startswith("[MedianFilter] 0.")
    assert lines[0].endswith("2 of 11 images")
    assert lines[5].endswith("11 of 11 images")
    assert "11 images in" in lines[6]


FLOATS = st.floats(-1e3, 1e3, width=32)
STACKS = arrays(
    st.sampled_from([np.float32, np.float64, np.uint8]),
    st.one_of(
        array_shapes(min_dims=3, max_dims=3, max_side=9),
        array_shapes(min_dims=3, max_dims=3, max_side=9).map(lambda s: (*s, 3)),
    ),
    elements={"min_value": 0, "max_value": 255},
)


@settings(max_examples=60, deadline=None)
@given(STACKS)
def test_odd_images(stack):
    for transformer in ALL:
        if isinstance(transformer, HOG):
            transformer = clone(transformer).set_params(cell_size=1, block_size=1)
        if isinstance(transformer, PatchFeatures):
            transformer = clone(transformer).set_params(patch_size=1, regions=1)
        if isinstance(transformer, ColourHistogram):
            transformer = clone(transformer).set_params(regions=1)
        found = clone(transformer).fit_transform(stack)
        assert len(found) == len(stack)
        assert np.isfinite(found).all()
        kept = isinstance(transformer, Deskew | Distort | MedianFilter | GaussianBlur)
        if kept:
            assert found.shape == stack.shape
            assert found.min() >= stack.min() - 1e-3
            assert found.max() <= stack.max() + 1e-3
