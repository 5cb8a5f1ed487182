"""scikit-learn's own checks of estimators on a card, with NumPy in its place."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_conformance import expected as expected_of_machines

from mercer import SVC, SVDD, SVR, KernelKMeans, KernelPCA, NuSVC, NuSVR, OneClassSVM

WEIGHTS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
DRAWN = "starts are drawn, and draws depend on the number of samples"


def expected(model):
    if isinstance(model, KernelPCA):
        return {}
    if isinstance(model, KernelKMeans):
        return dict.fromkeys(WEIGHTS, DRAWN)
    return expected_of_machines(model)


@pytest.mark.slow
@pytest.mark.usefixtures("array_api")
@parametrize_with_checks(
    [
        *(
            machine(device="cuda")
            for machine in (SVC, NuSVC, SVR, NuSVR, OneClassSVM, SVDD)
        ),
        SVC(kernel="precomputed", device="cuda"),
        KernelPCA(2, device="cuda"),
        KernelKMeans(3, n_init=2, device="cuda"),
    ],
    expected_failed_checks=expected,
)
def test_scikit_learn_checks_on_a_card(estimator, check, cuda):
    if isinstance(estimator, KernelPCA) and "array_api" in str(check):
        # This check asks for the inverse, and scikit-learn sets this for its own.
        estimator.set_params(fit_inverse_transform=True)
    check(estimator)
