"""Curves, paths and out-of-fold decisions."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import model_selection as plain
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, SVR, OneClassSVM
from mercer.selection import cross_val_decision, svm_path, validation_curve


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=4, return_X_y=True)
    return X[:200] / 16, y[:200]


@pytest.mark.parametrize(
    ("name", "values"), [("C", [0.01, 1, 100]), ("gamma", [0.001, 0.1])]
)
def test_validation_curve(digits, name, values):
    options = {"param_name": name, "param_range": values, "cv": 3}
    ours = validation_curve(SVC(gamma=0.05), *digits, **options)
    theirs = plain.validation_curve(SVC(gamma=0.05), *digits, **options)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, other)
    with pytest.raises(ValueError, match="one scorer"):
        validation_curve(SVC(), *digits, scoring=["accuracy", "f1_macro"], **options)


@pytest.mark.parametrize("kernel", ["poly", "sigmoid"])
def test_paths_of_dense_and_sparse_copies_are_the_same(kernel):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    dense, other = (
        svm_path(data, y, [0.1, 1.0], estimator=SVC(kernel=kernel))
        for data in (X, sparse.csr_array(X))
    )
    for point, same in zip(dense, other, strict=True):
        np.testing.assert_array_equal(same.support, point.support)
        np.testing.assert_array_equal(same.dual_coef.toarray(), point.dual_coef)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_points_of_a_path_are_fits(digits, multiclass):
    X, y = digits
    estimator = SVC(gamma=0.05, multiclass=multiclass, tol=1e-4)
    points = svm_path(X, y, [10.0, 0.1, 1.0], estimator=estimator)
    assert [point.C for point in points] == [0.1, 1.0, 10.0]
    for point in points:
        alone = SVC(**{**estimator.get_params(), "C": point.C}).fit(X, y)
        assert type(point.model) is SVC
        assert point.converged
        assert (point.model.kkt_gap_ <= 1e-4).all()
        np.testing.assert_allclose(point.objective, alone.objective_, rtol=1e-6)
        np.testing.assert_allclose(
            point.model.decision_function(X), alone.decision_function(X), atol=1e-3
        )
        assert point.n_support == len(point.support) == point.dual_coef.shape[1]
        assert (np.asarray(point.dual_gap) >= -1e-9).all()
    assert estimator.C == 1.0


def test_paths_of_regression_and_defaults(digits, rng):
    X = rng.normal(size=(60, 2))
    z = X[:, 0] ** 2
    points = svm_path(X, z, estimator=SVR(epsilon=0.05), sample_weight=np.ones(60))
    assert len(points) == 10
    # The dual's optimum falls as the box grows.
    objectives = [float(point.objective) for point in points]
    assert (np.diff(objectives) <= 1e-9).all()


def test_models_of_a_path_are_as_those_of_fits(digits):
    X, y = digits
    for point in svm_path(X, y, [0.1, 10], estimator=SVC(gamma=0.05)):
        model = SVC(gamma=0.05, C=point.C).fit(X, y)
        assert type(point.model) is SVC
        assert set(vars(point.model)) == set(vars(model))
        np.testing.assert_array_equal(point.model.predict(X), model.predict(X))


def test_paths_need_a_c(digits):
    with pytest.raises(TypeError, match="a machine of Mercer with a C"):
        svm_path(*digits, estimator=OneClassSVM())
    for wrong in ([], [0.0, 1.0], [np.nan]):
        with pytest.raises(ValueError, match="numbers > 0"):
            svm_path(*digits, wrong)


@pytest.mark.parametrize("method", ["decision_function", "predict"])
def test_out_of_fold_decisions(digits, method):
    X, y = digits
    names = np.array(["a", "b", "c", "d"])[y]
    pipe = make_pipeline(StandardScaler(), SVC(gamma=0.01))
    for estimator in (SVC(gamma=0.05), pipe):
        ours = cross_val_decision(estimator, X, names, method=method)
        theirs = plain.cross_val_predict(estimator, X, names, method=method)
        if method == "predict":
            np.testing.assert_array_equal(ours, theirs)
        else:
            np.testing.assert_allclose(ours, theirs, atol=2e-3)


def test_out_of_fold_decisions_of_two_classes_with_weights(digits, rng):
    X, y = digits
    weight = rng.uniform(0.5, 2, size=len(y))
    ours = cross_val_decision(SVC(tol=1e-5), X, y > 1, sample_weight=weight, cv=4)
    theirs = plain.cross_val_predict(
        SVC(tol=1e-5),
        X,
        y > 1,
        method="decision_function",
        params={"sample_weight": weight},
        cv=4,
    )
    assert ours.shape == (200,)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_out_of_fold_decisions_of_what_cannot_share(digits):
    X, y = digits
    estimator = SVC(gamma=0.05, solver="decompose")
    ours = cross_val_decision(estimator, X, y)
    theirs = plain.cross_val_predict(estimator, X, y, method="decision_function")
    np.testing.assert_allclose(ours, theirs)


def test_folds_must_be_a_partition(digits):
    X, y = digits
    with pytest.raises(ValueError, match="exactly once"):
        cross_val_decision(SVC(), X, y, cv=plain.ShuffleSplit(3))
    order = np.argsort(y, kind="stable")
    with pytest.raises(ValueError, match="stratified"):
        cross_val_decision(SVC(), X[order], y[order], cv=plain.KFold(4))
