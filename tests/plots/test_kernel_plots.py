"""Kernel matrices and kernel weights."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, gram_matrix
from mercer.datasets import make_clouds
from mercer.kernels import RBF, Linear
from mercer.plots import KernelMatrixDisplay, KernelWeightsDisplay


@pytest.fixture(scope="module")
def clouds():
    X, y = make_clouds(31, n_classes=3, random_state=0)
    return X, np.array(["z", "x", "y"])[y]


def test_matrix_is_ordered_by_class(clouds, ax):
    X, y = clouds
    display = KernelMatrixDisplay.from_kernel(RBF(0.5), X, y, ax=ax, title="RBF")
    order = np.argsort(y, kind="stable")
    np.testing.assert_array_equal(display.order_, order)
    K = gram_matrix(RBF(0.5), X)
    np.testing.assert_allclose(display.image_.get_array(), K[order][:, order])
    assert display.ax_ is ax and ax.get_title() == "RBF"
    assert [t.get_text() for t in ax.get_yticklabels()] == ["x", "y", "z"]
    ends = np.cumsum([(y == name).sum() for name in "xyz"])[:-1] - 0.5
    levels = sorted({li.get_ydata()[0] for li in display.lines_[::2]})
    assert levels == pytest.approx(ends)
    for tick, name in zip(ax.get_xticks(), "xyz", strict=True):
        assert (y[order] == name)[round(tick)]
    assert display.colorbar_.ax.get_ylabel() == "k(x, z)"


def test_matrix_of_estimators_and_text(clouds):
    X, y = clouds
    model = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    display = KernelMatrixDisplay.from_estimator(model, X, colorbar=False)
    expected = gram_matrix(model[-1].kernel_, model[0].transform(X))
    np.testing.assert_allclose(display.image_.get_array(), expected)
    assert display.colorbar_ is None and display.ax_.get_xlabel() == "sample"
    display = KernelMatrixDisplay.from_kernel("2 * linear", X)
    np.testing.assert_allclose(display.image_.get_array(), 2 * X @ X.T)
    plain = KernelMatrixDisplay.from_estimator(SVC(gamma=1).fit(X, y), X, y)
    np.testing.assert_array_equal(plain.order_, np.argsort(y, kind="stable"))


def test_matrix_errors(clouds):
    with pytest.raises(ValueError, match=r"must be square, got shape \(2, 3\)"):
        KernelMatrixDisplay.from_matrix(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="one class for each of the 2 rows"):
        KernelMatrixDisplay.from_matrix(np.eye(2), [1, 2, 3])
    scaler = StandardScaler().fit(clouds[0])
    with pytest.raises(TypeError, match="StandardScaler has no kernel_"):
        KernelMatrixDisplay.from_estimator(scaler, clouds[0])


class Combination(BaseEstimator):
    """What a learner of kernel weights looks like."""

    def __init__(self, kernels=(), weights=()):
        self.kernels = kernels
        self.weights = weights

    def fit(self, X=None, y=None):
        self.weights_ = np.asarray(self.weights)
        self.classes_ = np.array(["a", "b", "c"])
        return self


@pytest.mark.parametrize(
    ("kernels", "names"),
    [
        ([Linear(), "rbf"], [str(Linear()), "rbf"]),
        ([("first", Linear()), ("second", RBF())], ["first", "second"]),
        ({"u": Linear(), "v": RBF()}, ["u", "v"]),
        ("all", ["kernel 0", "kernel 1"]),
        ([Linear()], ["kernel 0", "kernel 1"]),
    ],
)
def test_weights_of_an_estimator(kernels, names, ax):
    model = Combination(kernels, [0.25, 0.75]).fit()
    display = KernelWeightsDisplay.from_estimator(model, ax=ax, title="weights")
    (bars,) = display.bars_
    assert [bar.get_width() for bar in bars] == [0.25, 0.75]
    assert [t.get_text() for t in ax.get_yticklabels()] == names
    assert {"0.25", "0.75"} <= {text.get_text() for text in ax.texts}
    assert ax.get_legend() is None
    assert ax.yaxis_inverted()
    assert ax.get_xlabel() == "weight"


def test_sets_of_weights_differ_in_hatch():
    model = Combination(["k", "l"], [[0.1, 0.9], [0.5, 0.5], [1.0, 0.0]]).fit()
    display = KernelWeightsDisplay.from_estimator(model)
    assert [
        [bar.get_width() for bar in bars] for bars in display.bars_
    ] == model.weights
    assert len({bars[0].get_hatch() for bars in display.bars_}) == 3
    texts = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert texts == ["class a", "class b", "class c"]
    two = Combination(["k"], [[0.1], [0.9]]).fit()
    display = KernelWeightsDisplay.from_estimator(two, names=["mine"], values_format="")
    texts = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert texts == ["machine 0", "machine 1"]
    assert len(display.ax_.texts) == 0


def test_weights_errors(clouds):
    with pytest.raises(TypeError, match="SVC has no weights_"):
        KernelWeightsDisplay.from_estimator(SVC().fit(*clouds))
    with pytest.raises(ValueError, match="names of 2 bars, got 1"):
        KernelWeightsDisplay.from_weights([1, 2], ["a"])
    with pytest.raises(ValueError, match="names of 1 sets, got 2"):
        KernelWeightsDisplay.from_weights([1, 2], sets=["a", "b"])
    with pytest.raises(ValueError, match="no values to draw"):
        KernelWeightsDisplay.from_weights([])
