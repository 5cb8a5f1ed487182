import numpy as np
import pytest
from sklearn import svm

from mercer import LinearSVC, l1_min_c


def test_where_weights_begin(rng):
    X, y = rng.standard_normal((40, 5)), np.arange(40) % 3
    least = l1_min_c(X, y)
    assert least == pytest.approx(svm.l1_min_c(X, y))
    assert not LinearSVC("l1", C=0.999 * least).fit(X, y).coef_.any()
    assert LinearSVC("l1", C=1.01 * least, tol=1e-8).fit(X, y).coef_.any()


def test_refusals(rng):
    X, y = rng.standard_normal((10, 2)), np.arange(10) % 2
    with pytest.raises(ValueError, match="loss must be one of"):
        l1_min_c(X, y, loss="hinge")
    with pytest.raises(ValueError, match="Ill-posed"):
        l1_min_c(np.zeros((10, 2)), y)
    with pytest.raises(ValueError, match="intercept_scaling must be > 0"):
        l1_min_c(X, y, intercept_scaling=0.0)
