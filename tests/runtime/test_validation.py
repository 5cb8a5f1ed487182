"""Arrays of samples: dense, sparse, and of objects."""

import numpy as np
import pytest
from scipy import sparse

from mercer import SVC
from mercer.runtime.validation import (
    as_dense,
    frozen,
    is_numeric,
    refuse_other_things,
    things,
)

X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (X, True),
        (X.tolist(), True),
        (X > 2, True),
        (sparse.csr_array(X), True),
        (["north", "south"], False),
        ([[1.0, 2.0], [3.0]], False),
        (np.array([{}, {}], dtype=object), False),
    ],
)
def test_numbers_are_told_from_other_samples(samples, expected):
    assert is_numeric(samples) == expected


def test_frames_are_numbers():
    pandas = pytest.importorskip("pandas")
    assert is_numeric(pandas.DataFrame(X))


def test_samples_of_any_kind_become_objects():
    found = things([[1, 2], "text", None])
    assert found.shape == (3,)
    assert found.dtype == object
    assert found.tolist() == [[1, 2], "text", None]
    assert things(X).shape == X.shape


def test_samples_that_are_not_numbers_are_refused():
    refuse_other_things(SVC(), X)
    refuse_other_things(SVC(), np.array([["1", "2"]], dtype=object))
    with pytest.raises(TypeError, match="SVC needs samples that are numbers here"):
        refuse_other_things(SVC(), ["north", "south"])


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array, sparse.csr_matrix])
def test_frozen_values_cannot_be_changed(kind):
    values = frozen(kind(X))
    with pytest.raises(ValueError, match="read-only"):
        (values.data if sparse.issparse(values) else values)[0] = 1.0


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array, sparse.csc_matrix])
def test_anything_becomes_dense(kind):
    found = as_dense(kind(X))
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, X)
