"""Searches: the same answers as scikit-learn's, whatever is shared."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import loguniform
from sklearn import config_context, svm
from sklearn import model_selection as plain
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import make_scorer, recall_score
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM, kernels
from mercer.engines.cpu import small
from mercer.selection import GridSearchCV, RandomizedSearchCV
from searches import check_same, split_scores


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=5, return_X_y=True)
    return X[:240] / 16, y[:240]


@pytest.fixture(scope="module")
def curve():
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, size=(90, 2))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=90)


def test_scores_are_those_of_scikit_learns_svc(digits):
    X, y = digits
    grid = {"C": [0.1, 1, 10, 100], "gamma": ["scale", 0.01, 0.1]}
    ours = GridSearchCV(SVC(), grid).fit(X, y)
    theirs = plain.GridSearchCV(svm.SVC(), grid).fit(X, y)
    np.testing.assert_allclose(split_scores(ours), split_scores(theirs), atol=1e-12)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    # Two gammas for all folds, and "scale", which differs from fold to fold.
    assert ours.sharing_.n_grams == 2 + 5
    assert (ours.cv_results_["mean_fit_time"] > 0).all()


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_table_of_few_values(digits, make, dtype):
    X, y = digits
    X = make(X[:150, 26:30].astype(dtype))
    assert small.is_tiny(X, X.shape[0])
    grid = {"C": [0.1, 1, 10], "kernel": ["rbf", "chi2", "poly", "linear"]}
    check_same(SVC(gamma=0.5), grid, X, y[:150], n_grams=4, cv=3)


@pytest.mark.parametrize(
    "options",
    [
        {"multiclass": "ovr"},
        {"multiclass": "ecoc"},
        {"multiclass": "ovr", "decode": "barycentre"},
        {"probability": True, "random_state": 0},
        {"class_weight": "balanced", "break_ties": True},
        {"class_weight": {0: 3.0}, "tol": 1e-4},
        {"solver": "smo", "shrinking": False},
    ],
)
def test_every_scheme(digits, options):
    grid = {"C": [0.5, 5.0], "kernel": ["rbf", "linear"], "gamma": [0.05]}
    check_same(SVC(**options), grid, *digits, n_grams=2, cv=3)


def test_grid_over_weights_and_schemes(digits):
    grid = {"positive_weight": [0.2, 1.0, 5.0], "C": [1, 0.1], "gamma": [0.05]}
    check_same(SVC(multiclass="ovr"), grid, *digits, n_grams=1, cv=3)
    grid = {"class_weight": [None, "balanced", {1: 2}], "multiclass": ["ovo", "ovr"]}
    check_same(SVC(gamma=0.05), grid, *digits, n_grams=1, cv=3)


def test_two_classes_and_any_scorer(digits):
    X, y = digits
    y = np.where(y > 2, "high", "low")
    for scoring in ("roc_auc", make_scorer(recall_score, pos_label="low")):
        grid = {"C": [0.01, 1], "gamma": [0.1, 0.01]}
        check_same(SVC(), grid, X, y, n_grams=2, scoring=scoring, atol=1e-4)


@pytest.mark.parametrize("nus", [[0.1, 0.3], [0.4, 0.05]])
def test_nu_svc(digits, nus):
    check_same(NuSVC(gamma=0.05), {"nu": nus}, *digits, n_grams=1, cv=3)


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (SVR(), {"C": [0.1, 1, 10], "epsilon": [0.01, 0.1], "gamma": [0.5]}),
        (NuSVR(gamma=0.5), {"C": [10, 0.1, 1], "nu": [0.2, 0.7]}),
    ],
)
def test_regression(curve, estimator, grid):
    estimator.set_params(tol=1e-5)
    check_same(estimator, grid, *curve, n_grams=1, atol=1e-4)


def test_one_class(curve):
    X, _ = curve
    y = np.where(np.abs(X[:, 0]) < 1.8, 1, -1)
    estimator = OneClassSVM(tol=1e-6)
    grid = {"nu": [0.5, 0.1, 0.05], "gamma": [0.1, 1.0]}
    check_same(estimator, grid, X, y, n_grams=2, scoring="f1", atol=0.02)


def test_training_scores_and_several_metrics(digits):
    options = {
        "scoring": ["accuracy", "f1_macro"],
        "refit": "f1_macro",
        "return_train_score": True,
        "cv": 3,
    }
    grid = {"C": [0.1, 10], "gamma": [0.05]}
    ours = GridSearchCV(SVC(), grid, **options).fit(*digits)
    theirs = plain.GridSearchCV(SVC(), grid, **options).fit(*digits)
    assert ours.multimetric_
    for name, values in theirs.cv_results_.items():
        if "test" in name or "train" in name:
            np.testing.assert_allclose(ours.cv_results_[name], values)
    assert ours.best_index_ == theirs.best_index_
    assert set(ours.scorer_) == {"accuracy", "f1_macro"}


def test_sample_weights_reach_fits_and_scorers(digits, rng):
    weight = rng.uniform(0, 2, size=len(digits[1]))
    grid = {"C": [0.05, 5], "gamma": [0.05]}
    fit = {"sample_weight": weight}
    check_same(SVC(), grid, *digits, n_grams=1, fit=fit)
    with config_context(enable_metadata_routing=True):
        estimator = SVC().set_fit_request(sample_weight=True)
        estimator.set_score_request(sample_weight=True)
        check_same(estimator, grid, *digits, fit=fit)
    pipe = make_pipeline(StandardScaler(), SVC(gamma=0.01))
    fit = {"svc__sample_weight": weight}
    check_same(pipe, {"svc__C": [0.1, 10]}, *digits, n_grams=5, fit=fit)


def test_pipelines_share_within_a_fold(digits):
    pipe = make_pipeline(StandardScaler(), SVC())
    grid = {
        "standardscaler__with_mean": [True, False],
        "svc__C": [0.1, 1, 10],
        "svc__gamma": [0.01, 0.05],
    }
    check_same(pipe, grid, *digits, n_grams=3 * 2 * 2, cv=3)


def test_steps_that_learn_nothing_are_done_once(digits):
    calls = []

    def note(X):
        calls.append(len(X))
        return X

    pipe = make_pipeline(Normalizer(), FunctionTransformer(note), SVC(gamma=1.0))
    grid = {"svc__C": [0.1, 1, 10]}
    search = GridSearchCV(pipe, grid, refit=False, cv=4).fit(*digits)
    assert calls == [240]
    assert search.sharing_.n_grams == 1
    theirs = plain.GridSearchCV(pipe, grid, refit=False, cv=4).fit(*digits)
    np.testing.assert_array_equal(split_scores(search), split_scores(theirs))


def test_scorers_that_look_at_everything(digits):
    """A function gets the estimator and samples that the user knows."""
    seen = []

    def score(estimator, X, y):
        seen.append((type(estimator).__name__, X.shape))
        final = estimator[-1] if hasattr(estimator, "steps") else estimator
        assert isinstance(final, SVC)
        assert len(final.support_) == final.dual_coef_.shape[1]
        assert final.support_vectors_.shape == (len(final.support_), X.shape[1])
        return float((estimator.predict(X) == y).mean())

    X, y = digits
    grid = {"C": [1, 10]}
    check_same(SVC(gamma=0.05), grid, X, y, scoring=score, cv=3)
    assert set(seen) == {("SVC", (80, 64))}
    pipe = make_pipeline(StandardScaler(), SVC(gamma=0.01))
    check_same(pipe, {"svc__C": [1, 10]}, X, y, scoring=score, cv=3)
    assert ("Pipeline", (80, 64)) in seen


def test_kernels_share_their_parts(digits, monkeypatch):
    from mercer.engines.cpu import pair

    calls = []
    original = pair.squared_distances
    monkeypatch.setattr(
        pair,
        "squared_distances",
        lambda *args: (calls.append(args[0].shape), original(*args)),
    )
    raw, half = slice(0, 64), slice(0, 32)
    grid = {
        "kernel": [
            kernels.RBF(g).on(raw) * kernels.RBF(h).on(half) + kernels.Linear().on(raw)
            for g in (0.01, 0.02)
            for h in (0.01, 0.03, 0.09)
        ]
    }
    search = GridSearchCV(SVC(), grid, refit=False, cv=2, n_jobs=1).fit(*digits)
    assert search.sharing_.n_grams == 6
    # The whole matrix has two kinds of distances, each computed once.
    whole = [shape for shape in calls if shape == (240, 240)]
    assert len(whole) == 2
    theirs = plain.GridSearchCV(SVC(), grid, refit=False, cv=2).fit(*digits)
    np.testing.assert_array_equal(split_scores(search), split_scores(theirs))


def test_sparse_single_and_precomputed(digits):
    X, y = digits
    grid = {"C": [0.1, 10]}
    check_same(SVC(gamma=0.05), grid, sparse.csr_array(X), y, n_grams=1, cv=3)
    check_same(SVC(gamma=0.05), grid, X.astype(np.float32), y, n_grams=1, cv=3)
    K = kernels.RBF(0.05).block(X)
    K.flags.writeable = False
    check_same(SVC(kernel="precomputed"), grid, K, y, n_grams=0, cv=3)


def test_named_columns(digits):
    X, y = digits
    views = {"upper": slice(0, 32), "lower": slice(32, 64)}
    named = kernels.name_columns(X, views)
    grid = {"kernel": ["rbf(gamma=0.1)@upper", "rbf(gamma=0.1)@lower"], "C": [1, 10]}
    check_same(SVC(), grid, named, y, n_grams=2, cv=3)


def test_any_splits(digits):
    X, y = digits
    grid = {"C": [1, 10], "gamma": [0.05]}
    check_same(SVC(), grid, X, y, cv=ShuffleSplit(4, test_size=0.3, random_state=0))
    check_same(SVC(), grid, X, y, cv=KFold(3, shuffle=True, random_state=1))
    rows = np.arange(len(y))
    check_same(SVC(), grid, X, y, cv=[(rows < 150, rows >= 150)])


def test_data_frames(digits):
    pd = pytest.importorskip("pandas")
    X, y = digits
    frame = pd.DataFrame(X, columns=[f"pixel{k}" for k in range(64)])
    search, _ = check_same(SVC(gamma=0.05), {"C": [1, 10]}, frame, y, cv=3)
    assert list(search.feature_names_in_) == list(frame.columns)


def test_results_do_not_depend_on_threads(digits):
    X, y = digits
    grid = {"C": [0.1, 1, 10], "gamma": ["scale", 0.05]}
    models = []

    def score(estimator, X, y):
        return float(np.abs(estimator.decision_function(X)).sum())

    for n_jobs in (1, 2, 3):
        search = GridSearchCV(SVC(), grid, scoring=score, n_jobs=n_jobs).fit(X, y)
        models.append(split_scores(search))
    np.testing.assert_array_equal(models[0], models[1])
    np.testing.assert_array_equal(models[0], models[2])


def test_randomised_search(digits):
    choices = {"C": loguniform(0.1, 100), "gamma": [0.01, 0.05]}
    options = {"n_iter": 6, "random_state": 3, "cv": 3}
    ours = RandomizedSearchCV(SVC(), choices, **options).fit(*digits)
    theirs = plain.RandomizedSearchCV(SVC(), choices, **options).fit(*digits)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    np.testing.assert_array_equal(split_scores(ours), split_scores(theirs))
    assert ours.sharing_.n_plain == 0 and ours.sharing_.n_grams == 2


def test_searches_are_estimators_like_others(digits):
    search = GridSearchCV(SVC(gamma=0.05), {"C": [1, 10]}, cv=2).fit(*digits)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(digits[0]), search.predict(digits[0]))
    assert clone(search).get_params()["cache_size"] == "auto"
    assert plain.cross_val_score(search, *digits, cv=2).mean() > 0.9


@pytest.mark.slow
@pytest.mark.ci
def test_mnist_scores_are_those_of_scikit_learn(mnist):
    X, y = mnist[0][:1000], mnist[1][:1000]
    grid = {"C": [0.1, 1, 10], "gamma": [0.005, 0.02]}
    ours = GridSearchCV(SVC(), grid, cv=3).fit(X, y)
    theirs = plain.GridSearchCV(svm.SVC(), grid, cv=3, n_jobs=2).fit(X, y)
    # One sample of a fold may lie so close to a boundary that the tolerance decides.
    np.testing.assert_allclose(split_scores(ours), split_scores(theirs), atol=1.1 / 333)
    assert ours.sharing_.n_grams == 2


@pytest.mark.parametrize("as_pipeline", [False, True])
def test_scorers_see_plain_fitted_machines(digits, as_pipeline):
    X, y = digits
    seen = []

    def score(estimator, X, y):
        machine = estimator[-1] if as_pipeline else estimator
        assert type(machine) is SVC
        assert len(machine.support_) == machine.n_support_.sum() > 0
        # Other samples are predicted from the support vectors.
        assert (estimator.predict(X.copy()) == estimator.predict(X)).all()
        seen.append(machine.C)
        return estimator.score(X, y)

    machine = SVC(gamma=0.05)
    name = "C"
    if as_pipeline:
        machine, name = make_pipeline(StandardScaler(), machine), "svc__C"
    search = GridSearchCV(machine, {name: [0.1, 1]}, cv=2, scoring=score).fit(X, y)
    assert sorted(seen) == [0.1, 0.1, 1, 1]
    assert search.sharing_.n_shared == 4
