"""Schemes, weights by side and probabilities of a fitted machine."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss, recall_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC as TheirSVC
from sklearn.utils.estimator_checks import check_class_weight_classifiers

from mercer import SVC, MKLClassifier, NuSVC
from mercer.machines.base import classifier
from mercer.multiclass.codes import (
    dietterich15,
)
from mercer.multiclass.decoding import (
    score_classes,
)

SCHEMES = [
    dict(multiclass="ovo"),
    dict(multiclass="ovr"),
    dict(multiclass="ecoc"),
    dict(multiclass="ecoc", code="random-sparse"),
]


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(400, n_features=3, centers=5, cluster_std=3.0, random_state=0)
    return X[:300], y[:300], X[300:], y[300:]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:1200] / 16, y[:1200], X[1200:] / 16, y[1200:]


def test_one_vs_rest_is_that_of_scikit_learn(digits):
    X, y, X_test, _ = digits
    ours = SVC(C=5, gamma=0.05, multiclass="ovr", tol=1e-6).fit(X, y)
    theirs = OneVsRestClassifier(TheirSVC(C=5, gamma=0.05, tol=1e-6)).fit(X, y)
    expected = theirs.decision_function(X_test)
    np.testing.assert_allclose(ours.decision_function(X_test), expected, atol=1e-4)
    assert (ours.predict(X_test) == theirs.predict(X_test)).all()
    assert ours.dual_coef_.shape == (10, len(ours.support_))
    assert ours.intercept_.shape == (10,)


@pytest.mark.parametrize("decode", ["hamming", "loss", "margin", "votes"])
def test_ecoc_is_separate_machines(digits, decode):
    X, y, X_test, _ = digits
    code = dietterich15()
    ours = SVC(
        C=5, gamma=0.05, multiclass="ecoc", code="dietterich15", decode=decode, tol=1e-6
    ).fit(X, y)
    assert (ours.code_ == code).all()
    columns = [
        TheirSVC(C=5, gamma=0.05, tol=1e-6).fit(X, column[y]).decision_function(X_test)
        for column in code.T
    ]
    decisions = np.column_stack(columns)
    scores = score_classes(decisions, code, decode)
    np.testing.assert_allclose(ours.decision_function(X_test), scores, atol=1e-3)
    assert (ours.predict(X_test) == scores.argmax(axis=1)).all()
    shape = clone(ours).set_params(decision_function_shape="ovo").fit(X, y)
    np.testing.assert_allclose(shape.decision_function(X_test), decisions, atol=1e-4)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("decode", ["votes", "margin", "hamming", "loss", "barycentre"])
def test_every_decoding_goes_with_every_scheme(blobs, scheme, decode):
    X, y, X_test, y_test = blobs
    model = SVC(**scheme, decode=decode, random_state=0).fit(X, y)
    assert (model.predict(X_test) == y_test).mean() > 0.65
    assert model.decision_function(X_test).shape == (100, 5)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("solver", ["smo", "decompose"])
def test_solvers_agree(blobs, scheme, solver):
    X, y, X_test, _ = blobs
    one = SVC(**scheme, solver=solver, tol=1e-6, random_state=0).fit(X, y)
    other = SVC(**scheme, tol=1e-6, random_state=0).fit(X, y)
    np.testing.assert_allclose(one.objective_, other.objective_, rtol=1e-6)
    np.testing.assert_allclose(
        one.decision_function(X_test), other.decision_function(X_test), atol=1e-4
    )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_two_classes_are_one_machine(scheme):
    X, y = make_blobs(60, centers=2, cluster_std=4.0, random_state=0)
    if scheme.get("code") == "random-sparse":
        scheme = {**scheme, "code": [[-1], [1]]}
    model = SVC(**scheme).fit(X, y)
    plain = SVC().fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), plain.decision_function(X), atol=1e-10
    )
    assert (model.predict(X) == plain.predict(X)).all()


def test_a_code_may_turn_two_classes_around():
    X, y = make_blobs(60, centers=2, cluster_std=2.0, random_state=0)
    settings = dict(probability=True, random_state=0)
    model = SVC(multiclass="ecoc", code=[[1], [-1]], **settings).fit(X, y)
    plain = SVC(**settings).fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(X), plain.predict_proba(X), atol=1e-2
    )
    assert (model.predict_proba(X).argmax(axis=1) == model.predict(X)).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_are_repetitions(blobs, scheme, rng):
    X, y, X_test, _ = blobs
    weight = rng.integers(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weight)
    settings = dict(**scheme, gamma=0.1, tol=1e-7, random_state=0)
    one = SVC(**settings).fit(X, y, sample_weight=weight)
    other = SVC(**settings).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(
        one.decision_function(X_test), other.decision_function(X_test), atol=1e-4
    )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_class_weights_are_sample_weights(blobs, scheme):
    X, y, X_test, _ = blobs
    factors = {0: 2.0, 3: 0.5}
    settings = dict(**scheme, gamma=0.1, tol=1e-7, random_state=0)
    one = SVC(**settings, class_weight=factors).fit(X, y)
    weight = np.array([factors.get(c, 1.0) for c in y])
    other = SVC(**settings).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(
        one.decision_function(X_test), other.decision_function(X_test), atol=1e-5
    )


@pytest.mark.parametrize("beta", [3.0, [1.0, 2.0, 3.0, 0.5, 1.5]])
def test_positive_weight_scales_C_of_each_class_against_the_rest(blobs, beta):
    X, y, X_test, _ = blobs
    settings = dict(C=0.7, gamma=0.1, tol=1e-6)
    ours = SVC(**settings, multiclass="ovr", positive_weight=beta).fit(X, y)
    factors = np.broadcast_to(beta, 5)
    expected = [
        TheirSVC(**settings, class_weight={1: factors[c]})
        .fit(X, (y == c).astype(int))
        .decision_function(X_test)
        for c in range(5)
    ]
    found = ours.decision_function(X_test)
    np.testing.assert_allclose(found, np.column_stack(expected), atol=1e-4)


def test_positive_weight_of_two_classes():
    X, y = make_blobs(60, centers=2, cluster_std=4.0, random_state=0)
    one = SVC(multiclass="ovr", positive_weight=3.0, tol=1e-6).fit(X, y)
    pair = SVC(multiclass="ovr", positive_weight=[9.0, 3.0], tol=1e-6).fit(X, y)
    other = SVC(class_weight={1: 3.0}, tol=1e-6).fit(X, y)
    for model in (one, pair):
        np.testing.assert_allclose(
            model.decision_function(X), other.decision_function(X), atol=1e-5
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(positive_weight=2.0), "positive_weight=2.0 needs multiclass='ovr'"),
        (dict(multiclass="ovr", positive_weight=[1.0, 2.0]), r"got .* shape \(2,\)"),
        (dict(multiclass="ovr", positive_weight=[1, 1, 1, 1, -1]), "finite and > 0"),
        (dict(multiclass="ovr", positive_weight=[1, 1, 1, 1, np.inf]), "finite"),
        (dict(decode="votes", probability=True), "contradict each other"),
        (dict(code="hadamard"), "code is for multiclass='ecoc'"),
        (dict(multiclass="ecoc", code="none"), "Unknown code 'none'"),
        (dict(multiclass="ecoc", code=np.eye(5)), "Column 0 .* on one side only"),
        (dict(multiclass="ecoc", code=np.ones((4, 3))), "each of the 5 classes"),
        (dict(kernel="precomputed", decode="barycentre"), "needs the samples"),
    ],
)
def test_choices_that_make_no_sense(blobs, settings, message):
    X, y, *_ = blobs
    with pytest.raises(ValueError, match=message):
        SVC(**settings).fit(X, y)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_most_probable_class_is_predicted(scheme, n_classes):
    if n_classes == 2 and "code" in scheme:
        pytest.skip("two classes have no sparse code")
    X, y = make_blobs(300, centers=n_classes, cluster_std=3.0, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no deprecation of probability
        model = SVC(**scheme, probability=True, random_state=0).fit(X, y)
    grid = np.random.default_rng(0).uniform(-15, 15, (500, 2))
    P = model.predict_proba(grid)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert (model.classes_[P.argmax(axis=1)] == model.predict(grid)).all()
    np.testing.assert_allclose(np.exp(model.predict_log_proba(grid)), P)
    again = clone(model).set_params(n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(grid), P)
    decoded = SVC(**scheme, decode="platt", random_state=0).fit(X, y)
    np.testing.assert_array_equal(decoded.predict_proba(grid), P)


def test_without_probability_there_is_no_predict_proba(blobs):
    X, y, *_ = blobs
    model = SVC().fit(X, y)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "predict_log_proba")
    with pytest.raises(AttributeError) as caught:
        _ = model.predict_proba
    assert "Set probability=True before fit" in str(caught.value.__cause__)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_sigmoids_see_decisions_of_machines_without_the_sample(blobs, scheme):
    """Folds on the shared Gram matrix are as good as fits without the samples."""
    X, y, *_ = blobs
    from mercer.multiclass.calibration import deal_out, fit_sigmoid

    settings = dict(**scheme, gamma=0.1, tol=1e-6, decision_function_shape="ovo")
    model = SVC(**settings, probability=True, random_state=3).fit(X, y)
    fold = deal_out(y, np.random.RandomState(3).randint(2**31 - 1))
    decisions = np.empty((len(y), model.code_.shape[1]))
    settings |= {"code": model.code_} if scheme["multiclass"] == "ecoc" else {}
    for k in range(5):
        part = SVC(**settings).fit(X[fold != k], y[fold != k])
        decisions[fold == k] = part.decision_function(X[fold == k])
    for t, column in enumerate(model.code_.T):
        rows = column[y] != 0
        A, B = fit_sigmoid(decisions[rows, t], column[y[rows]] > 0, np.ones(rows.sum()))
        np.testing.assert_allclose(model.probA_[t], A, rtol=1e-3)
        sign = -1 if len(model.classes_) == 2 else 1
        np.testing.assert_allclose(model.probB_[t], sign * B, rtol=1e-2, atol=1e-3)


def test_probabilities_leave_the_machines_alone(blobs):
    X, y, X_test, _ = blobs
    plain, with_p = SVC().fit(X, y), SVC(probability=True).fit(X, y)
    np.testing.assert_allclose(
        plain.decision_function(X_test), with_p.decision_function(X_test), atol=1e-10
    )
    assert len(with_p.n_iter_) == len(with_p.objective_) == 10


def test_probabilities_are_as_good_as_those_of_scikit_learn(digits):
    X, y, X_test, y_test = digits
    ours = SVC(C=5, gamma=0.05, probability=True, random_state=0).fit(X, y)
    theirs = CalibratedClassifierCV(
        TheirSVC(C=5, gamma=0.05), cv=5, ensemble=False
    ).fit(X, y)
    expected = log_loss(y_test, theirs.predict_proba(X_test))
    assert log_loss(y_test, ours.predict_proba(X_test)) <= 1.02 * expected


@pytest.mark.parametrize("scheme", SCHEMES[:3])
def test_few_samples_have_probabilities_too(scheme):
    X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [20.0]])
    y = [0, 0, 0, 1, 1, 2]
    model = SVC(**scheme, probability=True, random_state=0).fit(X, y)
    P = model.predict_proba(X)
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


def test_samples_without_weight_do_not_count_for_sigmoids(blobs):
    X, y, X_test, _ = blobs
    weight = np.ones(len(y))
    weight[::3] = 0.0
    y_wrong = np.where(weight > 0, y, (y + 1) % 5)
    settings = dict(probability=True, gamma=0.1, random_state=0)
    model = SVC(**settings).fit(X, y_wrong, sample_weight=weight)
    other = SVC(**settings).fit(X[weight > 0], y[weight > 0])
    agree = model.predict(X_test) == other.predict(X_test)
    assert agree.mean() > 0.95


@pytest.mark.parametrize("multiclass", ["ovo", "ovr", "ecoc"])
@pytest.mark.parametrize(
    "model",
    # A larger nu is infeasible with the weights of the check.
    [SVC(), NuSVC(nu=1e-7), MKLClassifier()],
    ids=["SVC", "NuSVC", "MKLClassifier"],
)
@pytest.mark.filterwarnings("ignore:The margin of", "ignore:The solver stopped")
def test_class_weights_count_for_the_most_probable_class(model, multiclass):
    model = clone(model).set_params(probability=True, multiclass=multiclass)
    check_class_weight_classifiers(type(model).__name__, model)


@pytest.fixture(scope="module")
def few_positives():
    rng = np.random.default_rng(0)
    y = (rng.random(1600) < 0.05).astype(int)
    X = rng.standard_normal((1600, 3))
    X[y == 1] += 0.7
    return X[:800], y[:800], X[800:], y[800:]


@pytest.mark.parametrize(
    "weights",
    [
        dict(class_weight="balanced"),
        dict(class_weight={0: 1e-2, 1: 0.2}),
        dict(multiclass="ovr", positive_weight=20.0),
    ],
)
@pytest.mark.parametrize("machine", [SVC, MKLClassifier])
def test_recall_of_a_rare_class_survives_probabilities(few_positives, machine, weights):
    X, y, X_test, y_test = few_positives
    model = machine(**weights)
    plain = recall_score(y_test, model.fit(X, y).predict(X_test))
    model.set_params(probability=True, random_state=0).fit(X, y)
    recall = recall_score(y_test, model.predict(X_test))
    assert plain > 0.4
    assert recall > plain - 0.1


def test_equal_weights_of_classes_leave_sigmoids_alone(blobs):
    X, y, *_ = blobs
    settings = dict(gamma=0.1, tol=1e-7, probability=True, random_state=0)
    plain = SVC(**settings).fit(X, y)
    equal = SVC(C=100.0, class_weight=dict.fromkeys(range(5), 0.01), **settings)
    equal.fit(X, y)
    np.testing.assert_allclose(equal.probA_, plain.probA_, rtol=1e-4)
    np.testing.assert_allclose(equal.probB_, plain.probB_, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "weights", [dict(class_weight={0: 1.0, 1: 7.0}), dict(positive_weight=7.0)]
)
def test_sigmoids_count_samples_as_machines_do(few_positives, weights):
    X, y, X_test, _ = few_positives
    settings = dict(multiclass="ovr", tol=1e-7, probability=True, random_state=0)
    by_side = SVC(**weights, **settings).fit(X, y)
    # The same bounds, by weights of samples whose sum is their number.
    bound = np.where(y == 1, 7.0, 1.0)
    by_sample = SVC(C=bound.mean(), **settings)
    by_sample.fit(X, y, sample_weight=bound / bound.mean())
    np.testing.assert_allclose(
        by_side.predict_proba(X_test), by_sample.predict_proba(X_test), atol=1e-6
    )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_precomputed(blobs, scheme):
    X, y, X_test, _ = blobs
    settings = dict(**scheme, probability=True, random_state=0)
    plain = SVC(gamma=0.1, **settings).fit(X, y)
    given = SVC(kernel="precomputed", **settings).fit(rbf_kernel(X, gamma=0.1), y)
    K = rbf_kernel(X_test, X, gamma=0.1)
    np.testing.assert_allclose(
        given.predict_proba(K), plain.predict_proba(X_test), atol=1e-3
    )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_linear_weights_of_the_features(blobs, scheme):
    X, y, X_test, _ = blobs
    model = SVC(
        kernel="linear", decision_function_shape="ovo", random_state=0, **scheme
    )
    model.fit(X, y)
    found = X_test @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(found, model.decision_function(X_test), atol=1e-8)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_agreement_on_mnist(mnist, multiclass):
    X, y = mnist
    settings = dict(C=10, gamma=0.02)
    ours = SVC(**settings, multiclass=multiclass).fit(X[:1500], y[:1500])
    theirs = TheirSVC(**settings)
    if multiclass == "ovr":
        theirs = OneVsRestClassifier(theirs)
    theirs.fit(X[:1500], y[:1500])
    same = ours.predict(X[50000:52000]) == theirs.predict(X[50000:52000])
    assert same.mean() >= 0.999


def test_hundred_classes(rng):
    centers = 3 * rng.standard_normal((100, 8))
    y = np.repeat(np.arange(100), 12)
    X = centers[y] + rng.standard_normal((1200, 8))
    ours, theirs = SVC(tol=1e-5).fit(X, y), TheirSVC(tol=1e-5).fit(X, y)
    assert ours.converged_
    assert ours.dual_coef_.shape == theirs.dual_coef_.shape
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.999


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (dict(), dict(multiclass="ovr"), "multiclass='ovr' was set after fit"),
        (dict(multiclass="ovr"), dict(multiclass="ovo"), "multiclass='ovo' was set"),
        (dict(), dict(decode="barycentre"), "decode='barycentre' was set after fit"),
        (dict(), dict(probability=True), "decode='platt' was set after fit"),
        (dict(), dict(kernel=np.dot), "kernel=.*dot.* was set after fit"),
    ],
)
def test_what_is_set_after_fit(blobs, before, after, message):
    X, y, _, _ = blobs
    model = SVC(**before).fit(X, y).set_params(**after)
    with pytest.raises(NotFittedError, match=message):
        model.predict(X)


def test_nothing_is_left_of_an_earlier_fit(blobs):
    X, y, _, _ = blobs
    model = SVC(probability=True).fit(X, y)
    model.set_params(probability=False).fit(-X, y).set_params(probability=True)
    with pytest.raises(NotFittedError, match="fitted with probability=False"):
        model.predict_proba(X)
    assert model.probA_.shape == model.probB_.shape == (0,)


def test_histograms_only_for_prediction_too(blobs):
    X, y, _, _ = blobs
    model = SVC(kernel="0.5 * chi2@[0, 2] + linear").fit(np.abs(X), y)
    with pytest.raises(ValueError, match=r"Chi2 is for histograms: .* least is -"):
        model.predict(X)


def test_nearest_means_of_what_is_no_number():
    def alike(A, B):
        return np.array([[1.0 * (a == b) for b in B] for a in A])

    model = SVC(kernel=alike, multiclass="ovr", decode="barycentre")
    with pytest.raises(ValueError, match="'barycentre' needs samples that are numbers"):
        model.fit(["a", "b", "c"], [0, 1, 2])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, np.ndarray.tolist])
@pytest.mark.parametrize("options", [{}, {"probability": True}, {"break_ties": True}])
def test_many_decision_values_are_decided_in_parts(blobs, options, form, monkeypatch):
    X, y, X_test, _ = blobs
    X = sparse.csr_array(X) if form is sparse.csr_array else X
    model = SVC(random_state=0, **options).fit(X, y)
    at_once = model.predict(form(X_test))
    monkeypatch.setattr(classifier, "MOST_DECISIONS", 70)  # seven rows of ten machines
    np.testing.assert_array_equal(model.predict(form(X_test)), at_once)


def test_parts_keep_the_names_of_columns(blobs, monkeypatch):
    X, y, X_test, _ = blobs
    frame, test = (pd.DataFrame(a).rename(columns="c{}".format) for a in (X, X_test))
    model = SVC().fit(frame, y)
    at_once = model.predict(test)
    monkeypatch.setattr(classifier, "MOST_DECISIONS", 70)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # scikit-learn warns of names that are missing
        np.testing.assert_array_equal(model.predict(test), at_once)


def test_a_wrong_value_is_named_where_it_is_before_parts_are_made(blobs, monkeypatch):
    X, y, X_test, _ = blobs
    model = SVC().fit(X, y)
    monkeypatch.setattr(classifier, "MOST_DECISIONS", 70)
    X_test = X_test.copy()
    X_test[50, 1] = np.nan
    with pytest.raises(ValueError, match="Row 50"):
        model.predict(X_test)


@pytest.mark.parametrize("portion", [1, 500, 2**20])
@pytest.mark.parametrize("scheme", SCHEMES[:3], ids=str)
@pytest.mark.parametrize("machine", [SVC(), NuSVC(nu=0.35)], ids=str)
@pytest.mark.filterwarnings("ignore:The margin of")
def test_portions_do_not_show(blobs, machine, scheme, portion, monkeypatch):
    X, y, X_test, _ = blobs
    model = clone(machine).set_params(probability=True, random_state=0, **scheme)
    expected = model.fit(X, y).predict_proba(X_test)
    coef, objective = model.dual_coef_, model.objective_
    monkeypatch.setattr(classifier, "PORTION", portion)
    model.fit(X, y)
    np.testing.assert_array_equal(model.dual_coef_, coef)
    np.testing.assert_array_equal(model.objective_, objective)
    np.testing.assert_array_equal(model.predict_proba(X_test), expected)
