"""scikit-learn's own checks of estimators."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM

# scikit-learn expects the same two failures of its own machines.  With a fixed gamma
# and a tol as small as what is compared, weights and repetition do agree.
SCALE = "gamma='scale' takes the variance of the samples, whatever their weights"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": SCALE,
    "check_sample_weight_equivalence_on_sparse_data": SCALE,
}
MACHINES = [SVC, NuSVC, SVR, NuSVR, OneClassSVM, SVDD]


@parametrize_with_checks(
    [
        *(machine() for machine in MACHINES),
        *(machine(kernel="precomputed") for machine in MACHINES),
        *(machine(gamma=0.1, tol=1e-10) for machine in MACHINES),
        SVC(kernel="linear", tol=1e-9),
        SVC(gamma=0.1, tol=1e-10, solver="decompose", n_jobs=2),
    ],
    expected_failed_checks=lambda model: {} if model.tol < 1e-3 else EXPECTED,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("solver", ["smo", "decompose"])
@pytest.mark.parametrize("machine", MACHINES)
def test_predict_is_pure(machine, solver, rng):
    X = rng.standard_normal((60, 3))
    y = rng.integers(0, 3, 60)
    model = machine(solver=solver).fit(X, y)
    decide = getattr(model, "decision_function", model.predict)
    before = {name: repr(value) for name, value in vars(model).items()}
    first = decide(X)
    model.predict(X[:7])
    assert (decide(X) == first).all()
    assert {name: repr(value) for name, value in vars(model).items()} == before
