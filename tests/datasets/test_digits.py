import numpy as np
from sklearn.datasets import load_digits as reference

from mercer.datasets import load_digits


def test_they_are_scikit_learns():
    X, y = load_digits()
    expected = reference()
    np.testing.assert_array_equal(X, expected.data)
    np.testing.assert_array_equal(y, expected.target)
    assert (X.dtype, y.dtype) == (np.float64, np.int64)


def test_images_in_the_unit_interval():
    X, _ = load_digits(as_images=True, scale=True)
    assert X.shape == (1797, 8, 8)
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, reference().images.astype(np.float32) / 16)


def test_a_bunch():
    bunch = load_digits(as_bunch=True)
    assert bunch.data.shape == (1797, 64)
    assert bunch.images.shape == (1797, 8, 8)
    assert bunch.target_names.tolist() == list(range(10))
    assert "digits" in bunch.DESCR
