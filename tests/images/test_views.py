import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, gram_matrix, kernels
from mercer.images import HOG, Rescale, Views
from mercer.kernels import RBF, Linear, name_columns
from mercer.kernels.views import NamedColumns, views_of

TEXT = "rbf@raw * rbf(sigma=4)@hog"


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X.flags.writeable = y.flags.writeable = False
    return X[:400].astype(np.float32), y[:400]


@pytest.fixture
def views():
    return Views(raw=Rescale((0, 16)), hog=HOG(2, 2))


def test_blocks_stand_side_by_side(views, digits):
    X, _ = digits
    found = views.fit_transform(X)
    assert found.dtype == np.float32
    assert_array_equal(found[:, views.views_["raw"]], X / 16)
    assert_array_equal(found[:, views.views_["hog"]], HOG(2, 2).fit_transform(X))
    assert_array_equal(views.transform(X), found)
    stack = X.reshape(-1, 8, 8)
    assert_array_equal(clone(views).fit(stack).transform(stack), found)


def test_passthrough_is_the_data_themselves(rng):
    X = rng.random((5, 7))
    assert_array_equal(Views(raw="passthrough").fit_transform(X), X)
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3)
    found = Views(raw="passthrough").fit_transform(pixels)
    assert found.dtype == np.float32
    assert_array_equal(found, pixels.reshape(2, 12))


@pytest.mark.parametrize("kernel", [TEXT, RBF().on("raw") * RBF(sigma=4).on("hog")])
def test_kernels_know_views_by_name(kernel, views, digits):
    X, y = digits
    model = Pipeline([("views", views), ("svc", SVC(C=10, kernel=kernel))]).fit(X, y)
    columns = {"raw": slice(0, 64), "hog": slice(64, 388)}
    parsed = kernels.parse(TEXT)
    by_hand = SVC(C=10, kernel=kernels.with_views(parsed, columns))
    features = np.asarray(views.fit_transform(X))
    by_hand.fit(features, y)
    assert_allclose(model["svc"].dual_coef_, by_hand.dual_coef_)
    assert_array_equal(model.predict(X), by_hand.predict(features))
    assert model.score(X, y) > 0.99
    assert type(model["svc"].support_vectors_) is np.ndarray


def test_search_over_views_and_kernels(views, digits):
    X, y = digits
    model = Pipeline([("views", views), ("svc", SVC(kernel=TEXT))])
    search = GridSearchCV(
        model, {"views__hog__bins": [4, 9], "svc__kernel": [TEXT, "linear@hog"]}, cv=2
    )
    search.fit(X, y)
    assert search.best_score_ > 0.9
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()


def test_cross_validation_of_features_keeps_names(views, digits):
    X, y = digits
    features = views.fit_transform(X)
    assert cross_val_score(SVC(kernel=TEXT), features, y, cv=3).min() > 0.9


def test_data_frames_carry_the_names(views, digits):
    pytest.importorskip("pandas")
    X, y = digits
    plain = make_pipeline(views, SVC(kernel=TEXT)).fit(X, y)
    framed = make_pipeline(
        clone(views).set_output(transform="pandas"), SVC(kernel=TEXT)
    ).fit(X, y)
    frame = framed[0].transform(X)
    assert list(frame.columns[[0, 63, 64]]) == ["raw__x0", "raw__x63", "hog__hog0"]
    assert_array_equal(framed.predict(X), plain.predict(X))


def test_views_may_be_pipelines(digits):
    X, y = digits
    hog = make_pipeline(HOG(2, 2), StandardScaler())
    model = make_pipeline(
        Views(raw="passthrough", hog=hog), SVC(kernel="rbf@raw + linear@hog")
    )
    assert model.fit(X, y).score(X, y) > 0.99


def test_steps_that_lose_the_names_are_pointed_out(views, digits):
    X, y = digits
    model = make_pipeline(views, StandardScaler(), SVC(kernel=TEXT))
    with pytest.raises(ValueError, match=r"no views are known here.*images\.Views"):
        model.fit(X, y)


def test_unknown_views_are_named(views, digits):
    X, y = digits
    model = make_pipeline(views, SVC(kernel="rbf@pixels"))
    with pytest.raises(ValueError, match=r"column or view 'pixels'\. Known: hog, raw"):
        model.fit(X, y)


def test_names_of_an_earlier_fit_are_forgotten(views, digits):
    X, y = digits
    model = SVC(kernel=TEXT).fit(views.fit_transform(X), y)
    with pytest.raises(ValueError, match="no views are known here"):
        model.fit(np.asarray(views.transform(X)), y)


def test_parameters(views):
    names = views.get_params()
    assert names["hog__bins"] == 9
    assert list(views.get_params(deep=False)) == ["raw", "hog"]
    views.set_params(hog=HOG(4), hog__bins=5)
    assert views.get_params()["hog"].cell_size == 4
    assert views.get_params()["hog__bins"] == 5
    copy = clone(views)
    assert copy.get_params()["hog"] is not views.get_params()["hog"]
    assert list(copy.get_params(deep=False)) == ["raw", "hog"]
    with pytest.raises(ValueError, match=r"Unknown view 'sift'\. Known: raw, hog"):
        views.set_params(sift=HOG())


@pytest.mark.parametrize(
    "views, kind, message",
    [
        (Views(), ValueError, r"Views has no views\. Give at least one"),
        (Views(hog=3), TypeError, r"hog must be a transformer or 'passthrough', got 3"),
        (Views(raw="drop"), TypeError, "raw must be a transformer .* got 'drop'"),
        (Views(a__b=HOG()), ValueError, "the name 'a__b' must not contain '__'"),
    ],
)
def test_wrong_views(views, kind, message):
    with pytest.raises(kind, match=message):
        views.fit(np.zeros((2, 64)))


@pytest.fixture
def named():
    X = np.arange(12.0).reshape(4, 3)
    return name_columns(X, {"a": slice(0, 1), "b": slice(1, 3)})


@pytest.mark.parametrize(
    "choose",
    [
        lambda X: X[1:3],
        lambda X: X[[2, 0]],
        lambda X: X[np.array([True, False, True, False])],
        lambda X: X[[2, 0], ...],
        lambda X: X[[2, 0], :],
        lambda X: X.take([1, 2], axis=0),
        lambda X: X.copy(),
        lambda X: pickle.loads(pickle.dumps(X)),
    ],
)
def test_rows_keep_names(named, choose):
    found = choose(named)
    assert isinstance(found, NamedColumns)
    assert views_of(found) == named.views
    assert_array_equal(found, choose(np.asarray(named)))


@pytest.mark.parametrize(
    "choose",
    [
        lambda X: X[:, ::-1],
        lambda X: X[:, [1, 2]],
        lambda X: X[1],
        lambda X: X[..., :2],
        lambda X: X[X > 3],
        lambda X: X[None],
        lambda X: X.take([0, 1], axis=1),
        lambda X: X.take([0, 1]),
        lambda X: X.T,
        lambda X: X.reshape(3, 4),
        lambda X: X + 1,
        lambda X: X.sum(axis=0),
        lambda X: np.concatenate([X, X], axis=1),
    ],
)
def test_other_results_have_no_names(named, choose):
    assert views_of(choose(named)) == {}
    assert_array_equal(choose(named), choose(np.asarray(named)))


def test_single_values_are_numbers(named):
    assert named[1, 2] == 5.0
    assert isinstance(named[1, 2], float)
    assert isinstance(named.sum(), float)


def test_names_without_an_estimator(named):
    kernel = Linear().on("b")
    expected = np.asarray(named)[:, 1:] @ np.asarray(named)[:, 1:].T
    assert_allclose(kernel.block(named), expected)
    assert_allclose(gram_matrix(kernel, named), expected)
    assert_allclose(gram_matrix(kernel, np.asarray(named), named), expected)
    assert_allclose(kernel.diag(named), np.diag(expected))
