"""Combining kernels: what is computed once, which parameters are refused."""

import re
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.svm import SVC as ReferenceSVC

from mercer.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Custom,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    with_views,
)
from mercer.kernels.base import OnColumns, Power, Product, Scaled, Sum

RNG = np.random.default_rng(1)
X, Z = RNG.normal(size=(12, 6)), RNG.normal(size=(8, 6))


class Counting(Kernel):
    """A linear kernel that counts its evaluations."""

    calls = 0

    def __init__(self, tag=0):
        self.tag = tag

    def evaluate(self, pair):
        Counting.calls += 1
        return pair.dots() + self.tag

    def diagonal(self, operand):
        return (operand.X**2).sum(axis=1) + self.tag


a, b = Counting(1), Counting(2)


@pytest.mark.parametrize(
    ("kernel", "calls"),
    [
        (a, 1),
        (a + a, 1),
        (a + b, 2),
        (a * b + 0.5 * a**2, 2),
        (clone(a) + a, 1),
        ((a + b) * (a + b), 2),
        ((a * b).normalized() + a.normalized(), 2),
        (a + a.on([0, 1]), 2),
        (a.on([0, 1]) * (a.on([0, 1]) + b.on([0, 1])), 2),
        ((a + b).on([0, 1]) * a.on([0, 1]), 2),
        (a.on(slice(0, 2)) + a.on([0, 1]) + a.on(np.arange(6) < 2), 1),
        ((a + b.on([1])).on(slice(2, 5)) + b.on([1]).on(slice(2, 5)), 2),
    ],
)
def test_each_distinct_kernel_is_evaluated_once(kernel, calls):
    Counting.calls = 0
    kernel.block(X, Z)
    assert Counting.calls == calls


def test_keys_tell_long_expressions_apart():
    columns = np.random.default_rng(2).permutation(5000)
    swapped = columns.copy()
    swapped[[2000, 3000]] = swapped[[3000, 2000]]
    for one, other in [(columns, swapped), (columns.tolist(), swapped.tolist())]:
        assert Linear().on(one).key() != Linear().on(other).key()
        deep, deep_other = (
            (RBF(0.1) + Linear().on(c)).normalized() for c in (one, other)
        )
        assert deep.key() != deep_other.key()
    assert RBF(1).key() == RBF(1.0).key() != RBF(2).key()
    assert RBF(gamma=1).key() != RBF(sigma=1).key()
    assert (RBF(1) + Linear()).key() != (RBF(1) * Linear()).key()
    assert Custom(np.dot).key() != Custom(np.matmul).key()


def test_operators():
    k, m = RBF(1.0), Linear()
    assert isinstance(k + m, Sum) and isinstance(k * m, Product)
    assert isinstance(2 * k, Scaled) and isinstance(k * Fraction(1, 2), Scaled)
    assert isinstance(np.float64(2) * k, Scaled) and isinstance(k**2, Power)
    assert isinstance(np.float32(2) * k, Scaled)
    assert (k + m + k).left.key() == (k + m).key()
    for wrong in (lambda: k + 1, lambda: k * "2", lambda: np.ones(2) * k):
        with pytest.raises(TypeError):
            wrong()


REFUSED = {
    "gamma -1": (RBF(-1.0), "gamma must be a finite number >= 0, 'scale' or 'auto', "
                 "got -1.0"),
    "gamma nan": (RBF(np.nan), "gamma must be .* got nan"),
    "gamma inf": (Laplacian(np.inf), "gamma must be .* got inf"),
    "gamma text": (Polynomial(gamma="wide"), "gamma must be .* got 'wide'"),
    "gamma None": (Sigmoid(None), "gamma must be .* got None"),
    "gamma bool": (Laplacian(True), "gamma must be .* got True"),
    "gamma array": (RBF(np.ones(2)), "gamma must be .* got array"),
    "sigma 0": (RBF(sigma=0), "sigma must be a finite number > 0, got 0"),
    "sigma text": (RBF(sigma="auto"), "sigma must be .* got 'auto'"),
    "sigma tiny": (RBF(sigma=1e-200), "gamma must be a finite number"),
    "both": (RBF(1, 2), "RBF takes gamma or sigma, not both; got gamma=1 and sigma=2"),
    "degree -1": (Polynomial(-1), "degree must be a whole number >= 0, got -1"),
    "degree 2.5": (Polynomial(2.5), "degree must be a whole number >= 0, got 2.5"),
    "coef0": (Polynomial(coef0="1"), "coef0 must be a finite number, got '1'"),
    "coef0 nan": (Sigmoid(coef0=np.nan), "coef0 must be a finite number, got nan"),
    "factor": (-2 * Linear(), "factor must be a finite number >= 0, got -2: a negat"),
    "factor nan": (np.nan * Linear(), "factor must be a finite number >= 0, got nan"),
    "factor text": (Scaled(Linear(), "2"), "factor must be .* got '2'"),
    "exponent 0": (Linear() ** 0, "exponent must be a whole number >= 1, got 0"),
    "exponent 1/2": (Linear() ** 0.5, "exponent must be a whole number >= 1, got 0.5"),
    "additive chi2": (AdditiveChi2(), "AdditiveChi2 is for histograms: .* least is -"),
    "chi2": (Chi2(), "Chi2 is for histograms: .* MinMaxScaler"),
    "intersection": (Intersection(), "Intersection is for histograms"),
    "precomputed": (Precomputed() + Linear(), "cannot be combined with other kernels"),
    "custom shape": (Custom(lambda X, Z: X), "returned shape .12, 6. for 12 x 12 samp"),
    "no columns": (Linear().on([]), "has no column left"),
    "empty slice": (Linear().on(slice(9, 20)), "has no column left"),
    "empty mask": (Linear().on(np.zeros(6, bool)), "has no column left"),
    "short mask": (Linear().on([True] * 4), "mask of columns has 4 entries"),
    "column 6": (Linear().on([0, 6]), "Columns 0 to 6 were asked for; the data have 6"),
    "column -7": (Linear().on([-7]), "Columns -7 to -7 were asked for; the data have"),
    "float columns": (Linear().on([0.5]), "Columns must be whole numbers, got .0.5."),
    "one number": (Linear().on(3), "Columns must be whole numbers, got 3"),
    "one bool": (Linear().on(True), "Columns must be whole numbers, got True"),
    "name": (Linear().on("hog"), r"view 'hog', but no views are known .*'hog': ..."),
}  # fmt: skip


@pytest.mark.parametrize(("kernel", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_parameters_are_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel.block(X)
    with pytest.raises(ValueError, match=message):  # wherever it stands
        (0.5 * (Linear() + kernel)).block(X)


def test_custom():
    with pytest.raises(TypeError, match="function of two matrices, got 'rbf'"):
        Custom("rbf").block(X)
    with pytest.raises(ValueError, match=re.escape("got shape (6,)")):
        Linear().block(X[0])
    kernel = Custom(lambda X, Z: sparse.csr_array(X @ Z.T))
    long = RNG.normal(size=(300, 2))
    np.testing.assert_allclose(kernel.diag(long), Linear().diag(long), rtol=1e-12)
    np.testing.assert_allclose(kernel.block(X, Z), X @ Z.T)


def test_precomputed_has_a_diagonal_only():
    K = X @ X.T
    np.testing.assert_array_equal(Precomputed().diag(K), np.diagonal(K))
    with pytest.raises(ValueError, match="no formula to evaluate"):
        Precomputed().block(K)


@pytest.mark.parametrize("gamma", ["scale", "auto"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gamma_is_that_of_scikit_learn(gamma, make, dtype):
    data = make(np.where(X > 0.3, X, 0.0).astype(dtype))
    reference = ReferenceSVC(gamma=gamma).fit(data, np.arange(12) % 2)
    for kernel in (RBF(gamma), Polynomial(gamma=gamma), Sigmoid(gamma)):
        assert kernel.bind(data).gamma == pytest.approx(reference._gamma, rel=1e-6)
    on_columns = Laplacian(gamma).on([0, 2]).bind(data)
    reference.fit(data[:, [0, 2]], np.arange(12) % 2)
    assert on_columns.kernel.gamma == pytest.approx(reference._gamma, rel=1e-6)


def test_gamma_comes_from_the_right_side():
    assert RBF().bind(X).gamma == RBF("scale").bind(X).gamma
    assert RBF("scale").bind(np.full((4, 2), 7.0)).gamma == 1.0
    expected = RBF(RBF("scale").bind(Z).gamma).block(X, Z)
    np.testing.assert_array_equal(RBF("scale").block(X, Z), expected)


def test_sigma_is_a_width():
    assert RBF(sigma=7).bind(X).gamma == pytest.approx(1 / (2 * 7**2), rel=1e-15)
    np.testing.assert_allclose(
        RBF(sigma=2).block(X, Z), RBF(gamma=1 / 8).block(X, Z), rtol=1e-15
    )


@pytest.mark.parametrize(
    ("columns", "indices"),
    [
        (slice(1, 4), [1, 2, 3]),
        (slice(None, None, 2), [0, 2, 4]),
        (slice(-2, None), [4, 5]),
        ([3, 1], [3, 1]),
        ((2, 2), [2, 2]),
        ([-1, 0], [5, 0]),
        ([-2, -1], [4, 5]),
        ([2], [2]),
        (np.array([0, 5], np.uint8), [0, 5]),
        ([False, True, True, False, False, True], [1, 2, 5]),
        (np.arange(6) % 2 == 0, [0, 2, 4]),
        (range(2, 5), [2, 3, 4]),
    ],
)
def test_columns(columns, indices):
    kernel = (RBF(0.3) + Linear()).on(columns)
    expected = (RBF(0.3) + Linear()).block(X[:, indices], Z[:, indices])
    np.testing.assert_allclose(kernel.block(X, Z), expected, rtol=1e-12)
    csr = kernel.block(sparse.csr_array(X), sparse.csr_array(Z))
    np.testing.assert_allclose(csr, expected, rtol=1e-12, atol=1e-14)
    assert np.arange(6)[kernel.bind(X).columns].tolist() == indices


def test_views():
    views = {"raw": slice(0, 4), "hog": [4, 5]}
    named = RBF(0.3).on("raw") * (0.5 * Linear().on("hog") + Linear()).normalized()
    kernel = with_views(named, views)
    direct = (
        RBF(0.3).on(views["raw"])
        * (0.5 * Linear().on(views["hog"]) + Linear()).normalized()
    )
    assert kernel.key() == direct.key() != named.key()
    assert named.left.columns == "raw"
    inner = with_views(Linear().on([0]).on("hog"), views)
    np.testing.assert_array_equal(inner.block(X), Linear().on([4]).block(X))
    with pytest.raises(ValueError, match=r"Unknown column or view 'hog'. Known: raw."):
        with_views(named, {"raw": [0]})
    with pytest.raises(ValueError, match=r"Unknown column or view 'raw'. Known: none."):
        with_views(named, {})


def test_parameters_are_reached_by_path():
    kernel = 0.5 * (RBF(0.1) + Linear().on([0, 1])).normalized()
    path = "kernel__kernel__left__gamma"
    assert kernel.get_params()[path] == 0.1
    kernel.set_params(**{path: 2.0, "factor": 3.0})
    kernel.set_params(kernel__kernel__right__columns=[2])
    expected = 3.0 * (RBF(2.0) + Linear().on([2])).normalized()
    np.testing.assert_array_equal(kernel.block(X), expected.block(X))
    left = Sum(RBF(0.1), Linear()).set_params(left__gamma=4.0)
    assert left.left.gamma == 4.0 and isinstance(OnColumns(left, [0]), Kernel)
    with pytest.raises(ValueError, match="Invalid parameter"):
        left.set_params(left__width=1.0)
