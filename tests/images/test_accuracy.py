"""Accuracy of classifiers on the features of real images."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from mercer import SVC
from mercer.images import HOG, Deskew
from real_data import read_data

pytestmark = [pytest.mark.slow, pytest.mark.ci]


def accuracy(features, data, n, factor):
    X = features.fit_transform(data["x_train"][:n])
    distance = 2 * X.var(axis=0, dtype=np.float64).sum()
    model = SVC(C=5, gamma=factor / distance).fit(X, data["y_train"][:n])
    return model.score(features.transform(data["x_test"]), data["y_test"])


def test_mnist():
    hog = HOG(4, 3, 12, "L1-sqrt", signed=True, interpolation=True)
    features = make_pipeline(Deskew("moments"), hog)
    assert accuracy(features, read_data("mnist"), 5000, 2) >= 0.988


def test_cifar10():
    hog = HOG(8, 2, 18, "L1-sqrt", signed=True, interpolation=True)
    assert accuracy(make_pipeline(hog), read_data("cifar10_subset"), 5000, 2) >= 0.60
