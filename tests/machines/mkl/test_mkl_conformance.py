"""scikit-learn's own checks of the machines with several kernels."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import MKLClassifier, MKLRegressor

# scikit-learn expects these failures of its own machines, too.
WEIGHTS = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "gamma='scale' and the scaling of kernels take all samples, whatever their weights",
)


def expected_failures(model):
    return WEIGHTS


@pytest.mark.usefixtures("array_api")
@parametrize_with_checks(
    [MKLClassifier(), MKLRegressor()], expected_failed_checks=expected_failures
)
def test_conformance(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.usefixtures("array_api")
@parametrize_with_checks(
    [
        MKLClassifier(method="group-lasso", multiclass="ovo", weights="per-task"),
        MKLClassifier(method="simple"),
        MKLClassifier(method="alignment"),
        MKLRegressor(method="group-lasso", p=1),
    ],
    expected_failed_checks=expected_failures,
)
def test_conformance_of_other_methods(estimator, check):
    check(estimator)
