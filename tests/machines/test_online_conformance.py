"""scikit-learn's own checks of the estimators that learn from streams."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import OnlineSVC, PassiveAggressiveClassifier

WEIGHTS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
SCALE = "gamma='scale' takes the variance of the samples, whatever their weights"
# As in scikit-learn, where the step has a limit in both variants.
DIVERGES = "steps of PA have no limit, and a weight of 1000 is a factor of theirs"
ORDER = "a step with twice the weight is not two steps"


def expected(model):
    if isinstance(model, PassiveAggressiveClassifier):
        found = dict.fromkeys(WEIGHTS, ORDER)
        if model.variant == "pa":
            found["check_class_weight_classifiers"] = DIVERGES
        return found
    return dict.fromkeys(WEIGHTS, SCALE) if model.gamma == "scale" else {}


@pytest.mark.usefixtures("array_api")
@parametrize_with_checks(
    [
        OnlineSVC(),
        OnlineSVC(gamma=0.1, tol=1e-10, method="smo"),
        OnlineSVC(gamma=0.1, tol=1e-8, multiclass="ovo", selection="random"),
        PassiveAggressiveClassifier(),
        PassiveAggressiveClassifier(variant="pa", average=True, multiclass="joint"),
        PassiveAggressiveClassifier(kernel="rbf", budget=150, max_iter=50),
    ],
    expected_failed_checks=expected,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
