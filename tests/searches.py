"""Searches of Mercer beside scikit-learn's."""

import numpy as np
from sklearn import model_selection as plain

from mercer.selection import GridSearchCV


def split_scores(search, part="test"):
    return np.column_stack(
        [search.cv_results_[f"split{k}_{part}_score"] for k in range(search.n_splits_)]
    )


def check_same(estimator, grid, X, y, n_grams=None, atol=0.0, **options):
    """Compare with scikit-learn's search over the same estimator."""
    fit = options.pop("fit", {})
    ours = GridSearchCV(estimator, grid, error_score="raise", **options)
    ours.fit(X, y, **fit)
    theirs = plain.GridSearchCV(estimator, grid, **options).fit(X, y, **fit)
    np.testing.assert_allclose(
        split_scores(ours), split_scores(theirs), rtol=0, atol=atol
    )
    assert ours.sharing_.n_plain == 0, ours.sharing_
    assert ours.sharing_.n_shared == split_scores(theirs).size
    if n_grams is not None:
        assert ours.sharing_.n_grams == n_grams
    assert set(ours.cv_results_) == set(theirs.cv_results_)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    return ours, theirs
