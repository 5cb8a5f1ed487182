"""The verbs of an engine, and the choice of one."""

import numpy as np
import pytest
from scipy import sparse

from mercer import kernels
from mercer.engines.engine import engine_of

KERNEL = kernels.RBF(0.3) + kernels.Linear()


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_apply_is_the_matrix_times_vectors(rng, make):
    X, Z, V = (
        rng.normal(size=(30, 4)),
        rng.normal(size=(20, 4)),
        rng.normal(size=(20, 3)),
    )
    with engine_of() as engine:
        matrix = engine.matrix(KERNEL, make(X), make(Z))
        found = engine.apply(KERNEL, make(X), make(Z), V)
    np.testing.assert_allclose(matrix, KERNEL.block(X, Z), atol=1e-12)
    np.testing.assert_allclose(found, matrix @ V, atol=1e-12)


def test_matrix_of_samples_with_themselves_is_symmetric(rng):
    X = rng.normal(size=(300, 4))
    with engine_of(X) as engine:
        matrix = engine.matrix(KERNEL, X)
    assert (matrix == matrix.T).all()
    np.testing.assert_allclose(matrix, KERNEL.block(X), atol=1e-12)


def test_memory_is_what_the_user_allows():
    with engine_of() as engine:
        assert engine.memory(3) == 3 * 2**20
        assert engine.memory() > 0


def test_unknown_device_is_refused():
    with pytest.raises(ValueError, match=r"Unknown device 'cudda'. Available: 'cpu'"):
        engine_of(device="cudda")
