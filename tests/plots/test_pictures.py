"""Galleries of images."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from mercer import SVC, SVDD
from mercer.datasets import load_digits
from mercer.images import HOG, GaussianBlur
from mercer.plots import ImageGalleryDisplay


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(scale=True)
    return X[:300], y[:300]


def pixels(display):
    return np.stack([np.asarray(image.get_array()) for image in display.images_])


def texts(display):
    return [text.get_text() for text in display.captions_]


def boxes_overlap(a, b):
    return max(a[0], b[0]) < min(a[1], b[1]) and max(a[3], b[3]) < min(a[2], b[2])


def test_images_stand_in_rows(digits, ax):
    X, y = digits
    display = ImageGalleryDisplay.from_images(
        X[:7], y[:7], n_columns=3, ax=ax, title="digits"
    )
    assert display.ax_ is ax and ax.get_title() == "digits"
    np.testing.assert_allclose(pixels(display), X[:7].reshape(7, 8, 8))
    assert texts(display) == [str(k) for k in y[:7]]
    boxes = [image.get_extent() for image in display.images_]
    for k, box in enumerate(boxes):
        assert not any(boxes_overlap(box, other) for other in boxes[:k])
    assert boxes[0][3] == boxes[2][3] < boxes[3][3] < boxes[6][3]
    low, high = sorted(ax.get_ylim())
    assert low < boxes[0][3] and boxes[6][2] < high


def test_misclassified(digits):
    X, y = digits
    model = SVC(gamma=0.05).fit(X[:40], y[:40])
    predicted = model.predict(X)
    wrong = np.flatnonzero(predicted != y)
    assert len(wrong) > 5
    display = ImageGalleryDisplay.from_estimator(model, X, y, max_images=5)
    np.testing.assert_allclose(pixels(display), X[wrong[:5]].reshape(5, 8, 8))
    k = wrong[0]
    assert texts(display)[0] == f"true {y[k]}\npred. {predicted[k]}"
    features = make_pipeline(FunctionTransformer(), model)
    display = ImageGalleryDisplay.from_estimator(
        features, X, y, images=1 - X.reshape(-1, 8, 8), max_images=5
    )
    np.testing.assert_allclose(pixels(display), 1 - X[wrong[:5]].reshape(5, 8, 8))


def test_nothing_wrong(digits):
    X, y = digits
    display = ImageGalleryDisplay.from_predictions(X, y, y)
    assert display.images_ == []
    assert [text.get_text() for text in display.ax_.texts] == ["no images"]


def test_before_and_after(digits):
    X, _ = digits
    display = ImageGalleryDisplay.from_transformers(
        {"blurred": GaussianBlur(1.0)}, X[:4]
    )
    after = GaussianBlur(1.0).fit_transform(X[:4].reshape(-1, 8, 8))
    np.testing.assert_allclose(pixels(display)[:4], X[:4].reshape(-1, 8, 8))
    np.testing.assert_allclose(pixels(display)[4:], after, rtol=1e-6)
    assert [text.get_text() for text in display.row_names_] == ["before", "blurred"]
    left = [image.get_extent()[0] for image in display.images_]
    assert left[:4] == left[4:]
    assert all(text.get_position()[0] < left[0] for text in display.row_names_)
    with pytest.raises(ValueError, match="HOG makes an array of shape"):
        ImageGalleryDisplay.from_transformers(
            {"HOG": HOG(cell_size=2, block_size=2)}, X[:4]
        )


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_support_vectors(digits, multiclass):
    X, y = digits
    model = SVC(C=10, gamma=0.05, multiclass=multiclass).fit(X, y)
    display = ImageGalleryDisplay.from_support_vectors(model, max_images=6)
    sizes = np.abs(model.dual_coef_).max(axis=0)
    chosen = np.argsort(-sizes, kind="stable")[:6]
    expected = X[model.support_[chosen]].reshape(-1, 8, 8)
    np.testing.assert_allclose(pixels(display), expected)
    k = chosen[0]
    assert texts(display)[0] == f"class {y[model.support_[k]]}\n|β| = {sizes[k]:.3g}"
    ball = SVDD(C=0.1).fit(X)
    display = ImageGalleryDisplay.from_support_vectors(ball, max_images=2)
    assert texts(display)[0].startswith("|β| = ")


def test_color_and_other_shapes(rng):
    images = rng.random((3, 4, 6, 3))
    display = ImageGalleryDisplay.from_images(images)
    np.testing.assert_allclose(pixels(display), images)
    left, right, bottom, top = display.images_[0].get_extent()
    assert (right - left) / (bottom - top) == pytest.approx(1.5)
    flat = rng.random((2, 24))
    display = ImageGalleryDisplay.from_images(flat, shape=(4, 6))
    np.testing.assert_allclose(pixels(display), flat.reshape(2, 4, 6))


def test_errors(digits):
    X, y = digits
    with pytest.raises(ValueError, match="24 pixels are not a square image"):
        ImageGalleryDisplay.from_images(np.zeros((2, 24)))
    with pytest.raises(ValueError, match="2 images need as many captions, got 1"):
        ImageGalleryDisplay.from_images(X[:2], ["a"])
    with pytest.raises(ValueError, match="n_columns must be at least 1, got 0"):
        ImageGalleryDisplay.from_images(X[:2], n_columns=0)
    with pytest.raises(ValueError, match="got 300 images, 299 true and 300 predicted"):
        ImageGalleryDisplay.from_predictions(X, y[1:], y)
