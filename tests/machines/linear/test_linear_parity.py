"""Linear machines against LIBLINEAR on real data, at its tightest useful tolerance."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm

import linear_objective
from mercer import LinearSVC, LinearSVR
from real_data import read_data

CLASSIFIERS = {
    "hinge": {"loss": "hinge"},
    "squared": {"loss": "squared_hinge"},
    "l1": {"penalty": "l1"},
}
LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")


SETS = ("mnist", "a9a", "ijcnn1", "text")
# The numbers of samples in quick tests, and in slow ones.
QUICK = {"mnist": 150, "a9a": 400, "ijcnn1": 400, "text": 150}
LARGE = {"mnist": 5000, "a9a": 32561, "ijcnn1": 49990, "text": 5000}


def sizes(sets=SETS):
    """Return each set with a quick size, and with a slow one."""
    quick = [pytest.param(name, QUICK[name], id=f"{name}-quick") for name in sets]
    return quick + [
        pytest.param(
            name,
            LARGE[name],
            id=f"{name}-large",
            marks=[pytest.mark.slow, pytest.mark.ci],
        )
        for name in sets
    ]


def samples(name, n):
    if name == "text":
        rng = np.random.default_rng(0)
        d = 5 * n
        columns = rng.integers(0, d, 40 * n, dtype=np.int32)
        ends = np.arange(0, 40 * n + 1, 40, dtype=np.int32)
        X = sparse.csr_array((rng.random(40 * n), columns, ends), shape=(n, d))
        X.sum_duplicates()
        return X, (X @ rng.standard_normal((d, 4))).argmax(axis=1)
    data = read_data(name)
    X, y = data["x_train"][:n], data["y_train"][:n].astype(int)
    X = X.reshape(len(X), -1).astype(float)
    return X / max(1.0, X.max()), y


@pytest.mark.filterwarnings("ignore:Liblinear failed")
@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize(("data", "n"), sizes())
def test_classifiers(data, n, name):
    X, y = samples(data, n)
    options = CLASSIFIERS[name]
    # With an l1 penalty, some orders of the weights take over a thousand epochs.
    ours = LinearSVC(**options, tol=1e-7, max_iter=5000, random_state=0).fit(X, y)
    theirs = svm.LinearSVC(**options, tol=1e-8, max_iter=1000, random_state=0)
    theirs.fit(X, y)
    mine, other = (
        linear_objective.one_vs_rest(
            X, y, m.coef_, m.intercept_, 1.0, ours.loss, ours.penalty
        )
        for m in (ours, theirs)
    )
    assert ours.converged_
    assert (mine <= other * (1 + 1e-6)).all()


@pytest.mark.filterwarnings("ignore:Liblinear failed")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("data", "n"), sizes())
def test_regression(data, n, loss):
    X, y = samples(data, n)
    z = y.astype(float)
    ours = LinearSVR(loss=loss, epsilon=0.1, tol=1e-7).fit(X, z)
    theirs = svm.LinearSVR(
        loss=loss, epsilon=0.1, tol=1e-8, max_iter=1000, random_state=0
    ).fit(X, z)
    mine, other = (
        linear_objective.regression(X, z, m.coef_, m.intercept_, 1.0, 0.1, loss)
        for m in (ours, theirs)
    )
    assert ours.converged_
    assert mine <= other * (1 + 1e-6)


@pytest.mark.filterwarnings("ignore:Liblinear failed")
@pytest.mark.parametrize(("data", "n"), sizes())
def test_all_classes_jointly(data, n):
    X, y = samples(data, n)
    ours = LinearSVC(multi_class="crammer_singer", tol=1e-6, max_iter=100_000).fit(X, y)
    theirs = svm.LinearSVC(
        multi_class="crammer_singer", tol=1e-8, max_iter=1000, random_state=0
    ).fit(X, y)
    mine, other = (
        linear_objective.joint(X, y, m.coef_, m.intercept_) for m in (ours, theirs)
    )
    assert mine <= other * (1 + 1e-6)
