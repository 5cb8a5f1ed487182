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


def samples(name):
    if name == "text":
        rng = np.random.default_rng(0)
        columns = rng.integers(0, 4000, 40 * 800, dtype=np.int32)
        ends = np.arange(0, 40 * 800 + 1, 40, dtype=np.int32)
        X = sparse.csr_array((rng.random(40 * 800), columns, ends), shape=(800, 4000))
        X.sum_duplicates()
        return X, (X @ rng.standard_normal((4000, 4))).argmax(axis=1)
    data = read_data(name)
    n = 500 if name == "mnist" else 2000
    X = data["x_train"][:n].reshape(n, -1).astype(float)
    return X / max(1.0, X.max()), data["y_train"][:n].astype(int)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Liblinear failed")
@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("data", ["mnist", "a9a", "ijcnn1", "text"])
def test_classifiers(data, name):
    X, y = samples(data)
    options = CLASSIFIERS[name]
    ours = LinearSVC(**options, tol=1e-7).fit(X, y)
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Liblinear failed")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("data", ["mnist", "a9a", "ijcnn1", "text"])
def test_regression(data, loss):
    X, y = samples(data)
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Liblinear failed")
@pytest.mark.parametrize("data", ["mnist", "text"])
def test_all_classes_jointly(data):
    X, y = samples(data)
    ours = LinearSVC(multi_class="crammer_singer", tol=1e-6, max_iter=2000).fit(X, y)
    theirs = svm.LinearSVC(
        multi_class="crammer_singer", tol=1e-8, max_iter=1000, random_state=0
    ).fit(X, y)
    mine, other = (
        linear_objective.joint(X, y, m.coef_, m.intercept_) for m in (ours, theirs)
    )
    assert mine <= other * (1 + 1e-6)
