"""What programs that know scikit-learn's machines read or expect of them."""

from contextlib import nullcontext

import numpy as np
import pytest
from scipy import sparse
from sklearn import decomposition, svm
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import KernelCenterer

import mercer
from mercer.kernels import Laplacian
from model_files import toy_data

PAIRS = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")


def data(n_classes=3):
    X, y = toy_data()
    return X, np.minimum(y, n_classes - 1)


@pytest.mark.parametrize("settings", [{}, {"probability": True}])
@pytest.mark.parametrize("name", [*PAIRS, "LinearSVC", "LinearSVR"])
def test_fits_draw_as_often_as_in_scikit_learn(name, settings):
    if settings and name not in ("SVC", "NuSVC"):
        pytest.skip("no probabilities")
    X, y = data()
    drawn = []
    with pytest.warns(FutureWarning) if settings else nullcontext():
        for library in (svm, mercer):
            np.random.seed(0)  # noqa: NPY002
            getattr(library, name)(**settings).fit(X, y)
            drawn.append(np.random.randint(10**6))  # noqa: NPY002
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("solver", ["dense", "arpack", "randomized"])
def test_kernel_pca_draws_as_scikit_learn_does(solver):
    X, _ = data()
    drawn = []
    for library in (decomposition, mercer):
        np.random.seed(0)  # noqa: NPY002
        library.KernelPCA(2, kernel="rbf", eigen_solver=solver).fit(X)
        drawn.append(np.random.randint(10**6))  # noqa: NPY002
    assert drawn[0] == drawn[1]


def test_random_codes_still_differ_by_seed():
    X, _ = data()
    y = np.arange(len(X)) % 6
    codes = [
        mercer.SVC(multiclass="ecoc", code="random-dense", random_state=seed)
        .fit(X, y)
        .code_
        for seed in (0, 1)
    ]
    assert codes[0].shape != codes[1].shape or (codes[0] != codes[1]).any()


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_private_parts_that_others_read(name, n_classes, as_sparse):
    X, y = data(n_classes)
    X = sparse.csr_array(X) if as_sparse else X
    theirs, ours = (
        getattr(lib, name)(kernel="linear").fit(X, y) for lib in (svm, mercer)
    )
    for part in ("_impl", "_sparse"):
        assert getattr(ours, part) == getattr(theirs, part)
    for part in ("_n_support", "_probA", "_probB", "_intercept_", "_dual_coef_"):
        wanted, found = getattr(theirs, part), getattr(ours, part)
        assert type(found) is type(wanted)
        assert found.shape == wanted.shape
    for part in ("support_vectors_", "dual_coef_", "coef_"):
        assert type(getattr(ours, part)) is type(getattr(theirs, part))
    if as_sparse:
        product = ours.dual_coef_ * ours.support_vectors_
        wanted = theirs.dual_coef_ * theirs.support_vectors_
        np.testing.assert_allclose(product.toarray(), wanted.toarray(), atol=1e-2)
    if hasattr(ours, "classes_"):
        assert ours.probA_.shape == ours.probB_.shape == (0,)


def test_sparsified_weights_are_in_the_same_container():
    X, y = data()
    kinds = {type(lib.LinearSVC().fit(X, y).sparsify().coef_) for lib in (svm, mercer)}
    assert len(kinds) == 1


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_offsets_of_two_classes_have_the_sign_of_scikit_learn(scheme):
    X, y = data(2)
    model = mercer.SVC(probability=True, random_state=0, multiclass=scheme).fit(X, y)
    f = model.decision_function(X)
    second = 1 / (1 + np.exp(model.probA_ * f - model.probB_))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], second, atol=1e-12)
    assert model.probB_[0] != 0
    with pytest.warns(UserWarning, match="predict follows the decision values"):
        theirs = model.to_sklearn()
    np.testing.assert_allclose(theirs._probB, model.probB_)
    np.testing.assert_allclose(theirs.predict_proba(X)[:, 1], second, atol=5e-3)


def test_parameters_of_sigmoids_need_a_fit():
    for name in ("probA_", "probB_"):
        assert not hasattr(mercer.SVC(), name)
    X, y = data()
    model = mercer.SVC().fit(X, y).set_params(probability=True)
    with pytest.raises(NotFittedError, match="fitted with probability=False"):
        model.predict_proba(X)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_kernel_pca_has_what_detectors_read(kernel):
    X, _ = data()
    X = X @ X.T if kernel == "precomputed" else X
    theirs, ours = (
        lib.KernelPCA(2, kernel=kernel).fit(X) for lib in (decomposition, mercer)
    )
    K = theirs._get_kernel(X, X)
    found = ours._get_kernel(X, X)
    np.testing.assert_allclose(found, K, atol=1e-12)
    assert isinstance(ours._centerer, KernelCenterer)
    np.testing.assert_allclose(
        ours._centerer.transform(found.copy()),
        theirs._centerer.transform(K.copy()),
        atol=1e-12,
    )


def _product(x, z, power=1):
    return float(x @ z) ** power


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "rbf"},
        {"kernel": "poly", "degree": 2, "fit_inverse_transform": True},
        {"kernel": "precomputed"},
        {"kernel": Laplacian(0.3)},
        {"kernel": _product, "kernel_params": {"power": 2}},
        {"kernel": "rbf", "eigen_solver": "lanczos"},
    ],
)
def test_kernel_pca_becomes_scikit_learns(settings):
    X, _ = data()
    X = X @ X.T if settings["kernel"] == "precomputed" else X
    model = mercer.KernelPCA(3, **settings).fit(X)
    theirs = model.to_sklearn()
    assert type(theirs) is decomposition.KernelPCA
    Z = theirs.transform(X[:7])
    np.testing.assert_allclose(Z, model.transform(X[:7]), atol=1e-8)
    if "fit_inverse_transform" in settings:
        np.testing.assert_allclose(
            theirs.inverse_transform(Z), model.inverse_transform(Z), atol=1e-6
        )


def test_components_of_a_model_that_is_not_fitted():
    with pytest.raises(NotFittedError):
        mercer.KernelPCA().to_sklearn()
