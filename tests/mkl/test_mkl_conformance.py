"""scikit-learn's own checks of the machines with several kernels."""

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


@parametrize_with_checks(
    [
        MKLClassifier(),
        MKLClassifier(method="group-lasso", multiclass="ovo", weights="per-task"),
        MKLClassifier(method="simple"),
        MKLClassifier(method="alignment"),
        MKLRegressor(),
        MKLRegressor(method="group-lasso", p=1),
    ],
    expected_failed_checks=lambda model: WEIGHTS,
)
def test_conformance(estimator, check):
    check(estimator)
