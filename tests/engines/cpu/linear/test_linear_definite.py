"""Solutions with definite matrices."""

import numpy as np
import pytest

from mercer.engines.cpu.linear.definite import solve_in_place


@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 1e-4), (np.float64, 1e-11)])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_the_upper_triangle_is_solved_with(n, dtype, error, rng):
    A = rng.standard_normal((n, n))
    A = A @ A.T + np.eye(n)
    b = rng.standard_normal(n)
    matrix = A.astype(dtype)
    matrix[np.tril_indices(n, -1)] = np.nan
    found = b.astype(dtype)
    assert solve_in_place(matrix, found)
    np.testing.assert_allclose(A @ found, b, atol=error * np.abs(b).max() * n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_indefinite_matrix_is_noticed(dtype):
    matrix = np.array([[1.0, 2.0], [2.0, 1.0]], dtype=dtype)
    assert not solve_in_place(matrix, np.ones(2, dtype=dtype))
