"""Cross-validation and held-out samples of mercer fit."""

import numpy as np
import pytest
from cli_files import FLOWERS, call, call_json, flowers, write_flowers, write_images
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, SVDD, SVR, OneClassSVM
from mercer.cli import cross_validation

pytest.importorskip("skops", reason="model files need skops")


@pytest.fixture
def searches(monkeypatch):
    """The searches that a command makes."""
    made = []

    class Kept(cross_validation.GridSearchCV):
        def fit(self, X, y=None):
            made.append(self)
            return super().fit(X, y)

    monkeypatch.setattr(cross_validation, "GridSearchCV", Kept)
    return made


def cross_validated(tmp_path, data, *options):
    more = ("--cv", 4, "--seed", 3, "--out", tmp_path / "m.skops", *options)
    return call_json("fit", data, *more)["cv"]


def test_scores_of_classes_are_those_of_plain_fits(tmp_path, searches):
    X, y = flowers(90)
    data = write_flowers(tmp_path / "f.csv", n=90)
    options = ("--target", "kind", "--C", 0.3, "--kernel", "rbf(gamma=2)")
    found = cross_validated(tmp_path, data, *options)
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    plain = cross_val_score(SVC(C=0.3, gamma=2.0), X, np.array(FLOWERS)[y], cv=folds)
    np.testing.assert_allclose(found["scores"], plain, rtol=1e-12)
    assert found["mean"] == pytest.approx(plain.mean())
    assert found["std"] == pytest.approx(plain.std())
    assert searches[0].sharing_.n_shared == 4
    assert searches[0].sharing_.n_grams == 1


def test_scores_of_values_and_of_scaled_columns(tmp_path, searches):
    X, _ = flowers(90)
    data = write_flowers(tmp_path / "f.csv", n=90, target=None)
    options = ("--target", "petals", "--machine", "svr", "--scale", "standard")
    found = cross_validated(tmp_path, data, *options)
    model = make_pipeline(StandardScaler(), SVR())
    folds = KFold(4, shuffle=True, random_state=3)
    plain = cross_val_score(model, X[:, :2], X[:, 2], cv=folds)
    np.testing.assert_allclose(found["scores"], plain, rtol=1e-9)
    assert found["metric"] == "R2"
    assert searches[0].sharing_.n_shared == 4


@pytest.mark.parametrize("machine", [OneClassSVM, SVDD])
def test_shares_of_inliers(tmp_path, machine):
    X, _ = flowers(90)
    data = write_flowers(tmp_path / "f.csv", n=90, target=None)
    found = cross_validated(
        tmp_path, data, "--machine", machine.__name__.lower().replace("svm", "")
    )
    folds = KFold(4, shuffle=True, random_state=3)

    def share(model, Z, _=None):
        return np.mean(model.predict(Z) == 1)

    plain = cross_val_score(machine(), X, cv=folds, scoring=share)
    np.testing.assert_allclose(found["scores"], plain, rtol=1e-12)
    assert found["metric"] == "share of inliers"


def test_features_of_images_are_cross_validated(tmp_path):
    data = write_images(tmp_path / "images", n=8, size=(16, 16))
    found = cross_validated(tmp_path, data, "--features", "hog", "--cell-size", 4)
    assert found["mean"] == 1.0


def test_classes_with_commas_can_be_told_apart(tmp_path):
    data, out = write_flowers(tmp_path / "f.csv"), tmp_path / "m.skops"
    data.write_text(data.read_text().replace("rose", '"rose, red"'))
    said = call("fit", data, "--target", "kind", "--out", out).stdout
    for line in (said, call("info", out).stdout):
        assert "aster, 'rose, red', tulip" in line
    assert '"rose, red"' in call("predict", out, data).stdout
