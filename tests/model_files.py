"""What the tests of model files share."""

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator


def toy_data():
    """Return 60 samples of three classes, read-only, no value negative."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.random((60, 4)) + 0.3 * y[:, None]
    X.flags.writeable = False
    return X, y


def same(value, other):
    """Tell whether two attributes are the same to the last bit."""
    if sparse.issparse(value):
        return type(value) is type(other) and same(value.toarray(), other.toarray())
    if isinstance(value, np.ndarray):
        return value.dtype == other.dtype and np.array_equal(value, other)
    return repr(value) == repr(other)


def assert_same(model, again, X):
    assert type(again) is type(model)
    assert vars(again).keys() == vars(model).keys()
    for name, value in vars(model).items():
        assert same(value, getattr(again, name)), name
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, method):
            assert np.array_equal(getattr(model, method)(X), getattr(again, method)(X))


class _Fitted(BaseEstimator):
    def __init__(self, kernel):
        self.kernel = kernel

    def fit(self, X, y):
        raise NotImplementedError

    def get_params(self, deep=True):
        return {"tol": 1e-3, "cache_size": "auto", "kernel": self.kernel}


def fitted_like(name, source, kernel):
    """Return what a machine of Mercer would be after the fit of scikit-learn's."""
    model = type(name, (_Fitted,), {})(kernel)
    model.kernel_ = kernel
    names = ("support_", "support_vectors_", "dual_coef_", "intercept_", "n_iter_")
    for attribute in (*names, "shape_fit_", "fit_status_", "n_features_in_"):
        setattr(model, attribute, getattr(source, attribute))
    if sparse.issparse(model.dual_coef_):
        model.dual_coef_ = model.dual_coef_.toarray()
    return model
