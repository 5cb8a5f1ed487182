"""No array or number of a model file, whatever it is, makes compiled code misbehave."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn import svm
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import damage
import mercer
from mercer import images
from mercer.images import Deskew, Distort, PatchFeatures
from model_files import toy_data

pytest.importorskip("skops.io")
PICTURES = damage.pictures()


def patches():
    return PatchFeatures(3, 5, n_patches=50, random_state=0).fit(PICTURES)


@pytest.mark.slow
@pytest.mark.parametrize("name", damage.MODELS)
def test_damage_gives_errors_or_answers(name, tmp_path, tmp_path_factory):
    program = Path(damage.__file__)
    cache = tmp_path_factory.getbasetemp().parent / "numba-that-checks-bounds"
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "model"), name],
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(cache)},
        cwd=program.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    last = (tmp_path / "case").read_text()
    assert done.returncode == 0, f"a crash or no end: {last}\n{done.stderr}"
    assert not done.stdout
    # Ten damages for each array and number, of which the simplest filters have few.
    assert int(done.stderr.split(": ")[-1].split()[0]) > 60


def test_all_classes_are_damaged():
    X, y = toy_data()
    cheap = {name: make for name, make in damage.MODELS.items() if "MKL" not in name}
    found = {type(make(X, y)).__name__ for make in cheap.values()}
    public = {*images.__all__, *mercer.__all__}
    known = {name for name in public if hasattr(getattr(mercer, name, None), "fit")}
    known |= set(images.__all__)
    assert known - found <= {"MKLClassifier", "MKLRegressor"} <= set(damage.MODELS)


@pytest.mark.parametrize("size", [1, 4, 12])
def test_a_size_that_is_set_after_fit_is_refused(size):
    model = patches().set_params(patch_size=size, regions=1)
    with pytest.raises(
        NotFittedError, match=r"directions_ has shape .* Call fit again"
    ):
        model.transform(PICTURES)


@pytest.mark.parametrize(
    "name, value",
    [
        ("rotation", np.nan),
        ("shift", np.nan),
        ("elastic", np.inf),
        ("smoothness", 1e9),
        ("mirror", 2.0),
    ],
)
def test_parameters_that_are_set_after_fit_are_checked(name, value, tmp_path):
    model = Distort(random_state=0).fit(PICTURES).set_params(**{name: value})
    with pytest.raises(ValueError, match=f"The {name!r} parameter of Distort must be"):
        model.transform(PICTURES)


@pytest.mark.parametrize(
    "name, value",
    [
        ("whitening_", np.ones((1, 1))),
        ("mean_", np.full(9, np.nan)),
        ("contrast_", 0.0),
        ("image_shape_", (100, 100)),
        ("patch_size", 100),
    ],
)
def test_files_of_patches_are_checked(name, value, tmp_path):
    model = patches()
    setattr(model, name, value)
    mercer.save(model, tmp_path / "m")
    with pytest.raises(ValueError, match="arrays of PatchFeatures do not fit together"):
        mercer.load(tmp_path / "m")


@pytest.mark.parametrize(
    "name, change",
    [
        ("_n_support", lambda v: np.array([v.sum() + 10**8, -(10**8)], dtype=v.dtype)),
        ("_n_support", lambda v: np.array([*v, 0], dtype=v.dtype)),
        ("support_", lambda v: v + 10**6),
        ("support_vectors_", lambda v: v[:, :2].copy()),
        ("_dual_coef_", lambda v: v[:, :-1].copy()),
        ("_intercept_", lambda v: v[:0]),
        ("_probA", lambda v: np.ones(2)),
    ],
)
def test_scikit_learns_machines_are_checked(name, change, tmp_path):
    X, y = toy_data()
    model = make_pipeline(StandardScaler(), svm.SVC()).fit(X, y > 0)
    mercer.save(model, tmp_path / "m")
    mercer.load(tmp_path / "m")
    setattr(model[-1], name, change(getattr(model[-1], name)))
    mercer.save(model, tmp_path / "m")
    with pytest.raises(ValueError, match="the arrays of SVC do not fit together"):
        mercer.load(tmp_path / "m")


def test_a_model_that_was_changed_is_not_given_to_scikit_learn():
    X, y = toy_data()
    model = mercer.SVC(kernel="precomputed").fit(X @ X.T, y)
    model.support_ = model.support_ + 10**6
    with pytest.raises(ValueError, match="support_ has values that do not lie from 0"):
        model.to_sklearn()


@pytest.mark.parametrize("kernel", ["laplacian", "intersection", "rbf"])
def test_support_vectors_of_another_width_are_refused(kernel):
    X, y = toy_data()
    model = mercer.SVC(kernel=kernel).fit(X, y)
    model.support_vectors_ = model.support_vectors_[:, :2].copy()
    with pytest.raises(ValueError, match="representation of SVC was altered"):
        model.predict(X)


def test_centres_of_another_width_are_refused():
    X, _ = toy_data()
    model = mercer.KMeans(n_clusters=3).fit(X)
    model.cluster_centers_ = model.cluster_centers_[:, :2]
    with pytest.raises(ValueError, match=r"cluster_centers_ has shape \(3, 2\)"):
        model.predict(X)


def test_weights_of_another_width_are_refused():
    X, y = toy_data()
    model = mercer.LinearSVC().fit(X, y)
    model.coef_ = model.coef_[:, :2]
    with pytest.raises(ValueError, match=r"coef_ has shape \(3, 2\), and the samples"):
        model.predict(X)


def test_a_centre_that_does_not_fit_held_samples_is_refused(tmp_path):
    X, y = toy_data()
    model = mercer.OnlineSVC().fit(X, y)
    model._held.gram.rows.center = np.zeros(2)
    mercer.save(model, tmp_path / "m")
    with pytest.raises(ValueError, match="centre of the held samples does not fit"):
        mercer.load(tmp_path / "m")


@pytest.mark.parametrize("method", ["hough", "moments"])
def test_values_that_overflow_do_not_lead_beyond_an_image(method):
    large = np.where(PICTURES > 0.5, 1e308, -1e308)
    model = Deskew(method).fit(large)
    assert np.isfinite(model.angles(large)).all()
    np.testing.assert_array_equal(model.transform(large), large)


@pytest.mark.parametrize("model", [images.HOG(4), images.Rescale()])
def test_results_that_overflow_are_an_error(model):
    large = np.where(PICTURES > 0.5, 1.7e308, -1.7e308)
    with pytest.raises(ValueError, match="the results are not finite, because values"):
        model.fit_transform(large)
