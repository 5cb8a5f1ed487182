"""The classifier: kinds of input, and the messages for what it refuses."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from test_svc import check_same

from mercer import SVC

TIGHT = dict(gamma=0.3, C=2.0, tol=1e-7)


@pytest.fixture(scope="module", params=[2, 3])
def problem(request):
    X, y = make_classification(
        90, 6, n_informative=4, n_classes=request.param, random_state=0
    )
    X[np.abs(X) < 0.7] = 0.0
    X.flags.writeable = y.flags.writeable = False
    return X, y


def with_long_indices(X):
    X = sparse.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


FORMATS = {
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "int64 indices": with_long_indices,
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
@pytest.mark.parametrize("is_small", [True, False])
def test_sparse_equals_dense(problem, form, kernel, is_small, monkeypatch):
    X, y = problem
    S = FORMATS[form](X)
    if not is_small:  # a large matrix is worked on as it is
        monkeypatch.setattr("mercer.kernels.pair.SMALL", 0)
    dense = SVC(**TIGHT, kernel=kernel).fit(X, y)
    model = SVC(**TIGHT, kernel=kernel).fit(S, y)
    assert sparse.issparse(model.support_vectors_)
    assert model.support_vectors_.format == "csr"
    np.testing.assert_array_equal(model.support_, dense.support_)
    check_same(model, dense, S, X)
    check_same(model, dense, X)
    if kernel == "linear":
        np.testing.assert_allclose(model.coef_.toarray(), dense.coef_, atol=1e-6)
    with pytest.raises(ValueError, match="cannot use sparse input in 'SVC' trained on"):
        dense.predict(S)


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


LAYOUTS = {
    "Fortran": np.asfortranarray,
    "read-only": read_only,
    "every other row": lambda X: X.repeat(2, axis=0)[::2],
    "some columns": lambda X: np.hstack([X, X])[:, :6],
    "backwards": lambda X: X[::-1].copy()[::-1],
    "list": lambda X: X.tolist(),
    "big-endian": lambda X: X.astype(">f8"),
    "object": lambda X: X.astype(object),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("solver", ["smo", "decompose"])
def test_layouts(problem, layout, solver):
    X, y = problem
    given = LAYOUTS[layout](X)
    before = np.array(given, dtype=float)
    model = SVC(**TIGHT, solver=solver).fit(given, LAYOUTS["read-only"](y))
    check_same(model, SVC(**TIGHT, solver=solver).fit(X, y), given, X, atol=0.0)
    np.testing.assert_array_equal(np.array(given, dtype=float), before)
    assert model.support_vectors_.dtype == np.float64


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.float16, None),
        (np.int64, np.float64),
        (np.uint8, np.float64),
        (bool, np.float64),
    ],
)
def test_dtypes(problem, make, dtype, kept):
    X, y = problem
    if make is sparse.csr_array and dtype is np.float16:
        pytest.skip("SciPy has no sparse half precision")
    X = np.abs(X).astype(dtype)
    model = SVC(**dict(TIGHT, tol=1e-4)).fit(make(X), y)
    double = SVC(**dict(TIGHT, tol=1e-6)).fit(X.astype(np.float64), y)
    assert model.support_vectors_.dtype in ([kept] if kept else [np.float32, float])
    assert model.decision_function(make(X)).dtype == np.float64
    assert model.dual_coef_.dtype == np.float64
    difference = model.decision_function(make(X)) - double.decision_function(
        X.astype(np.float64)
    )
    assert np.abs(difference).max() <= 1e-3


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_not_a_number(problem, value, make):
    X, y = problem
    model = SVC().fit(make(X), y)
    bad = X.copy()
    bad[3, 2] = value
    message = "Input X contains " + ("NaN" if np.isnan(value) else "infinity")
    with pytest.raises(ValueError, match=message):
        SVC().fit(make(bad), y)
    with pytest.raises(ValueError, match=message):
        model.predict(make(bad))


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_values_too_large_to_work_with(problem):
    X, y = problem
    with pytest.raises(ValueError, match="dual coefficients or intercepts are not fin"):
        SVC().fit(1e307 * X, y)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones(4), [0, 1, 0, 1], "Expected 2D array, got 1D array"),
        (np.ones((0, 2)), [], "Found array with 0 sample"),
        (np.ones((4, 0)), [0, 1, 0, 1], "0 feature"),
        (np.ones((4, 2)), [0, 1, 0], "inconsistent numbers of samples"),
        (np.ones((4, 2)), [1, 1, 1, 1], "number of classes has to be greater than on"),
        (np.ones((4, 2)), [0.1, 0.2, 0.5, 0.3], "Unknown label type: continuous"),
        (np.ones((4, 2)), [[0, 1]] * 4, "y should be a 1d array"),
        (np.ones((4, 2)), [0, 1, np.nan, 1], "Input y contains NaN"),
        (1j * np.ones((4, 2)), [0, 1, 0, 1], "Complex data not supported"),
        ([["a", "b"]] * 4, [0, 1, 0, 1], "could not convert string to float"),
    ],
)
def test_bad_samples(X, y, message):
    with pytest.raises(ValueError, match=message):
        SVC().fit(X, y)


def test_wrong_number_of_features(problem):
    X, y = problem
    model = SVC().fit(X, y)
    message = "X has 5 features, but SVC is expecting 6 features as input"
    for method in (model.predict, model.decision_function):
        with pytest.raises(ValueError, match=message):
            method(X[:, :5])


@pytest.mark.parametrize(
    ("name", "values", "allowed"),
    [
        ("C", [0.0, -1.0, "1", None], r"a float in the range \(0\.0, inf\]"),
        ("degree", [-1, 2.5], r"an int in the range \[0, inf\)"),
        ("gamma", [-0.1, "size", None], r"'scale'|a float in the range \[0\.0, inf\)"),
        ("coef0", ["0"], r"a float in the range \(-inf, inf\)"),
        ("kernel", [3, None], "an instance of 'str', a callable or an instance of 'm"),
        ("class_weight", ["even", 2.0], "'balanced'}, an instance of 'dict' or None"),
        ("solver", ["libsvm", None], "a str among .*'decompose'"),
        ("tol", [0.0, -1e-3], r"a float in the range \(0\.0, inf\)"),
        ("cache_size", [0, -5, "all"], r"'auto'} or a float in the range \(0\.0, inf"),
        ("max_iter", [-2, 1.5], r"an int in the range \[-1, inf\)"),
        ("shrinking", ["yes", 2], "an instance of 'bool'"),
        ("decision_function_shape", ["ava", None], "a str among .*'ovr'"),
        ("break_ties", ["no"], "an instance of 'bool'"),
        ("n_jobs", [1.5, "all"], "an instance of 'int' or None"),
        ("verbose", ["loud", -1], "an instance of 'bool'"),
        ("random_state", ["seed", -1], "None"),
    ],
)
def test_bad_parameters(problem, name, values, allowed):
    for value in values:
        message = rf"The '{name}' parameter of SVC must be .*{allowed}.* Got "
        with pytest.raises(ValueError, match=message):
            SVC(**{name: value}).fit(*problem)


def test_every_parameter_is_checked():
    assert set(SVC._parameter_constraints) == set(SVC().get_params())
