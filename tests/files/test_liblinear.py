"""Linear machines in files: LIBLINEAR's format, scikit-learn, Mercer's own."""

import shutil
import subprocess

import numpy as np
import pytest
from sklearn import svm
from sklearn.datasets import dump_svmlight_file

import mercer
from mercer import LinearSVC, LinearSVR, export_liblinear

CLASSIFIERS = {
    "two": (LinearSVC(loss="hinge", intercept_scaling=2.0), 2),
    "several": (LinearSVC(penalize_intercept=False), 4),
    "l1": (LinearSVC("l1", fit_intercept=False), 3),
    "joint": (LinearSVC(multi_class="crammer_singer", max_iter=5000), 3),
    "joint, two": (LinearSVC(multi_class="crammer_singer"), 2),
}


@pytest.fixture(scope="module")
def program():
    found = shutil.which("liblinear-predict")
    if not found:
        pytest.skip("liblinear-predict is not there (Debian's liblinear-tools has it)")
    return found


def by_program(program, path, X):
    """Return what LIBLINEAR's own program predicts."""
    test, out = path.with_suffix(".test"), path.with_suffix(".out")
    dump_svmlight_file(X, np.zeros(len(X)), str(test), zero_based=False)
    command = [program, str(test), str(path), str(out)]
    subprocess.run(command, check=True, capture_output=True)
    return np.loadtxt(out)


def samples(n_classes, rng):
    y = np.arange(80) % n_classes
    return rng.standard_normal((80, 3)) + 2.0 * np.eye(3)[y % 3], 10 * y


def read_model(path):
    """Read LIBLINEAR's format by its own rules."""
    lines = path.read_text().splitlines()
    start = lines.index("w")
    head = dict(line.split(" ", 1) for line in lines[:start])
    return head, np.array([line.split() for line in lines[start + 1 :]], dtype=float)


def predict(path, X):
    """Predict as LIBLINEAR's predict does."""
    head, w = read_model(path)
    bias, labels = float(head["bias"]), head["label"].split()
    assert len(w) == int(head["nr_feature"]) + (bias >= 0)
    if bias >= 0:
        X = np.hstack([X, np.full((len(X), 1), bias)])
    values = X @ w
    if w.shape[1] == 1:
        return np.array([int(labels[0] if v > 0 else labels[1]) for v in values])
    return np.array([int(labels[k]) for k in values.argmax(axis=1)])


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_in_the_format_of_liblinear(name, tmp_path, rng):
    model, n_classes = CLASSIFIERS[name]
    X, y = samples(n_classes, rng)
    model.fit(X, y)
    export_liblinear(model, tmp_path / "model")
    assert (predict(tmp_path / "model", X) == model.predict(X)).all()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_program_predicts_the_same_classes(name, program, tmp_path, rng):
    model, n_classes = CLASSIFIERS[name]
    X, y = samples(n_classes, rng)
    export_liblinear(model.fit(X, y), tmp_path / "model")
    found = by_program(program, tmp_path / "model", X)
    np.testing.assert_array_equal(found, model.predict(X))
    assert set(found) == set(y)


@pytest.mark.parametrize(
    "model",
    [LinearSVR(intercept_scaling=3.0), LinearSVR(loss="squared_epsilon_insensitive")],
    ids=str,
)
def test_the_program_predicts_the_same_values(model, program, tmp_path, rng):
    X = rng.standard_normal((50, 3))
    export_liblinear(model.fit(X, X[:, 0] + 1.0), tmp_path / "model")
    found = by_program(program, tmp_path / "model", X)
    # The program prints six digits.
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-5, atol=1e-6)


def test_regression_in_the_format_of_liblinear(tmp_path, rng):
    X = rng.standard_normal((50, 3))
    model = LinearSVR(intercept_scaling=3.0).fit(X, X[:, 0] + 1.0)
    export_liblinear(model, tmp_path / "model")
    head, w = read_model(tmp_path / "model")
    assert head["solver_type"] == "L2R_L1LOSS_SVR_DUAL"
    values = X @ w[:3] + float(head["bias"]) * w[3]
    assert values.ravel() == pytest.approx(model.predict(X))


def test_what_liblinear_does_not_have(tmp_path, rng):
    X, y = samples(2, rng)
    with pytest.raises(ValueError, match="SVC is not a linear machine"):
        export_liblinear(mercer.SVC().fit(X, y), tmp_path / "model")
    with pytest.raises(ValueError, match="whole numbers"):
        export_liblinear(LinearSVC().fit(X, y.astype(str)), tmp_path / "model")


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_to_scikit_learn(name, rng):
    model, n_classes = CLASSIFIERS[name]
    X, y = samples(n_classes, rng)
    theirs = model.fit(X, y).to_sklearn()
    assert type(theirs) is svm.LinearSVC
    assert theirs.decision_function(X) == pytest.approx(model.decision_function(X))
    assert (theirs.predict(X) == model.predict(X)).all()


def test_regression_to_scikit_learn(rng):
    X = rng.standard_normal((50, 3))
    model = LinearSVR().fit(X, X[:, 0])
    assert model.to_sklearn().predict(X) == pytest.approx(model.predict(X))


def test_probabilities_are_lost_with_a_warning(tmp_path, rng):
    X, y = samples(2, rng)
    model = LinearSVC(probability=True).fit(X, y)
    with pytest.warns(UserWarning, match="most probable class"):
        model.to_sklearn()
    with pytest.warns(UserWarning, match="most probable class"):
        export_liblinear(model, tmp_path / "model")


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_saved_and_loaded(name, tmp_path, rng):
    model, n_classes = CLASSIFIERS[name]
    X, y = samples(n_classes, rng)
    model.fit(X, y)
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    assert (again.decision_function(X) == model.decision_function(X)).all()
    assert again.converged_ == model.converged_
    model.coef_ = model.coef_[:, :2]
    mercer.save(model, tmp_path / "model.mercer")
    with pytest.raises(ValueError, match="do not fit together"):
        mercer.load(tmp_path / "model.mercer")


def test_regression_saved_and_loaded(tmp_path, rng):
    X = rng.standard_normal((50, 3))
    model = LinearSVR().fit(X, X[:, 0])
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    assert (again.predict(X) == model.predict(X)).all()
