"""The number of threads changes nothing, to the last bit."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from mercer import LinearSVC, LinearSVR
from mercer.selection import GridSearchCV

MACHINES = {
    "squared": LinearSVC(),
    "hinge": LinearSVC(loss="hinge"),
    "free": LinearSVC(loss="hinge", penalize_intercept=False),
    "l1": LinearSVC(penalty="l1", C=0.1),
    "joint": LinearSVC(multi_class="crammer_singer", max_iter=30, tol=1e-2),
    "insensitive": LinearSVR(epsilon=0.1),
    "squared insensitive": LinearSVR(loss="squared_epsilon_insensitive"),
}


def samples(kind):
    rng = np.random.default_rng(0)
    if kind == "dense":
        X = rng.standard_normal((3000, 30))
    elif kind == "wide":
        X = rng.standard_normal((150, 700))
    elif kind == "zeros":
        X = rng.random((300, 260)) * (rng.random((300, 260)) < 0.2)
    else:
        X = sparse.random_array((300, 4000), density=0.02, rng=rng).tocsr()
    y = (X @ rng.standard_normal((X.shape[1], 5))).argmax(axis=1)
    return X, y


@pytest.mark.parametrize("kind", ["dense", "wide", "zeros", "sparse"])
@pytest.mark.parametrize("name", MACHINES)
def test_thread_counts(name, kind):
    X, y = samples(kind)
    found = []
    for n_jobs in (1, 2, 16):
        model = clone(MACHINES[name]).set_params(n_jobs=n_jobs, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        found.append(model)
    first = found[0]
    for other in found[1:]:
        np.testing.assert_array_equal(first.coef_, other.coef_)
        np.testing.assert_array_equal(first.intercept_, other.intercept_)
        np.testing.assert_array_equal(first.dual_gap_, other.dual_gap_)
        assert first.n_iter_ == other.n_iter_


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_thread_counts_of_a_search(kind):
    X, y = samples(kind)
    scores = [
        GridSearchCV(LinearSVC(random_state=0), {"C": [0.01, 0.1]}, cv=3, n_jobs=n_jobs)
        .fit(X, y)
        .cv_results_["mean_test_score"]
        for n_jobs in (1, 2, 16)
    ]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])
