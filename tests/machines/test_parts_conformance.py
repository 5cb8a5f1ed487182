"""scikit-learn's own checks of components and clusters."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import PCA, KernelKMeans, KernelPCA, KMeans

WEIGHTS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
# scikit-learn expects these failures of its own KMeans.  From given starts, weights and
# repetition do agree.
DRAWN = "starts are drawn, and draws depend on the number of samples"


def expected(model):
    is_drawn = isinstance(model, KMeans | KernelKMeans)
    return dict.fromkeys(WEIGHTS, DRAWN) if is_drawn else {}


@pytest.mark.usefixtures("array_api")
@parametrize_with_checks(
    [
        PCA(),
        PCA(2, solver="eigh", whiten=True),
        KernelPCA(),
        KernelPCA(2, kernel="rbf", eigen_solver="lanczos"),
        KMeans(3),
        KernelKMeans(3, n_init=2),
        KernelKMeans(3, gamma="tune", n_init=1),
    ],
    expected_failed_checks=expected,
)
def test_scikit_learn_checks_parts(estimator, check):
    if isinstance(estimator, KernelPCA) and "array_api" in str(check):
        # This check asks for the inverse, and scikit-learn sets this for its own.
        estimator.set_params(fit_inverse_transform=True)
    check(estimator)
