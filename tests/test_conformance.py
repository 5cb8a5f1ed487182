"""scikit-learn's own checks of estimators."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import SVC

# scikit-learn expects the same two failures of its own SVC.  With a fixed gamma and a
# tol as small as what is compared, weights and repetition do agree.
SCALE = "gamma='scale' takes the variance of the samples, whatever their weights"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": SCALE,
    "check_sample_weight_equivalence_on_sparse_data": SCALE,
}


@parametrize_with_checks(
    [
        SVC(),
        SVC(kernel="linear", tol=1e-9),
        SVC(kernel="precomputed"),
        SVC(gamma=0.1, tol=1e-10),
        SVC(gamma=0.1, tol=1e-10, solver="decompose", n_jobs=2),
    ],
    expected_failed_checks=lambda svc: {} if svc.tol < 1e-3 else EXPECTED,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("solver", ["smo", "decompose"])
def test_predict_is_pure(solver, rng):
    X = rng.standard_normal((60, 3))
    y = rng.integers(0, 3, 60)
    model = SVC(solver=solver).fit(X, y)
    before = {name: repr(value) for name, value in vars(model).items()}
    first = model.decision_function(X)
    model.predict(X[:7])
    assert (model.decision_function(X) == first).all()
    assert {name: repr(value) for name, value in vars(model).items()} == before
