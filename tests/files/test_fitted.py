"""A model from a file has arrays that fit together, or is refused."""

import inspect

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier

import mercer
from mercer import images
from mercer.files.fitted import check_fitted
from mercer.kernels import RBF, Laplacian
from model_files import toy_data

pytest.importorskip("skops.io")
CLASSES = [
    kind
    for module in (mercer, images)
    for name in module.__all__
    if inspect.isclass(kind := getattr(module, name))
    and issubclass(kind, BaseEstimator)
]


def fitted(kind, X, y, **given):
    model = kind(**given)
    if "kernels" in model.get_params():
        model.set_params(kernels=["linear", "rbf"])
    return model.fit(X, y)


MODELS = {
    **{kind.__name__: (kind, {}) for kind in CLASSES},
    "Views": (images.Views, {"raw": images.Rescale()}),
    "HOG": (images.HOG, {"cell_size": 4}),
    "SVC of pairs": (mercer.SVC, {"probability": True, "random_state": 0}),
    "SVC of rests": (mercer.SVC, {"multiclass": "ovr", "kernel": "linear"}),
    "SVC of codes": (mercer.SVC, {"multiclass": "ecoc", "decode": "barycentre"}),
    "PA with a kernel": (mercer.PassiveAggressiveClassifier, {"kernel": "rbf"}),
    "OnlineSVC by SMO": (mercer.OnlineSVC, {"method": "smo"}),
    "KernelPCA and back": (
        mercer.KernelPCA,
        {"kernel": "rbf", "n_components": 2, "fit_inverse_transform": True},
    ),
}


def takes_sparse(name):
    kind, given = MODELS[name]
    tags = kind(**given).__sklearn_tags__()
    return tags.input_tags.sparse and "fit_inverse_transform" not in given


@pytest.mark.parametrize(
    ("name", "as_sparse"),
    [(name, False) for name in MODELS]
    + [(name, True) for name in MODELS if takes_sparse(name)],
)
def test_sound_models_pass(name, as_sparse, tmp_path):
    kind, given = MODELS[name]
    X, y = toy_data()
    if as_sparse:
        X = sparse.csr_array(X)
    if kind.__module__.startswith("mercer.images"):
        X = np.random.default_rng(0).random((12, 16, 16))
        y = np.arange(12) % 3 if is_classifier(kind()) else None
    if kind in (images.ToGrey,):
        X = np.stack([X] * 3, axis=-1)
    model = fitted(kind, X, y, **given)
    check_fitted(model)
    mercer.save(model, tmp_path / "m")
    mercer.load(tmp_path / "m")


def test_models_on_matrices_pass(tmp_path):
    X, y = toy_data()
    K = X @ X.T
    for kind in (mercer.SVC, mercer.SVR, mercer.KernelPCA, mercer.KernelKMeans):
        model = kind(kernel="precomputed").fit(K, y)
        mercer.save(model, tmp_path / "m")
        again = mercer.load(tmp_path / "m")
        method = "transform" if kind is mercer.KernelPCA else "predict"
        found = [getattr(m, method)(K) for m in (model, again)]
        np.testing.assert_array_equal(*found)
    both = np.stack([K, K**2])
    model = mercer.MKLClassifier(kernels="precomputed").fit(both, y)
    mercer.save(model, tmp_path / "m")
    found = [m.predict(both) for m in (model, mercer.load(tmp_path / "m"))]
    np.testing.assert_array_equal(*found)


def with_nan(value):
    value = np.array(value, dtype=np.float64)
    value.flat[0] = np.nan
    return value


def with_less(value):
    return value[:-1]


def with_first(number):
    """Return a change of whole numbers; of indices, the limits matter most."""

    def change(value):
        value = value.copy()
        value.flat[0] = number
        return value

    return change


DAMAGE = [
    ("KMeans", "cluster_centers_", with_nan),
    ("KMeans", "cluster_centers_", lambda v: v[:, :-1]),
    ("KMeans", "labels_", with_first(8)),
    ("PCA", "components_", with_nan),
    ("PCA", "mean_", with_less),
    ("PCA", "explained_variance_", with_less),
    ("PCA", "noise_variance_", lambda _: np.nan),
    ("KernelPCA", "X_fit_", with_less),
    ("KernelPCA", "_weights", with_nan),
    ("KernelPCA", "eigenvectors_", with_less),
    ("KernelPCA", "_offset", with_less),
    ("KernelPCA and back", "dual_coef_", with_nan),
    ("KernelKMeans", "X_fit_", with_nan),
    ("KernelKMeans", "_mean_weights", with_less),
    ("KernelKMeans", "_mean_norms", with_nan),
    ("KernelKMeans", "kernel_", lambda _: RBF(gamma=-1.0)),
    ("SVC of pairs", "_probA", with_less),
    ("SVC of pairs", "_probB", with_nan),
    ("SVC of pairs", "classes_", with_less),
    ("SVC of pairs", "classes_", lambda v: v * 0),
    ("SVC of pairs", "class_weight_", with_nan),
    ("SVC of pairs", "kernel_", lambda _: RBF(gamma=np.nan)),
    ("SVC of pairs", "kernel_", lambda _: Laplacian().on([0, 400])),
    ("SVC of pairs", "kernel_", lambda _: None),
    ("SVC of rests", "code_", lambda v: v[:, :-1]),
    ("SVC of rests", "code_", lambda v: v * 7),
    ("SVC of codes", "_means", with_nan),
    ("SVC", "support_", with_first(60)),
    ("SVC", "support_", with_first(-1)),
    ("SVC", "n_features_in_", lambda _: 3.0),
    ("NuSVC", "dual_coef_", with_nan),
    ("NuSVC", "n_support_", lambda v: v + 1),
    ("SVR", "dual_coef_", lambda v: np.vstack([v, v])),
    ("SVR", "intercept_", with_nan),
    ("NuSVR", "support_vectors_", with_nan),
    ("OneClassSVM", "offset_", with_nan),
    ("SVDD", "radius_", lambda _: np.nan),
    ("SVDD", "outliers_", lambda _: np.array([60])),
    ("MKLClassifier", "weights_", with_nan),
    ("MKLClassifier", "weights_", lambda v: -v),
    ("MKLRegressor", "weights_", with_less),
    ("MKLRegressor", "_factors", with_nan),
    ("OnlineSVC", "intercept_", with_nan),
    ("OnlineSVC", "code_", with_less),
    ("OnlineSVC by SMO", "n_features_in_", lambda _: 7),
    ("PassiveAggressiveClassifier", "n_features_in_", lambda _: 7),
    ("PassiveAggressiveClassifier", "classes_", with_less),
    ("PA with a kernel", "class_weight_", with_nan),
    ("GaussianProjection", "mean_", with_nan),
]
HELD = [
    ("OnlineSVC", "beta"),
    ("OnlineSVC", "cost"),
    ("PassiveAggressiveClassifier", "w"),
    ("PassiveAggressiveClassifier", "b"),
    ("PA with a kernel", "beta"),
]


@pytest.mark.parametrize("name, attribute, change", DAMAGE)
def test_arrays_that_do_not_fit_are_refused(name, attribute, change, tmp_path):
    kind, given = MODELS[name]
    model = fitted(kind, *toy_data(), **given)
    setattr(model, attribute, change(getattr(model, attribute)))
    mercer.save(model, tmp_path / "m")
    words = rf"m is damaged .*the arrays of {kind.__name__} do not fit together"
    with pytest.raises(ValueError, match=words):
        mercer.load(tmp_path / "m")


@pytest.mark.parametrize("name, attribute", HELD)
def test_held_samples_are_checked(name, attribute, tmp_path):
    kind, given = MODELS[name]
    model = fitted(kind, *toy_data(), **given)
    getattr(model._held, attribute).flat[0] = np.nan
    mercer.save(model, tmp_path / "m")
    with pytest.raises(ValueError, match=f"{attribute} has values that are not finite"):
        mercer.load(tmp_path / "m")
