import numpy as np
import pytest
from scipy import sparse

from mercer import kernels
from mercer.engines.cluster.chunks import ColumnSummary, summarise


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "kernel",
    [
        kernels.RBF(),
        kernels.Polynomial(gamma="auto"),
        kernels.RBF().on([0, 2]) + kernels.RBF().on(slice(1, 3)),
        kernels.Chi2(gamma=0.5),
    ],
)
def test_kernels_are_bound_as_to_all_samples(form, kernel, rng):
    X = np.where(rng.random((90, 4)) < 0.4, 0.0, rng.gamma(2.0, size=(90, 4)))
    y, weight = rng.integers(0, 3, 90), np.ones(90)
    parts = [slice(0, 7), slice(7, 50), slice(50, 90)]
    chunks = [(form(X)[part], y[part], weight[part]) for part in parts]
    columns = ColumnSummary.of([summarise(chunk, True) for chunk in chunks])
    expected = kernel.bind(X).block(X[:5])
    np.testing.assert_allclose(kernel.bind(columns).block(X[:5]), expected, rtol=1e-9)


def test_negative_values_are_noticed():
    X = np.array([[1.0, -1.0], [2.0, 3.0]])
    columns = ColumnSummary.of([summarise((X, None, np.ones(2)), False)])
    with pytest.raises(ValueError, match="-1"):
        kernels.Intersection().bind(columns)


def test_classes_are_counted():
    y, weight = np.array(["b", "a", "b"]), np.array([0.0, 1.0, 0.0])
    found = summarise((np.eye(3), y, weight), True)
    assert found.labels.tolist() == ["a", "b"]
    assert found.counts.tolist() == [1, 2]
    assert found.has_weight.tolist() == [True, False]
