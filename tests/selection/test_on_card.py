"""Searches on a card find what those on the processor find: NumPy is the card."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from card_twins import TWINS
from host_card import HostCard
from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM, gram_matrix, kernels
from mercer.engines.cpu import solve as cpu_solving
from mercer.selection import GridSearchCV
from searches import split_scores


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=5, return_X_y=True)
    return X[:150] / 16, y[:150]


SEARCHES = {
    "SVC": (SVC(), {"C": [0.1, 1, 10], "gamma": [0.02, 0.2]}),
    "SVC of one against rest": (SVC(multiclass="ovr"), {"C": [1, 5]}),
    "SVC of probabilities": (SVC(probability=True, random_state=0), {"C": [1, 5]}),
    "NuSVC": (NuSVC(gamma=0.05), {"nu": [0.1, 0.3]}),
    "SVR": (SVR(gamma=0.05), {"C": [1, 5], "epsilon": [0.1, 0.5]}),
    "NuSVR": (NuSVR(gamma=0.05), {"nu": [0.2, 0.6]}),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_share_kernel_values_on_a_card(name, digits, cuda):
    X, y = digits
    model, grid = SEARCHES[name]
    here = GridSearchCV(clone(model), grid, cv=3, return_train_score=True).fit(X, y)
    model = clone(model).set_params(device="cuda")
    there = GridSearchCV(model, grid, cv=3, return_train_score=True).fit(X, y)
    assert there.sharing_.n_plain == 0
    assert there.sharing_.n_shared == here.sharing_.n_shared > 0
    np.testing.assert_allclose(split_scores(there), split_scores(here), atol=1e-4)
    for key in ("mean_train_score", "rank_test_score"):
        np.testing.assert_allclose(
            there.cv_results_[key], here.cv_results_[key], atol=1e-4
        )
    assert there.best_estimator_.device == "cuda"
    assert there.best_params_ == here.best_params_
    # One launch solves all folds and settings of a kernel, unless it takes too long.
    assert "take_pair_steps_double" in cuda.launches


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_given_matrices_are_searched_on_a_card(digits, cuda, dtype):
    X, y = digits
    K = gram_matrix(kernels.RBF(0.05), X).astype(dtype)
    model = SVC(kernel="precomputed")
    here = GridSearchCV(model, {"C": [1, 5]}, cv=3).fit(K, y)
    model = SVC(kernel="precomputed", device="cuda")
    there = GridSearchCV(model, {"C": [1, 5]}, cv=3).fit(K, y)
    assert there.sharing_.n_plain == 0
    np.testing.assert_allclose(split_scores(there), split_scores(here), atol=1e-4)


def test_single_precision_is_certified_or_the_fit_is_done_again(
    digits, cuda, monkeypatch
):
    monkeypatch.setattr(cpu_solving, "SINGLE_FROM", 0)
    X, y = digits
    here = GridSearchCV(SVC(gamma=0.05), {"C": [1]}, cv=3).fit(X, y)
    model = SVC(gamma=0.05, device="cuda")
    there = GridSearchCV(model, {"C": [1]}, cv=3).fit(X, y)
    assert "take_pair_steps_float" in cuda.launches
    np.testing.assert_allclose(split_scores(there), split_scores(here))
    model = SVC(gamma=0.05, tol=1e-7, device="cuda")
    monkeypatch.setattr(cpu_solving, "LEAST_FOR_SINGLE", 0.0)
    monkeypatch.setattr(cpu_solving, "MOST_SINGLE", np.inf)
    with pytest.warns(UserWarning, match="single precision is not enough"):
        GridSearchCV(model, {"C": [50.0]}, cv=2).fit(X, y)


def test_a_card_without_room_fits_plainly_and_says_so(digits, monkeypatch):
    X, y = digits
    card = HostCard(twins=TWINS)
    monkeypatch.setattr("mercer.engines.cuda.card.open_card", lambda index: card)
    model = SVC(gamma=0.05, device="cuda")
    search = GridSearchCV(model, {"C": [1, 5]}, cv=2, cache_size=0.1)
    with pytest.warns(UserWarning, match=r"Gram matrix of 150 samples takes 0 MB"):
        search.fit(X, y)
    assert search.sharing_.n_plain == 4


def test_outliers_are_scored_on_a_card(digits, cuda):
    X, _ = digits
    grid = {"nu": [0.1, 0.5]}

    def share(model, X, y=None):
        return float(np.mean(model.predict(X) > 0))

    here = GridSearchCV(OneClassSVM(gamma=0.05), grid, cv=3, scoring=share).fit(X)
    model = OneClassSVM(gamma=0.05, device="cuda")
    there = GridSearchCV(model, grid, cv=3, scoring=share).fit(X)
    np.testing.assert_allclose(split_scores(there), split_scores(here), atol=0.03)


def test_without_a_card_every_fit_says_what_is_missing(digits, monkeypatch):
    X, y = digits

    def missing(index):
        raise ImportError("device='cuda' needs the package CuPy")

    monkeypatch.setattr("mercer.engines.cuda.card.open_card", missing)
    model = SVC(gamma=0.05, device="cuda")
    with pytest.raises((ImportError, ValueError), match="needs the package CuPy"):
        GridSearchCV(model, {"C": [1]}, cv=2, error_score="raise").fit(X, y)
