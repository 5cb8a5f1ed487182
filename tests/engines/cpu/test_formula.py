"""Formulas of kernels, and what compiled code computes from them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import naive
from kernel_cases import CASES, D, assert_close, both_types, every_kernel, sample
from mercer import SVC
from mercer.core.formula_tiles import AFFINE, FRAMED_PRODUCTS, TANH
from mercer.engines.cpu import teams, tiles
from mercer.engines.cpu.engine import CpuEngine
from mercer.engines.cpu.formula import MOST_REGISTERS, noted
from mercer.engines.cpu.pair import Operand
from mercer.kernels import (
    RBF,
    Chi2,
    Cosine,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)

# A user's function, and parts that look at different columns, have no formula.
WITHOUT = ("custom", "pairwise", "nested")
PLAIN = [
    RBF(0.3), Linear(), Polynomial(3, 0.2, 1.0), Sigmoid(0.1, 0.3), Cosine(),
    Laplacian(0.2), Chi2(0.7), Intersection(),
]  # fmt: skip


@pytest.fixture
def any_size(monkeypatch):
    """Let compiled code compute even a few values."""
    monkeypatch.setattr(teams, "LEAST_VALUES", 0)
    monkeypatch.setattr(tiles, "SMALL_WORK", 0)


def test_which_kernels_have_a_formula():
    for name, case in CASES.items():
        X = Operand(sample(case, 12, 0))
        found = noted(case.kernel.bind(X.X), X, X)
        assert (found is None) == (name in WITHOUT), name


@every_kernel
@both_types
def test_values_follow_the_definition(case, dtype, any_size):
    X, Z = sample(case, 37, 1, dtype), sample(case, 11, 2, dtype)
    V = np.random.default_rng(3).standard_normal((len(X), 3))
    K, across = (naive.block(case.formula, Y, X) for Y in (X, Z))
    with CpuEngine(2) as engine:
        own, other = engine.matrix(case.kernel, X), engine.matrix(case.kernel, Z, X)
        products = engine.apply(case.kernel.bind(X), Z, X, V)
    assert own.dtype == other.dtype == dtype
    assert_close(own, K, dtype)
    np.testing.assert_array_equal(own, own.T)
    assert_close(other, across, dtype)
    assert_close(products, across @ V, dtype)


@pytest.mark.parametrize("kernel", PLAIN, ids=lambda kernel: type(kernel).__name__)
@both_types
def test_zeros_are_left_out(kernel, dtype):
    rng = np.random.default_rng(0)
    X = (rng.random((1101, 15)) * (rng.random((1101, 15)) < 0.1)).astype(dtype)
    formula, _, _ = noted(kernel, Operand(X), Operand(X))
    is_product = formula.operations[0, 0] == FRAMED_PRODUCTS
    assert is_product != isinstance(kernel, Laplacian | Chi2 | Intersection)
    with CpuEngine(2) as engine:
        assert_close(engine.matrix(kernel, X), kernel.block(X.astype(float)), dtype)


@pytest.mark.parametrize("kernel", PLAIN, ids=lambda kernel: type(kernel).__name__)
def test_the_number_of_threads_does_not_matter(kernel, any_size):
    rng = np.random.default_rng(0)
    X, Z = (rng.random((n, 6)).astype(np.float32) for n in (700, 90))
    y, V = X[:, 0] > X[:, 1], rng.standard_normal((700, 2))
    found = []
    for n_jobs in (1, 2, 16):
        with CpuEngine(n_jobs) as engine:
            values = engine.matrix(kernel, X), engine.apply(kernel, Z, X, V)
        machine = SVC(C=10.0, kernel=kernel, solver="decompose", n_jobs=n_jobs)
        found.append((*values, machine.fit(X, y).decision_function(Z)))
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


def kernels_of(parts):
    return st.one_of(
        st.tuples(parts, parts).map(lambda two: two[0] + two[1]),
        st.tuples(parts, parts).map(lambda two: two[0] * two[1]),
        parts.map(lambda kernel: 0.5 * kernel),
        parts.map(lambda kernel: kernel**2),
        parts.map(lambda kernel: kernel.normalized()),
    )


@given(kernel=st.recursive(st.sampled_from(PLAIN), kernels_of, max_leaves=6))
@settings(max_examples=40)
def test_registers_are_not_mixed_up(kernel):
    X = np.random.default_rng(0).random((130, D))
    operand = Operand(X)
    found = noted(kernel, operand, operand)
    if found is None:
        return  # too many registers
    formula = found[0]
    assert formula.n_registers <= MOST_REGISTERS
    with pytest.MonkeyPatch.context() as patch, CpuEngine(2) as engine:
        patch.setattr(teams, "LEAST_VALUES", 0)
        patch.setattr(tiles, "SMALL_WORK", 0)
        assert_close(engine.matrix(kernel, X), kernel.block(X))


def test_scale_and_shift_are_one_operation():
    X = Operand(np.random.default_rng(0).random((9, 3)))
    operations = noted(Sigmoid(0.5, 2.0), X, X)[0]
    assert operations.operations[:, 0].tolist()[1:] == [TANH]
    assert operations.numbers[1].tolist() == [0.5, 2.0]
    twice = noted(0.5 * (3.0 * Linear()), X, X)[0]
    assert twice.operations[:, 0].tolist()[1:] == [AFFINE]
    assert twice.numbers[1].tolist() == [1.5, 0.0]


class Shifted(RBF):
    """A kernel of a user, whose values are not Gaussian."""

    def bind(self, X):
        return self

    def evaluate(self, pair):
        return super().evaluate(pair) + 1


class RationalQuadratic(Kernel):
    def evaluate(self, pair):
        return 1 / (1 + pair.squared_distances())

    def diagonal(self, operand):
        return np.ones(len(operand))


def test_what_has_no_formula():
    rng = np.random.default_rng(0)
    single, double = (Operand(rng.random((90, 5)).astype(t)) for t in "fd")
    thin = Operand(sparse.csr_array(single.X))
    for kernel, left, right in [
        (Shifted(0.3), single, single),
        (Linear() + Shifted(0.3), single, single),
        (RationalQuadratic(), single, single),
        (Linear(), single, double),
        (Linear(), thin, single),
        (Linear().on([0]), thin, thin),
        (RBF(0.3), single, Operand(1e4 * single.X)),  # too long for single precision
        (RBF(0.3), single, Operand(np.ones((90, 5), np.float32))),  # all are the same
    ]:
        assert noted(kernel, left, right) is None
