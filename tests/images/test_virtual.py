import logging
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import mercer
from certificate import certify, kernel_matrix
from faults import Fault, moments
from mercer import SVC
from mercer.images import HOG, Distort, Rescale, Views, VirtualSVC
from mercer.runtime import progress

DISTORTION = Distort(elastic=0.3, smoothness=2)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X.flags.writeable = y.flags.writeable = False
    return X[:300].astype(np.float32), y[:300]


def pipeline(**more):
    return make_pipeline(HOG(2, 2, interpolation=True), SVC(C=5, **more))


def joined_by_hand(X, rows, n_copies, seed):
    """Return the samples of the second machine, before the features."""
    random = np.random.RandomState(seed)
    parts = [X[rows]]
    for _ in range(n_copies):
        own = clone(DISTORTION).set_params(random_state=random.randint(2**31 - 1))
        parts.append(own.fit_transform(X[rows]))
    return np.concatenate(parts)


def test_equals_the_steps_by_hand(digits):
    X, y = digits
    model = VirtualSVC(pipeline(), DISTORTION, 3, random_state=7).fit(X, y)
    first = pipeline().fit(X, y)
    rows = np.unique(first[-1].support_)
    assert 10 < len(rows) < len(y)
    assert_array_equal(model.copied_, rows)
    assert model.n_virtual_ == 3 * len(rows)
    second = SVC(C=5).fit(
        first[:-1].transform(joined_by_hand(X, rows, 3, 7)), np.tile(y[rows], 4)
    )
    found = model.estimator_[-1]
    assert_array_equal(found.support_, second.support_)
    assert_array_equal(found.dual_coef_, second.dual_coef_)
    assert_array_equal(
        model.decision_function(X), second.decision_function(first[:-1].transform(X))
    )
    assert_array_equal(model.predict(X), second.predict(first[:-1].transform(X)))
    assert model.score(X, y) > 0.99


@pytest.mark.parametrize("most, n_copies", [(10**6, 3), (1000, 2), (599, 1), (2, 1)])
def test_fewer_copies_where_there_are_many_samples(most, n_copies, digits):
    X, y = digits
    model = VirtualSVC(
        pipeline(), DISTORTION, 3, "all", max_samples=most, random_state=7
    ).fit(X, y)
    assert model.n_virtual_ == n_copies * len(y)


@pytest.mark.parametrize("copied", ["support", "all"])
def test_the_second_machine_is_certified(copied, digits):
    X, y = digits[0].astype(float), digits[1]
    gamma, tol = 0.05, 1e-6
    estimator = pipeline(gamma=gamma, tol=tol)
    model = VirtualSVC(estimator, DISTORTION, 2, copied, random_state=0).fit(X, y)
    rows = model.copied_
    if copied == "all":
        assert_array_equal(rows, np.arange(len(y)))
    F = model.estimator_[:-1].transform(joined_by_hand(X, rows, 2, 0))
    K = kernel_matrix(F, F, "rbf", gamma=gamma)
    bound = np.full(len(F), 5.0)
    machine = model.estimator_[-1]
    _, gap = certify(machine, lambda a, b: K[np.ix_(a, b)], np.tile(y[rows], 3), bound)
    assert gap <= 2 * tol
    assert model.converged_
    assert np.max(model.kkt_gap_) <= tol
    assert_array_equal(model.dual_gap_, machine.dual_gap_)


@pytest.mark.parametrize("seed", range(3))
def test_copies_move_the_boundary(seed, digits):
    X, y = digits
    test, truth = load_digits(return_X_y=True)
    test, truth = test[900:], truth[900:]
    distortion = Distort(elastic=0.3, smoothness=2, shift=0.3)
    distorted = clone(distortion).set_params(random_state=100 + seed)
    distorted = distorted.fit_transform(test)
    # Pixels, unlike histograms of gradients, change much under small distortions.
    plain = SVC(C=5).fit(X, y)
    model = VirtualSVC(SVC(C=5), distortion, 6, "all", random_state=seed).fit(X, y)
    assert model.score(test, truth) > plain.score(test, truth) + 0.005
    assert model.score(distorted, truth) > plain.score(distorted, truth) + 0.02
    plain = pipeline().fit(X, y)
    model = VirtualSVC(pipeline(), distortion, 6, "all", random_state=seed).fit(X, y)
    assert model.score(distorted, truth) > plain.score(distorted, truth) + 0.01


def test_without_features_and_in_any_form(digits):
    X, y = digits
    model = VirtualSVC(SVC(C=5), DISTORTION, 2, random_state=0).fit(X, y)
    stack = X.reshape(-1, 8, 8)
    other = clone(model).fit(stack, y)
    assert_array_equal(other.decision_function(stack), model.decision_function(X))
    assert model.n_features_in_ == other.n_features_in_ == 64
    short = clone(model).set_params(estimator=make_pipeline(SVC(C=5))).fit(X, y)
    assert_array_equal(short.predict(X), model.predict(X))


def test_views_keep_their_names(digits):
    X, y = digits
    views = Views(raw=Rescale((0, 16)), hog=HOG(2, 2))
    machine = SVC(C=5, kernel="rbf@raw * rbf(sigma=4)@hog")
    model = VirtualSVC(make_pipeline(views, machine), DISTORTION, 2, random_state=0)
    assert model.fit(X, y).score(X, y) > 0.99
    with pytest.raises(ValueError, match="tail"):
        model.set_params(estimator__svc__kernel="rbf@tail").fit(X, y)


def test_colour(rng):
    X = rng.integers(0, 256, (40, 8, 8, 3), dtype=np.uint8)
    y = np.arange(40) % 2
    steps = make_pipeline(HOG(4, 2), SVC())
    model = VirtualSVC(steps, DISTORTION, 2, "all", random_state=0).fit(X, y)
    F = HOG(4, 2).fit_transform(joined_by_hand(X, np.arange(40), 2, 0))
    expected = SVC().fit(F, np.tile(y, 3)).decision_function(F[:40])
    assert_array_equal(model.decision_function(X), expected)
    grey = X.mean(axis=-1, keepdims=True).astype(np.uint8).repeat(3, axis=-1)
    assert abs(model.decision_function(grey) - expected).max() > 0.1


def test_weights_belong_to_samples_and_copies(digits):
    X, y = digits
    weight = np.where(y < 5, 0.5, 2.0)
    model = VirtualSVC(pipeline(), DISTORTION, 2, "all", random_state=0)
    model.fit(X, y, weight)
    F = model.estimator_[:-1].transform(joined_by_hand(X, np.arange(len(y)), 2, 0))
    expected = SVC(C=5).fit(F, np.tile(y, 3), np.tile(weight, 3))
    assert_array_equal(model.estimator_[-1].dual_coef_, expected.dual_coef_)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        model.fit(X, y, -weight)


def test_distortions_without_a_seed(digits):
    X, y = digits

    def mirrored(X):
        return X.reshape(-1, 8, 8)[:, :, ::-1].reshape(-1, 64)

    model = VirtualSVC(SVC(), FunctionTransformer(mirrored), 1, "all").fit(X, y)
    assert_array_equal(model.predict(mirrored(X)), model.predict(X))


def test_seeds(digits):
    X, y = digits
    models = [VirtualSVC(pipeline(), n_copies=1, random_state=s) for s in (0, 0, 1)]
    first, same, other = (m.fit(X, y).decision_function(X) for m in models)
    assert_array_equal(first, same)
    assert abs(first - other).max() > 1e-3


def test_probabilities_need_a_machine_that_has_them(digits):
    X, y = digits
    assert not hasattr(VirtualSVC(SVC()), "predict_proba")
    model = VirtualSVC(SVC(probability=True), DISTORTION, 1, random_state=0)
    assert_allclose(model.fit(X[:150], y[:150]).predict_proba(X[:5]).sum(axis=1), 1)


def test_parameters_can_be_searched_and_models_kept(digits, tmp_path):
    X, y = digits
    model = VirtualSVC(pipeline(), DISTORTION, 1, random_state=0)
    grid = {"estimator__svc__C": [0.1, 5], "distortion__rotation": [0, 8]}
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    assert search.best_params_["estimator__svc__C"] == 5
    best = search.best_estimator_
    assert_array_equal(pickle.loads(pickle.dumps(best)).predict(X), best.predict(X))
    mercer.save(best, tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    assert_array_equal(loaded.predict(X), best.predict(X))


def test_machines_without_support_vectors(digits):
    X, y = digits
    model = VirtualSVC(LogisticRegression(), DISTORTION, 1)
    with pytest.raises(TypeError, match=r"LogisticRegression has no .* copied='all'"):
        model.fit(X, y)
    assert model.set_params(copied="all").fit(X, y).score(X, y) > 0.9


def test_one_copy_of_each_sample(digits):
    X, y = digits
    half = FunctionTransformer(lambda X: X[::2])
    with pytest.raises(ValueError, match=r"made \d+ copies of \d+ samples"):
        VirtualSVC(SVC(), half, 1).fit(X, y)


@pytest.mark.parametrize(
    "parameters", [{"n_copies": 0}, {"copied": "some"}, {"distortion": "elastic"}]
)
def test_wrong_parameters(parameters, digits):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'{name}' parameter of VirtualSVC"):
        VirtualSVC(**parameters).fit(*digits)


def test_an_interrupted_fit_changes_nothing(digits):
    X, y = digits[0][:60], digits[1][:60]
    model = VirtualSVC(SVC(), DISTORTION, 2, random_state=0).fit(X, y)
    before = dict(vars(model))
    places, other = ["images/virtual.py"], clone(model)
    for moment in moments(lambda: other.fit(X, y), places, 12):
        with Fault(KeyboardInterrupt, places, moment) as fault:
            model.fit(X, y[::-1])
        assert fault.count == moment
        assert all(vars(model)[name] is value for name, value in before.items())


def test_progress_is_logged(digits, monkeypatch, caplog):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    model = VirtualSVC(SVC(), DISTORTION, 2, "all", random_state=0, verbose=True)
    with caplog.at_level(logging.INFO, logger="mercer"):
        model.fit(*digits)
    lines = [record.getMessage() for record in caplog.records]
    assert "300 samples are copied" in lines[0]
    assert "2 of 2 copies are made" in lines[2]
    assert lines[3].endswith("with 600 copies")
