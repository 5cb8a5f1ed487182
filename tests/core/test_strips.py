"""Products that leave zeros out, against products that do not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import SVC, gram_matrix, kernels
from mercer.core.strips import GROUP, width
from mercer.engines.cpu import pair
from mercer.engines.cpu.pair import Frame, as_operand


def run_in_turn(function, parts):
    return [function(part) for part in parts]


def in_frame(X, active, order=None):
    frame = Frame(None, np.asarray(active), X.dtype)
    return frame.put(X, order, run_in_turn)


def mostly_zeros(rng, n, d, dtype, share=0.1):
    return (rng.standard_normal((n, d)) * (rng.random((n, d)) < share)).astype(dtype)


@given(
    n=st.integers(0, 3 * GROUP + 1),
    m=st.integers(0, 200),
    d=st.integers(1, 20),
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    is_double=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=60)
def test_products(n, m, d, share, is_double, seed):
    rng = np.random.default_rng(seed)
    dtype = np.float64 if is_double else np.float32
    X = mostly_zeros(rng, n, d, dtype, share)
    Z = mostly_zeros(rng, m, d, dtype, share)
    order = rng.permutation(m)
    x, z = in_frame(X, range(d)), in_frame(Z, range(d), order)
    found = x.matrix.times(z.matrix, np.full((n, m), np.nan, dtype=dtype))
    tolerance = 1e-12 if is_double else 1e-4
    np.testing.assert_allclose(found, X @ Z[order].T, atol=tolerance)
    np.testing.assert_allclose(z.norms, (Z[order] ** 2).sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize(
    "index", [slice(0, 64), slice(3, 70), slice(65, 66), slice(0, 300, 7), [5, 1, 250]]
)
def test_parts(rng, index):
    Z = mostly_zeros(rng, 300, 9, np.float32)
    z = in_frame(Z, range(9)).matrix
    part = z[index] if isinstance(index, slice) else z[np.array(index)]
    for side in (part, part[1:3]):
        rows = side._rows
        out = np.empty((300, len(rows)), dtype=np.float32)
        np.testing.assert_allclose(z.times(side, out), Z @ Z[rows].T, atol=1e-5)
        out = np.empty((len(rows), 300), dtype=np.float32)
        np.testing.assert_allclose(side.times(z, out), Z[rows] @ Z.T, atol=1e-5)


def test_a_product_is_the_same_in_any_company(rng):
    Z = mostly_zeros(rng, 500, 40, np.float32)
    z = in_frame(Z, range(40)).matrix
    whole = z.times(z, np.empty((500, 500), dtype=np.float32))
    np.testing.assert_array_equal(whole, whole.T)
    rows = rng.permutation(500)[:77]
    some = z[rows].times(z[33:222], np.empty((77, 189), dtype=np.float32))
    np.testing.assert_array_equal(some, whole[rows][:, 33:222])


def test_a_strip_is_a_few_registers():
    assert width(np.float32) == 2 * width(np.float64)


@pytest.mark.parametrize("kernel", [kernels.RBF(0.05), kernels.Polynomial(2, 0.1, 1.0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_see_no_difference(rng, kernel, dtype, monkeypatch):
    Z = mostly_zeros(rng, 2000, 30, dtype)
    Z[:, 3] = 0  # nobody's column, until a new sample has it
    Z[:, 7] = 2.5  # constant, but not 0
    X = mostly_zeros(rng, 30, 30, dtype, 0.9)
    assert as_operand(Z).frame_of_zeros(Z.dtype) is not None
    found = gram_matrix(kernel, X, Z)
    whole = gram_matrix(kernel, Z)
    monkeypatch.setattr(pair, "LEAST_ROWS", 10**9)
    assert as_operand(Z).frame_of_zeros(Z.dtype) is None
    exact = gram_matrix(kernel, X.astype(float), Z.astype(float))
    tolerance = 2e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, exact, rtol=tolerance, atol=tolerance)
    exact = gram_matrix(kernel, Z.astype(float))
    np.testing.assert_allclose(whole, exact, rtol=tolerance, atol=tolerance)


def test_large_norms_ask_for_another_origin(rng):
    """Far from the origin, only centred distances keep their digits."""
    Z = mostly_zeros(rng, 2000, 30, np.float32)
    Z[:, 7] = 300.0
    frame = as_operand(Z).frame(1.0, Z.dtype)
    assert frame.center is not None
    assert frame.dtype == np.float32
    found = gram_matrix(kernels.RBF(1.0), Z[:50], Z)
    exact = gram_matrix(kernels.RBF(1.0), Z[:50].astype(float), Z.astype(float))
    np.testing.assert_allclose(found, exact, atol=2e-5)


@pytest.mark.parametrize(
    ("n", "d", "share", "pays"),
    [(2000, 30, 0.1, True), (2000, 30, 0.6, False), (900, 30, 0.1, False),
     (2000, 2100, 0.01, False), (2000, 5, 0.0, False)],
)  # fmt: skip
def test_when_it_pays(rng, n, d, share, pays):
    Z = mostly_zeros(rng, n, d, np.float32, share)
    assert (as_operand(Z).frame_of_zeros(Z.dtype) is not None) == pays


@pytest.mark.parametrize("solver", ["smo", "decompose"])
def test_machines_see_no_difference(rng, solver, monkeypatch):
    X = mostly_zeros(rng, 1500, 20, np.float32)
    y = (X @ rng.standard_normal((20, 3))).argmax(axis=1)
    model = SVC(gamma=0.1, solver=solver, tol=1e-4).fit(X, y)
    found = model.decision_function(X)
    monkeypatch.setattr(pair, "LEAST_ROWS", 10**9)
    other = SVC(gamma=0.1, solver=solver, tol=1e-4).fit(X, y)
    np.testing.assert_allclose(model.objective_, other.objective_, rtol=1e-5)
    np.testing.assert_allclose(found, other.decision_function(X), atol=2e-3)
