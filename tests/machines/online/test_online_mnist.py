"""One pass over real digits beside the batch machine."""

import numpy as np
import pytest

from mercer import SVC, OnlineSVC, PassiveAggressiveClassifier
from real_data import read_data

SETTING = {"C": 10.0, "gamma": 0.02}


def images(data, part):
    return (data[f"x_{part}"].reshape(-1, 784) / np.float32(255)).astype(np.float32)


@pytest.fixture(scope="module")
def digits():
    data = read_data("mnist")
    return (
        images(data, "train"),
        data["y_train"].astype(int),
        images(data, "test"),
        data["y_test"].astype(int),
    )


def assert_near_the_batch(model, batch, X, y):
    assert model.score(X, y) >= batch.score(X, y) - 0.005
    assert model.n_support_.sum() <= 1.3 * batch.n_support_.sum()


@pytest.mark.slow
@pytest.mark.ci
def test_three_against_eight(digits):
    X, y, X_test, y_test = digits
    rows, tests = np.isin(y, (3, 8)), np.isin(y_test, (3, 8))
    X, y, X_test, y_test = X[rows], y[rows], X_test[tests], y_test[tests]
    batch = SVC(**SETTING).fit(X, y)
    model = OnlineSVC(**SETTING).partial_fit(X, y, classes=[3, 8])
    assert_near_the_batch(model, batch, X_test, y_test)
    # Objectives may differ by as much as the tolerance lets them.
    batch = SVC(**SETTING, tol=1e-5).fit(X, y)
    model.set_params(tol=1e-5).finish(X, y)
    assert model.kkt_gap_.max() <= model.tol
    np.testing.assert_allclose(model.objective_, batch.objective_, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.ci
def test_ten_digits(digits):
    X, y, X_test, y_test = digits
    batch = SVC(**SETTING, multiclass="ovr").fit(X[:10_000], y[:10_000])
    model = OnlineSVC(**SETTING).partial_fit(X[:10_000], y[:10_000], classes=range(10))
    assert_near_the_batch(model, batch, X_test, y_test)


@pytest.mark.slow
@pytest.mark.ci
def test_a_long_stream_on_a_budget():
    data = read_data("ijcnn1")
    X = np.vstack([data["x_train"], data["x_test"]])[:100_000].astype(np.float32)
    y = np.concatenate([data["y_train"], data["y_test"]])[:100_000]
    model = PassiveAggressiveClassifier(
        kernel="rbf", gamma=1.0, budget=2000, fit_intercept=False
    )
    sizes = []

    def note(entry):
        held = model._held
        sizes.append(held.rows.X.base.nbytes + held.beta.nbytes + held.u.nbytes)

    chunks = ((X[k : k + 1000], y[k : k + 1000]) for k in range(0, len(y), 1000))
    model.learn_stream(chunks, classes=[-1, 1], progress=note)
    assert len(model.support_vectors_) == 2000
    assert max(sizes[50:]) <= 1.5 * sizes[49]
    assert model.history_["n_seen"][-1] == 100_000
